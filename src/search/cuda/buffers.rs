//! The buffers a searcher keeps on its GPU, readable for tests that look for secrets there (S3).

use cudarc::driver::sys::CUdeviceptr;
use cudarc::driver::{CudaContext, CudaSlice, DriverError, PinnedHostSlice, ValidAsZeroBits, result};
use std::sync::Arc;

/// Memory of a device, or pinned memory of the host that the device reads or writes.
pub struct Buffer<'a> {
    pub name: &'static str,
    memory: Memory<'a>,
}

enum Memory<'a> {
    Device { context: &'a Arc<CudaContext>, start: CUdeviceptr, bytes: usize },
    Pinned(&'a [u8]),
}

impl<'a> Buffer<'a> {
    /// A buffer in device memory. Copies do not wait for streams: the caller makes sure that
    /// nothing runs.
    pub fn on_device<T>(name: &'static str, slice: &'a CudaSlice<T>) -> Buffer<'a> {
        let (start, _) = cudarc::driver::DevicePtr::device_ptr(slice, slice.stream());
        Buffer { name, memory: Memory::Device { context: slice.context(), start, bytes: slice.num_bytes() } }
    }

    /// A pinned buffer of the host. Waits for copies from and to it. `T` has no padding.
    pub(super) fn pinned<T: ValidAsZeroBits>(
        name: &'static str,
        slice: &'a PinnedHostSlice<T>,
    ) -> Result<Buffer<'a>, DriverError> {
        let start = slice.as_ptr()?.cast::<u8>();
        // SAFETY: the allocation has this many bytes and is borrowed for as long; plain numbers in
        // C layout have no padding (`abi.rs`). Bytes never written are what the driver left there:
        // tests look for just that.
        let bytes = unsafe { std::slice::from_raw_parts(start, slice.num_bytes()) };
        Ok(Buffer { name, memory: Memory::Pinned(bytes) })
    }

    pub fn bytes(&self) -> usize {
        match self.memory {
            Memory::Device { bytes, .. } => bytes,
            Memory::Pinned(bytes) => bytes.len(),
        }
    }

    pub fn is_on_device(&self) -> bool {
        matches!(self.memory, Memory::Device { .. })
    }

    /// Copies the bytes from `at` on to `into`.
    pub fn read(&self, at: usize, into: &mut [u8]) -> Result<(), DriverError> {
        assert!(at.checked_add(into.len()).is_some_and(|end| end <= self.bytes()), "beyond the end of {}", self.name);
        match self.memory {
            Memory::Device { context, start, .. } => {
                context.bind_to_thread()?;
                // SAFETY: inside an allocation that is borrowed. The copy ends before this returns.
                unsafe { result::memcpy_dtoh_sync(into, start + at as u64) }
            }
            Memory::Pinned(bytes) => {
                into.copy_from_slice(&bytes[at..at + into.len()]);
                Ok(())
            }
        }
    }

    /// Writes to device memory, for tests that check that a scan finds it.
    pub fn plant(&self, at: usize, from: &[u8]) -> Result<(), DriverError> {
        assert!(at.checked_add(from.len()).is_some_and(|end| end <= self.bytes()), "beyond the end of {}", self.name);
        let Memory::Device { context, start, .. } = self.memory else { panic!("{} is not on a device", self.name) };
        context.bind_to_thread()?;
        // SAFETY: inside an allocation that is borrowed, of plain numbers that may have any bits.
        // For small copies from pageable memory the call may return before they have arrived, so
        // that the device is waited for.
        unsafe { result::memcpy_htod_sync(start + at as u64, from) }?;
        context.synchronize()
    }
}
