//! A worker's device as a [`Searcher`]: launches become orders, and answers become reports.

use super::differences::Differences;
use super::session::{End, Session};
use super::sets::{SentSets, Shared};
use super::wire::{ToWorker, encode};
use crate::pattern::PatternSet;
use crate::search::RemoteId;
use crate::search::SearchError;
use crate::search::{ClaimedHit, Launch, LaunchReport, Searcher};
use crate::search::{DeviceId, DeviceInfo};
use crate::token_bucket::TokenBucket;
use std::collections::VecDeque;
use std::sync::Arc;
use std::time::{Duration, Instant};
use tokio::sync::mpsc;

/// The time for which orders are sent ahead. The server deletes an order that was not fetched
/// within five seconds.
const AHEAD: Duration = Duration::from_secs(2);
/// The fewest orders in transit, and the number at the beginning.
const FEWEST_ORDERS: usize = 2;
/// The most orders in transit.
pub const MOST_ORDERS: usize = 64;
/// The most orders to one device: how many a second, and how many at once. A separate limit bounds
/// the start points of all devices of a worker (`pace.rs`).
const ORDERS: (u32, u32) = (50, MOST_ORDERS as u32);
/// Weight of the newest answer in the mean time between two answers.
const NEWEST: f64 = 0.2;

/// The device of a worker.
pub struct RemoteSearcher {
    info: DeviceInfo,
    session: Arc<Session>,
    /// Messages to the worker.
    outgoing: mpsc::Sender<Vec<u8>>,
    /// The number of the last order. The first one is drawn at random.
    last_order: u64,
    /// The sets that the worker has.
    sets: SentSets,
    /// The differences between sets, shared with all devices.
    differences: Differences,
    /// The line of the next launch.
    line: u64,
    /// The orders in transit, oldest first, each as its line and set number.
    launches: VecDeque<(u64, u64)>,
    /// See [`Searcher::ahead`].
    ahead: usize,
    pace: TokenBucket,
    /// Mean time between two answers while there was work, seconds.
    between: Option<f64>,
    last_answer: Option<Instant>,
}

impl RemoteSearcher {
    /// The device of a session. `outgoing` takes messages for it, and has room for [`MOST_ORDERS`].
    ///
    /// Errors: the system gives no randomness.
    pub fn new(
        session: Arc<Session>,
        outgoing: mpsc::Sender<Vec<u8>>,
        differences: Differences,
    ) -> Result<RemoteSearcher, SearchError> {
        let hello = &session.hello;
        let info = DeviceInfo {
            id: DeviceId::Remote(session.id),
            name: hello.name.clone(),
            kernel: hello.kernel.clone(),
            threads: hello.threads as usize,
        };
        let session_id = session.id;
        let last_order = random(session_id)?;
        Ok(RemoteSearcher {
            info,
            session,
            outgoing,
            last_order,
            sets: SentSets::new(random(session_id)?),
            differences,
            line: 0,
            launches: VecDeque::new(),
            ahead: 0,
            pace: TokenBucket::new(ORDERS.0, ORDERS.1),
            between: None,
            last_answer: None,
        })
    }

    fn id(&self) -> RemoteId {
        self.session.id
    }

    fn send(&self, message: &ToWorker) -> Result<(), SearchError> {
        let failed = |reason: String| SearchError::DeviceFailed { device: self.info.id, reason };
        let bytes = encode(message).map_err(|error| failed(error.to_string()))?;
        self.outgoing.try_send(bytes).map_err(|_| failed("the server does not take its orders".to_owned()))
    }

    /// Makes sure that the worker has the patterns of a launch, except the first. The first is the
    /// canary, which belongs to this launch only. Returns the place and the number of the set.
    fn share(&mut self, patterns: &PatternSet) -> Result<(u8, u64), SearchError> {
        let behind =
            || Arc::new(PatternSet::new(patterns.iter().skip(1).map(|(_, pattern)| pattern.clone()).collect()));
        let shared = patterns.shared().map_or_else(behind, Arc::clone);
        let shared = self.sets.share(self.line, &shared, &self.differences);
        let Shared { set, generation, messages } = shared.map_err(|error| no_randomness(self.id(), &error))?;
        messages.iter().try_for_each(|message| self.send(message))?;
        Ok((set, generation))
    }

