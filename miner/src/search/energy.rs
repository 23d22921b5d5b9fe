//! Energy used by devices. GPUs: NVIDIA's management library (NVML), loaded at run time.
//! Processors: RAPL, if the system lets us read it.

use super::cuda;
use super::device::DeviceId;
use super::os;
use libloading::Library;
use std::ffi::{CStr, CString, c_char, c_int, c_uint, c_ulonglong, c_void};
use std::path::{Path, PathBuf};

/// Reads the energy counters of several devices together.
#[derive(Debug)]
pub struct EnergyMeter {
    /// `None` if some device has no readable counter.
    counters: Option<Vec<Counter>>,
}

#[derive(Debug)]
enum Counter {
    Gpu(Gpu),
    Package(Package),
}

/// The GPU of this number, if its counter can be read.
fn gpu(ordinal: usize) -> Option<Gpu> {
    cuda::pci_bus_id(ordinal).and_then(|id| Gpu::open(&id)).filter(|gpu| gpu.joules().is_some())
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
                DeviceId::Cuda(ordinal) => match gpu(*ordinal) {
                    Some(gpu) => counters.push(Counter::Gpu(gpu)),
                    None => return EnergyMeter { counters: None },
                },
                DeviceId::Remote(_) => return EnergyMeter { counters: None },
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
            Counter::Gpu(_) => None,
            Counter::Package(package) => Some(package.range),
        });
        Some(ranges.zip(before.iter().zip(after)).map(|(range, (&before, &after))| used(before, after, range)).sum())
    }
}

/// The energy that one device has used since this value was made.
#[derive(Debug)]
pub struct EnergyTotal {
    meter: EnergyMeter,
    last: Reading,
    joules: f64,
}

impl EnergyTotal {
    /// Counts the energy from now on; `None` if the device has no readable counter.
    pub fn from_now(device: DeviceId) -> Option<EnergyTotal> {
        EnergyTotal::of(EnergyMeter::new(&[device]))
    }

    fn of(meter: EnergyMeter) -> Option<EnergyTotal> {
        let last = meter.read();
        last.0.is_some().then_some(EnergyTotal { meter, last, joules: 0.0 })
    }

    /// Joules up to now; `None` if the counter cannot be read at the moment. Must be called at
    /// least once a minute, because the counter of a processor wraps after some minutes.
    pub fn joules(&mut self) -> Option<f64> {
        let now = self.meter.read();
        self.joules += self.meter.joules_between(&self.last, &now)?;
        self.last = now;
        Some(self.joules)
    }
}

