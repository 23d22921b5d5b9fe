//! Power of the devices between two readings, for the hourly line.

use crate::scheduler::DeviceEnergy;
use std::fmt;
use std::time::{Duration, Instant};

/// A reading of the devices' energy.
pub(super) struct EnergyReading {
    /// Time of the reading.
    pub at: Instant,
    /// The devices that told their energy.
    pub energy: Vec<DeviceEnergy>,
}

/// The power of the devices over some time, and what they did with it.
#[derive(Clone, Copy, PartialEq, Debug, Default)]
pub(super) struct Power {
    joules: f64,
    candidates: u64,
    time: Duration,
    /// Number of devices that told their energy. `devices` is the number of all devices.
    told: usize,
    devices: usize,
}

impl Power {
    /// The power between two readings, of `devices` devices. Without an earlier reading it is not
    /// known.
    pub fn between(before: Option<&EnergyReading>, now: &EnergyReading, devices: usize) -> Power {
        let Some(before) = before else { return Power { devices, ..Power::default() } };
        let time = now.at.saturating_duration_since(before.at);
        let mut power = Power { time, devices, ..Power::default() };
        for device in &now.energy {
            let Some(earlier) = before.energy.iter().find(|earlier| earlier.id == device.id) else { continue };
            power.joules += device.joules - earlier.joules;
            power.candidates += device.candidates.saturating_sub(earlier.candidates);
            power.told += 1;
        }
        power
    }

    /// Mean power of the devices that tell their energy, in watts.
    pub fn watts(self) -> Figure {
        self.figure(self.joules / self.time.as_secs_f64(), "")
    }

    /// Candidates that the same devices tested per joule, in millions.
    pub fn candidates_per_joule(self) -> Figure {
        let mut figure = self.figure(self.candidates as f64 / self.joules / 1e6, " M");
        figure.digits = 1;
        figure
    }

    fn figure(self, value: f64, unit: &'static str) -> Figure {
        let value = Some(value).filter(|value| self.told > 0 && value.is_finite());
        Figure { value, digits: 0, unit, told: self.told, devices: self.devices }
    }
}

/// A figure of the devices that tell their energy. Its text is `not known` if none does, and names
/// their number if only some do.
pub(super) struct Figure {
    value: Option<f64>,
    digits: usize,
    unit: &'static str,
    told: usize,
    devices: usize,
}

impl fmt::Display for Figure {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Some(value) = self.value else { return f.write_str("not known") };
        write!(f, "{value:.*}{}", self.digits, self.unit)?;
        if self.told < self.devices {
            write!(f, " ({} of {} devices)", self.told, self.devices)?;
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::search::DeviceId;

    fn reading(at: Instant, energy: &[(usize, f64, u64)]) -> EnergyReading {
        let energy = energy.iter().map(|&(gpu, joules, candidates)| {
            let id = DeviceId::Cuda(gpu);
            DeviceEnergy { id, joules, candidates }
        });
        EnergyReading { at, energy: energy.collect() }
    }

    #[test]
    fn power_is_that_of_the_devices_that_tell_it_since_the_reading_before() {
        let began = Instant::now();
        let before = reading(began, &[(0, 1e6, 1 << 40), (1, 50.0, 7)]);
        let hour_later = |energy: &[(usize, f64, u64)]| reading(began + Duration::from_secs(3600), energy);
        let told = |before: Option<&EnergyReading>, now: &EnergyReading, devices| {
            let power = Power::between(before, now, devices);
            [power.watts().to_string(), power.candidates_per_joule().to_string()]
        };
        // 600 and 400 W for an hour, 300 and 200 M candidates a joule.
        let (joules, others) = (600.0 * 3600.0, 400.0 * 3600.0);
        let first = (0, 1e6 + joules, (1 << 40) + (joules * 300e6) as u64);
        let second = (1, 50.0 + others, 7 + (others * 200e6) as u64);
        let both = hour_later(&[first, second]);
        assert_eq!(told(Some(&before), &both, 2), ["1000", "260.0 M"]);
        assert_eq!(told(Some(&before), &both, 3), ["1000 (2 of 3 devices)", "260.0 M (2 of 3 devices)"]);
        let one = hour_later(&[first]);
        assert_eq!(told(Some(&before), &one, 2), ["600 (1 of 2 devices)", "300.0 M (1 of 2 devices)"]);
        let idle = hour_later(&[(0, 1e6 + 3600.0, 1 << 40)]);
        assert_eq!(told(Some(&before), &idle, 1), ["1", "0.0 M"]);
        for (before, now) in [(None, &both), (Some(&before), &hour_later(&[])), (Some(&before), &before)] {
            assert_eq!(told(before, now, 2), ["not known"; 2]);
        }
    }
}
