//! A searcher whose buffers a test can read between its launches (S3).

use super::buffers::Buffer;
use super::driver::reason;
use super::searcher::CudaSearcher;
use crate::search::{DeviceInfo, Launch, LaunchReport, SearchError, SearchOptions, Searcher};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

/// Opens a searcher like [`super::open`], with a window through which a test reads its buffers
/// between launches.
pub fn open(ordinal: usize) -> Result<(Watched, Window), SearchError> {
    let searcher = super::searcher(ordinal, &SearchOptions::default())?;
    let info = searcher.info().clone();
    let shared = Arc::new(Mutex::new(searcher));
    Ok((Watched { info, searcher: Arc::clone(&shared) }, Window(shared)))
}

/// A searcher that forwards every call to the one inside.
pub struct Watched {
    info: DeviceInfo,
    searcher: Arc<Mutex<CudaSearcher>>,
}

/// Keeps the searcher, and with it the buffers, alive.
pub struct Window(Arc<Mutex<CudaSearcher>>);

fn lock(searcher: &Mutex<CudaSearcher>) -> MutexGuard<'_, CudaSearcher> {
    searcher.lock().unwrap_or_else(PoisonError::into_inner)
}

impl Searcher for Watched {
    fn info(&self) -> &DeviceInfo {
        &self.info
    }

    fn starts(&self) -> usize {
        lock(&self.searcher).starts()
    }

    fn in_flight(&self) -> usize {
        lock(&self.searcher).in_flight()
    }

    fn submit(&mut self, launch: Launch) -> Result<(), SearchError> {
        lock(&self.searcher).submit(launch)
    }

    fn collect(&mut self) -> Result<LaunchReport, SearchError> {
        lock(&self.searcher).collect()
    }
}

impl Window {
    /// Waits for the launches in flight, then calls `look` with every buffer. Nothing is launched
    /// until it returns.
    pub fn look<T>(&self, look: impl FnOnce(&[Buffer<'_>]) -> T) -> Result<T, String> {
        let searcher = lock(&self.0);
        let buffers = searcher.buffers().map_err(reason)?;
        Ok(look(&buffers))
    }
}
