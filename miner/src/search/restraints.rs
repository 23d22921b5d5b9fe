//! The operator's settings for when devices rest, and limits on their use.

use super::device::DeviceId;
use crate::hours::Hours;
use std::collections::BTreeMap;

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
}
