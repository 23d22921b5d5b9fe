//! One connection of a worker's device to the bot: its open orders and their answers, and the
//! pace of its worker.

use super::searcher::Proof;
use super::wire::{Hello, LARGEST_ANSWER, MAX_HITS};
use npubbot_miner::search::orders::{Answer, MAX_STARTS, Refusal, WireError, decode};
use npubbot_miner::search::{LaunchReport, RemoteId};
use npubbot_miner::token_bucket::TokenBucket;
use std::collections::VecDeque;
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};
use tokio::sync::watch;

/// Time limit for the answer to an order. Orders are sent two seconds ahead.
pub const ANSWER_TIMEOUT: Duration = Duration::from_secs(10);
/// Time after which a silent device counts as gone.
pub const SILENCE: Duration = Duration::from_secs(7);
/// Answers to no open order that are excused as late ones: how many a second, and how many at once.
const STRAYS: (u32, u32) = (1, 128);

/// Why a session has ended.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum End {
    /// The worker, the server or the bot went away. It may come back.
    Gone(String),
    /// The worker does nothing with its orders. It may come back later.
    Useless(String),
    /// The worker is not believed any more.
    Distrusted(String),
}

impl End {
    /// The reason, for the operator.
    pub fn reason(&self) -> &str {
        let (End::Gone(reason) | End::Useless(reason) | End::Distrusted(reason)) = self;
        reason
    }
}

/// A connection of a device, shared by its searcher and the bot's connection to the server.
pub struct Session {
    /// The device.
    pub id: RemoteId,
    /// The device's hello, as received.
    pub hello: Hello,
    /// The limit on its worker's start points.
    pub pace: Arc<Pace>,
    /// What the device's hits have proven, in all its sessions.
    pub proof: Arc<Mutex<Proof>>,
    state: Mutex<State>,
    changed: Condvar,
    over: watch::Sender<bool>,
}

struct State {
    orders: VecDeque<OpenOrder>,
    last_seen: Instant,
    strays: TokenBucket,
    has_answered: bool,
    end: Option<End>,
}

/// An order in transit.
struct OpenOrder {
    number: u64,
    starts: usize,
    sent: Instant,
    answer: Option<LaunchReport>,
}

impl State {
    /// Counts an answer to no open order. A few are excused, because they may be late answers.
    fn stray(&mut self, now: Instant) -> Result<(), End> {
        if self.strays.take(now).is_zero() {
            return Ok(());
        }
        Err(End::Distrusted("it floods the bot with answers to no order of its".to_owned()))
    }
}

impl Session {
    /// The session that a hello begins.
    pub fn new(id: RemoteId, hello: Hello, pace: Arc<Pace>, proof: Arc<Mutex<Proof>>) -> Session {
        let state = State {
            orders: VecDeque::new(),
            last_seen: Instant::now(),
            strays: TokenBucket::new(STRAYS.0, STRAYS.1),
            has_answered: false,
            end: None,
        };
        let (changed, over) = (Condvar::new(), watch::Sender::new(false));
        Session { id, hello, pace, proof, state: Mutex::new(state), changed, over }
    }

    /// Ends the session. The first reason stays.
    pub fn end(&self, end: End) {
        self.lock().end.get_or_insert(end);
        self.changed.notify_all();
        self.over.send_replace(true);
    }

    /// Waits for the end of the session.
    pub async fn over(&self) {
        // The sender lives as long as the session.
        let _ = self.over.subscribe().wait_for(|is_over| *is_over).await;
    }

    /// Why the session has ended, if it has.
    pub fn ended(&self) -> Option<End> {
        self.lock().end.clone()
    }

    /// Whether any order was answered.
    pub fn has_answered(&self) -> bool {
        self.lock().has_answered
    }

    /// Notes a sign of life.
    pub fn seen(&self) {
        self.lock().last_seen = Instant::now();
    }

    /// Ends the session of a device that is silent.
    pub fn end_if_silent(&self) {
        if self.lock().last_seen.elapsed() > SILENCE {
            self.end(End::Gone(format!("no sign of life for {} s", SILENCE.as_secs())));
        }
    }

