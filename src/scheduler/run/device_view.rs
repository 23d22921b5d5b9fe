//! The state of a device, for status displays.

use crate::pattern::Rate;
use crate::scheduler::plan::rest::Rest;
use crate::search::DeviceId;

/// Whether a device is in use.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum Health {
    /// The device is in use.
    Working,
    /// The device was taken out of use for this reason. It is tried again later.
    Out(String),
}

/// The state of a device, for status displays.
#[derive(Clone, Debug)]
pub struct DeviceView {
    /// The name npubbot uses.
    pub id: DeviceId,
    /// The maker's name.
    pub name: String,
    /// The kernel that it runs.
    pub kernel: String,
    /// Threads that search.
    pub threads: usize,
    /// Whether it is in use.
    pub health: Health,
    /// Candidates per second by wall time, host included. `None` before the first measurement.
    pub rate: Option<Rate>,
    /// Candidates tested since the start.
    pub candidates: u64,
    /// Hits that verified, since the start. Those of canaries count.
    pub hits: u64,
    /// Wrong hits since the device was opened; of a worker's, since the start.
    pub hits_wrong: u64,
    /// Why it rests though it works; `None` if it does not.
    pub rest: Option<Rest>,
    /// The part of its time that it has for the search: its share, and what heat leaves of it.
    pub part: f64,
    /// Restraints that cannot be kept, and the last time it was not believed, in words for the
    /// operator.
    pub warnings: Vec<String>,
}
