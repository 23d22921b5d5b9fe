//! Makes devices rest by time, power supply and temperature.

use super::health::Record;
use crate::scheduler::plan::rest::RestRule;
use crate::search::{Restraints, Surroundings};
use std::sync::{Arc, Mutex, PoisonError};

/// The watch over one device. The thread of the device asks it between launches.
pub struct Watch {
    surroundings: Arc<Surroundings>,
    rule: Mutex<RestRule>,
}

impl Watch {
    /// The watch over the device with this record; `None` if there is nothing to watch.
    pub fn new(restraints: &Restraints, surroundings: Arc<Surroundings>, record: &Record) -> Option<Watch> {
        if restraints.need_no_watch() {
            return None;
        }
        let celsius = restraints.caps_of(record.view().id).celsius;
        if celsius.is_some() && !record.is_out() && record.lock().sensors.read().celsius.is_none() {
            record.warn("its temperature cannot be read, so it does not pause for heat".to_owned());
        }
        let rule = Mutex::new(RestRule::new(restraints.hours.clone(), restraints.pause_on_battery, celsius));
        let watch = Watch { surroundings, rule };
        watch.look(record);
        Some(watch)
    }

    /// Checks once, and makes the device rest or go on.
    pub fn look(&self, record: &Record) {
        let (now, on_battery) = (self.surroundings.now(), self.surroundings.is_on_battery());
        let sensors = record.lock().sensors.clone();
        let mut rule = self.rule.lock().unwrap_or_else(PoisonError::into_inner);
        let celsius = rule.hottest.and_then(|_| sensors.read().celsius);
        let rest = rule.decide(now, on_battery, celsius);
        let before = record.set_rest(rest.clone(), rule.part());
        let device = record.view().id;
        match (before.map(|rest| rest.name()), rest) {
            (before, Some(rest)) if before != Some(rest.name()) => tracing::info!(%device, "a device rests {rest}"),
            (Some(_), None) => tracing::info!(%device, "a device goes on"),
            _ => {}
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::clock::Clock;
    use crate::hours::Hours;
    use crate::scheduler::run::health::Record;
    use crate::search::{Caps, DeviceId, Sensors};
    use std::fs;
    use std::path::Path;

    fn write(sys: &Path, file: &str, value: &str) {
        let file = sys.join(file);
        fs::create_dir_all(file.parent().unwrap()).unwrap();
        fs::write(file, format!("{value}\n")).unwrap();
    }

    /// A processor with the sensors below this folder.
    fn record(sys: &Path) -> Arc<Record> {
        let record = Record::new(&crate::scheduler::tests::device(DeviceId::Cpu));
        record.lock().sensors = Sensors::below(sys, DeviceId::Cpu);
        Arc::new(record)
    }

    #[test]
    fn a_laptop_rests_for_heat_on_its_battery_and_outside_the_hours() {
        let (sys, clock) = (tempfile::tempdir().unwrap(), Clock::at(23 * 3600));
        let temperature = |value| write(sys.path(), "class/hwmon/hwmon0/temp1_input", value);
        let supply = |online, status| {
            write(sys.path(), "class/power_supply/AC/online", online);
            write(sys.path(), "class/power_supply/BAT0/status", status);
        };
        write(sys.path(), "class/hwmon/hwmon0/name", "k10temp");
        write(sys.path(), "class/power_supply/BAT0/type", "Battery");
        temperature("60000");
        supply("1", "Charging");
        let record = record(sys.path());
        let restraints = Restraints {
            hours: Some(Hours::parse("22:00-07:00", "UTC").unwrap()),
            pause_on_battery: true,
            caps: Caps { celsius: Some(80.0), ..Caps::default() },
            ..Restraints::default()
        };
        let surroundings = Arc::new(Surroundings::below(sys.path(), clock.clone()));
        let watch = Watch::new(&restraints, surroundings, &record).unwrap();
        let said = || {
            watch.look(&record);
            record.view().rest.map(|rest| rest.to_string())
        };
        assert_eq!(said(), None);
        temperature("81000");
        assert_eq!(said().as_deref(), Some("at 81 °C until 75 °C"));
        temperature("76000");
        assert_eq!(said().as_deref(), Some("at 76 °C until 75 °C"));
        temperature("74000");
        assert_eq!(said(), None);
        supply("0", "Discharging");
        assert_eq!(said().as_deref(), Some("while on battery"));
        supply("1", "Charging");
        assert!(said().is_some(), "for a minute");
        clock.set(23 * 3600 + 60);
        assert_eq!(said(), None);
        clock.set(7 * 3600 + 86_400);
        assert_eq!(said().as_deref(), Some("until 22:00 UTC (schedule)"));
    }

    #[test]
    fn a_missing_thermometer_is_said_and_nothing_to_watch_has_no_watch() {
        let sys = tempfile::tempdir().unwrap();
        let surroundings = Arc::new(Surroundings::below(sys.path(), Clock::at(1)));
        let (record, caps) = (record(sys.path()), Caps { celsius: Some(80.0), ..Caps::default() });
        let restraints = Restraints { caps, ..Restraints::default() };
        assert!(Watch::new(&restraints, Arc::clone(&surroundings), &record).is_some());
        assert!(record.view().warnings[0].contains("cannot be read"), "{:?}", record.view());
        assert!(Watch::new(&Restraints::default(), surroundings, &record).is_none());
    }
}