    /// Notes an order that is sent now.
    pub fn note_order(&self, number: u64, starts: usize) {
        self.lock().orders.push_back(OpenOrder { number, starts, sent: Instant::now(), answer: None });
    }

    /// Takes an answer of the device. A refusal, or bytes that no honest worker sends, end the
    /// session.
    pub fn accept(&self, bytes: &[u8]) {
        if let Err(end) = self.take(bytes) {
            self.end(end);
        }
    }

    fn take(&self, bytes: &[u8]) -> Result<(), End> {
        let distrusted = |what: &str| End::Distrusted(format!("its answer is none: {what}"));
        // Decodes without holding the lock.
        let answer: Answer =
            decode(bytes, LARGEST_ANSWER).map_err(|error: WireError| distrusted(&error.to_string()))?;
        let now = Instant::now();
        let mut state = self.lock();
        state.last_seen = now;
        let open = state.orders.iter().position(|order| order.number == answer.order && order.answer.is_none());
        let Some(open) = open else { return state.stray(now) };
        let found = match answer.result {
            Ok(found) => found,
            Err(Refusal::Patterns) => return Err(End::Gone("it lacks the patterns; they are sent again".to_owned())),
            Err(Refusal::Starts) => return Err(End::Useless("it refuses its number of start points".to_owned())),
            Err(Refusal::Device) => return Err(End::Useless("its device failed".to_owned())),
        };
        found.check(state.orders[open].starts, MAX_HITS).map_err(|error| distrusted(&error.to_string()))?;
        state.has_answered = true;
        state.orders[open].answer = Some(found);
        drop(state);
        self.changed.notify_all();
        Ok(())
    }

    /// Waits for the answer to the oldest order. Returns it with the time since the order was sent.
    pub fn wait(&self) -> Result<(LaunchReport, Duration), End> {
        let mut state = self.lock();
        loop {
            if let Some(end) = &state.end {
                return Err(end.clone());
            }
            let Some(oldest) = state.orders.front_mut() else {
                return Err(End::Gone("nothing was ordered".to_owned()));
            };
            let age = oldest.sent.elapsed();
            if let Some(found) = oldest.answer.take() {
                state.orders.pop_front();
                return Ok((found, age));
            }
            let Some(left) = ANSWER_TIMEOUT.checked_sub(age).filter(|left| !left.is_zero()) else {
                drop(state);
                self.end(End::Useless(format!("no answer to an order for {} s", ANSWER_TIMEOUT.as_secs())));
                state = self.lock();
                continue;
            };
            state = self.changed.wait_timeout(state, left).unwrap_or_else(PoisonError::into_inner).0;
        }
    }

    /// Sleeps for this time, or until the session ends.
    pub fn pause(&self, time: Duration) {
        let until = Instant::now() + time;
        let mut state = self.lock();
        while state.end.is_none() {
            let left = until.saturating_duration_since(Instant::now());
            if left.is_zero() {
                return;
            }
            state = self.changed.wait_timeout(state, left).unwrap_or_else(PoisonError::into_inner).0;
        }
    }

