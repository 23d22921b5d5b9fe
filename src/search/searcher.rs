//! The trait of all devices, and the values it exchanges.

use super::device::DeviceInfo;
use super::error::SearchError;
use crate::key::{StartPoint, Tweak};
use crate::pattern::PatternSet;
use std::sync::Arc;
use std::time::Duration;

/// One kernel run.
#[derive(Clone, Debug)]
pub struct Launch {
    /// [`Searcher::starts`] points. Each is searched over its own stretch.
    pub starts: Vec<StartPoint>,
    /// The patterns every candidate is tested against. Not empty.
    pub patterns: Arc<PatternSet>,
    /// The patterns of the early stop; `None` to search for all of them to the end. A device may
    /// ignore it.
    pub remaining: Option<Remaining>,
}

/// Patterns still searched at a start point after the early stop: once it has enough hits of the
/// launch's other patterns.
#[derive(Clone, Debug)]
pub struct Remaining {
    /// A part of the launch's patterns.
    pub patterns: Arc<PatternSet>,
    /// Whether the search goes on for these. If not, the start point is done.
    pub is_wanted: bool,
}

/// The result of a launch, as the device claims it.
#[derive(Clone, Debug, Default)]
pub struct LaunchReport {
    /// Distinct npubs tested, each against every pattern.
    pub candidates: u64,
    /// Every candidate of the launch that matches a pattern is among these.
    pub hits: Vec<ClaimedHit>,
    /// Time the device itself was busy.
    pub busy: Duration,
    /// Whether it ended before its time because of the hits found ([`Launch::remaining`]).
    pub is_cut_short: bool,
}

/// A tweak that matches a pattern of the launch, as the device claims.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub struct ClaimedHit {
    /// Index of the start point in [`Launch::starts`].
    pub start: usize,
    /// The tweak.
    pub tweak: Tweak,
}

/// One device. Launches come back in the order they were submitted.
pub trait Searcher: Send {
    /// Name, kernel and threads.
    fn info(&self) -> &DeviceInfo;

    /// Start points of a launch.
    fn starts(&self) -> usize;

    /// Launches to keep submitted so that the device never waits for its host: 1 or more.
    fn in_flight(&self) -> usize;

    /// Whether it stops early at start points with hits ([`Launch::remaining`]).
    fn early_stop(&self) -> bool {
        false
    }

    /// Starts a launch, or queues it behind the ones before it. Returns before the search ends
    /// where the device allows.
    fn submit(&mut self, launch: Launch) -> Result<(), SearchError>;

    /// Waits, sleeping, for the oldest launch submitted and not yet collected.
    fn collect(&mut self) -> Result<LaunchReport, SearchError>;
}
