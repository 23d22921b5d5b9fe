//! The search on NVIDIA GPUs. (Under construction.)

use super::{SearchError, Searcher};

/// How many GPUs there are: 1 or more, or why none can be used.
pub fn device_count() -> Result<usize, String> {
    Err("the CUDA search is not built yet".to_owned())
}

/// Opens GPU number `ordinal`.
pub fn open(ordinal: usize) -> Result<Box<dyn Searcher>, SearchError> {
    Err(SearchError::NoSuchDevice {
        asked: format!("cuda:{ordinal}"),
        reason: "the CUDA search is not built yet".to_owned(),
    })
}
