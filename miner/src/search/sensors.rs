//! Temperature, power, clock and energy of devices. GPUs: NVML, in the process that searches.
//! Processors: `/sys`, as far as the system lets us read it.

use super::cuda;
use super::device::DeviceId;
use super::nvml::Gpu;
use serde::{Deserialize, Serialize};
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

/// Drivers of processors' thermometers, by the name that Linux gives them.
const THERMOMETERS: [&str; 3] = ["coretemp", "k10temp", "cpu_thermal"];
/// Thermal zones of processors, by the start of their type.
const ZONES: [&str; 3] = ["x86_pkg_temp", "cpu", "soc"];

/// The sensors of one device. They are opened when they are first read, because that takes a while
/// and a search of half a second should not wait for it. Cheap to clone; clones share them.
#[derive(Clone, Debug)]
pub struct Sensors(Arc<Mutex<State>>);

#[derive(Debug)]
struct State {
    source: Source,
    /// The counters of energy as last read.
    counters: Option<Vec<f64>>,
    /// Joules since the first reading.
    joules: f64,
}

#[derive(Debug)]
enum Source {
    /// Not yet opened, with the folder `/sys` or one like it.
    Unopened(DeviceId, PathBuf),
    Gpu(Gpu),
    Processor {
        thermometer: Option<PathBuf>,
        clock: PathBuf,
        packages: Option<Vec<Package>>,
    },
    /// The values that a device process last told, and its joules.
    Told(SensorValues, Option<f64>),
    None,
}

/// Values of sensors at one moment. `None`: the device has no such sensor that can be read.
#[derive(Clone, Copy, PartialEq, Debug, Default, Serialize, Deserialize)]
pub struct SensorValues {
    /// Temperature, degrees Celsius.
    pub celsius: Option<f64>,
    /// Power, watts.
    pub watts: Option<f64>,
    /// Clock of the arithmetic units, megahertz.
    pub megahertz: Option<f64>,
}

impl Sensors {
    /// The sensors of a device on this machine. Unreadable ones have no values.
    pub fn of(device: DeviceId) -> Sensors {
        Sensors::below(Path::new("/sys"), device)
    }

    /// [`Sensors::of`] with another folder in place of `/sys`.
    pub fn below(sys: &Path, device: DeviceId) -> Sensors {
        Sensors::with(Source::Unopened(device, sys.to_owned()))
    }

    /// Sensors without values, unless another process tells some.
    pub fn unknown() -> Sensors {
        Sensors::with(Source::Told(SensorValues::default(), None))
    }

    fn with(source: Source) -> Sensors {
        Sensors(Arc::new(Mutex::new(State { source, counters: None, joules: 0.0 })))
    }

    /// Sets the values, and a counter of joules. Values that are no numbers are left out.
    pub(super) fn tell(&self, values: SensorValues, joules: Option<f64>) {
        let finite = |value: Option<f64>| value.filter(|value| value.is_finite());
        let SensorValues { celsius, watts, megahertz } = values;
        let values = SensorValues { celsius: finite(celsius), watts: finite(watts), megahertz: finite(megahertz) };
        self.lock().source = Source::Told(values, finite(joules).filter(|joules| (0.0..1e15).contains(joules)));
    }

    /// The version of a GPU's driver.
    pub fn driver(&self) -> Option<String> {
        match &self.lock().open().source {
            Source::Gpu(gpu) => gpu.driver(),
            _ => None,
        }
    }

    /// The values now.
    pub fn read(&self) -> SensorValues {
        match &self.lock().open().source {
            Source::Gpu(gpu) => SensorValues { celsius: gpu.celsius(), watts: gpu.watts(), megahertz: gpu.megahertz() },
            Source::Processor { thermometer, clock, .. } => SensorValues {
                celsius: thermometer.as_deref().and_then(number).map(|value| value / 1e3),
                watts: None,
                megahertz: number(clock).map(|value| value / 1e3),
            },
            Source::Told(values, _) => *values,
            Source::Unopened(..) | Source::None => SensorValues::default(),
        }
    }

    /// Joules that the device has used since the first call; `None` if its counter cannot be read
    /// now. Must be called at least once a minute, because the counter of a processor wraps after
    /// some minutes. A processor is counted whole, with all its packages and programs.
    pub fn joules(&self) -> Option<f64> {
        let mut state = self.lock();
        let now = state.open().counters()?;
        if let Some(before) = state.counters.replace(now.clone()) {
            let ranges = match &state.source {
                Source::Processor { packages: Some(packages), .. } => {
                    packages.iter().map(|one| Some(one.range)).collect()
                }
                _ => vec![None; now.len()],
            };
            let used = |(range, (&before, &after))| used(before, after, range);
            let more: f64 = ranges.into_iter().zip(before.iter().zip(&now)).map(used).sum();
            state.joules += more;
        }
        Some(state.joules)
    }

    fn lock(&self) -> MutexGuard<'_, State> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl State {
    fn open(&mut self) -> &State {
        if let Source::Unopened(device, sys) = &self.source {
            self.source = match device {
                DeviceId::Cuda(ordinal) => {
                    cuda::pci_bus_id(*ordinal).and_then(|id| Gpu::open(&id)).map_or(Source::None, Source::Gpu)
                }
                DeviceId::Cpu => processor(sys),
                DeviceId::Remote(_) => Source::None,
            };
        }
        self
    }

    /// The counters of energy, in joules.
    fn counters(&self) -> Option<Vec<f64>> {
        match &self.source {
            Source::Gpu(gpu) => gpu.joules().map(|joules| vec![joules]),
            Source::Processor { packages, .. } => packages.as_ref()?.iter().map(Package::joules).collect(),
            Source::Told(_, joules) => joules.map(|joules| vec![joules]),
            Source::Unopened(..) | Source::None => None,
        }
    }
}

