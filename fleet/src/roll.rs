//! The roll: a list of the workers' devices, with their sessions, and the dropped workers; and what the
//! operator sees of it. No I/O but the log.

use super::session::{End, Session, new_pace};
use super::wire::Hello;
use npubbot_miner::pattern::Rate;
use npubbot_miner::search::{RemoteId, WorkerName};
use serde::{Deserialize, Serialize};
use std::collections::{BTreeMap, VecDeque};
use std::sync::{Arc, PoisonError};
use std::time::{Duration, Instant};

/// The most devices on the roll.
const MAX_PLACES: usize = 4096;
/// The most workers whose refusal is remembered.
const MAX_REFUSED: usize = 4096;
/// Number of useless sessions in a row after which a worker is dropped.
const USELESS_AT_MOST: u32 = 5;
/// The most sessions of one device that may begin within [`OFTEN`]. Each costs the bot a thread and
/// some requests to the server.
const BEGINNINGS: usize = 8;
/// Period in which a device may begin [`BEGINNINGS`] sessions, and in which the log has one line at
/// most about workers that are turned away.
const OFTEN: Duration = Duration::from_secs(120);

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
    told: Option<Instant>,
}

impl Roll {
    /// Takes a hello. Returns the session that begins with it: none if the device has one, or gets no
    /// orders now.
    pub fn hear(&mut self, id: RemoteId, hello: Hello, now: Instant) -> Option<Arc<Session>> {
        self.unread.remove(&id.worker);
        if self.dropped.contains_key(&id.worker) {
            return None;
        }
        // A worker's devices share a pace, which outlives their sessions.
        let of_worker = self.places.range(RemoteId { device: 0, ..id }..).next();
        let of_worker = of_worker.filter(|(beside, _)| beside.worker == id.worker);
        let pace = of_worker.map_or_else(new_pace, |(_, place)| Arc::clone(&place.session.pace));
        let Some(place) = self.places.get_mut(&id) else {
            let session = Arc::new(Session::new(id, hello, pace, Arc::default()));
            let room = self.places.len() < MAX_PLACES;
            return room.then(|| Arc::clone(&self.places.entry(id).or_insert(Place::new(session, now)).session));
        };
        if place.session.ended().is_none() && place.session.hello.session == hello.session {
            place.session.seen();
            return None;
        }
        if place.began.len() >= BEGINNINGS && place.began.front().is_some_and(|first| now < *first + OFTEN) {
            place.too_often = Some(now);
            if self.may_tell(now) {
                tracing::warn!(worker = %id.worker, "a worker is started too often, or two machines share its credentials");
            }
            return None;
        }
        place.session.end(End::Gone("it was started again".to_owned()));
        place.note_end();
        if place.is_to_be_dropped() {
            return None;
        }
        let session = Arc::new(Session::new(id, hello, pace, Arc::clone(&place.session.proof)));
        place.begin(Arc::clone(&session), now);
        Some(session)
    }

    /// Whether the log may name a worker that is turned away.
    fn may_tell(&mut self, now: Instant) -> bool {
        let may_tell = self.told.is_none_or(|told| now >= told + OFTEN);
        self.told = if may_tell { Some(now) } else { self.told };
        may_tell
    }

    /// Notes that a worker's hello cannot be read.
    pub fn refuse_message(&mut self, worker: WorkerName, reason: String, now: Instant) {
        let is_news = self.unread.get(&worker) != Some(&reason);
        let has_room = self.unread.contains_key(&worker) || self.unread.len() < MAX_REFUSED;
        if is_news && has_room {
            if self.may_tell(now) {
                tracing::warn!(%worker, reason, "a worker gets no orders");
            }
            self.unread.insert(worker, reason);
        }
    }

    /// Ends silent sessions, and counts ended ones. Drops workers that lie or do nothing.
    pub fn look(&mut self) {
        for (id, place) in &mut self.places {
            place.session.end_if_silent();
            place.note_end();
            if place.is_to_be_dropped() && !self.dropped.contains_key(&id.worker) {
                let reason = place.session.ended().map_or_else(String::new, |end| end.reason().to_owned());
                tracing::warn!(worker = %id.worker, reason, "a worker is dropped and gets no more orders until the bot is restarted");
                self.dropped.insert(id.worker, reason);
            }
        }
        for (id, place) in &self.places {
            if self.dropped.contains_key(&id.worker) {
                place.session.end(End::Gone("another device of the same worker was dropped".to_owned()));
            }
        }
    }

    /// The sessions that have not ended.
    pub fn sessions(&self) -> impl Iterator<Item = &Arc<Session>> {
        self.places.values().map(|place| &place.session).filter(|session| session.ended().is_none())
    }

