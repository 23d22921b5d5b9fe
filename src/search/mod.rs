//! Trying candidates: from public points to tweaks. Nothing in this room knows a job or a secret.
//!
//! A [`Searcher`] is one device. It takes a [`Launch`] (start points and patterns), tests a fixed stretch of candidates
//! around each start point, and reports every tweak whose npub may match. Launches are memoryless: each brings fresh
//! start points, and nothing of one matters to the next. The mathematics is in `docs/developers/search.md`.

pub mod cpu;
pub mod cuda;
mod device;

pub use device::{DeviceChoice, DeviceId, DeviceInfo, SearchOptions, open};

use crate::key::{StartPoint, Tweak};
use crate::pattern::PatternSet;
use std::sync::Arc;
use std::time::Duration;
use thiserror::Error;

/// One kernel run.
#[derive(Clone, Debug)]
pub struct Launch {
    /// As many as [`Searcher::start points`] says. Each is searched over its own stretch.
    pub starts: Vec<StartPoint>,
    /// What every candidate is tested against. Not empty.
    pub patterns: Arc<PatternSet>,
    /// What is worth going on for at a start point that has found enough of the rest; `None`: everything, to the end. A device
    /// may search for more, and on.
    pub remaining: Option<Remaining>,
}

/// Those of a launch's patterns that a start point which has found others is still searched for.
#[derive(Clone, Debug)]
pub struct Remaining {
    pub patterns: Arc<PatternSet>,
    /// Whether the search goes on for their sake. If not, it ends where enough of the others was found.
    pub is_wanted: bool,
}

/// What a device says it did.
#[derive(Clone, Debug, Default)]
pub struct LaunchReport {
    /// Distinct npubs tested, each against every pattern.
    pub candidates: u64,
    /// Every candidate of the launch that matches a pattern is among these. The device's word, to be recomputed.
    pub hits: Vec<ClaimedHit>,
    /// How long the device itself was busy with it.
    pub busy: Duration,
    /// Whether it ended before its time, for what had been found ([`Launch::remaining`]).
    pub is_cut_short: bool,
}

/// A tweak that a device says matches a pattern of the launch.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub struct ClaimedHit {
    /// The place of the start point in [`Launch::start points`].
    pub start: usize,
    pub tweak: Tweak,
}

/// One device. Launches come back in the order they were submitted.
pub trait Searcher: Send {
    fn info(&self) -> &DeviceInfo;

    /// Start point points a launch takes.
    fn starts(&self) -> usize;

    /// Launches to keep submitted so that the device never waits for its host: 1 or more.
    fn in_flight(&self) -> usize;

    /// Whether it heeds [`Launch::remaining`].
    fn early_stop(&self) -> bool {
        false
    }

    /// Starts a launch, or queues it behind the ones before it. Returns before the search ends where the device allows.
    fn submit(&mut self, launch: Launch) -> Result<(), SearchError>;

    /// Waits, sleeping, for the oldest launch that was submitted and not yet collected.
    fn collect(&mut self) -> Result<LaunchReport, SearchError>;
}

/// Why a device cannot search.
#[derive(Debug, Error)]
pub enum SearchError {
    #[error("`{asked}` is no device; say `cpu`, `cuda`, `cuda:N` or `all`")]
    UnknownDevice { asked: String },
    #[error("there is no device {asked}: {reason}")]
    NoSuchDevice { asked: String, reason: String },
    #[error("this processor has no {asked}; use `--cpu-kernel auto`")]
    UnsupportedCpuKernel { asked: &'static str },
    #[error("device {device} failed: {reason}")]
    DeviceFailed { device: DeviceId, reason: String },
    #[error("the launch has {given} start points where {wanted} are wanted")]
    WrongStartCount { given: usize, wanted: usize },
    #[error("nothing was submitted that could be collected")]
    NothingSubmitted,
}
