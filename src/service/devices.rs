//! Descriptions of the devices, for the operator.

use crate::control::DeviceStatus;
use crate::pattern::Rate;
use crate::scheduler::{DeviceView, Health};

/// A device, as `npubbot status` shows it.
pub(super) fn status_of(device: &DeviceView, is_paused: bool) -> DeviceStatus {
    DeviceStatus {
        id: device.id.to_string(),
        name: device.name.clone(),
        rate: device.rate.filter(|_| device.health == Health::Working).map(|Rate(rate)| rate),
        state: state_of(device, is_paused),
    }
}

/// The state of a device in words.
pub(super) fn state_of(device: &DeviceView, is_paused: bool) -> String {
    match (&device.health, &device.rest) {
        (Health::Out(reason), _) => format!("out: {reason}"),
        (Health::Working, _) if is_paused => "paused".to_owned(),
        (Health::Working, Some(rest)) => format!("rests {rest}"),
        (Health::Working, None) => "working".to_owned(),
    }
}
