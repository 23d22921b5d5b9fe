//! The operator's settings for when devices rest, limits on their use, and what decides whether all
//! of them rest: time and power supply.

use super::device::DeviceId;
use crate::clock::Clock;
use crate::hours::Hours;
use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};

/// When devices rest, and limits on their use. By default there are none.
#[derive(Clone, PartialEq, Debug, Default)]
pub struct Restraints {
    /// The hours at which devices search; `None` for always.
    pub hours: Option<Hours>,
    /// Whether devices rest while the machine runs on its battery.
    pub pause_on_battery: bool,
    /// The caps of devices without caps in `of_device`.
    pub caps: Caps,
    /// Caps of single devices. A missing value is taken from `caps`.
    pub of_device: BTreeMap<DeviceId, Caps>,
}

/// Limits on the use of a device. `None`: no limit.
#[derive(Clone, Copy, PartialEq, Debug, Default)]
pub struct Caps {
    /// The share of its time in which the device searches, above 0, up to 1.
    pub share: Option<f64>,
    /// The temperature at which the device pauses, degrees Celsius.
    pub celsius: Option<f64>,
    /// The power that it may take, watts. GPUs only.
    pub watts: Option<f64>,
}

impl Restraints {
    /// The caps of a device.
    pub fn caps_of(&self, device: DeviceId) -> Caps {
        let own = self.of_device.get(&device).copied().unwrap_or_default();
        Caps {
            share: own.share.or(self.caps.share),
            celsius: own.celsius.or(self.caps.celsius),
            watts: own.watts.or(self.caps.watts),
        }
    }

    /// Whether nothing must be watched during the search: no hours, no pause on battery and no caps
    /// except shares are set.
    pub fn need_no_watch(&self) -> bool {
        let plain = |caps: &Caps| caps.celsius.is_none() && caps.watts.is_none();
        self.hours.is_none() && !self.pause_on_battery && plain(&self.caps) && self.of_device.values().all(plain)
    }
}

/// The machine of the devices: its clock and power supply.
#[derive(Debug)]
pub struct Surroundings {
    clock: Clock,
    /// `/sys`, or a folder like it in tests.
    sys: PathBuf,
}

impl Surroundings {
    /// This machine, with the time of a clock.
    pub fn new(clock: Clock) -> Surroundings {
        Surroundings::below(Path::new("/sys"), clock)
    }

    /// [`Surroundings::new`] with another folder in place of `/sys`.
    pub fn below(sys: &Path, clock: Clock) -> Surroundings {
        Surroundings { clock, sys: sys.to_owned() }
    }

    /// Unix seconds.
    pub fn now(&self) -> u64 {
        self.clock.now()
    }

    /// Whether the machine runs on its battery: it has a battery that discharges, and no supply
    /// from outside is connected. `None` without a battery.
    pub fn is_on_battery(&self) -> Option<bool> {
        let folders = fs::read_dir(self.sys.join("class/power_supply")).ok()?;
        let supplies: Vec<PathBuf> = folders.flatten().map(|entry| entry.path()).collect();
        let read = |supply: &PathBuf, file: &str| fs::read_to_string(supply.join(file)).unwrap_or_default();
        let is = |supply: &PathBuf, file: &str, value: &str| read(supply, file).trim().eq_ignore_ascii_case(value);
        // A mouse or a headset has a battery too, of the scope `Device`.
        let is_machines = |supply: &&PathBuf| !is(supply, "scope", "Device");
        let (mut has_battery, mut discharges, mut is_supplied) = (false, false, false);
        for supply in supplies.iter().filter(is_machines) {
            match is(supply, "type", "Battery") {
                true => {
                    has_battery = true;
                    discharges |= is(supply, "status", "Discharging");
                }
                false => is_supplied |= is(supply, "online", "1"),
            }
        }
        has_battery.then_some(discharges && !is_supplied)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_device_has_its_own_caps_and_those_of_all_for_the_rest() {
        let all = Caps { share: Some(0.5), celsius: Some(80.0), watts: None };
        let own = Caps { share: Some(0.9), celsius: None, watts: Some(250.0) };
        let of_device = BTreeMap::from([(DeviceId::Cuda(1), own)]);
        let restraints = Restraints { caps: all, of_device, ..Restraints::default() };
        assert_eq!(restraints.caps_of(DeviceId::Cpu), all);
        let both = Caps { share: Some(0.9), celsius: Some(80.0), watts: Some(250.0) };
        assert_eq!(restraints.caps_of(DeviceId::Cuda(1)), both);
        let share = Restraints { caps: Caps { celsius: None, ..all }, ..Restraints::default() };
        assert!(share.need_no_watch() && !restraints.need_no_watch() && Restraints::default().need_no_watch());
    }

    /// A folder like `/sys` with power supplies, each with its files.
    fn machine(supplies: &[(&str, &[(&str, &str)])]) -> (tempfile::TempDir, Surroundings) {
        let sys = tempfile::tempdir().unwrap();
        for (name, files) in supplies {
            let folder = sys.path().join("class/power_supply").join(name);
            fs::create_dir_all(&folder).unwrap();
            files.iter().for_each(|(file, value)| fs::write(folder.join(file), format!("{value}\n")).unwrap());
        }
        let surroundings = Surroundings::below(sys.path(), Clock::at(7));
        (sys, surroundings)
    }

    #[test]
    fn a_laptop_is_on_its_battery_while_nothing_else_supplies_it() {
        let battery = |status| ("BAT0", [("type", "Battery"), ("status", status)]);
        let mains = |online| ("AC", [("type", "Mains"), ("online", online)]);
        let is_on_battery = |battery: (&str, [(&str, &str); 2]), mains: (&str, [(&str, &str); 2])| {
            machine(&[(battery.0, &battery.1), (mains.0, &mains.1)]).1.is_on_battery()
        };
        assert_eq!(is_on_battery(battery("Discharging"), mains("0")), Some(true));
        assert_eq!(is_on_battery(battery("Charging"), mains("1")), Some(false));
        assert_eq!(is_on_battery(battery("Full"), mains("0")), Some(false), "the charger's file may be wrong");
        assert_eq!(is_on_battery(battery("Discharging"), mains("1")), Some(false), "a weak charger is one");
    }

    #[test]
    fn a_machine_without_a_battery_of_its_own_is_never_on_it() {
        let (_sys, server) = machine(&[("AC", &[("type", "Mains"), ("online", "0")])]);
        assert_eq!(server.is_on_battery(), None);
        let mouse = [("type", "Battery"), ("status", "Discharging"), ("scope", "Device")];
        let (_sys, desktop) = machine(&[("hidpp_battery_0", &mouse)]);
        assert_eq!(desktop.is_on_battery(), None);
        let (_sys, nothing) = machine(&[]);
        assert_eq!((nothing.is_on_battery(), nothing.now()), (None, 7));
    }
}
