//! The roll: a list of the workers' devices, with their sessions, the pauses before new ones, and
//! the dropped workers; and what the operator sees of it. No I/O.

use super::session::{End, Pace, Session, new_pace};
use super::wire::Hello;
use npubbot_miner::pattern::Rate;
use npubbot_miner::search::{RemoteId, WorkerName};
use serde::{Deserialize, Serialize};
use std::collections::{BTreeMap, VecDeque};
use std::sync::{Arc, PoisonError};
use std::time::{Duration, Instant};

/// The most devices on the roll.
const MOST_PLACES: usize = 4096;
/// The most workers whose refusal is remembered.
const MOST_REFUSED: usize = 4096;
/// Number of useless sessions in a row after which a worker is dropped.
const USELESS_AT_MOST: u32 = 5;
/// The most sessions of one device that may begin within [`OFTEN`]. Each costs the bot a thread and
/// some requests to the server.
const BEGINNINGS: usize = 8;
/// Period in which a device may begin [`BEGINNINGS`] sessions, and in which the log names a worker
/// at most once.
const OFTEN: Duration = Duration::from_secs(120);
/// Pause after the first useless session. It doubles with each further one.
const FIRST_PAUSE: Duration = Duration::from_secs(2);

/// The consequence of a hello.
pub enum Visit {
    /// A session begins.
    Begins(Arc<Session>),
    /// No session begins: the device has one, or gets no orders now.
    GoesOn,
    /// No session begins: the device has begun too many.
    TooOften {
        /// Whether to tell the operator: the log has not named the worker within [`OFTEN`].
        is_news: bool,
    },
}

/// A device that has come at least once.
struct Place {
    /// The last session. The next one takes over what the device's hits have proven.
    session: Arc<Session>,
    /// Whether the end of the session was counted in `useless` and `errors`.
    is_noted: bool,
    /// Useless sessions in a row.
    useless: u32,
    /// Useless sessions and lies so far.
    errors: u64,
    /// Time before which the device gets no session.
    not_before: Instant,
    /// The last [`BEGINNINGS`] times at which a session began.
    began: VecDeque<Instant>,
    /// When the device was last turned away because it had begun too many sessions.
    too_often: Option<Instant>,
}

/// The devices that have come, and the workers that get no orders.
#[derive(Default)]
pub struct Roll {
    places: BTreeMap<RemoteId, Place>,
    /// Workers that get no session any more, with the reasons.
    dropped: BTreeMap<WorkerName, String>,
    /// Workers whose last hello could not be read, with the reasons.
    unread: BTreeMap<WorkerName, String>,
    /// When the log last named a worker in `unread`, or one that comes too often.
    told: BTreeMap<WorkerName, Instant>,
    /// The limits on start points, by worker.
    paces: BTreeMap<WorkerName, Arc<Pace>>,
}

impl Roll {
    /// Takes a hello.
    pub fn hear(&mut self, id: RemoteId, hello: Hello, now: Instant) -> Visit {
        self.unread.remove(&id.worker);
        if self.dropped.contains_key(&id.worker) {
            return Visit::GoesOn;
        }
        if let Some(place) = self.places.get_mut(&id) {
            if place.session.ended().is_none() && place.session.hello.session == hello.session {
                place.session.seen();
                return Visit::GoesOn;
            }
            place.note_end(now);
            if place.comes_too_often(now) {
                place.too_often = Some(now);
                return Visit::TooOften { is_news: self.may_tell(id.worker, now) };
            }
            place.session.end(End::Gone("it was started again".to_owned()));
            place.note_end(now);
            if now < place.not_before || place.is_to_be_dropped() {
                return Visit::GoesOn;
            }
        } else if self.places.len() >= MOST_PLACES {
            return Visit::GoesOn;
        }
        let pace = Arc::clone(self.paces.entry(id.worker).or_insert_with(new_pace));
        let proof = self.places.get(&id).map_or_else(Default::default, |place| Arc::clone(&place.session.proof));
        let session = Arc::new(Session::new(id, hello, pace, proof));
        match self.places.get_mut(&id) {
            Some(place) => place.begin(&session, now),
            None => drop(self.places.insert(id, Place::new(&session, now))),
        }
        Visit::Begins(session)
    }

