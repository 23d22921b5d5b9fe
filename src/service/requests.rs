//! Requests: each message is read, decided, answered and recorded in one transaction (T1), and only
//! then acted upon.

use super::answer_limits::{AnswerLimits, limited};
use super::backlog::{AT_ONCE, Backlog, Waiting};
use super::compose;
use super::context::Context;
use super::decided::Decided;
use crate::bot::{self, Decision, Facts, Reply, Request, SplitCost};
use crate::fault::{self, Step};
use crate::job::{Asker, JobId};
use crate::key::{Npub, WorkTarget};
use crate::ledger::{Answer, AskerView, Effect, LedgerError, Recorded};
use crate::memory;
use crate::message::{GiftWrap, WorkWanted};
use crate::nostr::{Flood, IncomingMessage};
use crate::scheduler::Scheduler;
use crate::vault::VaultError;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};
use thiserror::Error;
use tokio::sync::mpsc;

/// Pause before a failed transaction is tried again, for example on a full disk.
const TRY_AGAIN: Duration = Duration::from_millis(500);
/// Time between two lines of the log about one message that cannot be answered.
const TELL_AGAIN: Duration = Duration::from_secs(3600);
/// The most messages of one deletion that are recorded as deleted.
const MOST_TAKEN_BACK: usize = 8;
/// Pause before checking for new messages while others wait for their turn.
const HELD_PAUSE: Duration = Duration::from_millis(20);

/// Answers messages, on its own thread because it waits for the disk.
pub(super) struct Requests {
    context: Context,
    scheduler: Arc<Scheduler>,
    flood: Flood,
    limits: Mutex<AnswerLimits>,
}

