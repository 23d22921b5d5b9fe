//! The task that asks peers, and withdraws requests that are no longer wanted.

use super::book::Book;
use super::table::Held;
use crate::bot::{Reply, notices, request_to_peer};
use crate::job::{Asker, HandOver, JobId};
use crate::key::{HalfPoint, Npub, StartPoint};
use crate::ledger::{Job, LedgerError, PeerRequest, PeerRequestState};
use crate::message::{Channel, OutgoingMessage};
use crate::pattern::Difficulty;
use crate::scheduler::Scheduler;
use crate::service::compose;
use crate::service::context::Context;
use crate::shutdown::Shutdown;
use crate::vault::{StartId, VaultError};
use std::collections::BTreeSet;
use std::sync::Arc;
use std::time::{Duration, Instant};
use thiserror::Error;

/// Time between two rounds.
const ROUND: Duration = Duration::from_secs(10);
/// Time for which a job that takes too long here waits for a peer with room, in seconds.
const WAIT_FOR_ROOM: u64 = 3600;
/// The most draws until a start point has an even y; half of all points have one.
const DRAWS: usize = 64;

/// The task that asks peers.
#[derive(Clone)]
pub(in crate::service) struct Rounds {
    pub context: Context,
    pub scheduler: Arc<Scheduler>,
}

