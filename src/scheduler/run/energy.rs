//! Energy that the devices of this machine use.

use super::health::DeviceView;
use crate::search::{DeviceId, EnergyTotal};
use std::collections::HashMap;
use std::sync::{Mutex, PoisonError};

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
pub(in crate::scheduler) struct EnergyMeters {
    open: OpenMeter,
    meters: Mutex<HashMap<DeviceId, Option<Meter>>>,
}

struct Meter {
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
    pub fn read(&self, devices: &[DeviceView]) -> Vec<DeviceEnergy> {
        let mut meters = self.meters.lock().unwrap_or_else(PoisonError::into_inner);
        let mut read = |device: &DeviceView| {
            let (id, candidates) = (device.id, device.candidates);
            let open = || (self.open)(id).map(|read| Meter { read, candidates });
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
    use crate::scheduler::run::health::Record;
    use crate::search::DeviceInfo;

    /// A device with these candidates.
    fn device(id: DeviceId, candidates: u64) -> DeviceView {
        let (name, kernel) = ("test".to_owned(), "test".to_owned());
        let view = Record::new(&DeviceInfo { id, name, kernel, threads: 1 }).view();
        DeviceView { candidates, ..view }
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
