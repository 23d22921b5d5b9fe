//! The state of a running bot in detail, for `npubbot top`.

use super::status::{JobStatus, Status};
use serde::{Deserialize, Serialize};

/// Everything that `npubbot top` shows.
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize)]
pub struct View {
    /// The state as `npubbot status` shows it.
    pub status: Status,
    /// Whether the operator paused the search.
    pub is_paused: bool,
    /// Keys tried since the start, on all devices.
    pub candidates: u64,
    /// Sensors of the devices, in the order of `status.devices`.
    pub sensors: Vec<SensorFigures>,
    /// Figures of the relays, in the order of `status.relays`.
    pub relays: Vec<RelayFigures>,
    /// The oldest open jobs, 100 at most.
    pub jobs: Vec<JobProgress>,
    /// Messages that wait for their answer.
    pub messages_waiting: u64,
    /// The last lines of the log, oldest first, 100 at most.
    pub events: Vec<String>,
}

/// Sensors of a device. `None` stands for a sensor that is missing or cannot be read.
#[derive(Clone, Copy, PartialEq, Debug, Default, Serialize, Deserialize)]
pub struct SensorFigures {
    /// Temperature in degrees Celsius.
    pub celsius: Option<f64>,
    /// Power in watts.
    pub watts: Option<f64>,
    /// Clock of the arithmetic units in MHz.
    pub megahertz: Option<f64>,
}

/// Connections to a relay since the start.
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize)]
pub struct RelayFigures {
    /// The URL of the relay.
    pub url: String,
    /// Attempts to connect that failed.
    pub failures: u64,
    /// Mean time to an answer; `null` without one.
    pub lag_milliseconds: Option<u64>,
}

/// An open job and its progress.
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize)]
pub struct JobProgress {
    /// The job.
    pub job: JobStatus,
    /// Seconds since the job was accepted.
    pub age_seconds: u64,
    /// The chance, 0 to 1, that a search ends within this age with the job's present share of the
    /// devices; `null` without a rate.
    pub chance_so_far: Option<f64>,
    /// Mean seconds from now until a key is found, with the job's present share of the devices.
    /// They do not depend on its age, because the search has no memory. `null` without a rate.
    pub seconds_left: Option<f64>,
}
