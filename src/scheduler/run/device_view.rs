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
    /// The kernel that the device runs.
    pub kernel: String,
    /// Threads that search.
    pub threads: usize,
    /// Whether the device is in use.
    pub health: Health,
    /// Candidates per second by wall time, host included. `None` before the first measurement.
    pub rate: Option<Rate>,
    /// Candidates tested since the start.
    pub candidates: u64,
    /// Hits that verified, since the start, including those of canaries.
    pub hits: u64,
    /// Wrong hits since the device was opened.
    pub hits_wrong: u64,
    /// Why the working device rests; `None` if it does not rest.
    pub rest: Option<Rest>,
    /// The share of its time in which the device can search: the configured share, reduced by
    /// pauses for heat.
    pub part: f64,
    /// Texts for the operator: settings that cannot be applied, and why the device was last
    /// distrusted.
    pub warnings: Vec<String>,
}
