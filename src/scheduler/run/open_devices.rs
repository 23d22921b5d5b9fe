//! Opening the devices that are asked for. One bad GPU of eight stops nobody: it is left to its worker, which tries it again
//! as it does with one that fails later.

use crate::search::cpu::KernelChoice;
use crate::search::{DeviceChoice, DeviceId, DeviceInfo, SearchError, SearchOptions, Searcher};
use std::sync::Arc;

/// What opens devices: `search::open`; in a test, something else.
pub type OpenDevice = Arc<dyn Fn(&SearchOptions) -> Result<Vec<Box<dyn Searcher>>, SearchError> + Send + Sync>;

/// A device to start a worker for.
pub(in crate::scheduler) struct Decrypted {
    pub info: DeviceInfo,
    /// The open device, or why it does not open now.
    pub searcher: Result<Box<dyn Searcher>, SearchError>,
    /// What opens this one device again.
    pub options: SearchOptions,
    /// Takes the easy patterns that GPUs leave; not counted in the rate.
    pub is_side: bool,
}

/// Every device that `options` asks for; at least one is open. Beside GPUs there is one CPU thread for patterns too easy for
/// them. `gpus` counts them, `open` opens: in a test, something else.
pub(in crate::scheduler) fn open_all(
    options: &SearchOptions,
    gpus: impl FnOnce() -> Result<usize, String>,
    open: impl Fn(&SearchOptions) -> Result<Vec<Box<dyn Searcher>>, SearchError>,
) -> Result<Vec<Decrypted>, SearchError> {
    let wants_every_gpu = matches!(options.devices, DeviceChoice::Cuda | DeviceChoice::All);
    let count = if wants_every_gpu { gpus().unwrap_or(0) } else { 0 };
    let mut opened: Vec<Decrypted> = (0..count).map(|ordinal| open_gpu(ordinal, options, &open)).collect();
    if opened.iter().all(|device| device.searcher.is_err()) {
        let first = opened.drain(..).find_map(|device| device.searcher.err());
        opened = match (first, options.devices) {
            (Some(error), DeviceChoice::Cuda) => return Err(error),
            (Some(error), _) => {
                tracing::warn!(%error, "no GPU can be used, the first for this reason; the CPU searches");
                are_open(open(&only(DeviceId::Cpu, options))?, options)
            }
            // None was there or none was asked for.
            (None, _) => are_open(open(options)?, options),
        };
    }
    if opened.iter().any(|device| device.info.id != DeviceId::Cpu) {
        let beside = SearchOptions { threads: Some(1), ..only(DeviceId::Cpu, options) };
        opened.extend(open_beside(beside, &open)?);
    }
    Ok(opened)
}

fn open_gpu(
    ordinal: usize,
    options: &SearchOptions,
    open: &impl Fn(&SearchOptions) -> Result<Vec<Box<dyn Searcher>>, SearchError>,
) -> Decrypted {
    let id = DeviceId::Cuda(ordinal);
    let options = only(id, options);
    let nothing = || SearchError::NoSuchDevice { asked: id.to_string(), reason: "it does not open".to_owned() };
    let searcher = open(&options).and_then(|mut opened| opened.pop().ok_or_else(nothing));
    let info = match &searcher {
        Ok(searcher) => searcher.info().clone(),
        Err(error) => {
            tracing::warn!(device = %id, %error, "a GPU does not open; it is tried again while the others search");
            DeviceInfo { id, name: "a GPU that did not open".to_owned(), kernel: "none".to_owned(), threads: 1 }
        }
    };
    Decrypted { info, searcher, options, is_side: false }
}

/// A kernel this processor has not is no reason against its GPUs.
fn open_beside(
    mut beside: SearchOptions,
    open: &impl Fn(&SearchOptions) -> Result<Vec<Box<dyn Searcher>>, SearchError>,
) -> Result<Vec<Decrypted>, SearchError> {
    let searchers = match open(&beside) {
        Err(error @ SearchError::UnsupportedCpuKernel { .. }) => {
            tracing::warn!(%error, "the CPU thread beside the GPUs takes another kernel");
            beside.cpu_kernel = KernelChoice::Auto;
            open(&beside)?
        }
        opened => opened?,
    };
    let mut opened = are_open(searchers, &beside);
    opened.iter_mut().for_each(|device| device.is_side = true);
    Ok(opened)
}