/// The processor's sensors below `/sys`: its thermometer in thousandths of a degree, from its own
/// driver or else from the firmware; the clock of its first core in kilohertz.
fn processor(sys: &Path) -> Source {
    let is_thermometer = |folder: &PathBuf| {
        let name = std::fs::read_to_string(folder.join("name")).unwrap_or_default();
        THERMOMETERS.contains(&name.trim())
    };
    let folders = std::fs::read_dir(sys.join("class/hwmon")).into_iter().flatten().flatten();
    let thermometer = folders.map(|entry| entry.path()).find(is_thermometer);
    let is_zone = |folder: &PathBuf| {
        let kind = std::fs::read_to_string(folder.join("type")).unwrap_or_default();
        ZONES.iter().any(|zone| kind.trim().starts_with(zone))
    };
    let zones = std::fs::read_dir(sys.join("class/thermal")).into_iter().flatten().flatten();
    let thermometer = thermometer.map(|folder| folder.join("temp1_input"));
    Source::Processor {
        thermometer: thermometer
            .or_else(|| zones.map(|entry| entry.path()).find(is_zone).map(|zone| zone.join("temp"))),
        clock: sys.join("devices/system/cpu/cpu0/cpufreq/scaling_cur_freq"),
        packages: packages(&sys.join("class/powercap")),
    }
}

/// The number in a file.
fn number(file: &Path) -> Option<f64> {
    std::fs::read_to_string(file).ok()?.trim().parse().ok()
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

#[cfg(test)]
mod tests {
    use super::*;
    use std::fs;

    #[test]
    fn a_processors_thermometer_is_found_among_others() {
        let sys = tempfile::tempdir().unwrap();
        let hwmon = sys.path().join("class/hwmon");
        for (folder, name, value) in [("hwmon0", "nvme", "31000\n"), ("hwmon1", "k10temp", "64250\n")] {
            fs::create_dir_all(hwmon.join(folder)).unwrap();
            fs::write(hwmon.join(folder).join("name"), format!("{name}\n")).unwrap();
            fs::write(hwmon.join(folder).join("temp1_input"), value).unwrap();
        }
        let clock = sys.path().join("devices/system/cpu/cpu0/cpufreq");
        fs::create_dir_all(&clock).unwrap();
        fs::write(clock.join("scaling_cur_freq"), "3400000\n").unwrap();
        let values = Sensors::below(sys.path(), DeviceId::Cpu).read();
        assert_eq!(values, SensorValues { celsius: Some(64.25), watts: None, megahertz: Some(3400.0) });
    }

    #[test]
    fn a_processor_without_a_driver_has_the_thermometer_of_its_firmware() {
        let sys = tempfile::tempdir().unwrap();
        for (zone, kind, value) in [("thermal_zone0", "acpitz", "20000\n"), ("thermal_zone1", "cpu-thermal", "51500\n")]
        {
            let folder = sys.path().join("class/thermal").join(zone);
            fs::create_dir_all(&folder).unwrap();
            fs::write(folder.join("type"), format!("{kind}\n")).unwrap();
            fs::write(folder.join("temp"), value).unwrap();
        }
        assert_eq!(Sensors::below(sys.path(), DeviceId::Cpu).read().celsius, Some(51.5));
    }

    #[test]
    fn without_sensors_nothing_is_shown() {
        let sys = tempfile::tempdir().unwrap();
        assert_eq!(Sensors::below(sys.path(), DeviceId::Cpu).read(), SensorValues::default());
        assert_eq!(Sensors::of(DeviceId::Cuda(99)).read(), SensorValues::default());
    }

    fn zone(folder: &Path, zone: &str, name: &str, energy: &str) {
        let zone = folder.join(zone);
        fs::create_dir(&zone).unwrap();
        fs::write(zone.join("name"), format!("{name}\n")).unwrap();
        fs::write(zone.join("energy_uj"), energy).unwrap();
        fs::write(zone.join("max_energy_range_uj"), "262143328850\n").unwrap();
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
        let sys = tempfile::tempdir().unwrap();
        let folder = sys.path().join("class/powercap");
        fs::create_dir_all(&folder).unwrap();
        zone(&folder, "intel-rapl:0", "package-0", "200000000000");
        let sensors = Sensors::below(sys.path(), DeviceId::Cpu);
        let after = |value: &str| {
            fs::write(folder.join("intel-rapl:0/energy_uj"), value).unwrap();
            sensors.joules().map(f64::round)
        };
        assert_eq!(after("200000000000"), Some(0.0));
        assert_eq!(after("10000000000"), Some(72_143.0));
        assert_eq!(after("no number"), None);
        assert_eq!(after("210000000000"), Some(272_143.0));
        assert_eq!(after("0"), Some(324_287.0), "wrapped again");
    }

    #[test]
    fn what_a_process_tells_is_shown_as_far_as_it_is_a_number() {
        let sensors = Sensors::unknown();
        assert_eq!((sensors.read(), sensors.joules()), (SensorValues::default(), None));
        let values = SensorValues { celsius: Some(61.0), watts: Some(f64::NAN), megahertz: Some(f64::INFINITY) };
        sensors.tell(values, Some(50.0));
        assert_eq!(sensors.read(), SensorValues { celsius: Some(61.0), ..SensorValues::default() });
        assert_eq!(sensors.joules(), Some(0.0));
        sensors.tell(values, Some(80.0));
        assert_eq!(sensors.joules(), Some(30.0));
        sensors.tell(values, Some(f64::INFINITY));
        assert_eq!(sensors.joules(), None);
    }
}