    /// The workers, by name. `proven`: the scheduler's figures of a device; `None` before it has any.
    pub fn workers(&self, now: Instant, proven: impl Fn(RemoteId) -> Option<ProvenFigures>) -> Vec<WorkerStatus> {
        let mut workers: BTreeMap<WorkerName, (Vec<WorkerDeviceStatus>, Option<String>)> = BTreeMap::new();
        for (id, place) in &self.places {
            workers.entry(id.worker).or_default().0.push(place.status(*id, now, proven(*id)));
        }
        for (worker, reason) in self.unread.iter().chain(&self.dropped) {
            workers.entry(*worker).or_default().1 = Some(reason.clone());
        }
        workers.into_iter().map(|(name, (devices, refused))| WorkerStatus::of(name, devices, refused)).collect()
    }
}

impl Place {
    fn new(session: Arc<Session>, now: Instant) -> Place {
        Place { session, is_noted: false, useless: 0, errors: 0, began: VecDeque::from([now]), too_often: None }
    }

    /// Begins another session.
    fn begin(&mut self, session: Arc<Session>, now: Instant) {
        (self.session, self.is_noted) = (session, false);
        self.began.push_back(now);
        if self.began.len() > BEGINNINGS {
            self.began.pop_front();
        }
    }

    /// Notes how the session ended, once.
    fn note_end(&mut self) {
        let Some(end) = self.session.ended().filter(|_| !self.is_noted) else { return };
        self.is_noted = true;
        if self.session.has_answered() {
            self.useless = 0;
        }
        self.errors += u64::from(!matches!(end, End::Gone(_)));
        self.useless += u32::from(matches!(end, End::Useless(_)));
    }

    fn is_to_be_dropped(&self) -> bool {
        matches!(self.session.ended(), Some(End::Distrusted(_))) || self.useless >= USELESS_AT_MOST
    }

    fn status(&self, id: RemoteId, now: Instant, proven: Option<ProvenFigures>) -> WorkerDeviceStatus {
        let Hello { name, kernel, program, .. } = self.session.hello.clone();
        let ended = self.session.ended();
        let state = match (&ended, &proven) {
            (Some(end), _) => format!("away: {}", end.reason()),
            (None, Some((.., state))) => state.clone(),
            (None, None) => "comes".to_owned(),
        };
        let (proven_rate, hits, _) = proven.unwrap_or_default();
        let hits_wrong = self.session.proof.lock().unwrap_or_else(PoisonError::into_inner).hits_wrong();
        let figures =
            WorkerFigures { connected: ended.is_none(), proven_rate, hits, hits_wrong, errors: self.errors, state };
        let comes_too_often = self.too_often.is_some_and(|last| now < last + OFTEN);
        WorkerDeviceStatus { id, name, kernel, version: program, figures, comes_too_often }
    }
}

/// The text about a worker that is sometimes turned away.
const TOO_OFTEN: &str = "it is started too often, or two machines share its credentials";

/// A device in the scheduler that its orders come from: candidates a second that its canaries prove,
/// hits that verified, its state in words.
pub type ProvenFigures = (Rate, u64, String);

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

/// The state of a worker, or of one of its devices.
#[derive(Clone, PartialEq, Debug, Default, Serialize, Deserialize)]
pub struct WorkerFigures {
    /// Whether it is connected and gets orders.
    pub connected: bool,
    /// Candidates a second that canaries prove, of all connected devices; 0 before the first
    /// measurement.
    pub proven_rate: Rate,
    /// Hits that verified, since the start.
    pub hits: u64,
    /// Hits that did not verify.
    pub hits_wrong: u64,
    /// Times since the start that it ignored its orders, failed or lied.
    pub errors: u64,
    /// `working`, `paused` by the operator, `rests ` and until when, `away: `, `gets no orders: `
    /// or `out: ` and the reason, or that the worker is started too often.
    pub state: String,
}

/// A worker. Its figures are sums over its devices.
#[derive(Clone, PartialEq, Debug, Default, Serialize, Deserialize)]
pub struct WorkerStatus {
    /// The worker's name.
    pub name: String,
    /// Its state.
    #[serde(flatten)]
    pub figures: WorkerFigures,
    /// Why the worker gets no orders, if so.
    #[serde(skip)]
    pub refused: Option<String>,
    /// The worker's devices.
    pub devices: Vec<WorkerDeviceStatus>,
}

/// A worker's device. Name, kernel and version are as the worker says.
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
    /// Its state.
    #[serde(flatten)]
    pub figures: WorkerFigures,
    /// Whether the device's worker was recently started more often than is allowed.
    #[serde(skip)]
    pub comes_too_often: bool,
}

impl FleetStatus {
    /// All devices.
    pub fn devices(&self) -> impl Iterator<Item = &WorkerDeviceStatus> {
        self.workers.iter().flat_map(|worker| &worker.devices)
    }
}