fn are_open(searchers: Vec<Box<dyn Searcher>>, options: &SearchOptions) -> Vec<Decrypted> {
    let open = |searcher: Box<dyn Searcher>| {
        let info = searcher.info().clone();
        let options = only(info.id, options);
        Decrypted { info, searcher: Ok(searcher), options, is_side: false }
    };
    searchers.into_iter().map(open).collect()
}

/// The options that open this one device.
fn only(id: DeviceId, options: &SearchOptions) -> SearchOptions {
    let devices = match id {
        DeviceId::Cpu => DeviceChoice::Cpu,
        DeviceId::Cuda(ordinal) => DeviceChoice::CudaOrdinal(ordinal),
    };
    SearchOptions { devices, ..options.clone() }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::search::{Launch, LaunchReport};

    /// A device that is only looked at.
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

    /// A machine of so many GPUs, of which these do not open, and a processor without IFMA: the names of what opens, and
    /// of what is tried again.
    fn opened(
        devices: DeviceChoice,
        cpu_kernel: KernelChoice,
        gpus: usize,
        bad: &[usize],
    ) -> Result<Vec<String>, String> {
        let open = |options: &SearchOptions| {
            let id = match options.devices {
                DeviceChoice::CudaOrdinal(ordinal) => DeviceId::Cuda(ordinal),
                DeviceChoice::Cuda => {
                    return Err(SearchError::NoSuchDevice { asked: "cuda".to_owned(), reason: "none".to_owned() });
                }
                _ => DeviceId::Cpu,
            };
            if matches!(id, DeviceId::Cuda(ordinal) if bad.contains(&ordinal)) {
                return Err(SearchError::DeviceFailed { device: id, reason: "it is bad".to_owned() });
            }
            if id == DeviceId::Cpu && options.cpu_kernel == KernelChoice::Ifma {
                return Err(SearchError::UnsupportedCpuKernel { asked: "AVX-512 IFMA" });
            }
            let info = DeviceInfo { id, name: String::new(), kernel: String::new(), threads: 1 };
            Ok(vec![Box::new(Named(info)) as Box<dyn Searcher>])
        };
        let count = || if gpus > 0 { Ok(gpus) } else { Err("none".to_owned()) };
        let options = SearchOptions { devices, threads: None, cpu_kernel };
        let opened = open_all(&options, count, open).map_err(|error| error.to_string())?;
        let name = |device: &Decrypted| {
            assert_eq!(only(device.info.id, &device.options).devices, device.options.devices, "what opens it again");
            let how = if device.searcher.is_err() { " later" } else { "" };
            format!("{}{how}{}", device.info.id, if device.is_side { " beside" } else { "" })
        };
        Ok(opened.iter().map(name).collect())
    }

    #[test]
    fn one_bad_gpu_stops_nobody() {
        use DeviceChoice::{All, Cpu, Cuda, CudaOrdinal};
        let auto = KernelChoice::Auto;
        for devices in [Cuda, All] {
            let names = opened(devices, auto, 3, &[1]).unwrap();
            assert_eq!(names, ["cuda:0", "cuda:1 later", "cuda:2", "cpu beside"], "{devices:?}");
        }
        assert_eq!(opened(All, auto, 2, &[0, 1]).unwrap(), ["cpu"], "the CPU searches where no GPU does");
        assert_eq!(opened(All, auto, 0, &[]).unwrap(), ["cpu"]);
        assert!(opened(Cuda, auto, 2, &[0, 1]).unwrap_err().contains("it is bad"));
        assert!(opened(Cuda, auto, 0, &[]).unwrap_err().contains("no device cuda"));
        assert!(
            opened(CudaOrdinal(1), auto, 3, &[1]).unwrap_err().contains("it is bad"),
            "who asks for one wants that one"
        );
        assert_eq!(opened(CudaOrdinal(2), auto, 3, &[1]).unwrap(), ["cuda:2", "cpu beside"]);
        assert_eq!(opened(Cpu, auto, 3, &[]).unwrap(), ["cpu"]);
    }

    #[test]
    fn a_kernel_the_processor_has_not_stops_only_who_searches_with_it() {
        assert_eq!(opened(DeviceChoice::Cuda, KernelChoice::Ifma, 1, &[]).unwrap(), ["cuda:0", "cpu beside"]);
        assert!(opened(DeviceChoice::Cpu, KernelChoice::Ifma, 1, &[]).unwrap_err().contains("no AVX-512 IFMA"));
    }
}
