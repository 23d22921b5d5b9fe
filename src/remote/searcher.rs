//! A worker's device as a [`Searcher`]: launches become orders, and answers become reports.

use super::session::{End, Session};
use super::wire::{LARGEST_TO_WORKER, ToWorker, encode};
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

/// How far ahead orders reach. The server deletes one that was not fetched after five seconds.
const AHEAD: Duration = Duration::from_secs(2);
/// Orders on the way at the beginning, and at least.
const FEWEST_ORDERS: usize = 2;
/// Orders on the way at most.
pub const MOST_ORDERS: usize = 64;
/// Orders a second to one device at most, and at once. The start points of all devices of a worker
/// have a bound of their own (`pace.rs`).
const ORDERS: (u32, u32) = (50, MOST_ORDERS as u32);
/// Bytes of patterns in one message.
const PART: usize = LARGEST_TO_WORKER / 2;
/// Weight of the newest answer in the mean time between two.
const NEWEST: f64 = 0.2;

/// The device of a worker.
pub struct RemoteSearcher {
    info: DeviceInfo,
    session: Arc<Session>,
    /// Messages to the worker.
    outgoing: mpsc::Sender<Vec<u8>>,
    /// The number of the last order. The first one is drawn at random.
    last_order: u64,
    /// The set that the worker has, and its number.
    known: Option<(u64, Vec<String>)>,
    launches: VecDeque<Launch>,
    pace: TokenBucket,
    /// Mean time between two answers while there was work, seconds.
    between: Option<f64>,
    last_answer: Option<Instant>,
}

