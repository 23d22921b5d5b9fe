//! A worker's device as a [`Searcher`]: launches become orders, and answers become reports of what
//! they prove.
//!
//! The first pattern of a launch is its canary, whose frequency is known. Its hits are proof of
//! work: at fresh start points they cannot be found without testing about as many candidates as
//! anybody would need. A device may keep other hits back. That costs time, never a key.

use super::session::{End, Session};
use npubbot_miner::key::{StartPoint, VerifiedHit};
use npubbot_miner::pattern::{PatternId, PatternSet};
use npubbot_miner::search::orders::{SentSets, ToDevice, encode};
use npubbot_miner::search::{ClaimedHit, DeviceId, DeviceInfo, Launch, LaunchReport, RemoteId, SearchError, Searcher};
use npubbot_miner::token_bucket::TokenBucket;
use std::collections::{HashSet, VecDeque};
use std::sync::{Arc, PoisonError};
use std::time::{Duration, Instant};
use tokio::sync::mpsc;

/// The time for which orders are sent ahead. A new job reaches a worker after this time, and a
/// network that is away for longer makes its device wait. The server deletes an order that was not
/// fetched within five seconds.
const AHEAD: Duration = Duration::from_secs(1);
/// The fewest orders in transit, and the number at the beginning.
const FEWEST_ORDERS: usize = 2;
/// The most orders in transit.
pub const MAX_ORDERS: usize = 64;
/// The most orders to one device: how many a second, and how many at once. A separate limit bounds
/// the start points of all devices of a worker (`session.rs`).
const ORDERS: (u32, u32) = (50, MAX_ORDERS as u32);
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
    /// The launches in transit, oldest first.
    launches: VecDeque<Launch>,
    pace: TokenBucket,
    /// Mean time between two answers while there was work, seconds.
    between: Option<f64>,
    last_answer: Option<Instant>,
}

impl RemoteSearcher {
    /// The device of a session. `outgoing` takes messages for it, and has room for [`MAX_ORDERS`].
    ///
    /// Errors: the system gives no randomness.
    pub fn new(session: Arc<Session>, outgoing: mpsc::Sender<Vec<u8>>) -> Result<RemoteSearcher, SearchError> {
        let hello = &session.hello;
        let info = DeviceInfo {
            id: DeviceId::Remote(session.id),
            name: hello.name.clone(),
            kernel: hello.kernel.clone(),
            threads: hello.threads as usize,
            warning: None,
        };
        let session_id = session.id;
        let last_order = random(session_id)?;
        Ok(RemoteSearcher {
            info,
            session,
            outgoing,
            last_order,
            sets: SentSets::new(random(session_id)?),
            launches: VecDeque::new(),
            pace: TokenBucket::new(ORDERS.0, ORDERS.1),
            between: None,
            last_answer: None,
        })
    }

    fn send(&self, message: &ToDevice) -> Result<(), SearchError> {
        let failed = |reason: String| SearchError::DeviceFailed { device: self.info.id, reason };
        let bytes = encode(message).map_err(|error| failed(error.to_string()))?;
        self.outgoing.try_send(bytes).map_err(|_| failed("the server does not take its orders".to_owned()))
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

    /// The part of an answer that is proven: the hits that recompute, and the candidates that the
    /// canary's hits stand for.
    ///
    /// Errors: the worker is not believed any more, with the reason.
    fn proven(&self, launch: &Launch, found: &LaunchReport) -> Result<(u64, Vec<ClaimedHit>), String> {
        let mut proof = self.session.proof.lock().unwrap_or_else(PoisonError::into_inner);
        let canary = launch.patterns.get(PatternId(0));
        let (mut hits, mut canary_hits) = (Vec::with_capacity(found.hits.len()), 0);
        // A hit claimed twice counts once.
        let mut seen = HashSet::with_capacity(found.hits.len());
        for &claim in found.hits.iter().filter(|claim| seen.insert(**claim)) {
            match recompute(&launch.starts, &launch.patterns, claim) {
                Some(hit) => {
                    canary_hits += u64::from(canary.matches(&hit.npub()));
                    hits.push(claim);
                }
                None => proof.note_wrong_hit()?,
            }
        }
        let expected = found.candidates as f64 / canary.difficulty().candidates();
        let share = proof.note_canary_hits(expected, canary_hits)?;
        Ok(((found.candidates as f64 * share) as u64, hits))
    }
}

/// The key of a claim; `None` if no device that searched for these patterns reports it.
fn recompute(starts: &[StartPoint], patterns: &PatternSet, claim: ClaimedHit) -> Option<VerifiedHit> {
    let hit = VerifiedHit::recompute(*starts.get(claim.start)?, claim.tweak)?;
    patterns.may_match(&hit.npub()).then_some(hit)
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
        orders.clamp(FEWEST_ORDERS, MAX_ORDERS)
    }

