//! The start points at which peers search, and counts of each peer's answers. Both are in memory
//! only: the start secrets are in the vault process and end with it.

use super::book::Book;
use crate::config::PeersConfig;
use crate::job::{Asker, JobId, RumorId};
use crate::key::{HalfPoint, StartPoint};
use crate::ledger::{Ledger, LedgerError};
use crate::vault::StartId;
use std::collections::HashMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

/// The most messages of one peer that are read in an hour. By default a bot sends an asker 60
/// answers an hour, and results besides.
const MESSAGES_AN_HOUR: u32 = 240;
const HOUR: Duration = Duration::from_secs(3600);

/// The configured peers and the table. Cheap to clone; clones share both.
#[derive(Clone, Debug, Default)]
pub(in crate::service) struct Peers(Arc<Shared>);

#[derive(Debug, Default)]
struct Shared {
    config: PeersConfig,
    table: Mutex<Table>,
}

#[derive(Debug, Default)]
struct Table {
    held: Vec<Held>,
    of_peer: HashMap<Asker, OfPeer>,
}

/// An open request to a peer, and the start point in it.
#[derive(Clone, Copy, Debug)]
pub(super) struct Held {
    /// The id of our message.
    pub rumor: RumorId,
    pub peer: Asker,
    pub job: JobId,
    pub start: StartId,
    pub point: StartPoint,
    /// Id of the process that holds the start secret; `None` if it is this process.
    pub vault: Option<u32>,
    /// Time at which the request was sent, or accepted.
    pub since: Instant,
    pub is_accepted: bool,
    /// Time at which the recording of the request's find began; `None` without a find.
    pub settling: Option<Instant>,
}

impl Held {
    /// The fingerprint by which a tweak names the start point.
    pub fn fingerprint(&self) -> [u8; 8] {
        HalfPoint::new(*self.point.public_key()).fingerprint()
    }
}

/// Counts of a peer's answers since the start of the service.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub(super) struct Figures {
    /// Keys from its tweaks.
    pub keys: u64,
    /// Requests that the peer refused.
    pub refused: u64,
    /// Requests that the peer did not answer.
    pub silent: u64,
    /// Tweaks that fit no open request, or no pattern of it.
    pub wrong: u64,
    /// Messages beyond a limit, which were not read.
    pub unread: u64,
}

#[derive(Debug, Default)]
struct OfPeer {
    figures: Figures,
    /// Time before which the peer gets no request.
    rests_until: Option<Instant>,
    /// The beginning of the hour in which messages are counted, and their number.
    read: Option<(Instant, u32)>,
}

impl Peers {
    /// The peers of a configuration, without this bot itself.
    pub fn new(mut config: PeersConfig, bot: Asker) -> Peers {
        let all = config.bots.len();
        config.bots.retain(|peer| *peer != bot);
        if config.bots.len() < all {
            tracing::warn!("a peer in relays.toml is this bot itself; it is left out");
        }
        Peers(Arc::new(Shared { config, table: Mutex::default() }))
    }

    /// The configuration.
    pub fn config(&self) -> &PeersConfig {
        &self.0.config
    }

    /// The keys of the peers.
    pub fn bots(&self) -> &[Asker] {
        &self.0.config.bots
    }

    /// Whether this author is a peer.
    pub fn is_one(&self, author: Asker) -> bool {
        self.bots().contains(&author)
    }

    /// Number of further jobs that can be handed over now: the requests that peers which do not
    /// rest may still get, minus the jobs that already wait for a peer.
    ///
    /// Errors: those of the ledger.
    pub fn places(&self, ledger: &Ledger, now: u64) -> Result<usize, LedgerError> {
        if self.bots().is_empty() {
            return Ok(0);
        }
        let book = Book::new(ledger.peer_requests()?, now);
        let room: usize = self.bots().iter().filter(|peer| !self.rests(**peer)).map(|peer| book.room_at(*peer)).sum();
        let waits = |job: &JobId| !book.is_open(*job) && !self.bots().iter().all(|peer| book.is_refused(*job, *peer));
        let waiting = ledger.handed_over()?.iter().filter(|job| waits(job)).count();
        Ok(room.saturating_sub(waiting))
    }