    /// Whether the log may name a worker: at most once in [`OFTEN`].
    fn may_tell(&mut self, worker: WorkerName, now: Instant) -> bool {
        let may_tell = match self.told.get(&worker) {
            Some(told) => now >= *told + OFTEN,
            None => self.told.len() < MOST_REFUSED,
        };
        if may_tell {
            self.told.insert(worker, now);
        }
        may_tell
    }

    /// Notes that a worker's hello cannot be read. Returns whether to log it: at most once in
    /// [`OFTEN`].
    pub fn refuse_message(&mut self, worker: WorkerName, reason: String, now: Instant) -> bool {
        let is_news = self.unread.get(&worker) != Some(&reason);
        let has_room = self.unread.contains_key(&worker) || self.unread.len() < MOST_REFUSED;
        if is_news && has_room {
            self.unread.insert(worker, reason);
        }
        is_news && has_room && self.may_tell(worker, now)
    }

    /// Ends silent sessions, and counts ended ones. Returns the workers that this drops, with the
    /// reasons.
    pub fn look(&mut self, now: Instant) -> Vec<(WorkerName, String)> {
        let mut dropped = Vec::new();
        for (id, place) in &mut self.places {
            place.session.end_if_silent();
            place.note_end(now);
            if place.is_to_be_dropped() && !self.dropped.contains_key(&id.worker) {
                let reason = place.session.ended().map_or_else(String::new, |end| end.reason().to_owned());
                self.dropped.insert(id.worker, reason.clone());
                dropped.push((id.worker, reason));
            }
        }
        for (id, place) in &self.places {
            if self.dropped.contains_key(&id.worker) {
                place.session.end(End::Gone("another device of the same worker was dropped".to_owned()));
            }
        }
        dropped
    }

    /// The sessions that have not ended.
    pub fn sessions(&self) -> impl Iterator<Item = &Arc<Session>> {
        self.places.values().map(|place| &place.session).filter(|session| session.ended().is_none())
    }

    /// The devices, by name. `proven`: the scheduler's figures of a device; `None` before it has
    /// any.
    pub fn devices(&self, now: Instant, proven: impl Fn(RemoteId) -> Option<ProvenFigures>) -> Vec<WorkerDeviceStatus> {
        let status = |(id, place): (&RemoteId, &Place)| {
            let Hello { name, kernel, program, .. } = place.session.hello.clone();
            let (ended, found) = (place.session.ended(), proven(*id));
            let state = match (&ended, &found) {
                (Some(end), _) => format!("away: {}", end.reason()),
                (None, Some(found)) => found.state.clone(),
                (None, None) => "comes".to_owned(),
            };
            let found = found.unwrap_or_default();
            WorkerDeviceStatus {
                id: *id,
                name,
                kernel,
                version: program,
                connected: ended.is_none(),
                proven_rate: found.rate,
                hits: found.hits,
                hits_wrong: place.session.proof.lock().unwrap_or_else(PoisonError::into_inner).hits_wrong(),
                errors: place.errors,
                state,
                comes_too_often: place.too_often.is_some_and(|last| now < last + OFTEN),
            }
        };
        self.places.iter().map(status).collect()
    }

    /// Workers that get no orders, and why.
    pub fn refused(&self) -> Vec<(WorkerName, String)> {
        let all = self.unread.iter().chain(&self.dropped);
        all.map(|(worker, reason)| (*worker, reason.clone())).collect::<BTreeMap<_, _>>().into_iter().collect()
    }
}

impl Place {
    fn new(session: &Arc<Session>, now: Instant) -> Place {
        let (session, began) = (Arc::clone(session), VecDeque::from([now]));
        Place { session, is_noted: false, useless: 0, errors: 0, not_before: now, began, too_often: None }
    }

