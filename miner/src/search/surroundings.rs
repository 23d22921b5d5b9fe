//! The conditions that decide whether all devices rest: time and power supply.

use crate::clock::Clock;
use std::fs;
use std::path::{Path, PathBuf};

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