    /// The place, counted from 1, of the first order in transit with this line and set number;
    /// `None` if there is none. The worker has searched an older order with the newer set of that
    /// order.
    fn ahead_of(&self, line: u64, generation: u64) -> Option<usize> {
        self.launches.iter().position(|launch| *launch == (line, generation)).map(|at| at + 1)
    }

    fn error(&self, end: End) -> SearchError {
        let device = self.info.id;
        match end {
            End::Distrusted(reason) => SearchError::Distrusted { device, reason },
            End::Gone(reason) | End::Useless(reason) => SearchError::DeviceFailed { device, reason },
        }
    }

    /// Updates the mean time between answers.
    fn note_answer(&mut self) {
        let now = Instant::now();
        if let Some(last) = self.last_answer.replace(now) {
            let newest = (now - last).as_secs_f64();
            self.between = Some(self.between.map_or(newest, |mean| mean + NEWEST * (newest - mean)));
        }
        if self.launches.is_empty() {
            // The time until the next order is idle time.
            self.last_answer = None;
        }
    }
}

impl Searcher for RemoteSearcher {
    fn info(&self) -> &DeviceInfo {
        &self.info
    }

    fn starts(&self) -> usize {
        self.session.hello.starts as usize
    }

    fn in_flight(&self) -> usize {
        let orders = self.between.map_or(FEWEST_ORDERS, |between| (AHEAD.as_secs_f64() / between.max(1e-3)) as usize);
        orders.clamp(FEWEST_ORDERS, MOST_ORDERS)
    }

    fn check(&mut self) -> Result<(), SearchError> {
        self.session.ended().map_or(Ok(()), |end| Err(self.error(end)))
    }

    fn begin_line(&mut self, line: u64) {
        self.line = line;
    }

    fn ahead(&self) -> usize {
        self.ahead
    }

    fn distrust(&mut self, reason: &str) {
        self.session.end(End::Distrusted(reason.to_owned()));
    }

    fn submit(&mut self, launch: Launch) -> Result<(), SearchError> {
        let (given, wanted) = (launch.starts.len(), self.starts());
        if given != wanted {
            return Err(SearchError::WrongStartCount { given, wanted });
        }
        let now = Instant::now();
        self.session.pause(self.pace.take(now).max(self.session.pace.take(given, now)));
        self.check()?;
        let (set, generation) = self.share(&launch.patterns)?;
        let own = launch.patterns.iter().take(1).map(|(_, pattern)| pattern.as_str().to_owned()).collect();
        self.last_order = self.last_order.wrapping_add(1);
        let order = self.last_order;
        self.session.note_order(order, given);
        self.send(&ToWorker::Order { order, set, generation, own, starts: launch.starts })?;
        self.launches.push_back((self.line, generation));
        Ok(())
    }

    fn collect(&mut self) -> Result<LaunchReport, SearchError> {
        let (line, generation) = self.launches.pop_front().ok_or(SearchError::NothingSubmitted)?;
        let (found, age) = self.session.wait().map_err(|end| self.error(end))?;
        let ahead = if found.generation == generation { Some(0) } else { self.ahead_of(line, found.generation) };
        let Some(ahead) = ahead else {
            let end = End::Distrusted("its answer is for patterns that it was not to search for".to_owned());
            self.session.end(end.clone());
            return Err(self.error(end));
        };
        self.ahead = ahead;
        self.note_answer();
        let claim = |hit: &super::wire::Hit| ClaimedHit { start: usize::from(hit.start), tweak: hit.tweak() };
        Ok(LaunchReport {
            candidates: found.candidates,
            hits: found.hits.iter().map(claim).collect(),
            // The device cannot have been busy with the order before it was sent.
            busy: Duration::from_micros(found.busy_micros).min(age),
            is_cut_short: false,
        })
    }
}

