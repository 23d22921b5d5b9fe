//! The thread that watches time, power supply and temperatures, and makes devices rest.

use super::health::Record;
use super::pool::Pool;
use crate::hours::Hours;
use crate::roster::Roster;
use crate::scheduler::plan::rest::{Conditions, RestRule};
use crate::search::{DeviceId, PowerCap, Restraints, Surroundings};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::thread::JoinHandle;
use std::time::Duration;

/// The name of the thread.
const NAME: &str = "watch";
/// Time between two checks.
const LOOK: Duration = Duration::from_millis(500);

/// The watch over all devices.
pub(in crate::scheduler) struct Watch {
    surroundings: Arc<Surroundings>,
    hours: Option<Hours>,
    devices: Mutex<Vec<Watched>>,
    /// The power caps. Dropping them ends the caps.
    _power_caps: Vec<PowerCap>,
}

struct Watched {
    id: DeviceId,
    rule: RestRule,
    needs_temperature: bool,
    record: Arc<Record>,
}

impl Watch {
    /// The watch over devices with these records; `None` if there is nothing to watch. Caps the
    /// power of GPUs.
    pub fn new(restraints: &Restraints, surroundings: Arc<Surroundings>, records: &[Arc<Record>]) -> Option<Watch> {
        if restraints.need_no_watch() {
            return None;
        }
        let mut power_caps = Vec::new();
        let mut watch = |record: &Arc<Record>| {
            let id = record.view().id;
            let caps = restraints.caps_of(id);
            if let Some(watts) = caps.watts.filter(|_| id != DeviceId::Cpu) {
                match surroundings.cap_power(id, watts) {
                    Ok(cap) => {
                        tracing::info!(device = %id, watts, "the power of a GPU is capped");
                        power_caps.push(cap);
                    }
                    Err(reason) => record.warn(format!("its power is not capped at {watts:.0} W: {reason}")),
                }
            }
            if caps.celsius.is_some() && surroundings.celsius(id).is_none() {
                record.warn("its temperature cannot be read, so it does not pause for heat".to_owned());
            }
            let rule = RestRule::new(restraints.hours.clone(), restraints.pause_on_battery, caps.celsius);
            Watched { id, rule, needs_temperature: caps.celsius.is_some(), record: Arc::clone(record) }
        };
        let devices = records.iter().map(&mut watch).collect();
        let (hours, devices) = (restraints.hours.clone(), Mutex::new(devices));
        let watch = Watch { surroundings, hours, devices, _power_caps: power_caps };
        watch.look();
        Some(watch)
    }

    /// Adds an attached device to the watch, so that it rests outside the hours. Its own machine
    /// watches power supply and temperature.
    pub fn add_attached(&self, record: &Arc<Record>) {
        let rule = RestRule::new(self.hours.clone(), false, None);
        let id = record.view().id;
        self.lock().push(Watched { id, rule, needs_temperature: false, record: Arc::clone(record) });
        self.look();
    }

    /// Starts a thread that checks until the pool closes.
    pub fn spawn(self: Arc<Watch>, pool: Arc<Pool>, roster: Roster) -> JoinHandle<()> {
        let look = move || {
            roster.keep_thread(
                NAME,
                || pool.is_closed(),
                || {
                    while !pool.wait_for_end(LOOK) {
                        roster.check(NAME);
                        self.look();
                    }
                },
            );
        };
        std::thread::Builder::new().name(NAME.to_owned()).spawn(look).expect("the system starts threads")
    }

    /// Checks once, and makes devices rest or go on.
    pub fn look(&self) {
        let (now, on_battery) = (self.surroundings.now(), self.surroundings.is_on_battery());
        for device in self.lock().iter_mut() {
            let celsius = device.needs_temperature.then(|| self.surroundings.celsius(device.id)).flatten();
            let rest = device.rule.decide(Conditions { now, on_battery, celsius });
            let before = device.record.set_rest(rest.clone(), device.rule.part());
            match (before.map(|rest| rest.name()), rest) {
                (before, Some(rest)) if before != Some(rest.name()) => {
                    tracing::info!(device = %device.id, "a device rests {rest}");
                }
                (Some(_), None) => tracing::info!(device = %device.id, "a device goes on"),
                _ => {}
            }
        }
    }

