//! The search on the processor. (Under construction.)

use super::{DeviceId, DeviceInfo, Launch, LaunchReport, SearchError, Searcher};

/// Which CPU kernel to use.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub enum KernelChoice {
    /// The fastest this processor has.
    #[default]
    Auto,
    Ifma,
    Avx2,
    Portable,
}

pub struct CpuSearcher {
    info: DeviceInfo,
}

impl CpuSearcher {
    pub fn open(threads: Option<usize>, _kernel: KernelChoice) -> Result<CpuSearcher, SearchError> {
        let info = DeviceInfo {
            id: DeviceId::Cpu,
            name: "?".into(),
            kernel: "portable".into(),
            threads: threads.unwrap_or(1),
        };
        Ok(CpuSearcher { info })
    }
}

impl Searcher for CpuSearcher {
    fn info(&self) -> &DeviceInfo {
        &self.info
    }
    fn bases(&self) -> usize {
        self.info.threads
    }
    fn in_flight(&self) -> usize {
        1
    }
    fn submit(&mut self, _launch: Launch) -> Result<(), SearchError> {
        Err(SearchError::NothingSubmitted)
    }
    fn collect(&mut self) -> Result<LaunchReport, SearchError> {
        Err(SearchError::NothingSubmitted)
    }
}
