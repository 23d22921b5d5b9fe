//! One thread a device: fresh start points, launches kept in flight, harvests handed on. A device that fails is taken out,
//! and tried again later.

use super::health::{DeviceView, LastLaunch, Record};
use super::open_devices::{Decrypted, OpenDevice, open_all};
use super::verifier::{Delivered, reach};
use super::verify::CollectedLaunch;
use crate::fault::{self, Step};
use crate::key::StartPoint;
use crate::pattern::Rate;
use crate::scheduler::plan::pass::{Lane, Pass};
use crate::scheduler::plan::pool::{Next, Pool, Subscription};
use crate::scheduler::plan::wait_estimate::Serving;
use crate::search::{self, DeviceId, Launch, SearchError, SearchOptions, Searcher};
use crate::vault::{StartId, Vault, VaultError};
use std::collections::VecDeque;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Arc;
use std::sync::mpsc::SyncSender;
use std::thread::JoinHandle;
use std::time::{Duration, Instant};
use thiserror::Error;

/// How long a device runs before it is measured, and how long it is measured before it takes jobs.
const WARM_UP: Duration = Duration::from_millis(150);
const MEASURE: Duration = Duration::from_millis(200);
/// A device that failed is tried again after this, doubling up to the last.
const FIRST_PAUSE: Duration = Duration::from_secs(1);
const LAST_PAUSE: Duration = Duration::from_secs(300);
/// A device that worked this long before it failed starts again at the first pause.
const RECOVERED_AFTER: Duration = Duration::from_secs(60);
/// How long a thread sleeps at most before it looks again.
const LOOK_AGAIN: Duration = Duration::from_millis(500);

/// The device threads.
pub struct Workers {
    devices: Vec<Device>,
}

struct Device {
    record: Arc<Record>,
    /// Takes the easy patterns that GPUs leave; not counted in the rate.
    is_side: bool,
    thread: Option<JoinHandle<()>>,
}

