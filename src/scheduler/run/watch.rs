//! The thread that watches time, power supply and temperatures, and makes devices rest.

use super::health::{DeviceStatus, Record};
use super::pool::Pool;
use crate::hours::Hours;
use crate::roster::Roster;
use crate::scheduler::plan::rest::{Conditions, RestRule};
use crate::search::{DeviceId, Restraints, Sensors, Surroundings};
use std::collections::HashMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::thread::JoinHandle;
use std::time::Duration;

/// The name of the thread.
const WATCH: &str = "watch";
/// Time between two checks.
const WATCH_EVERY: Duration = Duration::from_millis(500);

/// The watch over all devices.
pub struct Watch {
    surroundings: Arc<Surroundings>,
    hours: Option<Hours>,
    devices: Mutex<Vec<WatchedDevice>>,
}

struct WatchedDevice {
    id: DeviceId,
    rule: RestRule,
    needs_temperature: bool,
    record: Arc<Record>,
}

impl Watch {
    /// The watch over devices with these records; `None` if there is nothing to watch.
    pub fn new(restraints: &Restraints, surroundings: Arc<Surroundings>, records: &[Arc<Record>]) -> Option<Watch> {
        if restraints.need_no_watch() {
            return None;
        }
        let watch = |record: &Arc<Record>| {
            let id = record.view().id;
            let celsius = restraints.caps_of(id).celsius;
            if celsius.is_some() && !record.is_out() && record.sensors().read().celsius.is_none() {
                record.warn("its temperature cannot be read, so it does not pause for heat".to_owned());
            }
            let rule = RestRule::new(restraints.hours.clone(), restraints.pause_on_battery, celsius);
            WatchedDevice { id, rule, needs_temperature: celsius.is_some(), record: Arc::clone(record) }
        };
        let (hours, devices) = (restraints.hours.clone(), Mutex::new(records.iter().map(watch).collect()));
        let watch = Watch { surroundings, hours, devices };
        watch.look();
        Some(watch)
    }

    /// Adds an attached device to the watch, so that it rests outside the hours. Its own machine
    /// watches power supply and temperature.
    pub fn add_attached(&self, record: &Arc<Record>) {
        let rule = RestRule::new(self.hours.clone(), false, None);
        let id = record.view().id;
        self.lock().push(WatchedDevice { id, rule, needs_temperature: false, record: Arc::clone(record) });
        self.look();
    }

    /// Starts a thread that checks until the pool closes.
    pub fn spawn(self: Arc<Watch>, pool: Arc<Pool>, roster: Roster) -> JoinHandle<()> {
        let look = move || {
            roster.keep_thread(
                WATCH,
                || pool.is_closed(),
                || {
                    while !pool.wait_for_end(WATCH_EVERY) {
                        roster.check(WATCH);
                        self.look();
                    }
                },
            );
        };
        std::thread::Builder::new().name(WATCH.to_owned()).spawn(look).expect("the system starts threads")
    }

    /// Checks once, and makes devices rest or go on.
    pub fn look(&self) {
        let (now, on_battery) = (self.surroundings.now(), self.surroundings.is_on_battery());
        for device in self.lock().iter_mut() {
            let celsius = device.needs_temperature.then(|| device.record.sensors().read().celsius).flatten();
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

    fn lock(&self) -> MutexGuard<'_, Vec<WatchedDevice>> {
        self.devices.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Energy that one device has used and candidates that it has tested, since its first reading.
#[derive(Clone, Copy, PartialEq, Debug)]
pub struct DeviceEnergy {
    /// The device.
    pub id: DeviceId,
    /// Energy, in joules.
    pub joules: f64,
    /// Candidates tested.
    pub candidates: u64,
}

/// The energy counters of the devices.
#[derive(Default)]
pub struct EnergyMeters(Mutex<HashMap<DeviceId, DeviceMeter>>);

struct DeviceMeter {
    /// Joules since the first reading.
    joules: f64,
    /// The last value of the counter. It begins again with a device that is opened again.
    counter: f64,
    /// Candidates of the device at the first reading.
    candidates: u64,
}

impl EnergyMeters {
    /// Reads the energy of those of these devices that have a readable counter.
    pub fn read(&self, devices: &[(DeviceStatus, Sensors)]) -> Vec<DeviceEnergy> {
        let mut meters = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let mut read = |(device, sensors): &(DeviceStatus, Sensors)| {
            let (id, candidates, counter) = (device.id, device.candidates, sensors.joules()?);
            let meter = meters.entry(id).or_insert(DeviceMeter { joules: 0.0, counter, candidates });
            meter.joules += if counter < meter.counter { counter } else { counter - meter.counter };
            meter.counter = counter;
            Some(DeviceEnergy { id, joules: meter.joules, candidates: candidates.saturating_sub(meter.candidates) })
        };
        devices.iter().filter_map(&mut read).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::clock::Clock;
    use crate::scheduler::run::health::Record;
    use crate::search::{Caps, RemoteId, SensorValues};
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
        record.set_sensors(Sensors::below(sys, DeviceId::Cpu));
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
        let local = record(sys.path());
        let watch = Watch::new(&restraints, surroundings, std::slice::from_ref(&local)).unwrap();
        let id = DeviceId::Remote(RemoteId { worker: "ann".parse().unwrap(), device: 0 });
        let remote = Arc::new(Record::new(&crate::scheduler::tests::device(id)));
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
        let (record, caps) = (record(sys.path()), Caps { celsius: Some(80.0), ..Caps::default() });
        let restraints = Restraints { caps, ..Restraints::default() };
        let watch = Watch::new(&restraints, Arc::clone(&surroundings), std::slice::from_ref(&record));
        assert!(watch.is_some() && record.view().warnings[0].contains("cannot be read"), "{:?}", record.view());
        assert!(Watch::new(&Restraints::default(), surroundings, &[]).is_none());
    }

    #[test]
    fn devices_with_a_counter_tell_their_energy_and_what_they_did_with_it() {
        let sensors = Sensors::unknown();
        let counter = |joules| sensors.tell(SensorValues::default(), joules);
        let (with, without) =
            [DeviceId::Cpu, DeviceId::Cuda(0)].map(|id| Record::new(&crate::scheduler::tests::device(id))).into();
        with.set_sensors(sensors.clone());
        let meters = EnergyMeters::default();
        let read = |candidates| {
            let status = |record: &Record| (DeviceStatus { candidates, ..record.view() }, record.sensors());
            meters.read(&[status(&with), status(&without)])
        };
        let told = |joules, candidates| vec![DeviceEnergy { id: DeviceId::Cpu, joules, candidates }];
        counter(Some(100.0));
        assert_eq!(read(5_000), told(0.0, 0));
        counter(None);
        assert_eq!(read(6_000), []);
        counter(Some(400.0));
        assert_eq!(read(8_000), told(300.0, 3_000));
        // A device that is opened again has a counter that begins at zero.
        counter(Some(0.0));
        assert_eq!(read(8_000), told(300.0, 3_000));
        counter(Some(50.0));
        assert_eq!(read(9_000), told(350.0, 4_000));
    }
}