    fn check(&mut self) -> Result<(), SearchError> {
        self.session.ended().map_or(Ok(()), |end| Err(self.error(end)))
    }

    fn submit(&mut self, launch: Launch) -> Result<(), SearchError> {
        let given = launch.starts.len();
        if given != self.starts() {
            return Err(SearchError::START_COUNT);
        }
        let now = Instant::now();
        let of_worker = self.session.pace.lock().unwrap_or_else(PoisonError::into_inner).take_many(now, given as u32);
        self.session.pause(self.pace.take(now).max(of_worker));
        self.check()?;
        self.last_order = self.last_order.wrapping_add(1);
        let messages = self.sets.order(self.last_order, &launch);
        self.session.note_order(self.last_order, given);
        messages.iter().try_for_each(|message| self.send(message))?;
        self.launches.push_back(launch);
        Ok(())
    }

    fn collect(&mut self) -> Result<LaunchReport, SearchError> {
        let launch = self.launches.pop_front().ok_or(SearchError::NOTHING_SUBMITTED)?;
        let (found, age) = self.session.wait().map_err(|end| self.error(end))?;
        self.note_answer();
        let (candidates, hits) = self.proven(&launch, &found).map_err(|reason| {
            let end = End::Distrusted(reason);
            self.session.end(end.clone());
            self.error(end)
        })?;
        // The device cannot have been busy with the order before it was sent.
        Ok(LaunchReport { candidates, hits, busy: found.busy.min(age), is_cut_short: false })
    }
}

impl Drop for RemoteSearcher {
    fn drop(&mut self) {
        self.session.end(End::Gone("the bot does not use it any more".to_owned()));
    }
}

/// A random number from the operating system.
fn random(id: RemoteId) -> Result<u64, SearchError> {
    let no_randomness = |error| SearchError::DeviceFailed {
        device: DeviceId::Remote(id),
        reason: format!("the system gives no randomness ({error})"),
    };
    getrandom::u64().map_err(no_randomness)
}

/// Number of hits that recompute to another key than claimed at which a device is not believed.
const WRONG_HITS_ALLOWED: u64 = 3;

/// Canary hits are compared with their expected number each time the expected number reaches this.
/// An honest device finds fewer than half of 200 with a chance of 1.8e-15 (Poisson).
const JUDGE_AFTER: f64 = 200.0;

/// Number of canary hits that a new device is credited with, both as expected and as found.
const BELIEVED: f64 = 20.0;

/// Expected canary hits over which the proven share of a device's claims is averaged. The random
/// error is then 2 %.
const PROVEN_OVER: f64 = 2000.0;

/// The hits of one device, in all its sessions.
#[derive(Debug)]
pub struct Proof {
    /// Canary hits expected and found since the last verdict.
    expected: f64,
    found: u64,
    /// Canary hits expected and found, scaled down so that at most [`PROVEN_OVER`] are expected.
    recent: (f64, f64),
    hits_wrong: u64,
}

impl Default for Proof {
    fn default() -> Proof {
        Proof { expected: 0.0, found: 0, recent: (BELIEVED, BELIEVED), hits_wrong: 0 }
    }
}

impl Proof {
    /// Counts a wrong hit.
    ///
    /// Errors: the device has too many to be believed, with the reason.
    pub fn note_wrong_hit(&mut self) -> Result<(), String> {
        self.hits_wrong += 1;
        match self.hits_wrong {
            WRONG_HITS_ALLOWED.. => Err(format!("{} of its hits were wrong", self.hits_wrong)),
            _ => Ok(()),
        }
    }

    /// Counts the canary hits of an answer: those that its claimed candidates lead us to expect,
    /// and those that were found. Returns the share of the claimed candidates that counts, 0 to 1.
    ///
    /// Errors: the device does not really search, with the reason.
    pub fn note_canary_hits(&mut self, expected: f64, found: u64) -> Result<f64, String> {
        self.expected += expected;
        self.found += found;
        let recent = (self.recent.0 + expected, self.recent.1 + found as f64);
        let kept = (PROVEN_OVER / recent.0).min(1.0);
        self.recent = (recent.0 * kept, recent.1 * kept);
        if self.expected >= JUDGE_AFTER {
            let (found, expected) = (self.found, self.expected);
            (self.expected, self.found) = (0.0, 0);
            if (found as f64) < expected / 2.0 {
                return Err(format!("it found {found} of {expected:.0} test patterns, so it does not really search"));
            }
        }
        Ok((self.recent.1 / self.recent.0).min(1.0))
    }