    /// Begins another session.
    fn begin(&mut self, session: &Arc<Session>, now: Instant) {
        (self.session, self.is_noted) = (Arc::clone(session), false);
        self.began.push_back(now);
        if self.began.len() > BEGINNINGS {
            self.began.pop_front();
        }
    }

    /// Notes how the session ended, once.
    fn note_end(&mut self, now: Instant) {
        let Some(end) = self.session.ended().filter(|_| !self.is_noted) else { return };
        self.is_noted = true;
        if self.session.has_answered() {
            self.useless = 0;
        }
        if !matches!(end, End::Gone(_)) {
            self.errors += 1;
        }
        if matches!(end, End::Useless(_)) {
            self.not_before = now + FIRST_PAUSE * 2u32.pow(self.useless);
            self.useless += 1;
        }
    }

    /// Whether the device has begun so many sessions that it may not begin another now.
    fn comes_too_often(&self, now: Instant) -> bool {
        self.began.len() >= BEGINNINGS && self.began.front().is_some_and(|first| now < *first + OFTEN)
    }

    fn is_to_be_dropped(&self) -> bool {
        matches!(self.session.ended(), Some(End::Distrusted(_))) || self.useless >= USELESS_AT_MOST
    }
}

/// The text about a worker that is sometimes turned away.
const TOO_OFTEN: &str = "it is started too often, or two machines share its credentials";

/// The figures of a device in the scheduler that its orders come from.
#[derive(Clone, PartialEq, Debug, Default)]
pub struct ProvenFigures {
    /// Candidates a second that its canaries prove.
    pub rate: Rate,
    /// Hits that verified.
    pub hits: u64,
    /// State of the device in words.
    pub state: String,
}

/// The workers on other machines.
#[derive(Clone, PartialEq, Debug, Default, Serialize, Deserialize)]
pub struct FleetStatus {
    /// Address of their server.
    pub server: String,
    /// Whether the bot is connected to the server.
    pub connected: bool,
    /// The workers that have come since the start, by name.
    pub workers: Vec<WorkerStatus>,
}

/// The state of a worker. Its figures are sums over its devices.
#[derive(Clone, PartialEq, Debug, Default, Serialize, Deserialize)]
pub struct WorkerStatus {
    /// The worker's name.
    pub name: String,
    /// Whether one of its devices is connected and gets orders.
    pub connected: bool,
    /// Candidates a second that its canaries prove, of all connected devices; 0 before the first
    /// measurement.
    pub proven_rate: Rate,
    /// Hits that verified, since the start.
    pub hits: u64,
    /// Hits that did not verify.
    pub hits_wrong: u64,
    /// Times since the start that the worker ignored its orders, failed or lied.
    pub errors: u64,
    /// `working`, `paused` by the operator, `rests ` and until when, `away: `, `gets no orders: `
    /// or `out: ` and the reason, or that it is started too often.
    pub state: String,
    /// Why the worker gets no orders, if so.
    #[serde(skip)]
    pub refused: Option<String>,
    /// The worker's devices.
    pub devices: Vec<WorkerDeviceStatus>,
}

/// The state of a worker's device. Name, kernel and version are as the worker says.
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize)]
pub struct WorkerDeviceStatus {
    /// `ann:0`, …
    pub id: RemoteId,
    /// The maker's name.
    pub name: String,
    /// The kernel that the device runs.
    pub kernel: String,
    /// Version of the worker's program.
    pub version: String,
    /// Whether the device is connected.
    pub connected: bool,
    /// As in [`WorkerStatus::proven_rate`].
    pub proven_rate: Rate,
    /// As in [`WorkerStatus::hits`].
    pub hits: u64,
    /// As in [`WorkerStatus::hits_wrong`].
    pub hits_wrong: u64,
    /// As in [`WorkerStatus::errors`].
    pub errors: u64,
    /// As in [`WorkerStatus::state`].
    pub state: String,
    /// Whether the device's worker was recently started more often than is allowed.
    #[serde(skip)]
    pub comes_too_often: bool,
}

impl FleetStatus {
    /// All devices.
    pub fn devices(&self) -> impl Iterator<Item = &WorkerDeviceStatus> {
        self.workers.iter().flat_map(|worker| &worker.devices)
    }

