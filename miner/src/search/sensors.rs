//! Temperature, power, clock and energy of devices. GPUs: NVML, in the process that searches.
//! Processors: `/sys`, as far as the system lets us read it.

use super::cuda;
use super::device::DeviceId;
use super::nvml::Gpu;
use serde::{Deserialize, Serialize};
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

/// Drivers of processors' thermometers, by the name that Linux gives them.
const THERMOMETERS: [&str; 4] = ["coretemp", "k10temp", "cpu_thermal", "soc_thermal"];

/// The sensors of one device. They are opened when they are first read, because that takes a while
/// and a search of half a second should not wait for it. Cheap to clone; clones share them.
#[derive(Clone, Debug)]
pub struct Sensors(Arc<Mutex<State>>);

#[derive(Debug)]
struct State {
    source: Source,
    /// The counters of energy as last read.
    counters: Option<Vec<Counter>>,
    /// Joules since the first reading.
    joules: f64,
}

/// A counter of energy: joules, and the joules at which it begins again at 0.
type Counter = (f64, Option<f64>);

#[derive(Debug)]
enum Source {
    /// Not yet opened, with the folder `/sys` or one like it.
    Unopened(DeviceId, PathBuf),
    Gpu(Gpu),
    Processor {
        thermometer: Option<PathBuf>,
        clock: PathBuf,
        packages: Vec<PathBuf>,
    },
    /// The values that a device process last told, and its joules.
    Told(SensorValues, Option<f64>),
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
            Source::Unopened(..) => SensorValues::default(),
        }
    }

    /// Joules that the device has used since the first call; `None` if its counter cannot be read
    /// now. Must be called at least once a minute, because the counter of a processor wraps after
    /// some minutes. A processor is counted whole, with all its packages and programs.
    pub fn joules(&self) -> Option<f64> {
        let mut state = self.lock();
        let now = state.open().counters()?;
        if let Some(before) = state.counters.replace(now.clone()) {
            let used = |(&(before, _), &(after, range))| used(before, after, range);
            state.joules += before.iter().zip(&now).map(used).sum::<f64>();
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
            let none = Source::Told(SensorValues::default(), None);
            self.source = match device {
                DeviceId::Cuda(ordinal) => {
                    cuda::pci_bus_id(*ordinal).and_then(|id| Gpu::open(&id)).map_or(none, Source::Gpu)
                }
                DeviceId::Cpu => processor(sys),
                DeviceId::Remote(_) => none,
            };
        }
        self
    }

    /// The counters of energy; `None` if there are none, or one of them is not readable.
    fn counters(&self) -> Option<Vec<Counter>> {
        match &self.source {
            Source::Gpu(gpu) => Some(vec![(gpu.joules()?, None)]),
            Source::Processor { packages, .. } if packages.is_empty() => None,
            Source::Processor { packages, .. } => packages.iter().map(|zone| counter(zone)).collect(),
            Source::Told(_, joules) => Some(vec![((*joules)?, None)]),
            Source::Unopened(..) => None,
        }
    }
}

/// The processor's sensors below `/sys`: its thermometer in thousandths of a degree, the clock of
/// its first core in kilohertz, and its packages in RAPL.
fn processor(sys: &Path) -> Source {
    let folders = |below: &str| {
        let entries = std::fs::read_dir(sys.join(below)).into_iter().flatten().flatten();
        entries.map(|entry| entry.path())
    };
    let name = |folder: &PathBuf| std::fs::read_to_string(folder.join("name")).unwrap_or_default();
    let is_thermometer = |folder: &PathBuf| THERMOMETERS.contains(&name(folder).trim());
    // A package is a zone like `intel-rapl:0`, on AMD too. `intel-rapl:0:1` is a part of one. Beside
    // the packages (`package-0`, `package-0-die-1`) there may be `psys`, which counts the whole
    // machine, packages included.
    let is_package = |zone: &PathBuf| {
        let number = zone.file_name().and_then(|file| file.to_str()?.strip_prefix("intel-rapl:"));
        number.is_some_and(|number| number.parse::<u32>().is_ok()) && name(zone).starts_with("package-")
    };
    let mut packages: Vec<PathBuf> = folders("class/powercap").filter(is_package).collect();
    if !packages.iter().all(|zone| counter(zone).is_some()) {
        packages.clear();
    }
    Source::Processor {
        thermometer: folders("class/hwmon").find(is_thermometer).map(|folder| folder.join("temp1_input")),
        clock: sys.join("devices/system/cpu/cpu0/cpufreq/scaling_cur_freq"),
        packages,
    }
}

/// The counter of a processor package in RAPL.
fn counter(zone: &Path) -> Option<Counter> {
    let joules = |file: &str| number(&zone.join(file)).map(|microjoules| microjoules / 1e6);
    Some((joules("energy_uj")?, Some(joules("max_energy_range_uj")?)))
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
    fn without_sensors_nothing_is_shown() {
        let sys = tempfile::tempdir().unwrap();
        assert_eq!(Sensors::below(sys.path(), DeviceId::Cpu).read(), SensorValues::default());
        assert_eq!(Sensors::of(DeviceId::Cuda(99)).read(), SensorValues::default());
    }

    fn zone(folder: &Path, zone: &str, name: &str, energy: &str) {
        let zone = folder.join(zone);
        fs::create_dir_all(&zone).unwrap();
        fs::write(zone.join("name"), format!("{name}\n")).unwrap();
        fs::write(zone.join("energy_uj"), energy).unwrap();
        fs::write(zone.join("max_energy_range_uj"), "262143328850\n").unwrap();
    }

    #[test]
    fn packages_are_summed_and_neither_their_parts_nor_the_whole_machine_are_counted_beside_them() {
        let sys = tempfile::tempdir().unwrap();
        let folder = sys.path().join("class/powercap");
        let joules = || {
            let counters = Sensors::below(sys.path(), DeviceId::Cpu).lock().open().counters();
            counters.map(|counters| counters.iter().map(|(joules, _)| joules).sum::<f64>())
        };
        assert_eq!(joules(), None, "no counter");
        zone(&folder, "intel-rapl:0", "package-0", "5000000\n");
        zone(&folder, "intel-rapl:0:0", "core", "4000000\n");
        zone(&folder, "intel-rapl:1", "package-1-die-0", "7000000\n");
        zone(&folder, "intel-rapl:2", "psys", "9000000\n");
        assert_eq!(joules(), Some(12.0));
        zone(&folder, "intel-rapl:3", "package-2", "no number");
        assert_eq!(joules(), None, "one cannot be read");
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
