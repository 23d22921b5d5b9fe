//! The search: from public start points to tweaks. Nothing in this room knows a job or a secret.
//!
//! A [`Searcher`] is one device. It takes a [`Launch`] (start points and patterns), tests a stretch
//! of candidates around each start point, and reports every tweak whose npub may match. Launches
//! are memoryless: each brings fresh start points and is independent of the one before. The
//! mathematics is in `docs/developers/search.md`.

mod calibration;
mod conditions;
pub mod cpu;
pub mod cuda;
mod device;
mod error;
mod nvml;
mod open;
mod options;
pub mod orders;
mod os;
mod restraints;
mod searcher;
mod sensors;

pub use calibration::{Calibration, Calibrations, Choice, MAX_CALIBRATIONS};
pub use device::{DeviceId, DeviceInfo, MAX_DEVICES, NoName, RemoteId, WorkerName};
pub use error::SearchError;
pub use open::open;
pub use options::{DeviceChoice, KernelStore, Preference, SearchOptions};
pub use restraints::{Caps, Restraints, Surroundings};
pub use searcher::{ClaimedHit, Launch, LaunchReport, Remaining, Searcher};
pub use sensors::{SensorValues, Sensors};