    fn lock(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Start points a second for all devices and sessions of a worker together. Eight GPUs with
/// launches of 20 ms use 8,800.
const STARTS_PER_SECOND: u32 = 10_000;
/// Start points that a worker may take at once. Every device begins with a few orders.
const STARTS_AT_ONCE: u32 = 20_000;

const _: () = assert!(STARTS_AT_ONCE as usize > 8 * MAX_STARTS);

/// The start points that a worker may still take. Each costs the vault a multiplication, and the
/// worker chooses how many are in an order and how fast it answers. All its devices share this
/// limit, and it outlives their sessions.
pub type Pace = Mutex<TokenBucket>;

/// The pace of a worker that is new.
pub fn new_pace() -> Arc<Pace> {
    Arc::new(Mutex::new(TokenBucket::new(STARTS_PER_SECOND, STARTS_AT_ONCE)))
}

#[cfg(test)]
mod tests {
    use super::*;
    use npubbot_miner::key::{Offset, Rotation, Tweak};
    use npubbot_miner::search::ClaimedHit;
    use npubbot_miner::search::orders::encode;

    fn session() -> Session {
        let hello = Hello::of_a_test(1, 2);
        Session::new(RemoteId { worker: "ann".parse().unwrap(), device: 0 }, hello, new_pace(), Arc::default())
    }

    fn answer(order: u64, result: Result<LaunchReport, Refusal>) -> Vec<u8> {
        encode(&Answer { order, result }).unwrap()
    }

    fn found(start: usize) -> Result<LaunchReport, Refusal> {
        let tweak = Tweak { offset: Offset::of_point(1, 1, Rotation::ALL[0]), rotation: Rotation::ALL[0] };
        Ok(LaunchReport { candidates: 9, hits: vec![ClaimedHit { start, tweak }], ..LaunchReport::default() })
    }

    #[test]
    fn answers_are_handed_on_in_the_order_of_the_orders() {
        let session = session();
        session.note_order(5, 2);
        session.note_order(6, 2);
        session.accept(&answer(6, found(1)));
        session.accept(&answer(5, found(0)));
        assert_eq!(session.wait().unwrap().0.hits[0].start, 0);
        assert_eq!(session.wait().unwrap().0.hits[0].start, 1);
        assert!(session.has_answered() && session.ended().is_none());
        assert!(matches!(session.wait(), Err(End::Gone(_))), "nothing is open");
    }

    #[test]
    fn a_hit_outside_of_its_order_and_bytes_that_are_no_answer_end_the_session() {
        for bad in [answer(5, found(2)), vec![0xff; 40], vec![0; LARGEST_ANSWER + 1], Vec::new()] {
            let session = session();
            session.note_order(5, 2);
            session.accept(&bad);
            assert!(matches!(session.ended(), Some(End::Distrusted(_))), "{:?}", session.ended());
            assert!(matches!(session.wait(), Err(End::Distrusted(_))));
        }
    }

    #[test]
    fn late_answers_are_dropped_and_a_flood_of_them_ends_the_session() {
        let session = session();
        session.note_order(5, 2);
        for _ in 0..STRAYS.1 {
            session.accept(&answer(4, found(0)));
        }
        assert_eq!(session.ended(), None);
        session.accept(&answer(5, found(0)));
        for _ in 0..STRAYS.1 {
            // A second answer to an order counts as an answer to none.
            session.accept(&answer(5, found(1)));
        }
        assert!(matches!(session.ended(), Some(End::Distrusted(_))));
    }

    #[test]
    fn a_refusal_ends_the_session_and_is_no_lie() {
        for refusal in [Refusal::Patterns, Refusal::Starts, Refusal::Device] {
            let session = session();
            session.note_order(5, 2);
            session.accept(&answer(5, Err(refusal)));
            assert!(!matches!(session.ended(), None | Some(End::Distrusted(_))), "{refusal:?}");
            assert!(!session.has_answered());
        }
    }

    #[test]
    fn a_waiting_searcher_hears_of_the_end() {
        let session = Arc::new(session());
        session.note_order(5, 2);
        let other = Arc::clone(&session);
        let waiting = std::thread::spawn(move || other.wait().unwrap_err());
        session.end(End::Gone("the server is away".to_owned()));
        session.end(End::Distrusted("later".to_owned()));
        assert_eq!(waiting.join().unwrap(), End::Gone("the server is away".to_owned()));
    }

    #[test]
    fn start_points_of_a_worker_are_paced_however_they_are_asked_for() {
        for starts in [1, 22, MAX_STARTS] {
            let (pace, began) = (new_pace(), Instant::now());
            let (mut now, mut drawn) = (began, 0);
            while now < began + Duration::from_secs(60) {
                now += pace.lock().unwrap().take_many(now, starts as u32);
                drawn += starts;
            }
            let most = STARTS_PER_SECOND as usize * 60 + STARTS_AT_ONCE as usize + starts;
            assert!((most - 2 * starts..=most).contains(&drawn), "{drawn} of {most}");
        }
    }
}
