//! Temperature, power, clock and energy of devices. GPUs: NVML, in the process that searches.
//! Processors: `/sys`, as far as the system lets us read it; their energy counters are for root only
//! (CVE-2020-8694).

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
pub struct Sensors(Arc<Mutex<Source>>);

#[derive(Debug)]
enum Source {
    /// Not yet opened, with the folder `/sys` or one like it.
    Unopened(DeviceId, PathBuf),
    Gpu(Gpu),
    /// The files of a processor: its thermometer in thousandths of a degree, and the clock of its
    /// first core in kilohertz.
    Processor {
        thermometer: Option<PathBuf>,
        clock: PathBuf,
    },
    /// The values that a device process last told, and its counter of joules.
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
        Sensors(Arc::new(Mutex::new(Source::Unopened(device, sys.to_owned()))))
    }

    /// Sensors without values, unless another process tells some.
    pub fn unknown() -> Sensors {
        Sensors(Arc::new(Mutex::new(Source::Told(SensorValues::default(), None))))
    }

    /// Sets the values, and a counter of joules. Values that are no numbers are left out.
    pub fn tell(&self, values: SensorValues, joules: Option<f64>) {
        let finite = |value: Option<f64>| value.filter(|value| value.is_finite());
        let SensorValues { celsius, watts, megahertz } = values;
        let values = SensorValues { celsius: finite(celsius), watts: finite(watts), megahertz: finite(megahertz) };
        *self.lock() = Source::Told(values, finite(joules).filter(|joules| (0.0..1e15).contains(joules)));
    }

    /// The version of a GPU's driver.
    pub fn driver(&self) -> Option<String> {
        match self.lock().open() {
            Source::Gpu(gpu) => gpu.driver(),
            _ => None,
        }
    }

    /// The values now.
    pub fn read(&self) -> SensorValues {
        match self.lock().open() {
            Source::Gpu(gpu) => SensorValues { celsius: gpu.celsius(), watts: gpu.watts(), megahertz: gpu.megahertz() },
            Source::Processor { thermometer, clock } => SensorValues {
                celsius: thermometer.as_deref().and_then(number).map(|value| value / 1e3),
                watts: None,
                megahertz: number(clock).map(|value| value / 1e3),
            },
            Source::Told(values, _) => *values,
            Source::Unopened(..) => SensorValues::default(),
        }
    }

    /// The counter of the energy that the device has used, in joules; `None` if it has none that can
    /// be read now.
    pub fn joules(&self) -> Option<f64> {
        match self.lock().open() {
            Source::Gpu(gpu) => gpu.joules(),
            Source::Told(_, joules) => *joules,
            Source::Processor { .. } | Source::Unopened(..) => None,
        }
    }

    fn lock(&self) -> MutexGuard<'_, Source> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Source {
    fn open(&mut self) -> &Source {
        if let Source::Unopened(device, sys) = self {
            let none = Source::Told(SensorValues::default(), None);
            *self = match device {
                DeviceId::Cuda(ordinal) => {
                    cuda::pci_bus_id(*ordinal).and_then(|id| Gpu::open(&id)).map_or(none, Source::Gpu)
                }
                DeviceId::Cpu => Source::Processor {
                    thermometer: thermometer(sys),
                    clock: sys.join("devices/system/cpu/cpu0/cpufreq/scaling_cur_freq"),
                },
                DeviceId::Remote(_) => none,
            };
        }
        self
    }
}

fn thermometer(sys: &Path) -> Option<PathBuf> {
    let is_thermometer = |folder: &PathBuf| {
        let name = std::fs::read_to_string(folder.join("name")).unwrap_or_default();
        THERMOMETERS.contains(&name.trim())
    };
    let folders = std::fs::read_dir(sys.join("class/hwmon")).ok()?.flatten();
    folders.map(|entry| entry.path()).find(is_thermometer).map(|folder| folder.join("temp1_input"))
}

/// The number in a file.
fn number(file: &Path) -> Option<f64> {
    std::fs::read_to_string(file).ok()?.trim().parse().ok()
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

    #[test]
    fn what_a_process_tells_is_shown_as_far_as_it_is_a_number() {
        let sensors = Sensors::unknown();
        assert_eq!((sensors.read(), sensors.joules()), (SensorValues::default(), None));
        let values = SensorValues { celsius: Some(61.0), watts: Some(f64::NAN), megahertz: Some(f64::INFINITY) };
        sensors.tell(values, Some(50.0));
        assert_eq!(sensors.read(), SensorValues { celsius: Some(61.0), ..SensorValues::default() });
        assert_eq!(sensors.joules(), Some(50.0));
        sensors.tell(values, Some(f64::INFINITY));
        assert_eq!(sensors.joules(), None);
    }
}
