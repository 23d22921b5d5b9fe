//! [`Searcher`], the trait of all devices, and the values it exchanges.

use super::device::DeviceInfo;
use super::error::SearchError;
use super::sensors::Sensors;
use crate::key::{StartPoint, Tweak};
use crate::pattern::PatternSet;
use serde::{Deserialize, Serialize};
use std::sync::Arc;
use std::time::Duration;

/// One kernel run.
#[derive(Clone, Debug)]
pub struct Launch {
    /// The start points, as many as [`Searcher::starts`]. Each has its own stretch of candidates.
    pub starts: Vec<StartPoint>,
    /// The patterns every candidate is tested against. Not empty.
    pub patterns: Arc<PatternSet>,
    /// Patterns still searched after the early stop; `None` to search for all patterns to the end.
    /// A device may ignore it.
    pub remaining: Option<Remaining>,
}

/// The patterns that remain after the early stop: once a start point has enough hits of the
/// launch's other patterns, only these are still searched there.
#[derive(Clone, Debug)]
pub struct Remaining {
    /// A subset of the launch's patterns.
    pub patterns: Arc<PatternSet>,
    /// Whether to go on searching for these. If not, the start point is finished at the early stop.
    pub is_wanted: bool,
}

/// The claimed result of a launch.
#[derive(Clone, PartialEq, Debug, Default, Serialize, Deserialize)]
pub struct LaunchReport {
    /// Distinct npubs tested, each against every pattern.
    pub candidates: u64,
    /// The hits. They include every candidate of the launch that matches a pattern, and may include
    /// others within the intervals of the patterns ([`PatternSet::intervals`]).
    pub hits: Vec<ClaimedHit>,
    /// Time the device itself was busy.
    pub busy: Duration,
    /// Whether the early stop ended the launch before its full stretch ([`Launch::remaining`]).
    pub is_cut_short: bool,
}

/// A tweak whose npub, by the device's claim, is within the intervals of the launch's patterns.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug, Serialize, Deserialize)]
pub struct ClaimedHit {
    /// Index of the start point in [`Launch::starts`].
    pub start: usize,
    /// The tweak.
    pub tweak: Tweak,
}

/// A device that searches. Launches come back in the order in which they were submitted.
pub trait Searcher: Send {
    /// Name, kernel and threads.
    fn info(&self) -> &DeviceInfo;

    /// Start points per launch.
    fn starts(&self) -> usize;

    /// Launches to keep submitted so that the device never waits for the host: 1 or more.
    fn in_flight(&self) -> usize;

    /// The key of the device's rates among [`super::Calibrations`]; `None` if they are not kept.
    fn calibration_key(&self) -> Option<&str> {
        None
    }

    /// Whether the device has an early stop ([`Launch::remaining`]).
    fn early_stop(&self) -> bool {
        false
    }

    /// The sensors of the device.
    fn sensors(&self) -> Sensors {
        Sensors::of(self.info().id)
    }

    /// Fails if the device is gone. Called while no launch is in flight.
    fn check(&mut self) -> Result<(), SearchError> {
        Ok(())
    }

    /// Starts a launch, or queues it behind earlier ones. Returns before the search ends, if the
    /// device can do that.
    fn submit(&mut self, launch: Launch) -> Result<(), SearchError>;

    /// Waits for the oldest launch submitted and not yet collected. The thread sleeps meanwhile.
    fn collect(&mut self) -> Result<LaunchReport, SearchError>;
}