    fn lock(&self) -> MutexGuard<'_, Vec<Watched>> {
        self.devices.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::clock::Clock;
    use crate::search::{Caps, DeviceInfo, RemoteId};
    use std::fs;
    use std::path::Path;

    fn write(sys: &Path, file: &str, value: &str) {
        let file = sys.join(file);
        fs::create_dir_all(file.parent().unwrap()).unwrap();
        fs::write(file, format!("{value}\n")).unwrap();
    }

    fn record() -> Arc<Record> {
        let (name, kernel) = ("test".to_owned(), "test".to_owned());
        Arc::new(Record::new(&DeviceInfo { id: DeviceId::Cpu, name, kernel, threads: 1 }))
    }

    #[test]
    fn a_laptop_rests_for_heat_on_its_battery_and_outside_the_hours() {
        let (sys, clock, record) = (tempfile::tempdir().unwrap(), Clock::at(23 * 3600), record());
        let temperature = |value| write(sys.path(), "class/hwmon/hwmon0/temp1_input", value);
        let supply = |online, status| {
            write(sys.path(), "class/power_supply/AC/online", online);
            write(sys.path(), "class/power_supply/BAT0/status", status);
        };
        write(sys.path(), "class/hwmon/hwmon0/name", "k10temp");
        write(sys.path(), "class/power_supply/BAT0/type", "Battery");
        temperature("60000");
        supply("1", "Charging");
        let restraints = Restraints {
            hours: Some(Hours::parse("22:00-07:00", "UTC").unwrap()),
            pause_on_battery: true,
            caps: Caps { celsius: Some(80.0), ..Caps::default() },
            ..Restraints::default()
        };
        let surroundings = Arc::new(Surroundings::below(sys.path(), clock.clone()));
        let watch = Watch::new(&restraints, surroundings, std::slice::from_ref(&record)).unwrap();
        let said = || {
            watch.look();
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
    fn an_attached_device_keeps_the_hours_and_not_the_battery_or_the_heat_of_this_machine() {
        let (sys, clock) = (tempfile::tempdir().unwrap(), Clock::at(23 * 3600));
        write(sys.path(), "class/power_supply/BAT0/type", "Battery");
        write(sys.path(), "class/power_supply/BAT0/status", "Discharging");
        let restraints = Restraints {
            hours: Some(Hours::parse("22:00-07:00", "UTC").unwrap()),
            pause_on_battery: true,
            caps: Caps { share: Some(0.5), celsius: Some(30.0), watts: None },
            ..Restraints::default()
        };
        let surroundings = Arc::new(Surroundings::below(sys.path(), clock.clone()));
        let local = record();
        let watch = Watch::new(&restraints, surroundings, std::slice::from_ref(&local)).unwrap();
        let (name, kernel) = ("test".to_owned(), "test".to_owned());
        let id = DeviceId::Remote(RemoteId { worker: "ann".parse().unwrap(), device: 0 });
        let remote = Arc::new(Record::new(&DeviceInfo { id, name, kernel, threads: 1 }));
        watch.add_attached(&remote);
        assert!(local.is_resting() && !remote.is_resting());
        assert_eq!((remote.part(), remote.share(), remote.view().warnings), (1.0, 1.0, Vec::new()));
        clock.set(7 * 3600 + 86_400);
        watch.look();
        assert_eq!(remote.view().rest.map(|rest| rest.name()), Some("hours"));
    }

    #[test]
    fn a_missing_thermometer_is_said_and_nothing_to_watch_has_no_watch() {
        let sys = tempfile::tempdir().unwrap();
        let surroundings = Arc::new(Surroundings::below(sys.path(), Clock::at(1)));
        let (record, caps) = (record(), Caps { celsius: Some(80.0), ..Caps::default() });
        let restraints = Restraints { caps, ..Restraints::default() };
        let watch = Watch::new(&restraints, Arc::clone(&surroundings), std::slice::from_ref(&record));
        assert!(watch.is_some() && record.view().warnings[0].contains("cannot be read"), "{:?}", record.view());
        assert!(Watch::new(&Restraints::default(), surroundings, &[]).is_none());
    }
}
