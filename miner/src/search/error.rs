//! Errors of the search.

use super::device::DeviceId;
use thiserror::Error;

/// Reason why a device cannot search.
#[derive(Debug, Error)]
pub enum SearchError {
    /// The text names no device that we know.
    #[error("`{asked}` is no device; say `cpu`, `cuda`, `cuda:N` or `all`")]
    UnknownDevice {
        /// The text as given.
        asked: String,
    },
    /// The text names no preference.
    #[error("`{asked}` is no preference; say `rate` or `energy`")]
    UnknownPreference {
        /// The text as given.
        asked: String,
    },
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
    /// The launch has too many or too few start points.
    #[error("the launch has {given} start points where {wanted} are wanted")]
    WrongStartCount {
        /// Start points of the launch.
        given: usize,
        /// Start points that a launch must have: [`super::Searcher::starts`].
        wanted: usize,
    },
    /// No launch is in flight.
    #[error("nothing was submitted that could be collected")]
    NothingSubmitted,
}
