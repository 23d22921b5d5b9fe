//! Energy used by devices. GPUs: NVIDIA's management library (NVML), loaded at run time.
//! Processors: RAPL, if the system lets us read it.

use super::cuda;
use super::device::DeviceId;
use libloading::Library;
use std::ffi::{CString, c_char, c_int, c_ulonglong, c_void};
use std::path::{Path, PathBuf};

/// Reads the energy counters of several devices together.
#[derive(Debug)]
pub struct EnergyMeter {
    /// `None` if some device has no readable counter.
    counters: Option<Vec<Counter>>,
}

#[derive(Debug)]
enum Counter {
    Gpu(nvml::Gpu),
    Package(Package),
}

/// The counters at one moment.
#[derive(Clone, Debug)]
pub struct Reading(Option<Vec<f64>>);

impl EnergyMeter {
    /// A meter for `devices`. A processor is counted whole, with all its packages.
    pub fn new(devices: &[DeviceId]) -> EnergyMeter {
        let mut counters = Vec::new();
        for device in devices {
            match device {
                DeviceId::Cuda(ordinal) => match cuda::pci_bus_id(*ordinal).and_then(|id| nvml::Gpu::open(&id)) {
                    Some(gpu) => counters.push(Counter::Gpu(gpu)),
                    None => return EnergyMeter { counters: None },
                },
                DeviceId::Cpu => match packages(Path::new("/sys/class/powercap")) {
                    Some(packages) => counters.extend(packages.into_iter().map(Counter::Package)),
                    None => return EnergyMeter { counters: None },
                },
            }
        }
        EnergyMeter { counters: (!counters.is_empty()).then_some(counters) }
    }

    /// Reads the counters now.
    pub fn read(&self) -> Reading {
        let joules = |counter: &Counter| match counter {
            Counter::Gpu(gpu) => gpu.joules(),
            Counter::Package(package) => package.joules(),
        };
        Reading(self.counters.as_ref().and_then(|counters| counters.iter().map(joules).collect()))
    }

    /// Joules used between two readings. `None` if some device has no readable counter.
    pub fn joules_between(&self, before: &Reading, after: &Reading) -> Option<f64> {
        let (before, after) = (before.0.as_ref()?, after.0.as_ref()?);
        let ranges = self.counters.as_ref()?.iter().map(|counter| match counter {
            Counter::Gpu(_) => f64::INFINITY,
            Counter::Package(package) => package.range,
        });
        Some(ranges.zip(before.iter().zip(after)).map(|(range, (&before, &after))| used(before, after, range)).sum())
    }
}

/// The difference of two counter values. The counter wraps to 0 at `range`; at most one wrap is
/// assumed.
fn used(before: f64, after: f64, range: f64) -> f64 {
    if after >= before { after - before } else { after + range - before }
}

/// A processor package in RAPL. Its counter wraps to 0 at `range` joules.
#[derive(Debug)]
struct Package {
    counter: PathBuf,
    range: f64,
}

impl Package {
    fn joules(&self) -> Option<f64> {
        microjoules(&self.counter)
    }
}

fn microjoules(file: &Path) -> Option<f64> {
    let text = std::fs::read_to_string(file).ok()?;
    text.trim().parse::<f64>().ok().map(|value| value / 1e6)
}

/// The packages below `folder`; `None` if none is readable.
fn packages(folder: &Path) -> Option<Vec<Package>> {
    let mut packages = Vec::new();
    for entry in std::fs::read_dir(folder).ok()? {
        let zone = entry.ok()?.path();
        // A package is named `intel-rapl:0`, on AMD too. `intel-rapl:0:1` is a part of one.
        let name = zone.file_name()?.to_str()?;
        if name.strip_prefix("intel-rapl:").is_none_or(|number| number.parse::<u32>().is_err()) {
            continue;
        }
        let counter = zone.join("energy_uj");
        microjoules(&counter)?;
        packages.push(Package { counter, range: microjoules(&zone.join("max_energy_range_uj"))? });
    }
    (!packages.is_empty()).then_some(packages)
}

/// The four NVML functions that a meter needs.
mod nvml {
    use super::{CString, Library, c_char, c_int, c_ulonglong, c_void};