/// A reason why a round ended early. The next round goes on.
#[derive(Debug, Error)]
enum RoundError {
    #[error(transparent)]
    Ledger(#[from] LedgerError),
    #[error(transparent)]
    Vault(#[from] VaultError),
}

impl Rounds {
    /// Runs until shutdown. After the shutdown the start secrets are gone, so the next start
    /// withdraws the requests in the ledger.
    pub async fn run(self, mut shutdown: Shutdown) {
        let began = (Instant::now(), self.context.clock.now());
        loop {
            // A wall clock that jumps ahead must end no job. So the time is at most the time of the
            // start plus the time measured since.
            let now = self.context.clock.now().min(began.1 + began.0.elapsed().as_secs());
            if let Err(error) = self.round(now) {
                tracing::warn!(%error, "peers could not be asked yet");
            }
            tokio::select! {
                () = shutdown.stopped() => break,
                () = self.context.wakes.peers.woken() => {}
                () = tokio::time::sleep(ROUND) => {}
            }
        }
        let starts = self.context.peers.clear();
        if !starts.is_empty() {
            self.context.vault.discard(&starts);
        }
    }

    fn round(&self, now: u64) -> Result<(), RoundError> {
        let Context { ledger, vault, peers, .. } = &self.context;
        let process = vault.process_id();
        if process.is_none() && peers.held().iter().any(|held| held.vault.is_some()) {
            // The vault process is being started again.
            return Ok(());
        }
        let (jobs, requests) = (ledger.handed_over()?, ledger.peer_requests()?);
        if jobs.is_empty() && requests.is_empty() {
            // Nothing to do: the usual case without peers.
            return Ok(());
        }
        let jobs: BTreeSet<JobId> = jobs.into_iter().collect();
        for request in requests.iter().filter(|request| request.state.is_open()) {
            self.review(request, &jobs, process)?;
        }
        ledger.clean_peer_requests()?;
        let mut book = self.book()?;
        for job in jobs {
            if !book.is_open(job) && self.hand_over(job, &book, now)? {
                // The room at the peer has changed.
                book = self.book()?;
            }
        }
        Ok(())
    }

    fn book(&self) -> Result<Book, LedgerError> {
        Ok(Book::new(self.context.ledger.peer_requests()?, self.context.clock.now()))
    }

    /// Withdraws an open request whose job has ended, whose start secret is gone, or whose time is
    /// up.
    fn review(&self, request: &PeerRequest, jobs: &BTreeSet<JobId>, process: Option<u32>) -> Result<(), RoundError> {
        let config = self.context.peers.config();
        let held = self.context.peers.held().into_iter().find(|held| held.rumor == request.rumor);
        let is_wanted = request.job.is_some_and(|job| jobs.contains(&job));
        let Some(held) = held.filter(|held| held.vault == process) else {
            return self.end(request, None, PeerRequestState::Over, "its start secret is gone");
        };
        if held.settling.is_some_and(|since| since.elapsed() < config.answer_within) {
            return Ok(());
        }
        if !is_wanted || !self.context.peers.is_one(request.peer) {
            return self.end(request, Some(held), PeerRequestState::Over, "it is no longer wanted");
        }
        match held.is_accepted {
            true if held.since.elapsed() >= config.key_within => {
                self.end(request, Some(held), PeerRequestState::Over, "no key came in time")
            }
            false if held.since.elapsed() >= config.answer_within => {
                self.context.peers.count(request.peer, |figures| figures.silent += 1);
                self.context.peers.rest(request.peer);
                self.end(request, Some(held), PeerRequestState::Refused, "the peer is silent")
            }
            _ => Ok(()),
        }
    }

    /// Ends a request. A deletion of our message tells the peer to stop, as an asker's would.
    fn end(
        &self,
        request: &PeerRequest,
        held: Option<Held>,
        state: PeerRequestState,
        why: &str,
    ) -> Result<(), RoundError> {
        let Context { ledger, vault, peers, wakes, .. } = &self.context;
        let retraction = vault.retract(request.peer, request.rumor, self.expiry())?;
        ledger.end_peer_request(request.rumor, state, Some(&retraction))?;
        peers.remove(request.rumor);
        if let Some(held) = held {
            vault.discard(&[held.start]);
        }
        tracing::info!(job = request.job.map_or(0, |job| job.0), why, "a request to a peer is withdrawn");
        wakes.outbox.wake();
        Ok(())
    }

    /// Asks the first peer that has room and has not refused the job. A job that takes too long
    /// here and that no peer takes is given up. Returns whether a peer was asked.
    fn hand_over(&self, job: JobId, book: &Book, now: u64) -> Result<bool, RoundError> {
        let peers = &self.context.peers;
        let willing = || peers.bots().iter().copied().filter(|peer| !book.is_refused(job, *peer));
        let next = willing().find(|peer| !peers.rests(*peer) && book.room_at(*peer) > 0);
        // The job waits for room at a peer.
        if next.is_none() && willing().next().is_some() && book.was_asked(job) {
            return Ok(false);
        }
        let Some(job) = self.context.ledger.open_job(job)? else { return Ok(false) };
        if let Some(peer) = next {
            return self.ask(&job, peer);
        }
        let waits = willing().next().is_some() && job.accepted_at + WAIT_FOR_ROOM > now;
        if job.spec.hand_over == Some(HandOver::TooLong) && !waits {
            self.give_up(&job)?;
        }
        Ok(false)
    }

    /// Asks a peer. Returns whether the job was still open.
    fn ask(&self, job: &Job, peer: Asker) -> Result<bool, RoundError> {
        let Context { ledger, vault, peers, wakes, .. } = &self.context;
        let process = vault.process_id();
        let (start, point) = self.even_start()?;
        let message = OutgoingMessage {
            to: peer,
            channel: Channel::Sealed,
            encryption_key: None,
            text: request_to_peer(&x_of(&point), &job.spec.patterns),
            in_reply_to: None,
            subject: None,
            expires_at: self.expiry(),
            not_before: 0,
        };
        let (wrap, rumor) = vault.seal_request(&message).inspect_err(|_| vault.discard(&[start]))?;
        if !ledger.ask_peer(job.id, peer, rumor, &wrap).inspect_err(|_| vault.discard(&[start]))? {
            // The job has ended meanwhile.
            vault.discard(&[start]);
            return Ok(false);
        }
        let (since, is_accepted, settling) = (Instant::now(), false, None);
        let id = job.id;
        peers.add(Held { rumor, peer, job: id, start, point, vault: process, since, is_accepted, settling });
        tracing::info!(job = %id, "a peer is asked to search too");
        wakes.outbox.wake();
        Ok(true)
    }

    /// A fresh start point with an even y, so that its x-coordinate is enough. The vault seals no
    /// text with the 66 hexadecimal digits of a whole point, because they could hide a key.
    fn even_start(&self) -> Result<(StartId, StartPoint), VaultError> {
        let vault = &self.context.vault;
        for _ in 0..DRAWS {
            let (start, point) = vault.open_start()?;
            if HalfPoint::new(*point.public_key()).serialize()[0] == 2 {
                return Ok((start, point));
            }
            vault.discard(&[start]);
        }
        Err(VaultError::NoRandomness)
    }

    fn expiry(&self) -> u64 {
        self.context.clock.now() + self.context.config.bot.answers_expire_after.as_secs()
    }

    /// Gives up a job that no peer takes. Its asker gets the answer they would have had without
    /// peers.
    fn give_up(&self, job: &Job) -> Result<(), RoundError> {
        let Context { ledger, vault, clock, wakes, .. } = &self.context;
        // If this bot has become faster since, it goes on alone.
        let Some(refusal) = self.refusal(job) else { return Ok(()) };
        let text = notices::not_taken(job, &refusal);
        let notice = vault.seal(&compose::about(job, text, clock.now(), &self.context))?;
        if ledger.expire(job.id, &notice)? {
            tracing::info!(job = %job.id, "given up: no peer takes it");
        }
        self.scheduler.remove(job.id);
        wakes.outbox.wake();
        wakes.status.wake();
        Ok(())
    }

    /// The refusal of a job that takes too long here. `None` if it no longer takes too long, or if
    /// no rate is measured.
    fn refusal(&self, job: &Job) -> Option<Reply> {
        let rate = self.scheduler.rate_for(&job.spec.patterns)?;
        let limit = self.context.config.limits.longest_expected_time;
        let expected = job.spec.difficulty()?.expected_time(rate)?;
        if expected <= limit {
            return None;
        }
        let of_prefixes = self.scheduler.rate()?;
        let within = |characters: &u32| {
            let expected = Difficulty::from_bits(5 * characters).expected_time(of_prefixes);
            expected.is_some_and(|expected| expected <= limit)
        };
        let characters = (1..=50).take_while(within).last().unwrap_or(0);
        Some(Reply::TooHard { expected, limit, characters, cheaper: None })
    }
}

/// The x-coordinate of a point.
fn x_of(point: &StartPoint) -> Npub {
    Npub(point.coordinates().0)
}