/// The energy used between two readings of a counter. The counter of a processor wraps to 0 at
/// `range`, at most once between the readings. The counter of a GPU has no range; it starts again
/// at 0 when the driver is reloaded.
fn used(before: f64, after: f64, range: Option<f64>) -> f64 {
    match range {
        _ if after >= before => after - before,
        Some(range) => after + range - before,
        None => after,
    }
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

/// The packages below `folder`; `None` if there are none, or one of them is not readable.
fn packages(folder: &Path) -> Option<Vec<Package>> {
    let mut packages = Vec::new();
    for entry in std::fs::read_dir(folder).ok()? {
        let zone = entry.ok()?.path();
        // A package is a zone like `intel-rapl:0`, on AMD too. `intel-rapl:0:1` is a part of one.
        let name = zone.file_name()?.to_str()?;
        if name.strip_prefix("intel-rapl:").is_none_or(|number| number.parse::<u32>().is_err()) {
            continue;
        }
        // Beside the packages (`package-0`, `package-0-die-1`) there may be `psys`, which counts
        // the whole machine, packages included.
        if !std::fs::read_to_string(zone.join("name")).ok()?.starts_with("package-") {
            continue;
        }
        let counter = zone.join("energy_uj");
        microjoules(&counter)?;
        packages.push(Package { counter, range: microjoules(&zone.join("max_energy_range_uj"))? });
    }
    (!packages.is_empty()).then_some(packages)
}

type Handle = *mut c_void;
const SUCCESS: c_int = 0;
/// `NVML_TEMPERATURE_GPU` of nvml.h.
const TEMPERATURE_OF_GPU: c_int = 0;
/// `NVML_SYSTEM_DRIVER_VERSION_BUFFER_SIZE` of nvml.h.
const VERSION_SIZE: usize = 80;
/// `NVML_CLOCK_SM` of nvml.h.
const CLOCK_OF_PROCESSORS: c_int = 1;

/// A GPU in NVML. The library stays loaded as long as this value lives.
#[derive(Debug)]
pub(super) struct Gpu {
    nvml: Library,
    handle: Handle,
}

// SAFETY: NVML's functions may be called from any thread, and we never dereference the handle.
unsafe impl Send for Gpu {}
// SAFETY: as for `Send`.
unsafe impl Sync for Gpu {}

impl Gpu {
    /// Opens the GPU at this PCI address. `None` if the library is missing or does not know the
    /// GPU.
    pub fn open(bus_id: &str) -> Option<Gpu> {
        let bus_id = CString::new(bus_id).ok()?;
        // SAFETY: this is the driver's own library. Its initialisers may run in any process.
        let nvml = unsafe { os::load_nvml() }.ok()?;
        let mut handle: Handle = std::ptr::null_mut();
        // SAFETY: the functions have these types (nvml.h), and the pointers are valid during the
        // calls.
        unsafe {
            let init = nvml.get::<unsafe extern "C" fn() -> c_int>(b"nvmlInit_v2\0").ok()?;
            let by_bus_id = nvml
                .get::<unsafe extern "C" fn(*const c_char, *mut Handle) -> c_int>(b"nvmlDeviceGetHandleByPciBusId_v2\0")
                .ok()?;
            if init() != SUCCESS || by_bus_id(bus_id.as_ptr(), &mut handle) != SUCCESS {
                return None;
            }
        }
        Some(Gpu { nvml, handle })
    }

    /// The driver's version, such as `580.159.04`.
    pub fn driver(&self) -> Option<String> {
        let mut text: [c_char; VERSION_SIZE] = [0; VERSION_SIZE];
        // SAFETY: the function has this type (nvml.h), and writes no more than the given length.
        let code = unsafe {
            let name = b"nvmlSystemGetDriverVersion\0";
            let read = self.nvml.get::<unsafe extern "C" fn(*mut c_char, c_uint) -> c_int>(name).ok()?;
            read(text.as_mut_ptr(), VERSION_SIZE as c_uint)
        };
        let bytes = text.map(|byte| byte as u8);
        (code == SUCCESS).then(|| CStr::from_bytes_until_nul(&bytes).ok()?.to_str().ok().map(str::to_owned))?
    }

    /// Joules since the driver was loaded.
    pub fn joules(&self) -> Option<f64> {
        let millijoules = self.value::<c_ulonglong>(b"nvmlDeviceGetTotalEnergyConsumption\0")?;
        Some(millijoules as f64 / 1e3)
    }

    /// Watts now.
    pub fn watts(&self) -> Option<f64> {
        self.value::<c_uint>(b"nvmlDeviceGetPowerUsage\0").map(|milliwatts| f64::from(milliwatts) / 1e3)
    }

    /// Temperature of the chip, degrees Celsius.
    pub fn celsius(&self) -> Option<f64> {
        self.value_of_kind(b"nvmlDeviceGetTemperature\0", TEMPERATURE_OF_GPU)
    }

    /// Clock of the multiprocessors, megahertz.
    pub fn megahertz(&self) -> Option<f64> {
        self.value_of_kind(b"nvmlDeviceGetClockInfo\0", CLOCK_OF_PROCESSORS)
    }

    /// The power limit in force, watts.
    pub fn power_limit(&self) -> Option<f64> {
        self.value::<c_uint>(b"nvmlDeviceGetPowerManagementLimit\0").map(|milliwatts| f64::from(milliwatts) / 1e3)
    }

    /// The smallest and the largest power limit that the GPU accepts, watts.
    pub fn power_limits(&self) -> Option<(f64, f64)> {
        let (mut least, mut most): (c_uint, c_uint) = (0, 0);
        let name = b"nvmlDeviceGetPowerManagementLimitConstraints\0";
        // SAFETY: the function has this type (nvml.h), and the pointers are valid.
        let code = unsafe {
            let limits = self.nvml.get::<unsafe extern "C" fn(Handle, *mut c_uint, *mut c_uint) -> c_int>(name).ok()?;
            limits(self.handle, &mut least, &mut most)
        };
        (code == SUCCESS).then_some((f64::from(least) / 1e3, f64::from(most) / 1e3))
    }

    /// Sets the power limit, watts. Returns whether the driver did it; only root may.
    pub fn set_power_limit(&self, watts: f64) -> bool {
        let name = b"nvmlDeviceSetPowerManagementLimit\0";
        // SAFETY: the function has this type (nvml.h).
        let set = unsafe { self.nvml.get::<unsafe extern "C" fn(Handle, c_uint) -> c_int>(name) };
        // SAFETY: the handle is of this library.
        set.is_ok_and(|set| unsafe { set(self.handle, (watts * 1e3).round() as c_uint) } == SUCCESS)
    }

    /// What the function of this name writes: one number about the GPU.
    fn value<T: Default>(&self, name: &[u8]) -> Option<T> {
        let mut value = T::default();
        // SAFETY: the functions named above have this type (nvml.h) for their `T`; the handle is of
        // this library, and the pointer is valid.
        let code = unsafe {
            let read = self.nvml.get::<unsafe extern "C" fn(Handle, *mut T) -> c_int>(name).ok()?;
            read(self.handle, &mut value)
        };
        (code == SUCCESS).then_some(value)
    }

    /// The same of a function that takes the kind of a sensor or clock.
    fn value_of_kind(&self, name: &[u8], kind: c_int) -> Option<f64> {
        let mut value: c_uint = 0;
        // SAFETY: both functions have this type (nvml.h); the rest is as for `value`.
        let code = unsafe {
            let read = self.nvml.get::<unsafe extern "C" fn(Handle, c_int, *mut c_uint) -> c_int>(name).ok()?;
            read(self.handle, kind, &mut value)
        };
        (code == SUCCESS).then_some(f64::from(value))
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

#[cfg(test)]
mod tests {
    use super::*;

    fn zone(folder: &Path, zone: &str, name: &str, energy: &str) {
        let zone = folder.join(zone);
        std::fs::create_dir(&zone).unwrap();
        std::fs::write(zone.join("name"), format!("{name}\n")).unwrap();
        std::fs::write(zone.join("energy_uj"), energy).unwrap();
        std::fs::write(zone.join("max_energy_range_uj"), "262143328850\n").unwrap();
    }

    #[test]
    fn packages_are_summed_and_their_parts_are_not_counted_twice() {
        let folder = tempfile::tempdir().unwrap();
        zone(folder.path(), "intel-rapl:0", "package-0", "5000000\n");
        zone(folder.path(), "intel-rapl:0:0", "core", "4000000\n");
        zone(folder.path(), "intel-rapl:1", "package-1-die-0", "7000000\n");
        let packages = packages(folder.path()).unwrap();
        let sum: f64 = packages.iter().filter_map(Package::joules).sum();
        assert_eq!((packages.len(), sum), (2, 12.0));
    }

    #[test]
    fn the_whole_machine_is_not_counted_beside_its_package() {
        let folder = tempfile::tempdir().unwrap();
        zone(folder.path(), "intel-rapl:0", "package-0", "5000000\n");
        zone(folder.path(), "intel-rapl:1", "psys", "9000000\n");
        let joules: Vec<f64> = packages(folder.path()).unwrap().iter().filter_map(Package::joules).collect();
        assert_eq!(joules, [5.0]);
    }

    #[test]
    fn a_processor_without_readable_counters_has_no_meter() {
        let folder = tempfile::tempdir().unwrap();
        assert!(packages(folder.path()).is_none());
        zone(folder.path(), "intel-rapl:0", "package-0", "no number");
        assert!(packages(folder.path()).is_none());
        assert!(packages(&folder.path().join("absent")).is_none());
    }

    #[test]
    fn a_counter_that_wrapped_is_still_counted_right() {
        assert_eq!(used(10.0, 15.0, Some(100.0)), 5.0);
        assert_eq!(used(90.0, 5.0, Some(100.0)), 15.0);
        assert_eq!((used(90.0, 95.0, None), used(90.0, 5.0, None)), (5.0, 5.0));
    }

    #[test]
    fn a_total_goes_on_over_wraps_and_over_moments_without_a_value() {
        let folder = tempfile::tempdir().unwrap();
        zone(folder.path(), "intel-rapl:0", "package-0", "200000000000");
        let counters = packages(folder.path()).map(|all| all.into_iter().map(Counter::Package).collect());
        let mut total = EnergyTotal::of(EnergyMeter { counters }).unwrap();
        let mut after = |value: &str| {
            std::fs::write(folder.path().join("intel-rapl:0/energy_uj"), value).unwrap();
            total.joules().map(f64::round)
        };
        assert_eq!(after("200000000000"), Some(0.0));
        assert_eq!(after("10000000000"), Some(72_143.0));
        assert_eq!(after("no number"), None);
        assert_eq!(after("210000000000"), Some(272_143.0));
        assert_eq!(after("0"), Some(324_287.0), "wrapped again");
        assert!(EnergyTotal::of(EnergyMeter { counters: None }).is_none());
    }
}
