//! The threads of all devices.
//!
//! The device policy: which devices are opened, and what replaces a device that does not open.
//!
//! The threads of GPUs that do not open try again later, as they do after a failure during the
//! search. Beside GPUs, one CPU thread searches the patterns too easy for them. If no GPU opens, the
//! whole CPU searches.

use super::device_thread::DeviceThread;
use super::health::{DeviceStatus, Record};
use super::pool::Pool;
use super::verify::{Delivered, LAUNCHES_WAITING};
use super::watch::Watch;
use crate::pattern::Rate;
use crate::roster::Roster;
use crate::scheduler::Scheduler;
use crate::scheduler::plan::profile::{KeyPart, Lane};
use crate::scheduler::plan::prospects::Serving;
use crate::scheduler::plan::rest::Rest;
use crate::search::cpu::KernelChoice;
use crate::search::{
    self, DeviceChoice, DeviceId, DeviceInfo, Restraints, SearchError, SearchOptions, Searcher, SensorValues, Sensors,
    Surroundings, cuda,
};
use crate::vault::Vault;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::mpsc::{Receiver, sync_channel};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::thread::JoinHandle;

/// One device and its thread.
pub struct DeviceEntry {
    record: Arc<Record>,
    /// Whether the device is the CPU thread beside GPUs. Its rate is not included in the total.
    is_side: bool,
    thread: Option<JoinHandle<()>>,
}

impl Scheduler {
    /// Opens the devices chosen by `options` and starts their threads. Nobody verifies their launches
    /// yet. The CPU thread beside GPUs sleeps until there is a pattern too easy for them.
    pub(in crate::scheduler) fn start_devices(
        options: &SearchOptions,
        opener: DeviceOpener,
        surroundings: Surroundings,
        pool: Pool,
        vault: Vault,
    ) -> Result<(Scheduler, Receiver<Delivered>), SearchError> {
        let (launches, collected) = sync_channel(LAUNCHES_WAITING);
        let (pool, roster) = (Arc::new(pool), Roster::default());
        let mut opened = open_all(options, &opener)?;
        // A measurement includes neither the CPU thread beside GPUs nor a GPU that does not open.
        opened.retain(|device| !(pool.is_exhaustive() && (device.is_side || device.searcher.is_err())));
        let is_gpu = |device: &OpenedDevice| device.info.id != DeviceId::Cpu;
        let has_gpu = opened.iter().any(is_gpu);
        let record = |device: &OpenedDevice| {
            let record = Arc::new(Record::new(&device.info));
            if let Ok(searcher) = &device.searcher {
                record.put_back(&**searcher);
            }
            record
        };
        let records: Vec<Arc<Record>> = opened.iter().map(record).collect();
        let surroundings = Arc::new(surroundings);
        let gpus: Vec<Arc<Record>> = opened
            .iter()
            .zip(&records)
            .filter(|(device, _)| is_gpu(device))
            .map(|(_, record)| record.clone())
            .collect();
        let start = |(opened, record): (OpenedDevice, Arc<Record>)| {
            let OpenedDevice { info, searcher, options, is_side } = opened;
            let share = options.restraints.caps_of(info.id).share.unwrap_or(1.0);
            record.set_share(share);
            let watch = Watch::new(&options.restraints, Arc::clone(&surroundings), &record);
            let lane = match (has_gpu, info.id) {
                (false, _) => Lane::All,
                (true, DeviceId::Cpu) => Lane::Easy,
                (true, _) => Lane::Hard,
            };
            let device = DeviceThread {
                id: info.id,
                lane,
                stands_in_for: if info.id == DeviceId::Cpu { gpus.clone() } else { Vec::new() },
                record: Arc::clone(&record),
                watch,
                pool: Arc::clone(&pool),
                vault: vault.clone(),
                launches: launches.clone(),
                options,
                opener: Some(opener.clone()),
                roster: Some(roster.clone()),
            };
            DeviceEntry { record, is_side, thread: Some(device.spawn(searcher)) }
        };
        let devices = Mutex::new(opened.into_iter().zip(records).map(start).collect());
        let hours = Restraints { hours: options.restraints.hours.clone(), ..Restraints::default() };
        let (attaching, for_attached) = (Mutex::default(), (hours, surroundings));
        let launches = Some(launches);
        Ok((Scheduler { pool, devices, attaching, for_attached, vault, launches, verifier: None, roster }, collected))
    }

