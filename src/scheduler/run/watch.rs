//! The thread that watches time, power supply and temperatures, and makes devices rest.

use super::health::{DeviceStatus, Record};
use super::pool::Pool;
use crate::hours::Hours;
use crate::roster::Roster;
use crate::scheduler::plan::rest::{Conditions, RestRule};
use crate::search::{DeviceId, EnergyTotal, PowerCap, Restraints, Surroundings};
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
    /// The power caps. Dropping them ends the caps.
    _power_caps: Vec<PowerCap>,
}

struct WatchedDevice {
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
            WatchedDevice { id, rule, needs_temperature: caps.celsius.is_some(), record: Arc::clone(record) }
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

    fn lock(&self) -> MutexGuard<'_, Vec<WatchedDevice>> {
        self.devices.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Energy that one device has used and candidates that it has tested, since its first reading.
#[derive(Clone, Copy, PartialEq, Debug)]
pub struct DeviceEnergy {
    /// The device.
    pub id: DeviceId,
    /// Energy, in joules. The energy of a processor includes all programs that run on it.
    pub joules: f64,
    /// Candidates tested.
    pub candidates: u64,
}

/// Reads the energy of one device, in joules since it was opened; `None` if it cannot be read now.
type ReadJoules = Box<dyn FnMut() -> Option<f64> + Send>;

/// Opens the counter of a device; `None` if it has none.
type OpenMeter = fn(DeviceId) -> Option<ReadJoules>;

/// The energy counters of the devices. Each is opened at its first reading, because opening takes a
/// while and a search of half a second should not wait for it.
pub struct EnergyMeters {
    open: OpenMeter,
    meters: Mutex<HashMap<DeviceId, Option<DeviceMeter>>>,
}

struct DeviceMeter {
    read: ReadJoules,
    /// Candidates of the device when its counter was opened.
    candidates: u64,
}

impl Default for EnergyMeters {
    fn default() -> EnergyMeters {
        EnergyMeters::with(|id| {
            let mut total = EnergyTotal::from_now(id)?;
            Some(Box::new(move || total.joules()))
        })
    }
}

impl EnergyMeters {
    /// Counters that are opened with `open`.
    fn with(open: OpenMeter) -> EnergyMeters {
        EnergyMeters { open, meters: Mutex::default() }
    }

    /// Reads the energy of those of these devices that have a readable counter.
    pub fn read(&self, devices: &[DeviceStatus]) -> Vec<DeviceEnergy> {
        let mut meters = self.meters.lock().unwrap_or_else(PoisonError::into_inner);
        let mut read = |device: &DeviceStatus| {
            let (id, candidates) = (device.id, device.candidates);
            let open = || (self.open)(id).map(|read| DeviceMeter { read, candidates });
            let meter = meters.entry(id).or_insert_with(open).as_mut()?;
            let joules = (meter.read)()?;
            Some(DeviceEnergy { id, joules, candidates: candidates.saturating_sub(meter.candidates) })
        };
        devices.iter().filter_map(&mut read).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::clock::Clock;
    use crate::scheduler::run::health::Record;
    use crate::search::{Caps, RemoteId};
    use std::fs;
    use std::path::Path;

    fn write(sys: &Path, file: &str, value: &str) {
        let file = sys.join(file);
        fs::create_dir_all(file.parent().unwrap()).unwrap();
        fs::write(file, format!("{value}\n")).unwrap();
    }

    fn record() -> Arc<Record> {
        Arc::new(Record::new(&crate::scheduler::tests::device(DeviceId::Cpu)))
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
        let (record, caps) = (record(), Caps { celsius: Some(80.0), ..Caps::default() });
        let restraints = Restraints { caps, ..Restraints::default() };
        let watch = Watch::new(&restraints, Arc::clone(&surroundings), std::slice::from_ref(&record));
        assert!(watch.is_some() && record.view().warnings[0].contains("cannot be read"), "{:?}", record.view());
        assert!(Watch::new(&Restraints::default(), surroundings, &[]).is_none());
    }

    /// A device with these candidates.
    fn device(id: DeviceId, candidates: u64) -> DeviceStatus {
        let view = Record::new(&crate::scheduler::tests::device(id)).view();
        DeviceStatus { candidates, ..view }
    }

    #[test]
    fn devices_with_a_counter_tell_their_energy_and_what_they_did_with_it() {
        // The first GPU uses 100 J from one reading to the next, and its second reading fails. The
        // second GPU has no counter.
        let meters = EnergyMeters::with(|id| {
            let mut readings = 0;
            let read = move || {
                readings += 1;
                (readings != 2).then_some(100.0 * f64::from(readings))
            };
            (id == DeviceId::Cuda(0)).then(|| Box::new(read) as ReadJoules)
        });
        let read = |candidates| {
            meters.read(&[device(DeviceId::Cuda(0), candidates), device(DeviceId::Cuda(1), 2 * candidates)])
        };
        let told = |joules, candidates| vec![DeviceEnergy { id: DeviceId::Cuda(0), joules, candidates }];
        assert_eq!(read(5_000), told(100.0, 0));
        assert_eq!(read(6_000), []);
        assert_eq!(read(8_000), told(300.0, 3_000));
    }
}
