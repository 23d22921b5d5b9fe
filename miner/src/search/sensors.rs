//! Temperature, power and clock of devices. GPUs: NVML. Processors: `/sys`, as far as the system
//! lets us read it.

use super::cuda;
use super::device::DeviceId;
use super::energy::Gpu;
use serde::{Deserialize, Serialize};
use std::path::{Path, PathBuf};

/// Drivers of processors' thermometers, by the name that Linux gives them.
const THERMOMETERS: [&str; 3] = ["coretemp", "k10temp", "cpu_thermal"];
/// Thermal zones of processors, by the start of their type.
const ZONES: [&str; 3] = ["x86_pkg_temp", "cpu", "soc"];

/// The sensors of one device.
#[derive(Debug)]
pub struct Sensors(Kind);

#[derive(Debug)]
enum Kind {
    Gpu(Gpu),
    Processor { thermometer: Option<PathBuf>, clock: PathBuf },
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
    /// The sensors of a device. Unreadable ones have no values.
    pub fn open(device: DeviceId) -> Sensors {
        Sensors::below(Path::new("/sys"), device)
    }

    /// [`Sensors::open`] with another folder in place of `/sys`.
    pub(super) fn below(sys: &Path, device: DeviceId) -> Sensors {
        Sensors(match device {
            DeviceId::Cuda(ordinal) => {
                cuda::pci_bus_id(ordinal).and_then(|id| Gpu::open(&id)).map_or(Kind::None, Kind::Gpu)
            }
            DeviceId::Cpu => processor(sys),
            DeviceId::Remote(_) => Kind::None,
        })
    }

    /// The version of a GPU's driver.
    pub fn driver(&self) -> Option<String> {
        let Kind::Gpu(gpu) = &self.0 else { return None };
        gpu.driver()
    }

    /// The values now.
    pub fn read(&self) -> SensorValues {
        match &self.0 {
            Kind::Gpu(gpu) => SensorValues { celsius: gpu.celsius(), watts: gpu.watts(), megahertz: gpu.megahertz() },
            Kind::Processor { thermometer, clock } => SensorValues {
                celsius: thermometer.as_deref().and_then(number).map(|value| value / 1e3),
                watts: None,
                megahertz: number(clock).map(|value| value / 1e3),
            },
            Kind::None => SensorValues::default(),
        }
    }
}

/// The processor's sensors below `/sys`: its thermometer in thousandths of a degree, from its own
/// driver or else from the firmware; the clock of its first core in kilohertz.
fn processor(sys: &Path) -> Kind {
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
    Kind::Processor {
        thermometer: thermometer
            .or_else(|| zones.map(|entry| entry.path()).find(is_zone).map(|zone| zone.join("temp"))),
        clock: sys.join("devices/system/cpu/cpu0/cpufreq/scaling_cur_freq"),
    }
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
        let values = Sensors(processor(sys.path())).read();
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
        assert_eq!(Sensors(processor(sys.path())).read().celsius, Some(51.5));
    }

    #[test]
    fn without_sensors_nothing_is_shown() {
        let sys = tempfile::tempdir().unwrap();
        assert_eq!(Sensors(processor(sys.path())).read(), SensorValues::default());
        assert_eq!(Sensors::open(DeviceId::Cuda(99)).read(), SensorValues::default());
    }
}