    /// Adds a device that can come and go. It searches patterns hard enough for a GPU, in the
    /// operator's hours, until it fails; then it must be added again. A device that comes back keeps
    /// its counts. A device that is gone already is not added.
    pub fn attach(&self, mut searcher: Box<dyn Searcher>) {
        let Some(launches) = self.launches.clone().filter(|_| !self.pool.is_closed()) else { return };
        let _attaching = self.attaching.lock().unwrap_or_else(PoisonError::into_inner);
        // If this one is still open, an earlier one of the same name has ended.
        if searcher.check().is_err() {
            return;
        }
        let info = searcher.info().clone();
        let is_known = |device: &DeviceEntry| device.record.view().id == info.id;
        let former = self.lock().iter_mut().find(|device| is_known(device)).and_then(|device| device.thread.take());
        if let Some(thread) = former {
            // The old thread ends after its present step. The list is not locked meanwhile, so that
            // other threads can ask for rates.
            let _ = thread.join();
        }
        let mut devices = self.lock();
        let known = devices.iter().position(is_known);
        let record = known.map_or_else(|| Arc::new(Record::new(&info)), |at| Arc::clone(&devices[at].record));
        let (hours, surroundings) = &self.for_attached;
        let watch = Watch::new(hours, Arc::clone(surroundings), &record);
        let device = DeviceThread {
            id: info.id,
            lane: Lane::Hard,
            stands_in_for: Vec::new(),
            record: Arc::clone(&record),
            watch,
            pool: Arc::clone(&self.pool),
            vault: self.vault.clone(),
            launches,
            options: SearchOptions::default(),
            opener: None,
            roster: None,
        };
        let device = DeviceEntry { record, is_side: false, thread: Some(device.spawn(Ok(searcher))) };
        match known {
            Some(at) => devices[at] = device,
            None => devices.push(device),
        }
    }

    /// Candidates per second of all working devices together, scaled by the share of time that each
    /// can search. If every GPU is out of use, the rate of the CPU thread that replaces them.
    /// `None` before the first measurement.
    pub fn rate(&self) -> Option<Rate> {
        self.rate_of(KeyPart::Top32)
    }

    /// The rate of launches that compare whole keys. It is estimated until it has been measured.
    pub fn whole_keys_rate(&self) -> Option<Rate> {
        self.rate_of(KeyPart::Whole)
    }

    /// The rate of all working devices for launches of this kind.
    fn rate_of(&self, compared: KeyPart) -> Option<Rate> {
        let part = |record: &Arc<Record>| Some((record.rate_of(compared)?, record.part()));
        let rates: Vec<f64> = self.working().iter().filter_map(part).map(|(Rate(rate), part)| rate * part).collect();
        (!rates.is_empty()).then(|| Rate(rates.iter().sum()))
    }

