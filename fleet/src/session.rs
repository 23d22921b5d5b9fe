//! One connection of a worker's device to the bot: its open orders and their answers, its pings, and
//! the pace of its worker.

use super::searcher::Proof;
use super::wire::{FromWorker, Hello, LARGEST_ANSWER, MOST_HITS};
use npubbot_miner::search::orders::{MOST_STARTS, Refusal};
use npubbot_miner::search::{LaunchReport, RemoteId};
use npubbot_miner::token_bucket::TokenBucket;
use std::collections::VecDeque;
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant, SystemTime, UNIX_EPOCH};
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
    pings: Pings,
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
            pings: Pings::default(),
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

    /// Notes a ping that is sent now.
    pub fn note_ping(&self, number: u64) {
        self.lock().pings.send(number, Instant::now(), unix_millis());
    }

    /// The figures of the last ping that was answered, unless they are old.
    pub fn echo(&self, now: Instant) -> Option<Echo> {
        self.lock().pings.echo(now)
    }

    /// Takes a message of the device. A refusal, or a message that no honest worker sends, ends the
    /// session.
    pub fn accept(&self, bytes: &[u8]) {
        if let Err(end) = self.take(bytes) {
            self.end(end);
        }
    }

    fn take(&self, bytes: &[u8]) -> Result<(), End> {
        let distrusted = |what: &str| End::Distrusted(format!("its answer is none: {what}"));
        // Checks the size first, and decodes without holding the lock.
        if bytes.len() > LARGEST_ANSWER {
            return Err(distrusted(&format!("{} bytes", bytes.len())));
        }
        let message = FromWorker::read(bytes).map_err(|error| distrusted(&error.to_string()))?;
        let now = Instant::now();
        let mut state = self.lock();
        state.last_seen = now;
        let answer = match message {
            FromWorker::Answer(answer) => answer,
            FromWorker::Pong { number, clock } if state.pings.hear(number, clock, now) => return Ok(()),
            FromWorker::Pong { .. } => return state.stray(now),
        };
        let open = state.orders.iter().position(|order| order.number == answer.order && order.answer.is_none());
        let Some(open) = open else { return state.stray(now) };
        let found = match answer.result {
            Ok(found) => found,
            Err(Refusal::Patterns) => return Err(End::Gone("it lacks the patterns; they are sent again".to_owned())),
            Err(Refusal::Starts) => return Err(End::Useless("it refuses its number of start points".to_owned())),
            Err(Refusal::Device) => return Err(End::Useless("its device failed".to_owned())),
        };
        found.check(state.orders[open].starts, MOST_HITS).map_err(|error| distrusted(&error.to_string()))?;
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

/// Time between two pings of a device.
pub const PING_EVERY: Duration = Duration::from_secs(5);
/// Time after which figures are forgotten. By then, several pings were not answered.
const ECHO_KEPT: Duration = Duration::from_secs(20);

/// The figures of the last ping that was answered.
#[derive(Clone, Copy, PartialEq, Debug)]
pub struct Echo {
    /// Time from the ping to its answer.
    pub round_trip: Duration,
    /// The worker's clock minus the bot's, milliseconds. The error is at most half the round trip.
    pub clock_ahead: i64,
}

/// The pings of one device. A ping has its own subject, so it does not wait for orders. Its number is
/// random, so it cannot be answered before it arrives.
#[derive(Default)]
struct Pings {
    open: Option<OpenPing>,
    last: Option<(Instant, Echo)>,
}

/// A ping that is not answered yet.
struct OpenPing {
    number: u64,
    sent: Instant,
    /// The bot's clock when the ping was sent, Unix milliseconds.
    clock: u64,
}

impl Pings {
    /// Notes a ping that is sent now. `clock` is the bot's clock, Unix milliseconds.
    fn send(&mut self, number: u64, now: Instant, clock: u64) {
        self.open = Some(OpenPing { number, sent: now, clock });
    }

    /// Takes an answer. `clock` is the worker's clock, Unix milliseconds. Returns whether it
    /// answers the last ping, for the first time.
    fn hear(&mut self, number: u64, clock: u64, now: Instant) -> bool {
        let Some(open) = self.open.take_if(|open| open.number == number) else { return false };
        let round_trip = now.saturating_duration_since(open.sent);
        let half_way = i128::from(open.clock) + (round_trip / 2).as_millis() as i128;
        let ahead = i128::from(clock) - half_way;
        // The difference of two 64-bit clocks may need more than 64 bits.
        let clock_ahead = i64::try_from(ahead).unwrap_or(if ahead < 0 { i64::MIN } else { i64::MAX });
        self.last = Some((now, Echo { round_trip, clock_ahead }));
        true
    }

    /// The figures, unless they are old.
    fn echo(&self, now: Instant) -> Option<Echo> {
        self.last.filter(|(at, _)| now.saturating_duration_since(*at) < ECHO_KEPT).map(|(_, echo)| echo)
    }
}

/// The clock of this machine, Unix milliseconds.
pub fn unix_millis() -> u64 {
    let since = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
    u64::try_from(since.as_millis()).unwrap_or(u64::MAX)
}

/// Start points a second for all devices and sessions of a worker together. Eight GPUs with
/// launches of 20 ms use 8,800.
const STARTS_PER_SECOND: u32 = 10_000;
/// Start points that a worker may take at once. Every device begins with a few orders.
const STARTS_AT_ONCE: u32 = 20_000;

const _: () = assert!(STARTS_AT_ONCE as usize > 8 * MOST_STARTS);

/// The start points that a worker may still take. Each costs the vault a multiplication, and the worker
/// chooses how many are in an order and how fast it answers. All its devices share this limit, and it outlives
/// their sessions.
pub struct Pace(Mutex<TokenBucket>);

impl Default for Pace {
    fn default() -> Pace {
        Pace(Mutex::new(TokenBucket::new(STARTS_PER_SECOND, STARTS_AT_ONCE)))
    }
}

impl Pace {
    /// Takes the start points of an order. Returns how long the order must wait.
    pub fn take(&self, starts: usize, now: Instant) -> Duration {
        let starts = u32::try_from(starts).unwrap_or(u32::MAX);
        self.0.lock().unwrap_or_else(PoisonError::into_inner).take_many(now, starts)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use npubbot_miner::key::{Offset, Rotation, Tweak};
    use npubbot_miner::search::ClaimedHit;
    use npubbot_miner::search::orders::{Answer, encode};

    fn session() -> Session {
        let hello = Hello::of_a_test(1, 2);
        Session::new(RemoteId { worker: "ann".parse().unwrap(), device: 0 }, hello, Arc::default(), Arc::default())
    }

    fn answer(order: u64, result: Result<LaunchReport, Refusal>) -> Vec<u8> {
        encode(&FromWorker::Answer(Answer { order, result })).unwrap()
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
    fn a_ping_is_answered_once_and_a_flood_of_answers_to_none_ends_the_session() {
        let session = session();
        let pong = |number| encode(&FromWorker::Pong { number, clock: unix_millis() }).unwrap();
        session.note_ping(7);
        session.accept(&pong(8));
        assert_eq!(session.echo(Instant::now()), None, "a guess");
        session.accept(&pong(7));
        let echo = session.echo(Instant::now()).unwrap();
        assert!(echo.clock_ahead.abs() < 60_000 && echo.round_trip < Duration::from_secs(60), "{echo:?}");
        for _ in 0..STRAYS.1 - 1 {
            session.accept(&pong(7));
        }
        assert_eq!(session.ended(), None);
        session.accept(&pong(7));
        session.accept(&pong(7));
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
    fn the_round_trip_and_the_clock_are_those_of_the_ping_that_was_answered() {
        let (mut pings, now) = (Pings::default(), Instant::now());
        assert_eq!(pings.echo(now), None);
        pings.send(7, now, 1_000_000);
        let later = now + Duration::from_millis(80);
        assert!(!pings.hear(8, 0, later), "a guess");
        assert!(pings.hear(7, 1_000_000 + 40 - 3_000, later));
        let echo = Echo { round_trip: Duration::from_millis(80), clock_ahead: -3_000 };
        assert_eq!(pings.echo(later), Some(echo));
        assert!(!pings.hear(7, 0, later), "a ping has one answer");
        pings.send(9, later, 1);
        assert_eq!(pings.echo(later + ECHO_KEPT - Duration::from_millis(1)), Some(echo), "until the next answer");
        assert_eq!(pings.echo(later + ECHO_KEPT), None, "no answer for long");
    }

    #[test]
    fn a_clock_of_any_value_is_shown_and_breaks_nothing() {
        for (clock, ahead) in [(u64::MAX, i64::MAX), (0, -1_700_000_000_000), (1_700_000_000_001, 1)] {
            let (mut pings, now) = (Pings::default(), Instant::now());
            pings.send(1, now, 1_700_000_000_000);
            assert!(pings.hear(1, clock, now));
            assert_eq!(pings.echo(now).unwrap().clock_ahead, ahead);
        }
    }

    #[test]
    fn start_points_of_a_worker_are_paced_however_they_are_asked_for() {
        for starts in [1, 22, MOST_STARTS] {
            let (pace, began) = (Pace::default(), Instant::now());
            let (mut now, mut drawn) = (began, 0);
            while now < began + Duration::from_secs(60) {
                now += pace.take(starts, now);
                drawn += starts;
            }
            let most = STARTS_PER_SECOND as usize * 60 + STARTS_AT_ONCE as usize + starts;
            assert!((most - 2 * starts..=most).contains(&drawn), "{drawn} of {most}");
        }
    }
}
