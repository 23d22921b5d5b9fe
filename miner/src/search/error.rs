//! Errors of the search.

use super::device::DeviceId;
use thiserror::Error;

/// Reason why a device cannot search.
#[derive(Debug, Error)]
pub enum SearchError {
    /// This machine lacks the device, or cannot use it.
    #[error("there is no device {asked}: {reason}")]
    NoSuchDevice {
        /// The device asked for.
        asked: String,
        /// The reason why the device cannot be used.
        reason: String,
    },
    /// This processor cannot run the kernel.
    #[error("this processor has no {asked}; use `--cpu-kernel auto`")]
    UnsupportedCpuKernel {
        /// The instructions that the processor lacks.
        asked: &'static str,
    },
    /// The device stopped working.
    #[error("device {device} failed: {reason}")]
    DeviceFailed {
        /// The device.
        device: DeviceId,
        /// The error of the device or its driver.
        reason: String,
    },
    /// The device sent a message that no honest device sends. It gets no more work.
    #[error("{device} is not to be trusted: {reason}")]
    Distrusted {
        /// The device.
        device: DeviceId,
        /// The reason, for the operator.
        reason: String,
    },
    /// The caller's mistake: too many or too few start points, or nothing is in flight.
    #[error("{0}")]
    Misused(&'static str),
}

impl SearchError {
    /// A launch has not as many start points as [`super::Searcher::starts`].
    pub const START_COUNT: SearchError = SearchError::Misused("the launch has another number of start points");
    /// No launch is in flight.
    pub const NOTHING_SUBMITTED: SearchError = SearchError::Misused("nothing was submitted that could be collected");
}
