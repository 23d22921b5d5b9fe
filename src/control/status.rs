//! The state of a running bot, for `npubbot status` and `npubbot jobs`.

use serde::{Deserialize, Serialize};

/// The state of a running bot. It has totals only, and names no asker and no pattern.
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize)]
pub struct Status {
    /// Version of the program.
    pub version: String,
    /// The bot's address.
    pub npub: String,
    /// Seconds since the bot was ready.
    pub uptime_seconds: u64,
    /// Candidates a second of all working devices; `null` before the first measurement.
    pub rate: Option<f64>,
    /// Every device.
    pub devices: Vec<DeviceStatus>,
    /// The workers on other machines; absent without a server for them.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub fleet: Option<FleetStatus>,
    /// The bot's relays.
    pub relays: Vec<RelayStatus>,
    /// Accepted jobs that are searched for.
    pub open_jobs: u64,
    /// Messages that no relay of their receivers has yet.
    pub undelivered: u64,
    /// Heap bytes in use.
    pub memory_bytes: u64,
}

/// The state of a device.
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize)]
pub struct DeviceStatus {
    /// `cpu`, `cuda:0`, …
    pub id: String,
    /// The maker's name.
    pub name: String,
    /// Candidates a second; `null` before the first measurement, and while it is out.
    pub rate: Option<f64>,
    /// `working`, `paused` by the operator, `rests ` and until when or why, or `out: ` and the
    /// reason.
    pub state: String,
}

/// The state of a relay of the bot.
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize)]
pub struct RelayStatus {
    /// The URL of the relay.
    pub url: String,
    /// `connected` or `disconnected`.
    pub state: String,
}

/// The workers on other machines.
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize)]
pub struct FleetStatus {
    /// Address of their server.
    pub server: String,
    /// Whether the bot is connected to the server.
    pub connected: bool,
    /// The workers that have come since the start, by name.
    pub workers: Vec<WorkerStatus>,
}

/// The state of a worker.
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize)]
pub struct WorkerStatus {
    /// The worker's name.
    pub name: String,
    /// Whether one of its devices is connected and gets orders.
    pub connected: bool,
    /// Candidates a second that its canaries prove, of all connected devices; 0 before the first
    /// measurement.
    pub proven_rate: f64,
    /// Hits that verified, since the start.
    pub hits: u64,
    /// Hits that did not verify.
    pub hits_wrong: u64,
    /// Times since the start that the worker ignored its orders, failed or lied.
    pub errors: u64,
    /// `working`, `paused` by the operator, `rests ` and until when, `away: `, `gets no orders: `
    /// or `out: ` and the reason, or that it is started too often.
    pub state: String,
    /// The worker's devices.
    pub devices: Vec<WorkerDeviceStatus>,
}

/// The state of a worker's device. Name, kernel and version are as the worker says.
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize)]
pub struct WorkerDeviceStatus {
    /// `ann:0`, …
    pub id: String,
    /// The maker's name.
    pub name: String,
    /// The kernel that the device runs.
    pub kernel: String,
    /// Version of the worker's program.
    pub version: String,
    /// Whether the device is connected.
    pub connected: bool,
    /// As in [`WorkerStatus::proven_rate`].
    pub proven_rate: f64,
    /// As in [`WorkerStatus::hits`].
    pub hits: u64,
    /// As in [`WorkerStatus::hits_wrong`].
    pub hits_wrong: u64,
    /// As in [`WorkerStatus::errors`].
    pub errors: u64,
    /// Time of a message to the device and back, seconds; `null` before the first one and while the
    /// device is away.
    pub round_trip: Option<f64>,
    /// The device's clock minus the bot's, seconds, with an error of up to half the round trip;
    /// `null` whenever `round_trip` is.
    pub clock_ahead: Option<f64>,
    /// As in [`WorkerStatus::state`].
    pub state: String,
}

/// An open job.
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize)]
pub struct JobStatus {
    /// The job's number.
    pub job: i64,
    /// The npub of its asker.
    pub asker: String,
    /// The job's patterns.
    pub patterns: Vec<String>,
    /// `pool` or `split`.
    pub kind: String,
    /// When the job was accepted, Unix seconds.
    pub accepted_at: u64,
    /// When the job is given up, Unix seconds.
    pub expires_at: u64,
    /// Candidates per match, on average; `null` if it takes too long to compute.
    pub difficulty: Option<f64>,
    /// Mean seconds that the search would take with all devices to itself; `null` without a rate.
    pub expected_seconds: Option<f64>,
}

/// The work of one day, counted.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub struct DayStatus {
    /// The day (UTC): `2026-11-23`.
    pub date: String,
    /// Keys tested.
    pub candidates: u64,
    /// Jobs accepted.
    pub jobs_accepted: u64,
    /// Results delivered.
    pub jobs_delivered: u64,
}

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
