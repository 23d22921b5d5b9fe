//! The device policy: which devices are opened, and what replaces a device that does not open.
//!
//! The threads of GPUs that do not open try again later, as they do after a failure during the
//! search. Beside GPUs, one CPU thread searches the patterns too easy for them. If no GPU opens, the
//! whole CPU searches.

use crate::search::cpu::KernelChoice;
use crate::search::{self, DeviceChoice, DeviceId, DeviceInfo, SearchError, SearchOptions, Searcher, cuda};
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Arc;

/// Opens one device: [`crate::search::open`], or a replacement in tests.
pub type OpenDevice = Arc<dyn Fn(DeviceId, &SearchOptions) -> Result<Box<dyn Searcher>, SearchError> + Send + Sync>;

/// A device that needs a thread.
pub(in crate::scheduler) struct OpenedDevice {
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
/// `count_gpus` and `open` are [`crate::search::cuda::device_count`] and [`crate::search::open`],
/// or replacements in tests. Errors: no device opens, or the one device that `options` names does
/// not open.
pub(in crate::scheduler) fn open_all(
    options: &SearchOptions,
    count_gpus: impl FnOnce() -> Result<usize, String>,
    open: impl Fn(DeviceId, &SearchOptions) -> Result<Box<dyn Searcher>, SearchError> + Sync,
) -> Result<Vec<OpenedDevice>, SearchError> {
    let mut devices = open_chosen(options, count_gpus, &open)?;
    let has_gpu = devices.iter().any(|device| device.info.id != DeviceId::Cpu && device.searcher.is_ok());
    if has_gpu {
        devices.push(open_side_thread(options, &open)?);
    }
    Ok(devices)
}

/// Opens the devices chosen by `options`, for a worker: without the CPU thread beside GPUs, and
/// without GPUs that do not open now.
///
/// Errors: as [`open_all`].
pub fn open_devices(options: &SearchOptions) -> Result<Vec<Box<dyn Searcher>>, SearchError> {
    let opened = open_chosen(options, cuda::device_count, &search::open)?;
    Ok(opened.into_iter().filter_map(|device| device.searcher.ok()).collect())
}

/// [`open_all`] without the CPU thread beside GPUs.
fn open_chosen(
    options: &SearchOptions,
    count_gpus: impl FnOnce() -> Result<usize, String>,
    open: &(impl Fn(DeviceId, &SearchOptions) -> Result<Box<dyn Searcher>, SearchError> + Sync),
) -> Result<Vec<OpenedDevice>, SearchError> {
    let open_one = |id, options: &SearchOptions| open(id, options).map(|searcher| opened(searcher, options));
    let mut devices = match options.devices {
        DeviceChoice::Cpu => vec![open_one(DeviceId::Cpu, options)?],
        DeviceChoice::CudaOrdinal(ordinal) => vec![open_one(DeviceId::Cuda(ordinal), options)?],
        DeviceChoice::Cuda => {
            let no_gpu = |reason| SearchError::NoSuchDevice { asked: "cuda".to_owned(), reason };
            let gpus = open_gpus(count_gpus().map_err(no_gpu)?, options, open);
            if !has_open(&gpus) {
                return Err(gpus.into_iter().find_map(|gpu| gpu.searcher.err()).expect("there is a GPU"));
            }
            gpus
        }
        DeviceChoice::All => match count_gpus() {
            Ok(count) => open_gpus(count, options, open),
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
fn open_gpus(
    count: usize,
    options: &SearchOptions,
    open: &(impl Fn(DeviceId, &SearchOptions) -> Result<Box<dyn Searcher>, SearchError> + Sync),
) -> Vec<OpenedDevice> {
    std::thread::scope(|scope| {
        let open_one = |ordinal| scope.spawn(move || open_gpu(DeviceId::Cuda(ordinal), options, open));
        let threads: Vec<_> = (0..count).map(open_one).collect();
        threads.into_iter().map(|thread| thread.join().expect("`open_gpu` catches panics")).collect()
    })
}

fn open_gpu(
    id: DeviceId,
    options: &SearchOptions,
    open: &impl Fn(DeviceId, &SearchOptions) -> Result<Box<dyn Searcher>, SearchError>,
) -> OpenedDevice {
    let panicked = |_| Err(SearchError::DeviceFailed { device: id, reason: "opening it panicked".to_owned() });
    match catch_unwind(AssertUnwindSafe(|| open(id, options))).unwrap_or_else(panicked) {
        Ok(searcher) => opened(searcher, options),
        Err(error) => {
            tracing::warn!(device = %id, %error, "a GPU does not open; it is tried again while other devices search");
            let name = "a GPU that did not open".to_owned();
            let info = DeviceInfo { id, name, kernel: "none".to_owned(), threads: 1 };
            OpenedDevice { info, searcher: Err(error), options: options.clone(), is_side: false }
        }
    }
}

/// Opens the CPU thread beside GPUs. If the processor cannot run the chosen kernel, the thread uses
/// another one.
fn open_side_thread(
    options: &SearchOptions,
    open: &impl Fn(DeviceId, &SearchOptions) -> Result<Box<dyn Searcher>, SearchError>,
) -> Result<OpenedDevice, SearchError> {
    let mut options = SearchOptions { threads: Some(1), ..options.clone() };
    let searcher = match open(DeviceId::Cpu, &options) {
        Err(error @ SearchError::UnsupportedCpuKernel { .. }) => {
            tracing::warn!(%error, "the CPU thread beside the GPUs uses another kernel");
            options.cpu_kernel = KernelChoice::Auto;
            open(DeviceId::Cpu, &options)?
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
    use crate::search::{Launch, LaunchReport};

    /// A searcher that has only a name.
    struct Named(DeviceInfo);

    impl Searcher for Named {
        fn info(&self) -> &DeviceInfo {
            &self.0
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
            Err(SearchError::NothingSubmitted)
        }
    }

    /// The devices that are opened, or tried again later, on a machine with `gpus` GPUs and a
    /// processor without IFMA. The GPUs in `bad` do not open.
    fn names(
        devices: DeviceChoice,
        cpu_kernel: KernelChoice,
        gpus: usize,
        bad: &[usize],
    ) -> Result<Vec<String>, String> {
        let open = |id: DeviceId, options: &SearchOptions| {
            if matches!(id, DeviceId::Cuda(ordinal) if bad.contains(&ordinal)) {
                return Err(SearchError::DeviceFailed { device: id, reason: "it is bad".to_owned() });
            }
            if id == DeviceId::Cpu && options.cpu_kernel == KernelChoice::Ifma {
                return Err(SearchError::UnsupportedCpuKernel { asked: "AVX-512 IFMA" });
            }
            let info = DeviceInfo { id, name: String::new(), kernel: String::new(), threads: 1 };
            Ok(Box::new(Named(info)) as Box<dyn Searcher>)
        };
        let count = || if gpus > 0 { Ok(gpus) } else { Err("none".to_owned()) };
        let options = SearchOptions { devices, threads: None, cpu_kernel, ..SearchOptions::default() };
        let opened = open_all(&options, count, open).map_err(|error| error.to_string())?;
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
    fn gpus_are_opened_at_the_same_time() {
        use std::sync::{Condvar, Mutex};
        use std::time::Duration;
        const GPUS: usize = 3;
        let (begun, all_begun) = (Mutex::new(0), Condvar::new());
        let open = |id: DeviceId, _: &SearchOptions| {
            if id != DeviceId::Cpu {
                let mut count = begun.lock().unwrap();
                *count += 1;
                all_begun.notify_all();
                let waited = all_begun.wait_timeout_while(count, Duration::from_secs(30), |count| *count < GPUS);
                assert!(!waited.unwrap().1.timed_out(), "{id} is alone");
            }
            let info = DeviceInfo { id, name: String::new(), kernel: String::new(), threads: 1 };
            Ok(Box::new(Named(info)) as Box<dyn Searcher>)
        };
        let options = SearchOptions { devices: DeviceChoice::Cuda, ..SearchOptions::default() };
        assert_eq!(open_all(&options, || Ok(GPUS), open).unwrap().len(), GPUS + 1);
    }

    #[test]
    fn a_kernel_that_the_processor_lacks_stops_the_cpu_search_only() {
        assert_eq!(names(DeviceChoice::Cuda, KernelChoice::Ifma, 1, &[]).unwrap(), ["cuda:0", "cpu beside"]);
        assert!(names(DeviceChoice::Cpu, KernelChoice::Ifma, 1, &[]).unwrap_err().contains("no AVX-512 IFMA"));
    }
}