impl WorkerStatus {
    fn of(name: WorkerName, devices: Vec<WorkerDeviceStatus>, refused: Option<String>) -> WorkerStatus {
        let all = || devices.iter().map(|device| &device.figures);
        let connected = || all().filter(|figures| figures.connected);
        let state = match (&refused, connected().next(), all().next()) {
            (Some(reason), ..) => format!("gets no orders: {reason}"),
            (None, None, away) => away.map_or_else(String::new, |device| device.state.clone()),
            (None, Some(_), _) if devices.iter().any(|device| device.comes_too_often) => TOO_OFTEN.to_owned(),
            (None, Some(device), _) => device.state.clone(),
        };
        let figures = WorkerFigures {
            connected: refused.is_none() && connected().next().is_some(),
            proven_rate: Rate(connected().map(|device| device.proven_rate.0).sum()),
            hits: all().map(|device| device.hits).sum(),
            hits_wrong: all().map(|device| device.hits_wrong).sum(),
            errors: all().map(|device| device.errors).sum(),
            state,
        };
        WorkerStatus { name: name.to_string(), figures, refused, devices }
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
    use npubbot_miner::search::MAX_DEVICES;

    fn id(worker: &str) -> RemoteId {
        RemoteId { worker: worker.parse().unwrap(), device: 0 }
    }

    fn hello(session: u64) -> Hello {
        Hello::of_a_test(session, 1)
    }

    /// The devices of all workers.
    fn devices(roll: &Roll, now: Instant) -> Vec<WorkerDeviceStatus> {
        roll.workers(now, |_| None).into_iter().flat_map(|worker| worker.devices).collect()
    }

    /// The workers that get no orders, and why.
    fn refused(roll: &Roll) -> Vec<(String, String)> {
        let workers = roll.workers(Instant::now(), |_| None).into_iter();
        workers.filter_map(|worker| Some((worker.name, worker.refused?))).collect()
    }

    #[test]
    fn a_device_has_one_session_and_a_restarted_worker_a_new_one() {
        let (mut roll, now) = (Roll::default(), Instant::now());
        let first = roll.hear(id("ann"), hello(1), now).unwrap();
        assert!(roll.hear(id("ann"), hello(1), now).is_none());
        roll.hear(id("bob"), hello(1), now).unwrap();
        let second = roll.hear(id("ann"), hello(2), now).unwrap();
        assert!(first.ended().is_some() && second.ended().is_none());
        second.end(End::Gone("the server is away".to_owned()));
        roll.hear(id("ann"), hello(2), now).unwrap();
        assert_eq!(roll.sessions().count(), 2);
    }

    #[test]
    fn what_a_device_has_proven_outlives_its_sessions() {
        let (mut roll, now) = (Roll::default(), Instant::now());
        let first = roll.hear(id("ann"), hello(1), now).unwrap();
        first.proof.lock().unwrap().note_wrong_hit().unwrap();
        let second = roll.hear(id("ann"), hello(2), now).unwrap();
        assert!(Arc::ptr_eq(&first.proof, &second.proof));
        assert_eq!(devices(&roll, now)[0].figures.hits_wrong, 1);
        assert!(!Arc::ptr_eq(&first.proof, &roll.hear(id("bob"), hello(1), now).unwrap().proof));
    }

    #[test]
    fn a_distrusted_worker_never_comes_back_under_its_name() {
        let (mut roll, now) = (Roll::default(), Instant::now());
        let (lied, other) = (id("liar"), RemoteId { device: 1, ..id("liar") });
        let session = roll.hear(lied, hello(1), now).unwrap();
        let beside = roll.hear(other, hello(1), now).unwrap();
        session.end(End::Distrusted("3 of its hits were wrong".to_owned()));
        assert!(roll.hear(lied, hello(2), now).is_none(), "not even before it is noted");
        roll.look();
        assert!(beside.ended().is_some());
        for device in 0..3 {
            assert!(roll.hear(RemoteId { device, ..lied }, hello(3), now + Duration::from_secs(86_400)).is_none());
        }
        assert_eq!(refused(&roll), [("liar".to_owned(), "3 of its hits were wrong".to_owned())]);
        roll.hear(id("ann"), hello(1), now).unwrap();
    }

    #[test]
    fn a_worker_that_does_nothing_five_times_in_a_row_is_dropped() {
        let (mut roll, now) = (Roll::default(), Instant::now());
        for session in 1..=USELESS_AT_MOST {
            let session = roll.hear(id("idle"), hello(session.into()), now).unwrap();
            session.end(End::Useless("no answer".to_owned()));
            roll.look();
        }
        assert_eq!(devices(&roll, now)[0].figures.errors, 5);
        assert_eq!(refused(&roll), [("idle".to_owned(), "no answer".to_owned())]);
        assert!(roll.hear(id("idle"), hello(99), now + Duration::from_secs(86_400)).is_none());
    }

    #[test]
    fn sessions_of_a_stolen_credential_begin_seldom() {
        let (mut roll, now) = (Roll::default(), Instant::now());
        let begun = |roll: &mut Roll, from: u64, at| {
            (from..from + 1000).filter(|&session| roll.hear(id("ann"), hello(session), at).is_some()).count()
        };
        assert_eq!(begun(&mut roll, 0, now), BEGINNINGS);
        assert_eq!(begun(&mut roll, 1000, now + OFTEN - Duration::from_secs(1)), 0);
        assert_eq!(begun(&mut roll, 2000, now + OFTEN), BEGINNINGS);
        roll.hear(id("bob"), hello(1), now).unwrap();
        let often = |at| devices(&roll, at).iter().map(|device| device.comes_too_often).collect::<Vec<_>>();
        assert_eq!((often(now + OFTEN), often(now + OFTEN * 2)), (vec![true, false], vec![false, false]));
    }

    #[test]
    fn a_worker_with_many_devices_gets_the_start_points_of_one_worker() {
        let (mut roll, now) = (Roll::default(), Instant::now());
        let mut pace = |worker, device, session| {
            let id = RemoteId { device, ..id(worker) };
            Arc::clone(&roll.hear(id, hello(session), now).unwrap().pace)
        };
        let first = pace("ann", 0, 1);
        for device in 1..MAX_DEVICES {
            assert!(Arc::ptr_eq(&first, &pace("ann", device, 1)));
        }
        assert!(Arc::ptr_eq(&first, &pace("ann", 0, 2)), "a new session saves nothing");
        assert!(!Arc::ptr_eq(&first, &pace("bob", 0, 1)));
    }

    #[test]
    fn the_log_names_workers_that_are_turned_away_seldom() {
        let (mut roll, now) = (Roll::default(), Instant::now());
        let told = |roll: &mut Roll, at: Instant| (0..1000).filter(|_| roll.may_tell(at)).count();
        assert_eq!((told(&mut roll, now), told(&mut roll, now + OFTEN - Duration::from_secs(1))), (1, 0));
        assert_eq!(told(&mut roll, now + OFTEN), 1);
    }

    #[test]
    fn the_roll_is_bounded() {
        let (mut roll, now) = (Roll::default(), Instant::now());
        for number in 0..MAX_PLACES + 10 {
            let name = format!("w{number}");
            assert_eq!(roll.hear(id(&name), hello(1), now).is_none(), number >= MAX_PLACES);
            roll.refuse_message(name.parse().unwrap(), "why".to_owned(), now);
        }
        assert_eq!(refused(&roll).len(), MAX_REFUSED);
    }

    fn device(device: u8, state: &str, rate: f64, hits: u64) -> WorkerDeviceStatus {
        let (connected, proven_rate) = (!state.starts_with("away"), Rate(rate));
        let figures = WorkerFigures { connected, proven_rate, hits, hits_wrong: 1, errors: 2, state: state.to_owned() };
        let [name, kernel, version] = ["NVIDIA H200", "sm_90", "0.1.0"].map(str::to_owned);
        WorkerDeviceStatus {
            id: RemoteId { device, ..id("ann") },
            name,
            kernel,
            version,
            figures,
            comes_too_often: false,
        }
    }

    #[test]
    fn a_worker_is_the_sum_of_its_devices_that_are_there() {
        let away = "away: no sign of life for 7 s";
        let of = |devices, refused| WorkerStatus::of("ann".parse().unwrap(), devices, refused);
        let told = |status: &WorkerStatus| {
            let WorkerFigures { connected, proven_rate, hits, hits_wrong, errors, state } = status.figures.clone();
            (connected, proven_rate.0, hits, hits_wrong, errors, state)
        };
        let ann = vec![device(0, "working", 1e9, 5), device(1, away, 2e9, 7)];
        assert_eq!(told(&of(ann.clone(), None)), (true, 1e9, 12, 2, 4, "working".to_owned()));
        let liar = of(ann, Some("3 of its hits were wrong".to_owned()));
        assert_eq!(told(&liar), (false, 1e9, 12, 2, 4, "gets no orders: 3 of its hits were wrong".to_owned()));
        assert_eq!(liar.faults(), ["ann gets no orders: 3 of its hits were wrong"]);
        let mut alone = device(1, away, 2e9, 7);
        assert_eq!(of(vec![alone.clone()], None).figures.state, away);
        (alone.figures.connected, alone.comes_too_often) = (true, true);
        let status = of(vec![alone], None);
        assert_eq!((status.figures.state.as_str(), status.faults().len()), (TOO_OFTEN, 1));
    }
}
