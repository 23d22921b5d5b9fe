//! Opens one device. The scheduler decides which devices to open.

use super::device::DeviceId;
use super::error::SearchError;
use super::options::SearchOptions;
use super::searcher::Searcher;
use super::{cpu, cuda};

/// Opens one device. `options` say how the device searches; their choice of devices is ignored.
///
/// Errors: the device is missing, does not work, or lacks the kernel asked for.
pub fn open(device: DeviceId, options: &SearchOptions) -> Result<Box<dyn Searcher>, SearchError> {
    match device {
        DeviceId::Cpu => Ok(Box::new(cpu::CpuSearcher::open(options.threads, options.cpu_kernel)?)),
        DeviceId::Cuda(ordinal) => cuda::open(ordinal, options),
        // Workers connect to the bot; nobody opens them.
        DeviceId::Remote(_) => Err(SearchError::Misused("a worker's device is not opened here")),
    }
}