    /// The open requests.
    pub(super) fn held(&self) -> Vec<Held> {
        self.table().held.clone()
    }

    pub(super) fn add(&self, held: Held) {
        self.table().held.push(held);
    }

    pub(super) fn remove(&self, rumor: RumorId) {
        self.table().held.retain(|held| held.rumor != rumor);
    }

    /// Removes all requests, and returns their start points.
    pub(super) fn clear(&self) -> Vec<StartId> {
        std::mem::take(&mut self.table().held).iter().map(|held| held.start).collect()
    }

    /// Marks a request as accepted now.
    pub(super) fn accept(&self, rumor: RumorId) {
        self.change(rumor, |held| (held.is_accepted, held.since) = (true, Instant::now()));
    }

    /// Marks a request whose find is being recorded.
    pub(super) fn settle(&self, rumor: RumorId) {
        self.change(rumor, |held| held.settling = Some(Instant::now()));
    }

    fn change(&self, rumor: RumorId, change: impl FnOnce(&mut Held)) {
        if let Some(held) = self.table().held.iter_mut().find(|held| held.rumor == rumor) {
            change(held);
        }
    }

    /// Gives a peer that refused, or was silent, no request for a while.
    pub(super) fn rest(&self, peer: Asker) {
        let until = Instant::now() + self.config().answer_within;
        self.table().of_peer.entry(peer).or_default().rests_until = Some(until);
    }

    /// Whether a peer gets no request now.
    pub(super) fn rests(&self, peer: Asker) -> bool {
        let table = self.table();
        table.of_peer.get(&peer).and_then(|of| of.rests_until).is_some_and(|until| Instant::now() < until)
    }

    /// The counts of a peer.
    pub(super) fn figures(&self, peer: Asker) -> Figures {
        self.table().of_peer.get(&peer).map(|of| of.figures).unwrap_or_default()
    }

    /// Changes the counts of a peer. Only configured peers are counted.
    pub(super) fn count(&self, peer: Asker, change: impl FnOnce(&mut Figures)) {
        change(&mut self.table().of_peer.entry(peer).or_default().figures);
    }

    /// Whether a further message of a peer may be read at `now`. Each call counts one message.
    pub(super) fn may_read(&self, peer: Asker, now: Instant) -> bool {
        let mut table = self.table();
        let read = &mut table.of_peer.entry(peer).or_default().read;
        let (begin, count) = read.filter(|(begin, _)| now.saturating_duration_since(*begin) < HOUR).unwrap_or((now, 0));
        *read = Some((begin, count.saturating_add(1)));
        count < MESSAGES_AN_HOUR
    }

    fn table(&self) -> MutexGuard<'_, Table> {
        // No method leaves the table half changed.
        self.0.table.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn of_a_peer_a_bounded_number_of_messages_is_read_in_an_hour() {
        let (peers, began) = (Peers::default(), Instant::now());
        let read = |peer, now| (0..1000).filter(|_| peers.may_read(Asker([peer; 32]), now)).count();
        assert_eq!(read(1, began), MESSAGES_AN_HOUR as usize);
        assert_eq!(read(2, began), MESSAGES_AN_HOUR as usize, "each peer has its own");
        assert_eq!(read(1, began + HOUR - Duration::from_secs(1)), 0);
        assert_eq!(read(1, began + HOUR), MESSAGES_AN_HOUR as usize);
    }

    #[test]
    fn a_bot_is_no_peer_of_its_own() {
        let bots = vec![Asker([1; 32]), Asker([2; 32])];
        let peers = Peers::new(PeersConfig { bots, ..PeersConfig::default() }, Asker([1; 32]));
        assert_eq!(peers.bots(), [Asker([2; 32])]);
        assert!(!peers.is_one(Asker([1; 32])));
    }
}