impl Drop for RemoteSearcher {
    fn drop(&mut self) {
        self.session.end(End::Gone("the bot does not use it any more".to_owned()));
    }
}

/// A random number from the operating system.
fn random(id: RemoteId) -> Result<u64, SearchError> {
    getrandom::u64().map_err(|error| no_randomness(id, &error))
}

fn no_randomness(id: RemoteId, error: &getrandom::Error) -> SearchError {
    let reason = format!("the system gives no randomness ({error})");
    SearchError::DeviceFailed { device: DeviceId::Remote(id), reason }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::remote::wire::{Answer, Found, FromWorker, Hello};
    use secp256k1::{PublicKey, SECP256K1, SecretKey};

    fn searcher() -> (RemoteSearcher, Arc<Session>, mpsc::Receiver<Vec<u8>>) {
        let hello = Hello::of_a_test(1, 1);
        let id = RemoteId { worker: "ann".parse().unwrap(), device: 0 };
        let session = Arc::new(Session::new(id, hello, Arc::default()));
        let (outgoing, sent) = mpsc::channel(256);
        (RemoteSearcher::new(Arc::clone(&session), outgoing, Differences::default()).unwrap(), session, sent)
    }

    fn launch(patterns: &[&str]) -> Launch {
        let key = SecretKey::from_slice(&[5; 32]).unwrap();
        let start = crate::key::StartPoint::new(PublicKey::from_secret_key(SECP256K1, &key));
        let patterns = PatternSet::new(patterns.iter().map(|text| text.parse().unwrap()).collect());
        Launch { starts: vec![start], patterns: Arc::new(patterns), remaining: None }
    }

    fn next(sent: &mut mpsc::Receiver<Vec<u8>>) -> ToWorker {
        ToWorker::read(&sent.try_recv().unwrap()).unwrap()
    }

    /// The set number of the next message, and its added patterns, sorted.
    fn added(sent: &mut mpsc::Receiver<Vec<u8>>) -> (u64, Vec<String>) {
        let ToWorker::Patterns { generation, mut added, .. } = next(sent) else { panic!("no patterns") };
        added.sort();
        (generation, added)
    }

    /// The set number of the next message, and its own patterns.
    fn ordered(sent: &mut mpsc::Receiver<Vec<u8>>) -> (u64, Vec<String>) {
        let ToWorker::Order { generation, own, starts, .. } = next(sent) else { panic!("no order") };
        assert_eq!(starts.len(), 1);
        (generation, own)
    }

    #[test]
    fn an_order_has_a_pattern_of_its_own_and_shares_the_others() {
        let (mut searcher, _session, mut sent) = searcher();
        searcher.begin_line(1);
        searcher.submit(launch(&["qqqqq", "m0ctane", "alyce"])).unwrap();
        let (first, patterns) = added(&mut sent);
        assert_eq!(patterns, ["alyce", "m0ctane"], "the first one is not in the set");
        assert_eq!(ordered(&mut sent), (first, vec!["qqqqq".to_owned()]));
        searcher.submit(launch(&["ppppp", "m0ctane", "alyce"])).unwrap();
        assert_eq!(ordered(&mut sent), (first, vec!["ppppp".to_owned()]), "the set is not sent again");
        searcher.submit(launch(&["ppppp", "m0ctane", "alyce", "cafe"])).unwrap();
        let (second, patterns) = added(&mut sent);
        assert!(second != first && patterns == ["cafe"]);
        assert_eq!(ordered(&mut sent).0, second);
        searcher.begin_line(2);
        searcher.submit(launch(&["ppppp", "stack"])).unwrap();
        assert_eq!(added(&mut sent).1, ["stack"]);
        ordered(&mut sent);
        searcher.begin_line(1);
        searcher.submit(launch(&["ppppp", "m0ctane", "alyce", "cafe"])).unwrap();
        assert_eq!(ordered(&mut sent).0, second, "lines take turns");
        assert!(sent.try_recv().is_err());
    }

    #[test]
    fn an_answer_names_the_order_whose_patterns_were_searched_for_and_no_other_set() {
        // Four orders in two lines (`remote::sets`): two in line 1, one in line 2, and one in
        // line 1 with one more pattern.
        let open = || {
            let (mut searcher, session, mut sent) = searcher();
            let mut orders = Vec::new();
            for (line, patterns) in
                [(1, &["q", "cafe"][..]), (1, &["q", "cafe"]), (2, &["q", "stack"]), (1, &["q", "cafe", "alyce"])]
            {
                searcher.begin_line(line);
                searcher.submit(launch(patterns)).unwrap();
                orders.push((searcher.last_order, searcher.launches.back().unwrap().1));
            }
            while sent.try_recv().is_ok() {}
            (searcher, session, orders)
        };
        let answer = |order: u64, generation: u64| {
            let result = Ok(Found { generation, candidates: 1, busy_micros: 1, hits: Vec::new() });
            encode(&FromWorker::Answer(Answer { order, result })).unwrap()
        };
        let (mut searcher, session, orders) = open();
        let newest = orders[3].1;
        for (at, (generation, ahead)) in
            [(newest, 3), (orders[1].1, 0), (orders[2].1, 0), (newest, 0)].into_iter().enumerate()
        {
            session.accept(&answer(orders[at].0, generation));
            searcher.collect().unwrap();
            assert_eq!(searcher.ahead(), ahead, "order {at}");
        }
        // The set of another line, an unknown one, and an older one.
        for (at, wrong) in [(0, orders[2].1 - orders[0].1), (0, 99), (3, orders[0].1.wrapping_sub(newest))] {
            let (mut searcher, session, orders) = open();
            for earlier in &orders[..at] {
                session.accept(&answer(earlier.0, earlier.1));
                searcher.collect().unwrap();
            }
            session.accept(&answer(orders[at].0, orders[at].1.wrapping_add(wrong)));
            assert!(matches!(searcher.collect(), Err(SearchError::Distrusted { .. })), "{wrong}");
            assert!(matches!(session.ended(), Some(End::Distrusted(_))));
        }
    }

    #[test]
    fn orders_reach_two_seconds_ahead_and_their_rate_is_bounded() {
        let (mut searcher, session, mut sent) = searcher();
        assert_eq!(searcher.in_flight(), FEWEST_ORDERS);
        for (between, orders) in [(0.1, 20), (1e-9, MOST_ORDERS), (1.5, FEWEST_ORDERS)] {
            searcher.between = Some(between);
            assert_eq!(searcher.in_flight(), orders, "{between}");
        }
        // A worker that answers without searching. Its orders are limited in number all the same.
        let began = Instant::now();
        let orders = ORDERS.1 + ORDERS.0;
        for _ in 0..orders {
            searcher.submit(launch(&["qqqqq"])).unwrap();
            let generation = searcher.launches.back().unwrap().1;
            let result = Ok(Found { generation, candidates: 1, busy_micros: u64::MAX, hits: Vec::new() });
            let answer = Answer { order: searcher.last_order, result };
            session.accept(&encode(&FromWorker::Answer(answer)).unwrap());
            let report = searcher.collect().unwrap();
            assert!(report.busy < Duration::from_secs(5), "{:?}", report.busy);
            while sent.try_recv().is_ok() {}
        }
        assert!(began.elapsed() > Duration::from_millis(950), "{orders} orders in {:?}", began.elapsed());
    }

    #[test]
    fn a_session_that_ended_takes_no_orders() {
        let (mut searcher, session, _sent) = searcher();
        session.end(End::Gone("away".to_owned()));
        assert!(matches!(searcher.submit(launch(&["qqqqq"])), Err(SearchError::DeviceFailed { .. })));
        assert!(searcher.check().is_err());
        let (mut searcher, session, _sent) = super::tests::searcher();
        searcher.distrust("it found 1 of 200 test patterns");
        assert_eq!(session.ended(), Some(End::Distrusted("it found 1 of 200 test patterns".to_owned())));
    }
}