impl RemoteSearcher {
    /// The device of a session. `outgoing` takes messages for it, and has room for [`MOST_ORDERS`].
    ///
    /// Errors: the system gives no randomness.
    pub fn new(session: Arc<Session>, outgoing: mpsc::Sender<Vec<u8>>) -> Result<RemoteSearcher, SearchError> {
        let hello = &session.hello;
        let info = DeviceInfo {
            id: DeviceId::Remote(session.id),
            name: hello.name.clone(),
            kernel: hello.kernel.clone(),
            threads: hello.threads as usize,
        };
        let last_order = random(session.id)?;
        Ok(RemoteSearcher {
            info,
            session,
            outgoing,
            last_order,
            known: None,
            launches: VecDeque::new(),
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

    /// Makes sure that the worker has the patterns of a launch but the first, which is searched for
    /// in this launch alone. Returns the number of that set.
    fn share(&mut self, patterns: &PatternSet) -> Result<u64, SearchError> {
        let shared = || patterns.iter().skip(1).map(|(_, pattern)| pattern.as_str());
        if let Some((generation, known)) = &self.known
            && known.iter().map(String::as_str).eq(shared())
        {
            return Ok(*generation);
        }
        let generation = self.known.as_ref().map_or(random(self.id()), |(last, _)| Ok(last.wrapping_add(1)))?;
        let texts: Vec<String> = shared().map(str::to_owned).collect();
        let mut mixed = texts.clone();
        shuffle(&mut mixed, self.id())?;
        for (at, patterns) in parts(mixed).into_iter().enumerate() {
            self.send(&ToWorker::Patterns { generation, is_first: at == 0, patterns })?;
        }
        self.known = Some((generation, texts));
        Ok(generation)
    }

    fn error(&self, end: End) -> SearchError {
        let device = self.info.id;
        match end {
            End::Distrusted(reason) => SearchError::Distrusted { device, reason },
            End::Gone(reason) | End::Useless(reason) => SearchError::DeviceFailed { device, reason },
        }
    }

    /// Learns the pace of the answers.
    fn note_answer(&mut self) {
        let now = Instant::now();
        if let Some(last) = self.last_answer.replace(now) {
            let newest = (now - last).as_secs_f64();
            self.between = Some(self.between.map_or(newest, |mean| mean + NEWEST * (newest - mean)));
        }
        if self.launches.is_empty() {
            // The time until the next order is no time of work.
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
        let generation = self.share(&launch.patterns)?;
        let own = launch.patterns.iter().take(1).map(|(_, pattern)| pattern.as_str().to_owned()).collect();
        self.last_order = self.last_order.wrapping_add(1);
        let order = self.last_order;
        self.session.note_order(order, given);
        self.send(&ToWorker::Order { order, generation, own, starts: launch.starts.clone() })?;
        self.launches.push_back(launch);
        Ok(())
    }

    fn collect(&mut self) -> Result<LaunchReport, SearchError> {
        self.launches.pop_front().ok_or(SearchError::NothingSubmitted)?;
        let (found, age) = self.session.wait().map_err(|end| self.error(end))?;
        self.note_answer();
        let claim = |hit: &super::wire::Hit| ClaimedHit { start: usize::from(hit.start), tweak: hit.tweak() };
        Ok(LaunchReport {
            candidates: found.candidates,
            hits: found.hits.iter().map(claim).collect(),
            // Nobody is busy with an order before it is sent.
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

/// A number from the operating system.
fn random(id: RemoteId) -> Result<u64, SearchError> {
    getrandom::u64().map_err(|error| SearchError::DeviceFailed {
        device: DeviceId::Remote(id),
        reason: format!("the system gives no randomness ({error})"),
    })
}

/// Brings texts into a random order, all as likely but for a part in 2^40.
fn shuffle(texts: &mut [String], id: RemoteId) -> Result<(), SearchError> {
    for last in (1..texts.len()).rev() {
        texts.swap(last, (random(id)? % (last as u64 + 1)) as usize);
    }
    Ok(())
}

/// The texts in parts that fit a message each; one empty part for none.
fn parts(texts: Vec<String>) -> Vec<Vec<String>> {
    let (mut parts, mut bytes) = (vec![Vec::new()], 0);
    for text in texts {
        bytes += text.len() + 5;
        if bytes > PART {
            parts.push(Vec::new());
            bytes = text.len() + 5;
        }
        if let Some(last) = parts.last_mut() {
            last.push(text);
        }
    }
    parts
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
        (RemoteSearcher::new(Arc::clone(&session), outgoing).unwrap(), session, sent)
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

    #[test]
    fn a_set_is_sent_once_and_again_only_when_it_changes() {
        let (mut searcher, _session, mut sent) = searcher();
        searcher.submit(launch(&["qqqqq", "m0ctane", "alyce"])).unwrap();
        let ToWorker::Patterns { generation: first, is_first: true, mut patterns } = next(&mut sent) else { panic!() };
        patterns.sort();
        assert_eq!(patterns, ["alyce", "m0ctane"], "the first one is not in the set");
        let ToWorker::Order { order, generation, own, starts } = next(&mut sent) else { panic!() };
        assert_eq!((generation, own.as_slice(), starts.len()), (first, &["qqqqq".to_owned()][..], 1));
        searcher.submit(launch(&["ppppp", "m0ctane", "alyce"])).unwrap();
        let ToWorker::Order { order: second, generation, own, .. } = next(&mut sent) else { panic!() };
        assert_eq!((second, generation, own), (order.wrapping_add(1), first, vec!["ppppp".to_owned()]));
        searcher.submit(launch(&["ppppp", "m0ctane"])).unwrap();
        assert!(matches!(next(&mut sent), ToWorker::Patterns { generation, .. } if generation != first));
        assert!(matches!(next(&mut sent), ToWorker::Order { .. }));
        assert!(sent.try_recv().is_err());
    }

    #[test]
    fn a_large_set_goes_in_parts_that_fit() {
        let texts: Vec<String> = (0..100_000).map(|at| format!("{at:012}")).collect();
        let parts = parts(texts.clone());
        assert!(parts.len() > 2);
        for part in &parts {
            let message = ToWorker::Patterns { generation: u64::MAX, is_first: true, patterns: part.clone() };
            assert!(encode(&message).unwrap().len() <= LARGEST_TO_WORKER);
        }
        assert_eq!(parts.concat(), texts);
        assert_eq!(super::parts(Vec::new()), [Vec::<String>::new()]);
    }

    #[test]
    fn orders_reach_two_seconds_ahead_and_their_rate_is_bounded() {
        let (mut searcher, session, mut sent) = searcher();
        assert_eq!(searcher.in_flight(), FEWEST_ORDERS);
        for (between, orders) in [(0.1, 20), (1e-9, MOST_ORDERS), (1.5, FEWEST_ORDERS)] {
            searcher.between = Some(between);
            assert_eq!(searcher.in_flight(), orders, "{between}");
        }
        // A worker that answers without searching: its orders are paced.
        let began = Instant::now();
        let orders = ORDERS.1 + ORDERS.0;
        for _ in 0..orders {
            searcher.submit(launch(&["qqqqq"])).unwrap();
            let result = Ok(Found { candidates: 1, busy_micros: u64::MAX, hits: Vec::new() });
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
