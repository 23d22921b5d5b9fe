//! The buffers of launches in flight.

use super::abi::{Counters, Point, Suspect};
use super::buffers::Buffer;
use super::geometry::{CENTRES, GROUP, Geometry};
use cudarc::driver::sys::CUevent_flags;
use cudarc::driver::{CudaEvent, CudaSlice, CudaStream, DriverError, PinnedHostSlice};
use std::sync::Arc;

/// Hits copied together with the counters. If there are more, a second copy fetches them.
pub const FIRST_HITS: usize = 4096;

/// The most hits that one launch may have, and the least number of suspects that a buffer has room
/// for. The smallest launch (one group of entries per thread) must fit even if every candidate is a
/// hit.
pub fn most_hits(geometry: &Geometry) -> usize {
    (18 * GROUP as usize * geometry.most_threads() as usize).max(FIRST_HITS)
}

/// The number of suspects that a buffer has room for: `least`, and as many as fit into `more`
/// further bytes, at most eight times `least` in all. With 100,000 patterns one candidate in 440 is
/// a suspect, and a launch of five centres has six times the least number. A launch that has more
/// suspects than fit is cut short, and shorter launches are slower.
fn suspects_that_fit(more: usize, least: usize) -> usize {
    (least + more / size_of::<Suspect>()).min(8 * least)
}

fn centres(geometry: &Geometry) -> usize {
    geometry.most_threads() as usize * CENTRES as usize
}

/// Buffers that launches use one after the other: one launch fills them and recomputes its suspects
/// before the next one begins, because both are on one stream.
pub struct Shared {
    pub centres: CudaSlice<Point>,
    pub suspects: CudaSlice<Suspect>,
}

impl Shared {
    /// Bytes of the buffers if they have room for the least number of suspects.
    pub fn least_bytes(geometry: &Geometry) -> usize {
        centres(geometry) * size_of::<Point>() + most_hits(geometry) * size_of::<Suspect>()
    }

    /// Allocates the buffers. `more` bytes beyond the least may be used for suspects.
    pub fn new(stream: &Arc<CudaStream>, geometry: &Geometry, more: usize) -> Result<Shared, DriverError> {
        let suspects = suspects_that_fit(more, most_hits(geometry));
        // SAFETY: a launch writes suspects before it reads them.
        let suspects = unsafe { stream.alloc(suspects)? };
        Ok(Shared { centres: stream.alloc_zeros(centres(geometry))?, suspects })
    }

    /// All buffers, which are on the device.
    pub fn buffers(&self) -> Vec<Buffer<'_>> {
        let Shared { centres, suspects } = self;
        vec![Buffer::on_device("centres", centres), Buffer::on_device("suspects", suspects)]
    }
}

/// The buffers that one launch in flight has to itself.
pub struct Slot {
    pub starts: CudaSlice<Point>,
    pub hits: CudaSlice<Suspect>,
    pub counters: CudaSlice<Counters>,
    pub staging: PinnedHostSlice<Point>,
    pub read_counters: PinnedHostSlice<Counters>,
    pub read_hits: PinnedHostSlice<Suspect>,
    pub started: CudaEvent,
    pub finished: CudaEvent,
}

impl Slot {
    /// Allocates the buffers.
    pub fn new(stream: &Arc<CudaStream>, geometry: &Geometry) -> Result<Slot, DriverError> {
        let context = stream.context();
        let event = || context.new_event(Some(CUevent_flags::CU_EVENT_BLOCKING_SYNC));
        // SAFETY: the pinned buffers are written before they are read.
        unsafe {
            Ok(Slot {
                starts: stream.alloc_zeros(geometry.starts() as usize)?,
                hits: stream.alloc_zeros(most_hits(geometry))?,
                counters: stream.alloc_zeros(1)?,
                staging: context.alloc_pinned(geometry.starts() as usize)?,
                read_counters: context.alloc_pinned(1)?,
                read_hits: context.alloc_pinned(FIRST_HITS)?,
                started: event()?,
                finished: event()?,
            })
        }
    }

    /// All buffers on the device and pinned on the host.
    pub fn buffers(&self) -> Result<Vec<Buffer<'_>>, DriverError> {
        let Slot { starts, hits, counters, staging, read_counters, read_hits, started: _, finished: _ } = self;
        Ok(vec![
            Buffer::on_device("start points", starts),
            Buffer::on_device("hits", hits),
            Buffer::on_device("counters", counters),
            Buffer::pinned("staged start points", staging)?,
            Buffer::pinned("counters read", read_counters)?,
            Buffer::pinned("hits read", read_hits)?,
        ])
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn suspects_take_the_memory_that_is_left_up_to_eight_times_the_least() {
        assert_eq!(suspects_that_fit(0, 100), 100);
        assert_eq!(suspects_that_fit(15, 100), 100);
        assert_eq!(suspects_that_fit(16 * 50, 100), 150);
        assert_eq!(suspects_that_fit(16 * 700, 100), 800);
        assert_eq!(suspects_that_fit(usize::MAX / 2, 100), 800);
    }
}