/// A reason why a message could not be answered yet.
#[derive(Debug, Error)]
enum RequestError {
    #[error(transparent)]
    Ledger(#[from] LedgerError),
    #[error(transparent)]
    Vault(#[from] VaultError),
}

impl RequestError {
    /// Whether the message can be answered later.
    fn is_transient(&self) -> bool {
        match self {
            RequestError::Ledger(error) => error.is_transient(),
            RequestError::Vault(error) => matches!(error, VaultError::NoRandomness | VaultError::Gone),
        }
    }
}

impl Requests {
    /// Requests of a service.
    pub fn new(context: Context, scheduler: Arc<Scheduler>, flood: Flood) -> Requests {
        let limits = &context.config.limits;
        let limits = AnswerLimits::new(limits.answers_per_hour, limits.answers_per_second, Instant::now());
        Requests { context, scheduler, flood, limits: Mutex::new(limits) }
    }

    /// Answers messages until the channel closes or the service stops.
    /// Messages that arrived during one transaction share the next one. After a panic, messages that
    /// waited are answered after the next start of the bot.
    pub fn run(&self, messages: &mut mpsc::Receiver<IncomingMessage>) {
        let mut backlog = Backlog::new(self.context.access.clone(), self.context.pulse.clone());
        loop {
            self.context.roster.check("requests");
            if backlog.is_empty() {
                let Some(message) = messages.blocking_recv() else { return };
                backlog.push(message);
            }
            for _ in 0..AT_ONCE {
                let Ok(message) = messages.try_recv() else { break };
                backlog.push(message);
            }
            if self.context.shutdown.is_stopping() {
                // The relay still has these messages. They are answered after the next start.
                return;
            }
            let batch = backlog.take(&mut self.limits(), |asker| self.comes_first(asker), Instant::now());
            if batch.is_empty() {
                std::thread::sleep(HELD_PAUSE);
            } else {
                self.attend(&batch);
                tracing::debug!(heap = memory::heap_in_use(), "memory");
            }
        }
    }

    fn comes_first(&self, asker: Asker) -> bool {
        self.context.access.is_friend(asker)
            || self.context.ledger.asker_view(asker).is_ok_and(|asker| !asker.open.is_empty())
    }

    fn limits(&self) -> MutexGuard<'_, AnswerLimits> {
        // A panic elsewhere cannot leave the counts in a bad state.
        self.limits.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Answers messages in one transaction, or one by one if that fails.
    fn attend(&self, messages: &[Waiting]) {
        if messages.len() > 1 {
            match catch_unwind(AssertUnwindSafe(|| self.handle(messages))) {
                Ok(Ok(())) => return,
                Ok(Err(error)) => tracing::warn!(%error, "messages cannot be answered together"),
                Err(_) => {
                    tracing::error!("answering messages together panicked; one by one shows which it was");
                    self.make_up();
                }
            }
        }
        for message in messages {
            self.attend_one(message);
        }
    }

    /// Answers one message. No answer is given before it is recorded, so this waits while the disk
    /// is full, for example. A message that can never be recorded is dropped and holds up no other.
    fn attend_one(&self, waiting: &Waiting) {
        let (mut panics, mut told_at) = (0, None::<Instant>);
        loop {
            match catch_unwind(AssertUnwindSafe(|| self.handle(std::slice::from_ref(waiting)))) {
                Ok(Ok(())) => return,
                // A disk may be full for days, and a vault may wait for its passphrase.
                Ok(Err(error)) if error.is_transient() => {
                    if told_at.is_none_or(|told| told.elapsed() > TELL_AGAIN) {
                        told_at = Some(Instant::now());
                        tracing::error!(%error, "a message cannot be answered yet");
                    }
                }
                Ok(Err(error)) => {
                    let rumor = waiting.message.rumor.id;
                    return tracing::error!(?rumor, %error, "a message is left out until the next start");
                }
                Err(_) => {
                    panics += 1;
                    tracing::error!(rumor = ?waiting.message.rumor.id, panics, "answering a message panicked");
                    self.make_up();
                    if panics > 1 {
                        return self.apologise(&waiting.message);
                    }
                    continue;
                }
            }
            if self.context.shutdown.is_stopping() {
                return;
            }
            std::thread::sleep(TRY_AGAIN);
        }
    }

    /// Adds all open jobs to the scheduler again, in case a panic came between T1 and adding a job.
    fn make_up(&self) {
        match self.context.ledger.open_jobs() {
            Ok(open) => {
                for job in open {
                    self.scheduler.add(job.id, job.spec);
                }
            }
            Err(error) => tracing::error!(%error, "open jobs cannot be taken up again; they are at the next start"),
        }
        self.context.wakes.outbox.wake();
        self.context.wakes.status.wake();
    }

    /// Apologises for a message that panicked twice. If that fails too, the message arrives again
    /// at the next start.
    fn apologise(&self, message: &IncomingMessage) {
        let (rumor, asker) = (message.rumor.id, message.rumor.author);
        let apology = || -> Result<(), RequestError> {
            let Context { ledger, vault, clock, config, wakes, .. } = &self.context;
            let view = ledger.asker_view(asker)?;
            let apology = bot::notices::apology(view.language);
            let text = compose::answer(message, apology, clock.now(), &config.bot);
            let reply = if view.silent { None } else { Some(vault.seal(&text)?) };
            let seen_on = message.seen_on.clone();
            let (effect, ticket) = (Effect::Nothing, None);
            ledger.answer(&Answer { asker, rumor, seen_on, ticket, effect, reply, language: None })?;
            wakes.outbox.wake();
            Ok(())
        };
        match catch_unwind(AssertUnwindSafe(apology)) {
            Ok(Ok(())) => {}
            Ok(Err(error)) => tracing::error!(?rumor, %error, "a message is left out until the next start"),
            Err(_) => tracing::error!(?rumor, "a message is left out until the next start"),
        }
    }

    /// Decides new messages, seals the answers, records everything in one transaction (T1), and
    /// acts upon it.
    fn handle(&self, messages: &[Waiting]) -> Result<(), RequestError> {
        let _attending = self.context.pulse.attend();
        let ledger = &self.context.ledger;
        let mut next_job = ledger.next_job()?;
        let mut decided = Vec::with_capacity(messages.len());
        for Waiting { message, request, .. } in messages {
            if ledger.has_seen(message.rumor.author, message.rumor.id)? {
                continue;
            }
            fault::before(Step::Decide);
            let one = self.decide(message, request, next_job)?;
            fault::after(Step::Decide);
            next_job.0 += i64::from(matches!(one.effect, Effect::Accept(..)));
            decided.push(one);
        }
        if decided.is_empty() {
            return Ok(());
        }
        fault::before(Step::SealAnswer);
        let replies = self.seal(&decided)?;
        fault::after(Step::SealAnswer);
        let (mut answers, mut open, mut taken_back) = (Vec::new(), Vec::new(), Vec::new());
        for (one, reply) in decided.into_iter().zip(replies) {
            let Decided { asker, rumor, seen_on, ticket, effect, language, .. } = one;
            // Relays do not keep the order: a request may arrive after its own deletion. It is then
            // ignored.
            let nothing = |rumor| Answer {
                asker,
                rumor,
                seen_on: Vec::new(),
                ticket: None,
                effect: Effect::Nothing,
                reply: None,
                language: None,
            };
            taken_back.extend(one.taken_back.into_iter().map(nothing));
            answers.push(Answer { asker, rumor, seen_on, ticket, effect, reply, language });
            open.push(one.open);
        }
        answers.append(&mut taken_back);
        let recorded = self.context.ledger.answer_all(&answers)?;
        for ((answer, open), recorded) in answers.into_iter().zip(open).zip(recorded) {
            if recorded == Recorded::Now {
                if answer.reply.is_some() {
                    self.limits().count(answer.asker, Instant::now());
                }
                self.act(answer.effect, &open);
            }
        }
        Ok(())
    }

    fn decide(&self, message: &IncomingMessage, request: &Request, next_job: JobId) -> Result<Decided, RequestError> {
        let (rumor, author) = (message.rumor.id, message.rumor.author);
        let mut asker = self.context.ledger.asker_view(author)?;
        let (is_friend, limits) = self.context.limits_of(author);
        // Friends owe no proof of work.
        asker.known |= is_friend;
        let now = self.context.clock.now();
        let (shares, queue) = (self.scheduler.shares(author), self.scheduler.wait_estimate());
        let split = self.scheduler.split_queue(author);
        let facts = Facts {
            limits: &limits,
            asker: &asker,
            pool_jobs: shares.pool_jobs,
            split_jobs: shares.split_jobs,
            intervals: shares.intervals,
            text_tests: shares.text_tests,
            handed_on: shares.handed_on,
            rate: self.scheduler.rate(),
            whole_keys_rate: self.scheduler.whole_keys_rate(),
            next_job,
            half: match request.half() {
                Some(half) => self.context.ledger.half_use(&half)?,
                None => None,
            },
            pool_part: shares.pool_part,
            top_words_part: shares.top_words_part,
            whole_keys_part: shares.whole_keys_part,
            split_part: shares.part_of_one_more,
            own_split_part: shares.own_split_part,
            easy_bits: queue.up_to_bits,
            easy_wait: queue.wait,
            reads_sealed: message.reads_sealed,
            owes: self.owed(message, &asker),
            split_work: self.split_cost(request, split.work_bits.filter(|_| !is_friend)),
            split_place: split.place,
            hours: self.context.config.search.restraints.hours.as_ref(),
            is_stopped: self.scheduler.is_stopped(),
            now,
        };
        let decision = match bot::decide(request, &facts) {
            // The ledger before the restore may have answered this message.
            Decision::Accept { .. } if self.predates_restore(message)? => Decision::Say(Reply::Restored),
            decision => decision,
        };
        let is_request = matches!(decision, Decision::Accept { .. } | Decision::Say(Reply::WorkWanted(_)));
        if is_request && !asker.known && !message.paid {
            self.flood.note_new_asker(Instant::now());
        }
        let verdict = self.limits().verdict(author, Instant::now());
        let (effect, reply) = match decision {
            Decision::Ignore => (Effect::Nothing, None),
            Decision::Say(reply) => (Effect::Nothing, Some(reply)),
            Decision::Accept { spec, reply } => (Effect::Accept(next_job, spec), Some(reply)),
            Decision::Cancel { jobs, reply } => (Effect::Cancel(jobs), reply),
            Decision::Resend { job, reply } => (Effect::Resend(job), Some(reply)),
            Decision::Stop(reply) => (Effect::Stop, Some(reply)),
            Decision::Start(reply) => (Effect::Start, Some(reply)),
            Decision::Forget(reply) => (Effect::Forget, Some(reply)),
        };
        let (effect, reply) = limited(effect, reply, verdict, now);
        let language = request.language(asker.language);
        let text = reply.map(|reply| bot::answer(request, &reply, language));
        let reply = text.map(|text| compose::answer(message, text, now, &self.context.config.bot));
        // A message without an answer changes no language, and a forgotten asker has none.
        let is_kept = language != asker.language && reply.is_some() && !matches!(effect, Effect::Forget);
        let open = asker.open.iter().map(|job| job.id).collect();
        let taken_back = message.rumor.takes_back.iter().take(MOST_TAKEN_BACK).copied().collect();
        let (seen_on, language) = (message.seen_on.clone(), is_kept.then_some(language));
        let ticket = message.rumor.ticket.clone();
        Ok(Decided { asker: author, rumor, seen_on, ticket, effect, reply, language, taken_back, open })
    }

    /// The proof of work that a split request lacks; `None` if it needs no more.
    fn split_cost(&self, request: &Request, bits: Option<u32>) -> Option<SplitCost> {
        let bot = self.context.vault.public_key().to_bytes();
        let work = request.half().zip(request.split_work());
        let done = work.map_or(0, |(half, work)| WorkTarget::new(&bot, &half).bits(work));
        bits.filter(|&bits| done < bits).map(|bits| SplitCost { bits, bot: Npub(bot) })
    }

    /// Whether a message is older than a restore of the ledger.
    fn predates_restore(&self, message: &IncomingMessage) -> Result<bool, LedgerError> {
        Ok(self.context.ledger.restored_at()?.is_some_and(|at| message.rumor.created_at < at))
    }

    /// The work that a new asker owes during a flood. Askers who had a job owe none.
    fn owed(&self, message: &IncomingMessage, asker: &AskerView) -> Option<WorkWanted> {
        self.flood.wanted(Instant::now()).filter(|_| !asker.known && !message.paid)
    }

    /// Seals the replies in one call, because sealing is most of the work of an answer.
    fn seal(&self, decided: &[Decided]) -> Result<Vec<Option<GiftWrap>>, VaultError> {
        let replies = decided.iter().filter_map(|one| one.reply.clone()).collect();
        let mut sealed = self.context.vault.seal_all(replies)?.into_iter();
        Ok(decided.iter().map(|one| one.reply.as_ref().and_then(|_| sealed.next())).collect())
    }

    /// Acts upon a recorded answer. `open`: the asker's jobs before it.
    fn act(&self, effect: Effect, open: &[JobId]) {
        match effect {
            Effect::Nothing | Effect::Resend(_) | Effect::Start => {}
            Effect::Accept(job, spec) => {
                tracing::info!(%job, patterns = spec.patterns.len(), split = spec.half.is_some(), "accepted");
                fault::before(Step::Add);
                self.scheduler.add(job, spec);
                fault::after(Step::Add);
            }
            Effect::Cancel(jobs) => self.cancel(&jobs),
            Effect::Stop | Effect::Forget => self.cancel(open),
        }
        self.context.wakes.outbox.wake();
        self.context.wakes.status.wake();
    }

    fn cancel(&self, jobs: &[JobId]) {
        for &job in jobs {
            tracing::info!(%job, "cancelled");
            self.scheduler.remove(job);
        }
    }
}