    type Handle = *mut c_void;
    const SUCCESS: c_int = 0;

    /// A GPU in NVML. The library stays loaded as long as this lives.
    #[derive(Debug)]
    pub struct Gpu {
        nvml: Library,
        handle: Handle,
    }

    // SAFETY: NVML's functions may be called from any thread, and we never dereference the handle.
    unsafe impl Send for Gpu {}
    // SAFETY: as for `Send`.
    unsafe impl Sync for Gpu {}

    impl Gpu {
        /// `None` if the library is missing or does not know the GPU.
        pub fn open(bus_id: &str) -> Option<Gpu> {
            let bus_id = CString::new(bus_id).ok()?;
            // SAFETY: this is the driver's own library. Its initialisers may run in any process.
            let nvml = unsafe { Library::new("libnvidia-ml.so.1") }.ok()?;
            let mut handle: Handle = std::ptr::null_mut();
            // SAFETY: the functions have these types (nvml.h), and the pointers are valid during
            // the calls.
            unsafe {
                let init = nvml.get::<unsafe extern "C" fn() -> c_int>(b"nvmlInit_v2\0").ok()?;
                let by_bus_id = nvml
                    .get::<unsafe extern "C" fn(*const c_char, *mut Handle) -> c_int>(
                        b"nvmlDeviceGetHandleByPciBusId_v2\0",
                    )
                    .ok()?;
                if init() != SUCCESS || by_bus_id(bus_id.as_ptr(), &mut handle) != SUCCESS {
                    return None;
                }
            }
            let gpu = Gpu { nvml, handle };
            gpu.joules().map(|_| gpu)
        }

        /// Joules since the driver was loaded.
        pub fn joules(&self) -> Option<f64> {
            let mut millijoules: c_ulonglong = 0;
            // SAFETY: the function has this type (nvml.h); the handle is of this library, and the
            // pointer is valid.
            let code = unsafe {
                let energy = self
                    .nvml
                    .get::<unsafe extern "C" fn(Handle, *mut c_ulonglong) -> c_int>(
                        b"nvmlDeviceGetTotalEnergyConsumption\0",
                    )
                    .ok()?;
                energy(self.handle, &mut millijoules)
            };
            (code == SUCCESS).then_some(millijoules as f64 / 1e3)
        }
    }

    impl Drop for Gpu {
        fn drop(&mut self) {
            // SAFETY: the function has this type (nvml.h). `open` initialised the library once, and
            // this undoes it.
            unsafe {
                if let Ok(shutdown) = self.nvml.get::<unsafe extern "C" fn() -> c_int>(b"nvmlShutdown\0") {
                    shutdown();
                }
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn zone(folder: &Path, name: &str, energy: &str) {
        let zone = folder.join(name);
        std::fs::create_dir(&zone).unwrap();
        std::fs::write(zone.join("energy_uj"), energy).unwrap();
        std::fs::write(zone.join("max_energy_range_uj"), "262143328850\n").unwrap();
    }

    #[test]
    fn packages_are_summed_and_their_parts_are_not_counted_twice() {
        let folder = tempfile::tempdir().unwrap();
        zone(folder.path(), "intel-rapl:0", "5000000\n");
        zone(folder.path(), "intel-rapl:0:0", "4000000\n");
        zone(folder.path(), "intel-rapl:1", "7000000\n");
        let packages = packages(folder.path()).unwrap();
        let sum: f64 = packages.iter().filter_map(Package::joules).sum();
        assert_eq!((packages.len(), sum), (2, 12.0));
    }

    #[test]
    fn a_processor_without_readable_counters_has_no_meter() {
        let folder = tempfile::tempdir().unwrap();
        assert!(packages(folder.path()).is_none());
        zone(folder.path(), "intel-rapl:0", "no number");
        assert!(packages(folder.path()).is_none());
        assert!(packages(&folder.path().join("absent")).is_none());
    }

    #[test]
    fn a_counter_that_wrapped_is_still_counted_right() {
        assert_eq!(used(10.0, 15.0, 100.0), 5.0);
        assert_eq!(used(90.0, 5.0, 100.0), 15.0);
    }
}