    /// Hits that did not verify.
    pub fn hits_wrong(&self) -> u64 {
        self.hits_wrong
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::session::new_pace;
    use crate::wire::Hello;
    use npubbot_miner::key::{Offset, Rotation, Tweak};
    use npubbot_miner::search::cpu::{CpuSearcher, KernelChoice};
    use npubbot_miner::search::orders::{Answer, PatternChange};
    use secp256k1::{PublicKey, SECP256K1, SecretKey};

    fn searcher() -> (RemoteSearcher, Arc<Session>, mpsc::Receiver<Vec<u8>>) {
        let hello = Hello::of_a_test(1, 1);
        let id = RemoteId { worker: "ann".parse().unwrap(), device: 0 };
        let session = Arc::new(Session::new(id, hello, new_pace(), Arc::default()));
        let (outgoing, sent) = mpsc::channel(256);
        (RemoteSearcher::new(Arc::clone(&session), outgoing).unwrap(), session, sent)
    }

    fn launch(patterns: &[&str]) -> Launch {
        let key = SecretKey::from_slice(&[5; 32]).unwrap();
        let start = StartPoint::new(PublicKey::from_secret_key(SECP256K1, &key));
        let patterns = PatternSet::new(patterns.iter().map(|text| text.parse().unwrap()).collect());
        Launch { starts: vec![start], patterns: Arc::new(patterns), remaining: None }
    }

    fn next(sent: &mut mpsc::Receiver<Vec<u8>>) -> ToDevice {
        ToDevice::read(&sent.try_recv().unwrap()).unwrap()
    }

    /// The set number of the next message, which is an order.
    fn ordered(sent: &mut mpsc::Receiver<Vec<u8>>) -> u64 {
        let ToDevice::Order { set, starts, .. } = next(sent) else { panic!("no order") };
        assert_eq!(starts.len(), 1);
        set
    }

    /// The worker's answer to the last order.
    fn answer(searcher: &RemoteSearcher, session: &Session, candidates: u64, hits: Vec<ClaimedHit>) {
        let result = Ok(LaunchReport { candidates, hits, busy: Duration::MAX, is_cut_short: false });
        session.accept(&encode(&Answer { order: searcher.last_order, result }).unwrap());
    }

    #[test]
    fn a_set_is_sent_once_and_orders_name_it() {
        let (mut searcher, _session, mut sent) = searcher();
        searcher.submit(launch(&["qqqqq", "m0ctane"])).unwrap();
        let ToDevice::Patterns(PatternChange { set: first, added, .. }) = next(&mut sent) else {
            panic!("no patterns")
        };
        assert_eq!(added, ["m0ctane", "qqqqq"]);
        assert_eq!(ordered(&mut sent), first);
        searcher.submit(launch(&["qqqqq", "m0ctane"])).unwrap();
        assert_eq!(ordered(&mut sent), first, "the set is not sent again");
        searcher.submit(launch(&["qqqqq", "m0ctane", "cafe"])).unwrap();
        let ToDevice::Patterns(PatternChange { set: second, added, .. }) = next(&mut sent) else {
            panic!("no patterns")
        };
        assert!(second != first && added == ["cafe"]);
        assert_eq!(ordered(&mut sent), second);
        assert!(sent.try_recv().is_err());
    }

    /// An honest worker's hits pass, each once; its candidates count as far as its canary proves
    /// them.
    #[test]
    fn a_report_has_the_hits_that_verify_and_the_candidates_that_they_prove() {
        let mut device = CpuSearcher::open(Some(1), KernelChoice::Portable).unwrap();
        // Some 900 hits of the canary: the random error is 3 %.
        for (claims, at_least, at_most) in [(1.0, 0.85, 1.0), (1.5, 0.55, 0.8)] {
            let (mut searcher, session, _sent) = searcher();
            let launch = launch(&["0", "qq"]);
            device.submit(launch.clone()).unwrap();
            let honest = device.collect().unwrap();
            searcher.submit(launch).unwrap();
            let hits: Vec<ClaimedHit> = honest.hits.iter().take(900).copied().collect();
            assert!(hits.len() > 300, "{}", hits.len());
            let done = honest.candidates * hits.len() as u64 / honest.hits.len() as u64;
            let claimed = (done as f64 * claims) as u64;
            answer(&searcher, &session, claimed, [hits.clone(), hits.clone()].concat());
            let report = searcher.collect().unwrap();
            assert_eq!(report.hits.len(), hits.len(), "a hit claimed twice counts once");
            let share = report.candidates as f64 / claimed as f64;
            assert!((at_least..=at_most).contains(&share), "{claims}: {share}");
        }
    }

    #[test]
    fn wrong_hits_are_dropped_and_the_third_one_ends_the_trust_of_all_sessions() {
        let (mut searcher, session, _sent) = searcher();
        let wrong = |at: i64| {
            let tweak = Tweak { offset: Offset::of_point(at as u64, 1, Rotation::ALL[0]), rotation: Rotation::ALL[1] };
            ClaimedHit { start: 0, tweak }
        };
        for at in 0..2 {
            searcher.submit(launch(&["qqqqqqqq"])).unwrap();
            answer(&searcher, &session, 9, vec![wrong(at)]);
            assert!(searcher.collect().unwrap().hits.is_empty());
        }
        searcher.submit(launch(&["qqqqqqqq"])).unwrap();
        answer(&searcher, &session, 9, (2..2000).map(wrong).collect());
        assert!(matches!(searcher.collect(), Err(SearchError::Distrusted { .. })));
        assert_eq!(session.ended(), Some(End::Distrusted("3 of its hits were wrong".to_owned())));
        assert_eq!(session.proof.lock().unwrap().hits_wrong(), 3, "the others cost nothing");
    }

    #[test]
    fn orders_reach_a_second_ahead_and_their_rate_is_bounded() {
        let (mut searcher, session, mut sent) = searcher();
        assert_eq!(searcher.in_flight(), FEWEST_ORDERS);
        for (between, orders) in [(0.05, 20), (1e-9, MAX_ORDERS), (0.8, FEWEST_ORDERS)] {
            searcher.between = Some(between);
            assert_eq!(searcher.in_flight(), orders, "{between}");
        }
        // A worker that answers without searching. Its orders are limited in number all the same.
        let began = Instant::now();
        let (orders, mut proven) = (ORDERS.1 + ORDERS.0, 0);
        for _ in 0..orders {
            searcher.submit(launch(&["qqqqq"])).unwrap();
            answer(&searcher, &session, 1 << 25, Vec::new());
            let report = searcher.collect().unwrap();
            assert!(report.busy <= began.elapsed(), "{:?}", report.busy);
            proven = report.candidates;
            while sent.try_recv().is_ok() {}
        }
        assert!(proven < 1 << 24, "{proven} candidates without one hit of the canary");
        assert!(began.elapsed() > Duration::from_millis(950), "{orders} orders in {:?}", began.elapsed());
    }

    #[test]
    fn a_session_that_ended_takes_no_orders() {
        let (mut searcher, session, _sent) = searcher();
        session.end(End::Gone("away".to_owned()));
        assert!(matches!(searcher.submit(launch(&["qqqqq"])), Err(SearchError::DeviceFailed { .. })));
        assert!(searcher.check().is_err());
    }

    #[test]
    fn claims_count_as_far_as_canary_hits_prove_them() {
        let (mut honest, mut boaster) = (Proof::default(), Proof::default());
        let share = |proof: &mut Proof, times: u32, found| {
            (0..times).map(|_| proof.note_canary_hits(10.0, found).unwrap()).last().unwrap()
        };
        assert_eq!(share(&mut honest, 1000, 10), 1.0);
        assert_eq!(share(&mut honest, 1000, 12), 1.0, "luck is not work");
        let proven = share(&mut boaster, 1000, 6);
        assert!((proven - 0.6).abs() < 0.01, "{proven}");
        // A worker that becomes honest is believed again after two thousand canaries.
        let proven = share(&mut boaster, 2000, 10);
        assert!(proven > 0.99, "{proven}");
    }

    #[test]
    fn a_device_that_finds_less_than_half_or_boasts_once_is_not_believed() {
        let mut idle = Proof::default();
        let judged: Vec<bool> = (0..50).map(|_| idle.note_canary_hits(4.0, 1).is_err()).collect();
        assert_eq!(judged.iter().position(|out| *out), Some(49), "once 200 are expected");
        assert!(Proof::default().note_canary_hits(1e12, 0).is_err());
        let mut half = Proof::default();
        assert!((0..50).all(|_| half.note_canary_hits(4.0, 2).is_ok()));
    }
}