    /// The devices as workers, and the workers that get no orders for a reason.
    pub(crate) fn of(devices: Vec<WorkerDeviceStatus>, refused: Vec<(WorkerName, String)>) -> FleetStatus {
        let mut workers: BTreeMap<WorkerName, (Vec<WorkerDeviceStatus>, Option<String>)> = BTreeMap::new();
        for device in devices {
            workers.entry(device.id.worker).or_default().0.push(device);
        }
        for (worker, reason) in refused {
            workers.entry(worker).or_default().1 = Some(reason);
        }
        let workers = workers.into_iter().map(|(name, (devices, refused))| WorkerStatus::of(name, devices, refused));
        FleetStatus { workers: workers.collect(), ..FleetStatus::default() }
    }
}

impl WorkerStatus {
    fn of(name: WorkerName, devices: Vec<WorkerDeviceStatus>, refused: Option<String>) -> WorkerStatus {
        let connected = || devices.iter().filter(|device| device.connected);
        let state = match (&refused, connected().next(), devices.first()) {
            (Some(reason), ..) => format!("gets no orders: {reason}"),
            (None, None, away) => away.map_or_else(String::new, |device| device.state.clone()),
            (None, Some(_), _) if devices.iter().any(|device| device.comes_too_often) => TOO_OFTEN.to_owned(),
            (None, Some(device), _) => device.state.clone(),
        };
        WorkerStatus {
            name: name.to_string(),
            connected: refused.is_none() && connected().next().is_some(),
            proven_rate: Rate(connected().map(|device| device.proven_rate.0).sum()),
            hits: devices.iter().map(|device| device.hits).sum(),
            hits_wrong: devices.iter().map(|device| device.hits_wrong).sum(),
            errors: devices.iter().map(|device| device.errors).sum(),
            state,
            refused,
            devices,
        }
    }

