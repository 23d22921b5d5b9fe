//! Running: one thread for each device, and one that verifies what the devices claim.

pub(in crate::scheduler) mod health;
pub(in crate::scheduler) mod measure;
pub(in crate::scheduler) mod open_devices;
pub(in crate::scheduler) mod verifier;
pub(in crate::scheduler) mod verify;
pub(in crate::scheduler) mod worker;