/// Why a worker's turn on its device ended.
#[derive(Debug, Error)]
enum Failure {
    #[error(transparent)]
    Search(#[from] SearchError),
    #[error(transparent)]
    Vault(#[from] VaultError),
    #[error("{0}")]
    Distrusted(String),
    #[error("its thread panicked")]
    Panicked,
}

impl Workers {
    /// Opens the devices that `options` asks for and starts their threads. The CPU thread beside GPUs sleeps until there is a
    /// pattern too easy for them.
    pub(in crate::scheduler) fn start(
        options: &SearchOptions,
        opener: OpenDevice,
        pool: Arc<Pool>,
        vault: Vault,
        harvests: SyncSender<Delivered>,
    ) -> Result<Workers, SearchError> {
        let opened = open_all(options, search::cuda::device_count, &*opener)?;
        let has_gpu = opened.iter().any(|device| device.info.id != DeviceId::Cpu);
        let records: Vec<Arc<Record>> = opened.iter().map(|device| Arc::new(Record::new(&device.info))).collect();
        let gpus: Vec<Arc<Record>> =
            records.iter().filter(|record| record.view().id != DeviceId::Cpu).map(Arc::clone).collect();
        let start = |(at, opened): (usize, Decrypted)| {
            let Decrypted { info, searcher, options, is_side } = opened;
            let record = Arc::clone(&records[at]);
            let lane = match (has_gpu, info.id) {
                (false, _) => Lane::All,
                (true, DeviceId::Cpu) => Lane::Easy,
                (true, DeviceId::Cuda(_)) => Lane::Hard,
            };
            let worker = Worker {
                at,
                lane,
                stands_in_for: if is_side { gpus.clone() } else { Vec::new() },
                record: Arc::clone(&record),
                pool: Arc::clone(&pool),
                vault: vault.clone(),
                harvests: harvests.clone(),
                options,
                opener: Arc::clone(&opener),
            };
            let name = info.id.to_string();
            let thread = std::thread::Builder::new().name(name).spawn(move || worker.run(searcher));
            Device { record, is_side, thread: Some(thread.expect("the system starts threads")) }
        };
        Ok(Workers { devices: opened.into_iter().enumerate().map(start).collect() })
    }

    /// The working devices' rates together; where every GPU is out, that of the CPU thread that stands in for them.
    pub fn rate(&self) -> Option<Rate> {
        let rates: Vec<f64> = self.working().filter_map(Record::rate).map(|Rate(rate)| rate).collect();
        (!rates.is_empty()).then(|| Rate(rates.iter().sum()))
    }

    /// What these serve together.
    pub(in crate::scheduler) fn serving(&self) -> Option<Serving> {
        let is_gpu = |record: &Record| record.view().id != DeviceId::Cpu;
        let mut serving: Option<Serving> = None;
        for record in self.working() {
            let (Some(Rate(rate)), Some(last)) = (record.rate(), record.last_launch()) else { continue };
            let lane = if is_gpu(record) { Lane::Hard } else { Lane::All };
            let all =
                serving.get_or_insert(Serving { lane, stretch: 0.0, starts: 0, bases_a_second: 0.0, early_stop: true });
            all.early_stop &= last.early_stop;
            all.stretch = all.stretch.max(last.stretch);
            all.starts += last.starts;
            all.bases_a_second += rate * last.starts as f64 / last.candidates.max(1) as f64;
        }
        serving
    }

    fn working(&self) -> impl Iterator<Item = &Record> {
        let main_is_out = self.devices.iter().filter(|device| !device.is_side).all(|device| device.record.is_out());
        let counts = move |device: &&Device| device.is_side == main_is_out && !device.record.is_out();
        self.devices.iter().filter(counts).map(|device| device.record.as_ref())
    }

    pub fn devices(&self) -> Vec<DeviceView> {
        self.devices.iter().filter(|device| !device.is_side).map(|device| device.record.view()).collect()
    }

    /// Whether every device waits for work: measured, and nothing in flight.
    pub(in crate::scheduler) fn are_idle(&self) -> bool {
        self.devices.iter().all(|device| device.record.is_idle())
    }

    /// Waits for every thread to end, after the pool was closed.
    pub(in crate::scheduler) fn join(&mut self) {
        for device in &mut self.devices {
            if let Some(thread) = device.thread.take() {
                // Panics are caught inside; nothing is left to say here.
                let _ = thread.join();
            }
        }
    }
}

struct Worker {
    at: usize,
    lane: Lane,
    /// GPUs whose work this device takes over while none of them works.
    stands_in_for: Vec<Arc<Record>>,
    record: Arc<Record>,
    pool: Arc<Pool>,
    vault: Vault,
    harvests: SyncSender<Delivered>,
    options: SearchOptions,
    opener: OpenDevice,
}

/// A launch that was submitted and not yet collected.
struct InFlight {
    pass: Arc<Pass>,
    /// What its side was charged for it, in candidates.
    charged: f64,
    starts: Vec<(StartId, StartPoint)>,
}

impl Worker {
    /// Searches until the pool closes, opening the device again whenever it failed, to begin with if it did not open.
    fn run(self, searcher: Result<Box<dyn Searcher>, SearchError>) {
        let mut first = Some(searcher);
        let mut pause = FIRST_PAUSE;
        while !self.pool.is_closed() {
            let began = Instant::now();
            let ended = match first.take() {
                Some(Err(error)) => Err(error.into()),
                Some(Ok(searcher)) => self.work(Some(searcher)),
                None => self.work(None),
            };
            let Err(failure) = ended else { return };
            self.record.take_out(failure.to_string());
            if began.elapsed() > RECOVERED_AFTER {
                pause = FIRST_PAUSE;
            }
            tracing::warn!(device = %self.record.view().id, %failure, retry_in = ?pause, "a device is taken out");
            self.sleep(pause);
            pause = (pause * 2).min(LAST_PAUSE);
        }
    }

    /// One turn on the device: until the pool closes or something fails.
    fn work(&self, open: Option<Box<dyn Searcher>>) -> Result<(), Failure> {
        let mut in_flight = VecDeque::new();
        let search = || {
            let mut searcher = match open {
                Some(searcher) => searcher,
                None => (self.opener)(&self.options)?.pop().expect("an open device"),
            };
            self.record.put_back(searcher.info());
            self.search(searcher.as_mut(), &mut in_flight)
        };
        let result = catch_unwind(AssertUnwindSafe(search)).unwrap_or(Err(Failure::Panicked));
        // Whatever was still in flight is lost with its start points: the search has no memory.
        for launch in in_flight {
            self.discard(&launch.starts);
        }
        result
    }

    fn search(&self, searcher: &mut dyn Searcher, in_flight: &mut VecDeque<InFlight>) -> Result<(), Failure> {
        let mut held = self.pool.subscribe(self.lane);
        held.note_device(searcher.starts() * searcher.in_flight().max(1), searcher.early_stop());
        let measure_from = Instant::now() + WARM_UP;
        let take_jobs_from = measure_from + MEASURE;
        let warm_up = Arc::new(Pass::of_canary_alone(None));
        // The end of the launch before, while the device has been busy since: rates are over wall time.
        let mut busy_since = Instant::now();
        loop {
            // On a starved machine one launch may outlast both: without a rate nothing could be promised to anyone.
            let is_measured = Instant::now() >= take_jobs_from && self.record.rate().is_some();
            let next = if !is_measured && !self.pool.is_closed() {
                Next::Search(Arc::clone(&warm_up), 0.0)
            } else {
                held.set_lane(self.lane_now());
                self.pool.next(&mut held, self.record.rate())
            };
            match next {
                Next::Search(pass, charged) => {
                    self.submit(searcher, in_flight, pass, charged)?;
                    if in_flight.len() >= searcher.in_flight().max(1) {
                        self.collect(searcher, in_flight, &mut held, &mut busy_since, measure_from)?;
                    }
                }
                Next::Wait | Next::End if !in_flight.is_empty() => {
                    self.collect(searcher, in_flight, &mut held, &mut busy_since, measure_from)?;
                }
                Next::Wait => {
                    self.idle(&held);
                    busy_since = Instant::now();
                }
                Next::End => return Ok(()),
            }
        }
    }

    fn submit(
        &self,
        searcher: &mut dyn Searcher,
        in_flight: &mut VecDeque<InFlight>,
        pass: Arc<Pass>,
        charged: f64,
    ) -> Result<(), Failure> {
        let open = |_| match &pass.half {
            None => self.vault.open_start(),
            Some(half) => self.vault.open_split_start(half),
        };
        reach(fault::before, &pass, Step::Draw);
        let starts = (0..searcher.starts()).map(open).collect::<Result<Vec<_>, _>>()?;
        reach(fault::after, &pass, Step::Draw);
        let points = starts.iter().map(|&(_, point)| point).collect();
        let remaining = if searcher.early_stop() { pass.remaining() } else { None };
        let launch = Launch { starts: points, patterns: Arc::clone(&pass.patterns), remaining };
        in_flight.push_back(InFlight { pass: Arc::clone(&pass), charged, starts });
        reach(fault::before, &pass, Step::Launch);
        searcher.submit(launch)?;
        reach(fault::after, &pass, Step::Launch);
        Ok(())
    }

    fn collect(
        &self,
        searcher: &mut dyn Searcher,
        in_flight: &mut VecDeque<InFlight>,
        held: &mut Subscription,
        busy_since: &mut Instant,
        measure_from: Instant,
    ) -> Result<(), Failure> {
        let pass = &in_flight.front().expect("what is collected was submitted").pass;
        reach(fault::before, pass, Step::Collect);
        let report = searcher.collect()?;
        reach(fault::after, pass, Step::Collect);
        let launch = in_flight.pop_front().expect("what was collected was submitted");
        held.settle(&launch.pass, launch.charged, &report, launch.starts.len());
        if let Some(stretch) = held.stretch() {
            let (starts, candidates) = (launch.starts.len(), report.candidates);
            self.record.note_launch(LastLaunch { starts, candidates, stretch, early_stop: searcher.early_stop() });
        }
        let now = Instant::now();
        if *busy_since < measure_from {
            self.record.warmed_up(report.candidates);
        } else {
            self.record.measured(report.candidates, now - *busy_since);
        }
        *busy_since = now;
        let harvest = CollectedLaunch { device: self.at, pass: launch.pass, starts: launch.starts, report };
        // The verifier ends only after every worker has.
        let _ = self.harvests.send((harvest, Arc::clone(&self.record)));
        match self.record.view().health {
            super::health::Health::Working => Ok(()),
            super::health::Health::Out(reason) => Err(Failure::Distrusted(reason)),
        }
    }

    /// A GPU that has failed may not come back before the process starts anew (CUDA says so of some errors): slow is
    /// better than not at all.
    fn lane_now(&self) -> Lane {
        let gpus_are_out = !self.stands_in_for.is_empty() && self.stands_in_for.iter().all(|gpu| gpu.is_out());
        if gpus_are_out { Lane::All } else { self.lane }
    }

    fn idle(&self, held: &Subscription) {
        self.record.set_idle(true);
        self.pool.wait(held, LOOK_AGAIN);
        self.record.set_idle(false);
    }

    /// Sleeps, but not past the end.
    fn sleep(&self, pause: Duration) {
        let until = Instant::now() + pause;
        while Instant::now() < until && !self.pool.is_closed() {
            std::thread::sleep(
                LOOK_AGAIN.min(until.saturating_duration_since(Instant::now())).min(Duration::from_millis(50)),
            );
        }
    }

    fn discard(&self, starts: &[(StartId, StartPoint)]) {
        let ids: Vec<StartId> = starts.iter().map(|&(id, _)| id).collect();
        self.vault.discard(&ids);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::search::{DeviceInfo, LaunchReport};
    use std::sync::mpsc;

    /// Its first launch outlasts warm-up and measurement, as on a starved machine; the others take no time.
    struct Starved {
        info: DeviceInfo,
        launches: u32,
    }

    impl Searcher for Starved {
        fn info(&self) -> &DeviceInfo {
            &self.info
        }

        fn starts(&self) -> usize {
            1
        }

        fn in_flight(&self) -> usize {
            1
        }

        fn submit(&mut self, _: Launch) -> Result<(), SearchError> {
            Ok(())
        }

        fn collect(&mut self) -> Result<LaunchReport, SearchError> {
            self.launches += 1;
            std::thread::sleep(if self.launches == 1 { WARM_UP + MEASURE * 2 } else { Duration::from_millis(1) });
            Ok(LaunchReport { candidates: 1000, ..LaunchReport::default() })
        }
    }

    #[test]
    fn a_starved_device_shows_a_rate_before_it_waits_for_work() {
        let info = DeviceInfo { id: DeviceId::Cpu, name: "starved".into(), kernel: "none".into(), threads: 1 };
        let (record, pool) = (Arc::new(Record::new(&info)), Arc::new(Pool::default()));
        let (harvests, collected) = mpsc::sync_channel(64);
        let worker = Worker {
            at: 0,
            lane: Lane::All,
            stands_in_for: Vec::new(),
            record: Arc::clone(&record),
            pool: Arc::clone(&pool),
            vault: Vault::without_identity().unwrap(),
            harvests,
            options: SearchOptions::default(),
            opener: Arc::new(search::open),
        };
        let thread = std::thread::spawn(move || {
            let mut searcher = Starved { info, launches: 0 };
            worker.search(&mut searcher, &mut VecDeque::new()).map_err(|failure| failure.to_string())
        });
        // Each launch is harvested; none comes once the device waits for work.
        while collected.recv_timeout(Duration::from_secs(2)).is_ok() {}
        assert!(record.is_idle());
        assert!(record.rate().is_some());
        pool.close();
        thread.join().unwrap().unwrap();
    }
}
