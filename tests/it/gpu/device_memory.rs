//! The memory of a GPU, read and searched for secrets.

use crate::support::leaks::{Found, Pieces};
use cudarc::driver::sys::CUmemPool_attribute::{
    self, CU_MEMPOOL_ATTR_RELEASE_THRESHOLD, CU_MEMPOOL_ATTR_RESERVED_MEM_CURRENT, CU_MEMPOOL_ATTR_USED_MEM_CURRENT,
};
use cudarc::driver::sys::CUmemoryPool;
use cudarc::driver::{CudaContext, CudaSlice, CudaStream, PinnedHostSlice, result};
use npubbot::search::cuda::buffers::Buffer;
use std::sync::Arc;

/// Bytes read at once.
const CHUNK: usize = 256 << 20;
/// Bytes of device memory that stay free for the driver.
const LEFT_FREE: usize = 512 << 20;

/// Reads memory and searches it for the secrets.
pub struct Reader<'a> {
    pieces: &'a Pieces,
    chunk: PinnedHostSlice<u8>,
    pub bytes: usize,
    /// Bytes in words that are not zero, which shows that the memory was written.
    pub written: usize,
}

impl<'a> Reader<'a> {
    pub fn new(context: &Arc<CudaContext>, pieces: &'a Pieces) -> Reader<'a> {
        // SAFETY: the buffer is filled below before anybody reads it. Unlike the searcher's pinned
        // memory it is cached by the CPU, because it is read byte by byte.
        let mut chunk = unsafe { context.alloc_pinned_with_flags::<u8>(CHUNK, 0) }.unwrap();
        chunk.as_mut_slice().unwrap().fill(0);
        Reader { pieces, chunk, bytes: 0, written: 0 }
    }

    /// Every piece of a secret in `buffer`, with its position.
    pub fn look(&mut self, buffer: &Buffer<'_>) -> Vec<Found> {
        let mut found = Vec::new();
        // The last seven bytes of each chunk are read again with the next, so a piece across the
        // border is found.
        for start in (0..buffer.bytes()).step_by(CHUNK - 7) {
            let bytes = CHUNK.min(buffer.bytes() - start);
            let chunk = &mut self.chunk.as_mut_slice().unwrap()[..bytes];
            buffer.read(start, chunk).unwrap();
            let (here, written) = self.pieces.look_and_count(chunk);
            found.extend(here.into_iter().map(|one| Found { at: start + one.at, ..one }));
            self.written += written;
        }
        self.bytes += buffer.bytes();
        found
    }

    /// Describes what was read since the last call.
    pub fn account(&mut self) -> String {
        let (bytes, written) = (std::mem::take(&mut self.bytes), std::mem::take(&mut self.written));
        format!("{:.3} GB, of which {:.3} GB in words not zero", bytes as f64 / 1e9, written as f64 / 1e9)
    }
}

/// The memory pool of the device, from which all buffers are allocated.
pub struct DevicePool(CUmemoryPool);

impl DevicePool {
    /// Makes the pool keep memory that this process frees, so that it is neither cleared nor given
    /// to others. The driver must support memory pools.
    pub fn that_keeps(context: &CudaContext) -> DevicePool {
        let mut all = u64::MAX;
        // SAFETY: the device is that of a live context, and the attribute is a u64.
        unsafe {
            let pool = result::device::get_mem_pool(context.cu_device()).unwrap();
            result::mem_pool::set_attribute(pool, CU_MEMPOOL_ATTR_RELEASE_THRESHOLD, (&raw mut all).cast()).unwrap();
            DevicePool(pool)
        }
    }

    fn ask(&self, what: CUmemPool_attribute) -> usize {
        let mut bytes = 0u64;
        // SAFETY: the pool is the device's own, and both attributes are u64.
        unsafe { result::mem_pool::get_attribute(self.0, what, (&raw mut bytes).cast()) }.unwrap();
        bytes as usize
    }

    /// Freed bytes that the pool keeps.
    pub fn idle(&self) -> usize {
        self.ask(CU_MEMPOOL_ATTR_RESERVED_MEM_CURRENT).saturating_sub(self.ask(CU_MEMPOOL_ATTR_USED_MEM_CURRENT))
    }

    /// Returns freed memory to the driver.
    pub fn empty(&self) {
        // SAFETY: the pool is the device's own.
        unsafe { result::mem_pool::trim_to(self.0, 0) }.unwrap();
    }

    /// Allocates the freed memory, and with `all` also everything else that is free on the device,
    /// without clearing it.
    pub fn take(&self, stream: &Arc<CudaStream>, all: bool) -> Vec<CudaSlice<u8>> {
        let mut taken = Vec::new();
        for size in [1 << 30, 64 << 20, 2 << 20, 64 << 10] {
            loop {
                let idle = self.idle();
                let (free, _) = stream.context().mem_get_info().unwrap();
                let may_grow = all && free > size + LEFT_FREE;
                if idle < size && !may_grow {
                    break;
                }
                // SAFETY: the memory is only copied out byte by byte, for which any content is
                // valid.
                let Ok(slice) = (unsafe { stream.alloc::<u8>(size) }) else { break };
                taken.push(slice);
                // This allocation was new memory, because the freed memory is in smaller parts.
                if self.idle() >= idle && !may_grow {
                    break;
                }
            }
        }
        stream.synchronize().unwrap();
        taken
    }
}
