//! The threads of all devices.

use super::device_thread::DeviceThread;
use super::health::{DeviceView, Record};
use super::open::{OpenDevice, OpenedDevice, open_all};
use super::pool::Pool;
use super::verifier::Delivered;
use super::watch::Watch;
use crate::pattern::Rate;
use crate::roster::Roster;
use crate::scheduler::plan::profile::{Compared, Lane};
use crate::scheduler::plan::prospects::Serving;
use crate::scheduler::plan::rest::Rest;
use crate::search::{DeviceId, SearchError, SearchOptions, Searcher, Surroundings, cuda};
use crate::vault::Vault;
use std::sync::mpsc::SyncSender;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::thread::JoinHandle;

/// The threads of all devices: those opened at the start, and those attached later.
pub struct DeviceThreads {
    devices: Mutex<Vec<Device>>,
    /// Locked while a device is added, so that each device has one thread at a time.
    attaching: Mutex<()>,
    watch: Option<(Arc<Watch>, JoinHandle<()>)>,
}

struct Device {
    record: Arc<Record>,
    /// Whether the device is the CPU thread beside GPUs. Its rate is not included in the total.
    is_side: bool,
    thread: Option<JoinHandle<()>>,
}

impl DeviceThreads {
    /// Opens the devices chosen by `options` and starts their threads. The CPU thread beside GPUs
    /// sleeps until there is a pattern too easy for them.
    pub(in crate::scheduler) fn start(
        options: &SearchOptions,
        opener: OpenDevice,
        surroundings: Surroundings,
        pool: Arc<Pool>,
        vault: Vault,
        launches: SyncSender<Delivered>,
        roster: Roster,
    ) -> Result<DeviceThreads, SearchError> {
        let mut opened = open_all(options, cuda::device_count, &*opener)?;
        // A measurement includes neither the CPU thread beside GPUs nor a GPU that does not open.
        opened.retain(|device| !(pool.is_exhaustive() && (device.is_side || device.searcher.is_err())));
        let is_gpu = |device: &OpenedDevice| device.info.id != DeviceId::Cpu;
        let has_gpu = opened.iter().any(is_gpu);
        let records: Vec<Arc<Record>> = opened.iter().map(|device| Arc::new(Record::new(&device.info))).collect();
        let share = |record: &Record| options.restraints.caps_of(record.view().id).share;
        records.iter().for_each(|record| record.set_share(share(record).unwrap_or(1.0)));
        let watch = Watch::new(&options.restraints, Arc::new(surroundings), &records).map(|watch| {
            let watch = Arc::new(watch);
            (Arc::clone(&watch), watch.spawn(Arc::clone(&pool), roster.clone()))
        });
        let gpus: Vec<Arc<Record>> = opened
            .iter()
            .zip(&records)
            .filter(|(device, _)| is_gpu(device))
            .map(|(_, record)| record.clone())
            .collect();
        let start = |(at, opened): (usize, OpenedDevice)| {
            let OpenedDevice { info, searcher, options, is_side } = opened;
            let record = Arc::clone(&records[at]);
            let lane = match (has_gpu, info.id) {
                (false, _) => Lane::All,
                (true, DeviceId::Cpu) => Lane::Easy,
                (true, _) => Lane::Hard,
            };
            let device = DeviceThread {
                at,
                id: info.id,
                lane,
                stands_in_for: if info.id == DeviceId::Cpu { gpus.clone() } else { Vec::new() },
                record: Arc::clone(&record),
                pool: Arc::clone(&pool),
                vault: vault.clone(),
                launches: launches.clone(),
                options,
                opener: Some(Arc::clone(&opener)),
                roster: Some((roster.clone(), info.id.to_string())),
            };
            let (roster, pool, name, mut first) =
                (roster.clone(), Arc::clone(&pool), info.id.to_string(), Some(searcher));
            let run = move || {
                roster.keep_thread(&info.id.to_string(), || pool.is_closed(), || device.run(first.take()));
            };
            let thread = std::thread::Builder::new().name(name).spawn(run);
            Device { record, is_side, thread: Some(thread.expect("the system starts threads")) }
        };
        let devices = Mutex::new(opened.into_iter().enumerate().map(start).collect());
        Ok(DeviceThreads { devices, attaching: Mutex::default(), watch })
    }

