//! The buffers that a searcher keeps on its GPU, and a searcher whose buffers a test can read between
//! its launches, to look for secrets (S3).

use super::driver::reason;
use super::searcher::CudaSearcher;
use crate::search::{DeviceInfo, Launch, LaunchReport, SearchError, SearchOptions, Searcher};
use cudarc::driver::sys::CUdeviceptr;
use cudarc::driver::{CudaContext, CudaSlice, DriverError, PinnedHostSlice, ValidAsZeroBits, result};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

/// Device memory, or pinned host memory that the device reads or writes.
pub struct Buffer<'a> {
    pub name: &'static str,
    memory: BufferMemory<'a>,
}

enum BufferMemory<'a> {
    Device { context: &'a Arc<CudaContext>, start: CUdeviceptr, bytes: usize },
    Pinned(&'a [u8]),
}

impl<'a> Buffer<'a> {
    /// A buffer in device memory. Copies do not wait for streams: the caller makes sure that no
    /// kernel is running.
    pub fn on_device<T>(name: &'static str, slice: &'a CudaSlice<T>) -> Buffer<'a> {
        let (start, _) = cudarc::driver::DevicePtr::device_ptr(slice, slice.stream());
        Buffer { name, memory: BufferMemory::Device { context: slice.context(), start, bytes: slice.num_bytes() } }
    }

    /// A pinned buffer of the host. Waits for copies from and to it. `T` must have no padding.
    pub(super) fn pinned<T: ValidAsZeroBits>(
        name: &'static str,
        slice: &'a PinnedHostSlice<T>,
    ) -> Result<Buffer<'a>, DriverError> {
        let start = slice.as_ptr()?.cast::<u8>();
        // SAFETY: the allocation has this many bytes and stays borrowed as long as the slice. Plain
        // numbers in C layout have no padding (`abi.rs`). Bytes that we never wrote hold whatever
        // the driver left there, which tests want to see.
        let bytes = unsafe { std::slice::from_raw_parts(start, slice.num_bytes()) };
        Ok(Buffer { name, memory: BufferMemory::Pinned(bytes) })
    }

    pub fn bytes(&self) -> usize {
        match self.memory {
            BufferMemory::Device { bytes, .. } => bytes,
            BufferMemory::Pinned(bytes) => bytes.len(),
        }
    }

    pub fn is_on_device(&self) -> bool {
        matches!(self.memory, BufferMemory::Device { .. })
    }

    /// Copies bytes from the buffer, starting at `at`, into `into`.
    pub fn read(&self, at: usize, into: &mut [u8]) -> Result<(), DriverError> {
        assert!(at.checked_add(into.len()).is_some_and(|end| end <= self.bytes()), "beyond the end of {}", self.name);
        match self.memory {
            BufferMemory::Device { context, start, .. } => {
                context.bind_to_thread()?;
                // SAFETY: the range is inside a borrowed allocation. The copy ends before this
                // returns.
                unsafe { result::memcpy_dtoh_sync(into, start + at as u64) }
            }
            BufferMemory::Pinned(bytes) => {
                into.copy_from_slice(&bytes[at..at + into.len()]);
                Ok(())
            }
        }
    }

    /// Writes to device memory, so that a test can check that its scan finds the bytes.
    pub fn plant(&self, at: usize, from: &[u8]) -> Result<(), DriverError> {
        assert!(at.checked_add(from.len()).is_some_and(|end| end <= self.bytes()), "beyond the end of {}", self.name);
        let BufferMemory::Device { context, start, .. } = self.memory else {
            panic!("{} is not on a device", self.name)
        };
        context.bind_to_thread()?;
        // SAFETY: the range is inside a borrowed allocation of plain numbers, for which all bits
        // are valid. A small copy from pageable memory may return before the bytes have arrived, so
        // we wait for the device.
        unsafe { result::memcpy_htod_sync(start + at as u64, from) }?;
        context.synchronize()
    }
}

/// Opens a searcher like [`super::open`] (S3), with a window through which a test reads its buffers
/// between launches.
pub fn open_watched(ordinal: usize) -> Result<(WatchedSearcher, BufferWindow), SearchError> {
    let searcher = super::searcher(ordinal, &SearchOptions::default())?;
    let info = searcher.info().clone();
    let shared = Arc::new(Mutex::new(searcher));
    Ok((WatchedSearcher { info, searcher: Arc::clone(&shared) }, BufferWindow(shared)))
}

/// A searcher that forwards every call to the one inside.
pub struct WatchedSearcher {
    info: DeviceInfo,
    searcher: Arc<Mutex<CudaSearcher>>,
}

/// Keeps the searcher, and with it the buffers, alive.
pub struct BufferWindow(Arc<Mutex<CudaSearcher>>);

fn lock(searcher: &Mutex<CudaSearcher>) -> MutexGuard<'_, CudaSearcher> {
    searcher.lock().unwrap_or_else(PoisonError::into_inner)
}

impl Searcher for WatchedSearcher {
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

impl BufferWindow {
    /// Waits for the launches in flight, then calls `look` with every buffer. Nothing is launched
    /// until it returns.
    pub fn look<T>(&self, look: impl FnOnce(&[Buffer<'_>]) -> T) -> Result<T, String> {
        let searcher = lock(&self.0);
        let buffers = searcher.buffers().map_err(reason)?;
        Ok(look(&buffers))
    }
}