    /// The faults that the bot sees in the worker, for its operator.
    pub fn faults(&self) -> Vec<String> {
        let refused = self.refused.iter().map(|reason| format!("{} gets no orders: {reason}", self.name));
        let often = self.devices.iter().filter(|device| device.comes_too_often);
        refused.chain(often.map(|device| format!("{}: {TOO_OFTEN}", device.id))).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use npubbot_miner::search::MOST_DEVICES;

    fn id(worker: &str) -> RemoteId {
        RemoteId { worker: worker.parse().unwrap(), device: 0 }
    }

    fn hello(session: u64) -> Hello {
        Hello::of_a_test(session, 1)
    }

    fn begins(visit: Visit) -> Arc<Session> {
        match visit {
            Visit::Begins(session) => session,
            Visit::GoesOn | Visit::TooOften { .. } => panic!("no session begins"),
        }
    }

    fn goes_on(visit: &Visit) -> bool {
        !matches!(visit, Visit::Begins(_))
    }

    #[test]
    fn a_device_has_one_session_and_a_restarted_worker_a_new_one() {
        let (mut roll, now) = (Roll::default(), Instant::now());
        let first = begins(roll.hear(id("ann"), hello(1), now));
        assert!(goes_on(&roll.hear(id("ann"), hello(1), now)));
        begins(roll.hear(id("bob"), hello(1), now));
        let second = begins(roll.hear(id("ann"), hello(2), now));
        assert!(first.ended().is_some() && second.ended().is_none());
        second.end(End::Gone("the server is away".to_owned()));
        begins(roll.hear(id("ann"), hello(2), now));
        assert_eq!(roll.sessions().count(), 2);
    }

    #[test]
    fn what_a_device_has_proven_outlives_its_sessions() {
        let (mut roll, now) = (Roll::default(), Instant::now());
        let first = begins(roll.hear(id("ann"), hello(1), now));
        first.proof.lock().unwrap().note_wrong_hit().unwrap();
        let second = begins(roll.hear(id("ann"), hello(2), now));
        assert!(Arc::ptr_eq(&first.proof, &second.proof));
        assert_eq!(roll.devices(now, |_| None)[0].hits_wrong, 1);
        assert!(!Arc::ptr_eq(&first.proof, &begins(roll.hear(id("bob"), hello(1), now)).proof));
    }

    #[test]
    fn a_distrusted_worker_never_comes_back_under_its_name() {
        let (mut roll, now) = (Roll::default(), Instant::now());
        let (lied, other) = (id("liar"), RemoteId { device: 1, ..id("liar") });
        let session = begins(roll.hear(lied, hello(1), now));
        let beside = begins(roll.hear(other, hello(1), now));
        session.end(End::Distrusted("3 of its hits were wrong".to_owned()));
        assert!(goes_on(&roll.hear(lied, hello(2), now)), "not even before it is noted");
        assert_eq!(roll.look(now), [(lied.worker, "3 of its hits were wrong".to_owned())]);
        assert!(roll.look(now).is_empty(), "it is told once");
        assert!(beside.ended().is_some());
        for device in 0..3 {
            assert!(goes_on(&roll.hear(RemoteId { device, ..lied }, hello(3), now + Duration::from_secs(86_400))));
        }
        assert_eq!(roll.refused().len(), 1);
        begins(roll.hear(id("ann"), hello(1), now));
    }

    #[test]
    fn a_worker_that_does_nothing_waits_longer_each_time_and_is_dropped() {
        let (mut roll, mut now) = (Roll::default(), Instant::now());
        let mut session = begins(roll.hear(id("idle"), hello(1), now));
        let mut pauses = Vec::new();
        loop {
            session.end(End::Useless("no answer".to_owned()));
            if !roll.look(now).is_empty() {
                break;
            }
            let mut pause = 0;
            session = loop {
                match roll.hear(id("idle"), hello(1), now + Duration::from_secs(pause)) {
                    Visit::Begins(session) => break session,
                    Visit::GoesOn | Visit::TooOften { .. } => pause += 1,
                }
            };
            pauses.push(pause);
            now += Duration::from_secs(pause);
        }
        assert_eq!(pauses, [2, 4, 8, 16]);
        assert_eq!(roll.devices(now, |_| None)[0].errors, 5);
        assert!(goes_on(&roll.hear(id("idle"), hello(99), now + Duration::from_secs(86_400))));
    }

    #[test]
    fn sessions_of_a_stolen_credential_begin_seldom() {
        let (mut roll, now) = (Roll::default(), Instant::now());
        let begun = |roll: &mut Roll, from: u64, at| {
            (from..from + 1000).filter(|&session| !goes_on(&roll.hear(id("ann"), hello(session), at))).count()
        };
        assert_eq!(begun(&mut roll, 0, now), BEGINNINGS);
        assert_eq!(begun(&mut roll, 1000, now + OFTEN - Duration::from_secs(1)), 0);
        assert_eq!(begun(&mut roll, 2000, now + OFTEN), BEGINNINGS);
        begins(roll.hear(id("bob"), hello(1), now));
        let often = |at| roll.devices(at, |_| None).iter().map(|device| device.comes_too_often).collect::<Vec<_>>();
        assert_eq!((often(now + OFTEN), often(now + OFTEN * 2)), (vec![true, false], vec![false, false]));
    }

    #[test]
    fn a_worker_with_many_devices_gets_the_start_points_of_one_worker() {
        let (mut roll, now) = (Roll::default(), Instant::now());
        let mut pace = |worker, device, session| {
            let id = RemoteId { device, ..id(worker) };
            Arc::clone(&begins(roll.hear(id, hello(session), now)).pace)
        };
        let first = pace("ann", 0, 1);
        for device in 1..MOST_DEVICES {
            assert!(Arc::ptr_eq(&first, &pace("ann", device, 1)));
        }
        assert!(Arc::ptr_eq(&first, &pace("ann", 0, 2)), "a new session saves nothing");
        assert!(!Arc::ptr_eq(&first, &pace("bob", 0, 1)));
    }

    #[test]
    fn two_machines_with_the_same_credentials_are_told_of_once_and_one_works() {
        let (mut roll, now) = (Roll::default(), Instant::now());
        let (mut news, mut begun) = (0, 0);
        for second in 0..100 {
            for session in [1, 2] {
                match roll.hear(id("ann"), hello(session), now + Duration::from_secs(second)) {
                    Visit::Begins(_) => begun += 1,
                    Visit::TooOften { is_news } => news += u32::from(is_news),
                    Visit::GoesOn => {}
                }
            }
        }
        assert_eq!((begun, news, roll.sessions().count()), (BEGINNINGS, 1, 1));
    }

    #[test]
    fn a_worker_of_changing_versions_is_told_of_seldom() {
        let (mut roll, now) = (Roll::default(), Instant::now());
        let told = |roll: &mut Roll, at: Instant| {
            let is_told = |version: &u16| roll.refuse_message(id("ann").worker, format!("version {version}"), at);
            (0..1000).filter(is_told).count()
        };
        assert_eq!(told(&mut roll, now), 1);
        begins(roll.hear(id("ann"), hello(1), now));
        assert_eq!(told(&mut roll, now + OFTEN - Duration::from_secs(1)), 0);
        assert_eq!(told(&mut roll, now + OFTEN), 1);
        assert!(roll.refuse_message(id("bob").worker, "why".to_owned(), now));
    }

    #[test]
    fn the_roll_is_bounded() {
        let (mut roll, now) = (Roll::default(), Instant::now());
        for number in 0..MOST_PLACES + 10 {
            let name = format!("w{number}");
            assert_eq!(goes_on(&roll.hear(id(&name), hello(1), now)), number >= MOST_PLACES);
            assert_eq!(roll.refuse_message(name.parse().unwrap(), "why".to_owned(), now), number < MOST_REFUSED);
            assert!(!roll.refuse_message(name.parse().unwrap(), "why".to_owned(), now), "it is told once");
        }
    }

    fn device(worker: &str, device: u8, state: &str, rate: f64, hits: u64) -> WorkerDeviceStatus {
        WorkerDeviceStatus {
            id: RemoteId { worker: worker.parse().unwrap(), device },
            name: "NVIDIA H200".to_owned(),
            kernel: "sm_90".to_owned(),
            version: "0.1.0".to_owned(),
            connected: !state.starts_with("away"),
            proven_rate: Rate(rate),
            hits,
            hits_wrong: 1,
            errors: 2,
            state: state.to_owned(),
            comes_too_often: false,
        }
    }

    #[test]
    fn a_worker_is_the_sum_of_its_devices_that_are_there() {
        let away = "away: no sign of life for 7 s";
        let devices = vec![
            device("ann", 0, "working", 1e9, 5),
            device("ann", 1, away, 2e9, 7),
            device("bob", 0, "paused", 4e9, 1),
        ];
        let refused = vec![("liar".parse().unwrap(), "3 of its hits were wrong".to_owned())];
        let status = FleetStatus::of(devices, refused);
        let told = |at: usize| {
            let WorkerStatus { name, connected, proven_rate, hits, state, .. } = &status.workers[at];
            (name.as_str(), *connected, proven_rate.0, *hits, state.as_str())
        };
        assert_eq!(told(0), ("ann", true, 1e9, 12, "working"));
        assert_eq!(told(1), ("bob", true, 4e9, 1, "paused"));
        assert_eq!(told(2), ("liar", false, 0.0, 0, "gets no orders: 3 of its hits were wrong"));
        assert_eq!((status.workers[0].hits_wrong, status.workers[0].errors), (2, 4));
        assert_eq!(status.workers[2].faults(), ["liar gets no orders: 3 of its hits were wrong"]);
        let mut alone = device("ann", 1, away, 2e9, 7);
        assert_eq!(FleetStatus::of(vec![alone.clone()], Vec::new()).workers[0].state, away);
        (alone.connected, alone.comes_too_often) = (true, true);
        let status = FleetStatus::of(vec![alone], Vec::new());
        assert_eq!((status.workers[0].state.as_str(), status.workers[0].faults().len()), (TOO_OFTEN, 1));
    }
}
