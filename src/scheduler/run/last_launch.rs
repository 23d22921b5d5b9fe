//! The last launch of a device, from which waiting times are estimated.

/// The last collected launch of a device.
#[derive(Clone, Copy, PartialEq, Debug)]
pub(in crate::scheduler) struct LastLaunch {
    /// Number of start points.
    pub starts: usize,
    /// Number of candidates tested.
    pub candidates: u64,
    /// Candidates that the device usually tests per start point.
    pub stretch: f64,
    /// Whether the device has an early stop ([`crate::search::Searcher::early_stop`]).
    pub early_stop: bool,
}