    /// The capacity of the working devices together. `None` before the first measurement.
    pub(in crate::scheduler) fn serving(&self) -> Option<Serving> {
        let mut serving: Option<Serving> = None;
        for record in self.working() {
            let (Some(Rate(rate)), Some(last)) = (record.rate(), record.lock().last) else { continue };
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
        let counts = |device: &&DeviceEntry| device.is_side == main_is_out && !device.record.is_out();
        devices.iter().filter(counts).map(|device| Arc::clone(&device.record)).collect()
    }

    /// The state of each device except the CPU thread beside GPUs.
    pub fn devices(&self) -> Vec<DeviceStatus> {
        let is_paused = self.is_paused();
        self.records().iter().map(|record| record.view().with_state(is_paused)).collect()
    }

    /// Candidates tested since the start.
    pub fn candidates(&self) -> u64 {
        self.records().iter().map(|record| record.view().candidates).sum()
    }

    /// The values of the sensors of each device, in the order of [`Scheduler::devices`].
    pub fn sensor_values(&self) -> Vec<SensorValues> {
        self.sensors().iter().map(Sensors::read).collect()
    }

    /// The sensors of each device, in the order of [`Scheduler::devices`].
    pub(super) fn sensors(&self) -> Vec<Sensors> {
        self.records().iter().map(|record| record.lock().sensors.clone()).collect()
    }

    /// The energy, in joules, used by each device with a readable counter since the first call. Must
    /// be called at least once a minute, because the counters of processors wrap. Takes some
    /// milliseconds, and longer the first time.
    pub fn energy(&self) -> Vec<(DeviceId, f64)> {
        self.records().iter().filter_map(|record| Some((record.view().id, record.read_energy()?))).collect()
    }

    /// The records of the devices, without the CPU thread beside GPUs.
    fn records(&self) -> Vec<Arc<Record>> {
        self.lock().iter().filter(|device| !device.is_side).map(|device| Arc::clone(&device.record)).collect()
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

    /// Whether every device is measured and has nothing in flight, if there was no job yet.
    pub(super) fn are_idle(&self) -> bool {
        self.lock().iter().all(|device| device.record.lock().has_waited)
    }

    /// Waits for every thread to end. The pool must be closed.
    pub(in crate::scheduler) fn join_devices(&self) {
        for device in self.lock().iter_mut() {
            if let Some(thread) = device.thread.take() {
                // A panic is caught and logged inside the thread.
                let _ = thread.join();
            }
        }
    }

    fn lock(&self) -> MutexGuard<'_, Vec<DeviceEntry>> {
        self.devices.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Finds and opens devices. Cheap to clone.
#[derive(Clone)]
pub struct DeviceOpener {
    count_gpus: Arc<dyn Fn() -> Result<usize, String> + Send + Sync>,
    open: Arc<Open>,
}

type Open = dyn Fn(DeviceId, &SearchOptions) -> Result<Box<dyn Searcher>, SearchError> + Send + Sync;

impl DeviceOpener {
    /// An opener with these functions. The first returns the number of GPUs, or why none can be used.
    pub fn new(
        count_gpus: impl Fn() -> Result<usize, String> + Send + Sync + 'static,
        open: impl Fn(DeviceId, &SearchOptions) -> Result<Box<dyn Searcher>, SearchError> + Send + Sync + 'static,
    ) -> DeviceOpener {
        DeviceOpener { count_gpus: Arc::new(count_gpus), open: Arc::new(open) }
    }

    /// Opens devices in this process.
    pub fn here() -> DeviceOpener {
        DeviceOpener::new(cuda::device_count, search::open)
    }

    /// Opens one device.
    ///
    /// Errors: the device is missing, or does not work.
    pub fn open(&self, device: DeviceId, options: &SearchOptions) -> Result<Box<dyn Searcher>, SearchError> {
        (self.open)(device, options)
    }
}

/// A device that needs a thread.
pub struct OpenedDevice {
    /// The description of the device.
    pub info: DeviceInfo,
    /// The open device, or why it could not be opened now.
    pub searcher: Result<Box<dyn Searcher>, SearchError>,
    /// The options for opening the device again.
    pub options: SearchOptions,
    /// Whether the device is the CPU thread beside GPUs. Its rate is not included in the total.
    pub is_side: bool,
}

/// Opens the devices chosen by `options`. At least one of those returned is open.
///
/// Errors: no device opens, or the one device that `options` names does not open.
pub fn open_all(options: &SearchOptions, opener: &DeviceOpener) -> Result<Vec<OpenedDevice>, SearchError> {
    let mut devices = open_chosen(options, opener)?;
    let has_gpu = devices.iter().any(|device| device.info.id != DeviceId::Cpu && device.searcher.is_ok());
    if has_gpu {
        devices.push(open_side_thread(options, opener)?);
    }
    Ok(devices)
}

/// Opens the devices chosen by `options`, for a worker: without the CPU thread beside GPUs, and
/// without GPUs that do not open now.
///
/// Errors: as [`open_all`].
pub fn open_devices(options: &SearchOptions) -> Result<Vec<Box<dyn Searcher>>, SearchError> {
    let opened = open_chosen(options, &DeviceOpener::here())?;
    Ok(opened.into_iter().filter_map(|device| device.searcher.ok()).collect())
}

/// [`open_all`] without the CPU thread beside GPUs.
fn open_chosen(options: &SearchOptions, opener: &DeviceOpener) -> Result<Vec<OpenedDevice>, SearchError> {
    let open_one = |id, options: &SearchOptions| opener.open(id, options).map(|searcher| opened(searcher, options));
    let mut devices = match options.devices {
        DeviceChoice::Cpu => vec![open_one(DeviceId::Cpu, options)?],
        DeviceChoice::CudaOrdinal(ordinal) => vec![open_one(DeviceId::Cuda(ordinal), options)?],
        DeviceChoice::Cuda => {
            let no_gpu = |reason| SearchError::NoSuchDevice { asked: "cuda".to_owned(), reason };
            let gpus = open_gpus((opener.count_gpus)().map_err(no_gpu)?, options, opener);
            if !has_open(&gpus) {
                return Err(gpus.into_iter().find_map(|gpu| gpu.searcher.err()).expect("there is a GPU"));
            }
            gpus
        }
        DeviceChoice::All => match (opener.count_gpus)() {
            Ok(count) => open_gpus(count, options, opener),
            Err(reason) => {
                tracing::info!(%reason, "no GPU is used");
                Vec::new()
            }
        },
    };
    if !has_open(&devices) {
        devices.push(open_one(DeviceId::Cpu, options)?);
    }
    Ok(devices)
}

fn has_open(devices: &[OpenedDevice]) -> bool {
    devices.iter().any(|device| device.searcher.is_ok())
}

/// Opens `count` GPUs at the same time, each on its own thread.
fn open_gpus(count: usize, options: &SearchOptions, opener: &DeviceOpener) -> Vec<OpenedDevice> {
    std::thread::scope(|scope| {
        let open_one = |ordinal| scope.spawn(move || open_gpu(DeviceId::Cuda(ordinal), options, opener));
        let threads: Vec<_> = (0..count).map(open_one).collect();
        threads.into_iter().map(|thread| thread.join().expect("`open_gpu` catches panics")).collect()
    })
}

fn open_gpu(id: DeviceId, options: &SearchOptions, opener: &DeviceOpener) -> OpenedDevice {
    let panicked = |_| Err(SearchError::DeviceFailed { device: id, reason: "opening it panicked".to_owned() });
    match catch_unwind(AssertUnwindSafe(|| opener.open(id, options))).unwrap_or_else(panicked) {
        Ok(searcher) => opened(searcher, options),
        Err(error) => {
            tracing::warn!(device = %id, %error, "a GPU does not open; it is tried again while other devices search");
            let name = "a GPU that did not open".to_owned();
            let info = DeviceInfo { id, name, kernel: "none".to_owned(), threads: 1, warning: None };
            OpenedDevice { info, searcher: Err(error), options: options.clone(), is_side: false }
        }
    }
}

/// Opens the CPU thread beside GPUs. If the processor cannot run the chosen kernel, the thread uses
/// another one.
fn open_side_thread(options: &SearchOptions, opener: &DeviceOpener) -> Result<OpenedDevice, SearchError> {
    let mut options = SearchOptions { threads: Some(1), ..options.clone() };
    let searcher = match opener.open(DeviceId::Cpu, &options) {
        Err(error @ SearchError::UnsupportedCpuKernel { .. }) => {
            tracing::warn!(%error, "the CPU thread beside the GPUs uses another kernel");
            options.cpu_kernel = KernelChoice::Auto;
            opener.open(DeviceId::Cpu, &options)?
        }
        opened => opened?,
    };
    Ok(OpenedDevice { is_side: true, ..opened(searcher, &options) })
}

fn opened(searcher: Box<dyn Searcher>, options: &SearchOptions) -> OpenedDevice {
    let info = searcher.info().clone();
    OpenedDevice { info, searcher: Ok(searcher), options: options.clone(), is_side: false }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::clock::Clock;
    use crate::hours::Hours;
    use crate::scheduler::tests::FakeDevice;
    use crate::search::{Caps, RemoteId};

    /// The devices that are opened, or tried again later, on a machine with `gpus` GPUs and a
    /// processor without IFMA. The GPUs in `bad` do not open.
    fn names(
        devices: DeviceChoice,
        cpu_kernel: KernelChoice,
        gpus: usize,
        bad: &[usize],
    ) -> Result<Vec<String>, String> {
        let bad = bad.to_vec();
        let open = move |id: DeviceId, options: &SearchOptions| {
            if matches!(id, DeviceId::Cuda(ordinal) if bad.contains(&ordinal)) {
                return Err(SearchError::DeviceFailed { device: id, reason: "it is bad".to_owned() });
            }
            if id == DeviceId::Cpu && options.cpu_kernel == KernelChoice::Ifma {
                return Err(SearchError::UnsupportedCpuKernel { asked: "AVX-512 IFMA" });
            }
            Ok(Box::new(FakeDevice::new(id)) as Box<dyn Searcher>)
        };
        let count = move || if gpus > 0 { Ok(gpus) } else { Err("none".to_owned()) };
        let options = SearchOptions { devices, threads: None, cpu_kernel, ..SearchOptions::default() };
        let opened = open_all(&options, &DeviceOpener::new(count, open)).map_err(|error| error.to_string())?;
        let name = |device: &OpenedDevice| {
            let later = if device.searcher.is_err() { " later" } else { "" };
            format!("{}{later}{}", device.info.id, if device.is_side { " beside" } else { "" })
        };
        Ok(opened.iter().map(name).collect())
    }

    #[test]
    fn a_gpu_that_does_not_open_does_not_stop_the_other_devices() {
        use DeviceChoice::{All, Cpu, Cuda, CudaOrdinal};
        let auto = KernelChoice::Auto;
        for devices in [Cuda, All] {
            let found = names(devices, auto, 3, &[1]).unwrap();
            assert_eq!(found, ["cuda:0", "cuda:1 later", "cuda:2", "cpu beside"], "{devices:?}");
        }
        let found = names(All, auto, 2, &[0, 1]).unwrap();
        assert_eq!(found, ["cuda:0 later", "cuda:1 later", "cpu"], "the CPU searches where no GPU does");
        assert_eq!(names(All, auto, 0, &[]).unwrap(), ["cpu"]);
        assert!(names(Cuda, auto, 2, &[0, 1]).unwrap_err().contains("it is bad"));
        assert!(names(Cuda, auto, 0, &[]).unwrap_err().contains("no device cuda"));
        assert!(
            names(CudaOrdinal(1), auto, 3, &[1]).unwrap_err().contains("it is bad"),
            "a device chosen by name is not replaced"
        );
        assert_eq!(names(CudaOrdinal(2), auto, 3, &[1]).unwrap(), ["cuda:2", "cpu beside"]);
        assert_eq!(names(Cpu, auto, 3, &[]).unwrap(), ["cpu"]);
    }

    #[test]
    fn an_attached_device_keeps_the_hours_and_not_the_battery_or_the_share_of_this_machine() {
        let (sys, clock) = (tempfile::tempdir().unwrap(), Clock::at(23 * 3600));
        let supply = sys.path().join("class/power_supply/BAT0");
        std::fs::create_dir_all(&supply).unwrap();
        for (file, text) in [("type", "Battery\n"), ("status", "Discharging\n")] {
            std::fs::write(supply.join(file), text).unwrap();
        }
        let restraints = Restraints {
            hours: Some(Hours::parse("22:00-07:00", "UTC").unwrap()),
            pause_on_battery: true,
            caps: Caps { share: Some(0.5), ..Caps::default() },
            ..Restraints::default()
        };
        let options = SearchOptions { restraints, ..SearchOptions::default() };
        let opener = DeviceOpener::new(|| Err("none".to_owned()), |id, _| Ok(Box::new(FakeDevice::new(id))));
        let (surroundings, vault) =
            (Surroundings::below(sys.path(), clock.clone()), Vault::without_identity().unwrap());
        let (threads, launches) =
            Scheduler::start_devices(&options, opener, surroundings, Pool::default(), vault).unwrap();
        // Nobody verifies them.
        drop(launches);
        let id = DeviceId::Remote(RemoteId { worker: "ann".parse().unwrap(), device: 0 });
        threads.attach(Box::new(FakeDevice::new(id)));
        let rests = || {
            let devices = threads.devices();
            let rest = |at: usize| devices[at].rest.as_ref().map(Rest::name);
            ([rest(0), rest(1)], [devices[0].part, devices[1].part])
        };
        assert_eq!(rests(), ([Some("battery"), None], [0.5, 1.0]));
        clock.set(7 * 3600 + 86_400);
        let until = std::time::Instant::now() + std::time::Duration::from_secs(60);
        while rests().0 != [Some("hours"); 2] {
            assert!(std::time::Instant::now() < until, "{:?}", rests());
            std::thread::sleep(std::time::Duration::from_millis(5));
        }
    }

    #[test]
    fn gpus_are_opened_at_the_same_time() {
        use std::sync::{Condvar, Mutex};
        use std::time::Duration;
        const GPUS: usize = 3;
        let (begun, all_begun) = (Mutex::new(0), Condvar::new());
        let open = move |id: DeviceId, _: &SearchOptions| {
            if id != DeviceId::Cpu {
                let mut count = begun.lock().unwrap();
                *count += 1;
                all_begun.notify_all();
                let waited = all_begun.wait_timeout_while(count, Duration::from_secs(30), |count| *count < GPUS);
                assert!(!waited.unwrap().1.timed_out(), "{id} is alone");
            }
            Ok(Box::new(FakeDevice::new(id)) as Box<dyn Searcher>)
        };
        let options = SearchOptions { devices: DeviceChoice::Cuda, ..SearchOptions::default() };
        assert_eq!(open_all(&options, &DeviceOpener::new(|| Ok(GPUS), open)).unwrap().len(), GPUS + 1);
    }

    #[test]
    fn a_kernel_that_the_processor_lacks_stops_the_cpu_search_only() {
        assert_eq!(names(DeviceChoice::Cuda, KernelChoice::Ifma, 1, &[]).unwrap(), ["cuda:0", "cpu beside"]);
        assert!(names(DeviceChoice::Cpu, KernelChoice::Ifma, 1, &[]).unwrap_err().contains("no AVX-512 IFMA"));
    }
}