    /// Adds a device that can come and go. It searches patterns hard enough for a GPU, in the
    /// operator's hours. A device that comes back keeps its counts. A device that is gone already
    /// is not added.
    pub(in crate::scheduler) fn attach(
        &self,
        mut searcher: Box<dyn Searcher>,
        pool: Arc<Pool>,
        vault: Vault,
        launches: SyncSender<Delivered>,
    ) {
        let _attaching = self.attaching.lock().unwrap_or_else(PoisonError::into_inner);
        // If this one is still open, an earlier one of the same name has ended.
        if searcher.check().is_err() {
            return;
        }
        let info = searcher.info().clone();
        let is_known = |device: &Device| device.record.view().id == info.id;
        let former = self.lock().iter_mut().find(|device| is_known(device)).and_then(|device| device.thread.take());
        if let Some(thread) = former {
            // The old thread ends after its present step. The list is not locked meanwhile, so that
            // other threads can ask for rates.
            let _ = thread.join();
        }
        let mut devices = self.lock();
        let known = devices.iter().position(is_known);
        let at = known.unwrap_or(devices.len());
        let record = known.map_or_else(|| Arc::new(Record::new(&info)), |at| Arc::clone(&devices[at].record));
        if let (None, Some((watch, _))) = (known, &self.watch) {
            watch.add_attached(&record);
        }
        let device = DeviceThread {
            at,
            id: info.id,
            lane: Lane::Hard,
            stands_in_for: Vec::new(),
            record: Arc::clone(&record),
            pool,
            vault,
            launches,
            options: SearchOptions::default(),
            opener: None,
            roster: None,
        };
        let run = move || device.run(Some(Ok(searcher)));
        let thread = std::thread::Builder::new().name(info.id.to_string()).spawn(run);
        let device = Device { record, is_side: false, thread: Some(thread.expect("the system starts threads")) };
        if known.is_some() { devices[at] = device } else { devices.push(device) }
    }

    /// Candidates per second of all working devices together, scaled by the share of time that each
    /// can search. If every GPU is out of use, the rate of the CPU thread that replaces them.
    /// `None` before the first measurement.
    pub fn rate(&self) -> Option<Rate> {
        self.rate_of(Compared::TopWords)
    }

    /// The rate of all working devices for launches of this kind.
    pub(in crate::scheduler) fn rate_of(&self, compared: Compared) -> Option<Rate> {
        let part = |record: &Arc<Record>| Some((record.rate_of(compared)?, record.part()));
        let rates: Vec<f64> = self.working().iter().filter_map(part).map(|(Rate(rate), part)| rate * part).collect();
        (!rates.is_empty()).then(|| Rate(rates.iter().sum()))
    }

    /// The capacity of the working devices together. `None` before the first measurement.
    pub(in crate::scheduler) fn serving(&self) -> Option<Serving> {
        let mut serving: Option<Serving> = None;
        for record in self.working() {
            let (Some(Rate(rate)), Some(last)) = (record.rate(), record.last_launch()) else { continue };
            let rate = rate * record.part();
            let lane = if record.view().id == DeviceId::Cpu { Lane::All } else { Lane::Hard };
            let all = serving.get_or_insert(Serving {
                lane,
                stretch: 0.0,
                starts: 0,
                starts_per_second: 0.0,
                early_stop: true,
            });
            all.early_stop &= last.early_stop;
            all.stretch = all.stretch.max(last.stretch);
            all.starts += last.starts;
            all.starts_per_second += rate * last.starts as f64 / last.candidates.max(1) as f64;
        }
        serving
    }

    /// The records of the working devices. The CPU thread beside GPUs counts only if no other
    /// device works.
    fn working(&self) -> Vec<Arc<Record>> {
        let devices = self.lock();
        let main_is_out = devices.iter().filter(|device| !device.is_side).all(|device| device.record.is_out());
        let counts = |device: &&Device| device.is_side == main_is_out && !device.record.is_out();
        devices.iter().filter(counts).map(|device| Arc::clone(&device.record)).collect()
    }

    /// Every device except the CPU thread beside GPUs.
    pub fn devices(&self) -> Vec<DeviceView> {
        self.lock().iter().filter(|device| !device.is_side).map(|device| device.record.view()).collect()
    }

    /// The reason why all working devices rest: that of the device that goes on first. `None` if
    /// some working device does not rest.
    pub fn rest(&self) -> Option<Rest> {
        let rests: Option<Vec<Rest>> = self.working().iter().map(|record| record.view().rest).collect();
        let is_sooner = |rest: &Rest| match rest {
            Rest::Battery | Rest::Heat { .. } => 0,
            Rest::Hours { until, .. } => until.unwrap_or(u64::MAX),
        };
        rests?.into_iter().min_by_key(is_sooner)
    }

    /// Whether every device is measured, has nothing in flight and waits for work.
    pub(in crate::scheduler) fn are_idle(&self) -> bool {
        self.lock().iter().all(|device| device.record.is_idle())
    }

    /// Waits for every thread to end. The pool must be closed.
    pub(in crate::scheduler) fn join(&mut self) {
        for device in self.lock().iter_mut() {
            if let Some(thread) = device.thread.take() {
                // A panic is caught and logged inside the thread.
                let _ = thread.join();
            }
        }
        if let Some((_, watch)) = self.watch.take() {
            let _ = watch.join();
        }
    }

    fn lock(&self) -> MutexGuard<'_, Vec<Device>> {
        self.devices.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
