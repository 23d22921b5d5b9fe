//! The searcher of one GPU: its tables, the launches in flight, and their results.

mod calibrate;

use super::abi::{Counters, Point, Search, Suspect};
use super::constants::{CENTRE_CONSTANTS, WARPS};
use super::driver::reason;
use super::filter::DeviceFilter;
use super::geometry::{
    CENTRES, Extent, FIELD_BYTES, GROUP, Geometry, KEPT_ALONE, STEP, TABLE, memory_left, multiple, prefixes_that_fit,
    threads_per_start,
};
use super::launch::{Variant, WholeKeyKernels, available, claim, confirm, named, search_top_words};
use super::module::Kernels;
use super::pace::{Aim, LaunchPace, Method};
use super::tables::SearchTables;
use crate::pattern::PatternSet;
use crate::search::device::{DeviceId, DeviceInfo};
use crate::search::error::SearchError;
use crate::search::nvml::{Gpu, PowerCap};
use crate::search::options::SearchOptions;
use crate::search::searcher::{Launch, LaunchReport, Searcher};
use calibrate::calibration_key;
use cudarc::driver::sys::{CUdevice_attribute, CUevent_flags};
use cudarc::driver::{CudaContext, CudaEvent, CudaSlice, CudaStream, DevicePtr, DriverError, PinnedHostSlice};
use std::collections::VecDeque;
use std::sync::Arc;
use std::time::Duration;

const IN_FLIGHT: usize = 2;

/// The most hits of a launch that are reported. A pattern of every second key has millions, of which
/// a few become keys.
const MAX_REPORTED_HITS: usize = 1 << 18;

struct PendingLaunch {
    slot: usize,
    launch: Launch,
    extent: Extent,
    method: Method,
    /// Warps of its blocks.
    warps: u32,
    /// Whether the extent is that of a whole launch.
    is_whole: bool,
}

pub struct CudaSearcher {
    info: DeviceInfo,
    calibration_key: String,
    stream: Arc<CudaStream>,
    /// A second stream. It fetches hits while the next launch runs.
    side: Arc<CudaStream>,
    kernels: Kernels,
    variant: Variant,
    geometry: Geometry,
    aim: Aim,
    tables: SearchTables,
    whole_keys: WholeKeyKernels,
    constants: CudaSlice<u8>,
    step: Point,
    prefixes: CudaSlice<u8>,
    /// Prefix products per thread that fit into `prefixes`.
    kept: u32,
    /// The most table entries at a centre, where top words are compared. With more, the search is
    /// no faster on this GPU.
    entries: u32,
    /// Bytes of device memory that prefix products may take.
    room: usize,
    filter: DeviceFilter,
    shared: SharedBuffers,
    slots: Vec<LaunchBuffers>,
    pending: VecDeque<PendingLaunch>,
    next_slot: usize,
    /// The pace of each [`Method`], in their order.
    paces: [LaunchPace; 3],
    power_cap: Option<PowerCap>,
    #[cfg(feature = "test-util")]
    trap: Option<super::trap::Trap>,
}

impl CudaSearcher {
    /// Opens a GPU. It is measured unless `options` have the choice of an earlier start for this
    /// GPU, driver, kernels and memory.
    pub fn open(
        ordinal: usize,
        context: Arc<CudaContext>,
        options: &SearchOptions,
    ) -> Result<CudaSearcher, SearchError> {
        let id = DeviceId::Cuda(ordinal);
        let failed = |reason: String| SearchError::DeviceFailed { device: id, reason };
        let kernels = Kernels::load(&context, options.kernels.as_deref()).map_err(failed)?;
        let text = |error: DriverError| failed(reason(error));
        let count = context.attribute(CUdevice_attribute::CU_DEVICE_ATTRIBUTE_MULTIPROCESSOR_COUNT).map_err(text)?;
        let geometry = Geometry { multiprocessors: count as u32 };
        let key = calibration_key(&context, &kernels.compiler, options).map_err(text)?;
        let kept = options.calibrations.get(&key).and_then(|calibration| calibration.choice);
        let chosen = kept.as_ref().and_then(|kept| named(&kernels.module, count as u32, &kept.variant));
        let variants = match &chosen {
            Some(variant) => vec![variant.clone()],
            None => available(&kernels.module, geometry.multiprocessors, options.shared_memory).map_err(failed)?,
        };
        let aim = Aim::of_gpu(|attribute| context.attribute(attribute), options.polite).map_err(text)?;
        let first = variants[0].clone();
        let mut searcher =
            CudaSearcher::with_tables(id, &context, kernels, geometry, first, aim, options).map_err(text)?;
        searcher.calibration_key = key;
        #[cfg(feature = "test-util")]
        {
            searcher.trap = super::trap::Trap::of_environment(ordinal, &searcher.stream).map_err(text)?;
        }
        match kept.filter(|kept| chosen.is_some() && kept.prefixes.abs_diff(searcher.kept) <= kept.prefixes / 8) {
            Some(kept) => searcher.adopt(&kept)?,
            None => {
                let all = match chosen {
                    None => variants,
                    // The choice was made with another amount of free memory.
                    Some(_) => {
                        available(&searcher.kernels.module, count as u32, options.shared_memory).map_err(failed)?
                    }
                };
                let measured = searcher.calibrate(&all, options.prefer)?;
                options.calibrations.change(&searcher.calibration_key, |kept| kept.choice = Some(measured));
            }
        }
        Ok(searcher)
    }

    fn with_tables(
        id: DeviceId,
        context: &Arc<CudaContext>,
        kernels: Kernels,
        geometry: Geometry,
        variant: Variant,
        aim: Aim,
        options: &SearchOptions,
    ) -> Result<CudaSearcher, DriverError> {
        let (free, _) = context.mem_get_info()?;
        let stream = context.new_stream()?;
        let (major, minor) = context.compute_capability()?;
        let tables = SearchTables::new(&stream, &kernels.module)?;
        let whole_keys = WholeKeyKernels::new(&kernels.module, geometry.multiprocessors, options.shared_memory)?;
        let threads = geometry.most_threads() as usize;
        let filter = DeviceFilter::new(&stream)?;
        let constants = stream.alloc_zeros(threads * CENTRE_CONSTANTS as usize * FIELD_BYTES)?;
        let slots: Vec<LaunchBuffers> =
            (0..IN_FLIGHT).map(|_| LaunchBuffers::new(&stream, &geometry)).collect::<Result<_, _>>()?;
        stream.synchronize()?;
        let (now_free, _) = context.mem_get_info()?;
        let least = SharedBuffers::least_bytes(&geometry);
        let room = memory_left(free, now_free.saturating_sub(least), options.gpu_memory);
        let kept = prefixes_that_fit(room, threads);
        let prefix_bytes = threads * kept as usize * FIELD_BYTES;
        // Memory that is left for any variant that `calibrate` may choose.
        let left = room.saturating_sub(threads * kept.max(KEPT_ALONE) as usize * FIELD_BYTES);
        let shared = SharedBuffers::new(&stream, &geometry, left)?;
        let taken = (free.saturating_sub(now_free) + least + prefix_bytes) as u64;
        if let Some(limit) = options.gpu_memory.filter(|&limit| taken > limit) {
            tracing::warn!(device = %id, limit, taken, "every search on this GPU takes more memory than it may have");
        }
        Ok(CudaSearcher {
            info: DeviceInfo {
                id,
                name: context.name()?,
                kernel: format!("cuda sm_{major}{minor} ({})", kernels.compiler),
                threads: 1,
                warning: None,
            },
            calibration_key: String::new(),
            side: context.new_stream()?,
            tables,
            whole_keys,
            constants,
            step: multiple(STEP),
            // SAFETY: a launch writes every prefix product before it reads it.
            prefixes: unsafe { stream.alloc(prefix_bytes)? },
            kept,
            entries: TABLE,
            room,
            filter,
            shared,
            slots,
            pending: VecDeque::new(),
            next_slot: 0,
            // Until they are calibrated, launches are as short as possible.
            paces: std::array::from_fn(|_| LaunchPace::new(aim, kept.min(TABLE), 0.0, 1.0)),
            power_cap: None,
            #[cfg(feature = "test-util")]
            trap: None,
            kernels,
            variant,
            geometry,
            aim,
            stream,
        })
    }

    /// Caps the power of the GPU, watts, for as long as this value lives. If that fails, the device's
    /// description has a warning.
    pub fn cap_power(&mut self, ordinal: usize, watts: f64) {
        let gpu = super::pci_bus_id(ordinal).and_then(|id| Gpu::open(&id));
        match PowerCap::new(gpu, ordinal, watts) {
            Ok(cap) => {
                tracing::info!(device = %self.info.id, watts, "the power of a GPU is capped");
                self.power_cap = Some(cap);
            }
            Err(reason) => self.info.warning = Some(format!("its power is not capped at {watts:.0} W: {reason}")),
        }
    }

    /// The method by which the current patterns are searched.
    fn method(&self) -> Method {
        match self.filter.screen {
            _ if !self.filter.compares_whole_keys() => Method::TopWords,
            Some(_) => Method::Screen,
            None => Method::Texts,
        }
    }

    /// Warps of a block in a launch for the current patterns.
    fn warps(&self) -> u32 {
        if self.filter.compares_whole_keys() { WARPS } else { self.variant.warps }
    }

    /// Table entries at a centre, where top words are compared.
    fn table_entries(&self) -> u32 {
        (self.kept * self.variant.group).min(self.entries)
    }

    /// Queues the change of the filter to these patterns.
    fn choose(&mut self, patterns: &Arc<PatternSet>) -> Result<(), DriverError> {
        self.filter.set(&self.stream, &self.kernels.build_filter, patterns, &self.variant)
    }

    fn failed(&self) -> impl Fn(DriverError) -> SearchError + use<> {
        let device = self.info.id;
        move |error| SearchError::DeviceFailed { device, reason: reason(error) }
    }

    /// Queues a launch for the current patterns.
    fn start(&mut self, slot: usize, launch: &Launch, extent: Extent) -> Result<(), DriverError> {
        let warps = self.warps();
        let stream = &self.stream;
        let at = &mut self.slots[slot];
        for (to, start) in at.staging.as_mut_slice()?.iter_mut().zip(&launch.starts) {
            *to = Point::of(start);
        }
        stream.memcpy_htod(at.staging.as_slice()?, &mut at.starts)?;
        stream.memset_zeros(&mut at.counters)?;
        let (first_top, top_width) = self.filter.single.unwrap_or_default();
        let search = Search {
            start_points: at.starts.device_ptr(stream).0,
            stretches: self.tables.stretches.device_ptr(stream).0,
            table: self.tables.entries.device_ptr(stream).0,
            matrices: self.tables.matrices.device_ptr(stream).0,
            groups: self.tables.groups.device_ptr(stream).0,
            constants: self.constants.device_ptr(stream).0,
            prefixes: self.prefixes.device_ptr(stream).0,
            centres: self.shared.centres.device_ptr(stream).0,
            suspects: self.shared.suspects.device_ptr(stream).0,
            hits: at.hits.device_ptr(stream).0,
            counters: at.counters.device_ptr(stream).0,
            coarse: self.filter.coarse.device_ptr(stream).0,
            fine: self.filter.fine.device_ptr(stream).0,
            intervals: self.filter.intervals.device_ptr(stream).0,
            interval_count: self.filter.count as u32,
            first_top,
            top_width,
            entries: extent.entries,
            steps: extent.steps,
            threads_per_start: threads_per_start(warps),
            suspect_capacity: self.shared.suspects.len() as u32,
            hit_capacity: at.hits.len() as u32,
            step: self.step,
        };
        at.started.record(stream)?;
        let whole = self.filter.whole_search(stream);
        if self.filter.compares_whole_keys() {
            self.whole_keys.search(stream, &self.tables, &search, self.filter.screen.as_ref(), &whole)?;
        } else {
            search_top_words(stream, self.variant.kernel(self.filter.form()), &search)?;
        }
        let checks = self.filter.checks(stream);
        confirm(stream, &self.kernels.confirm, &search, &self.geometry, warps, self.kept, (&checks, &whole))?;
        stream.memcpy_dtoh(&at.counters, at.read_counters.as_mut_slice()?)?;
        stream.memcpy_dtoh(&at.hits.slice(..FIRST_HITS), at.read_hits.as_mut_slice()?)?;
        at.finished.record(stream)
    }

    /// Waits for the launch in a slot. Returns its counters, hits and duration.
    fn finish(&mut self, slot: usize) -> Result<(Counters, Vec<Suspect>, Duration), DriverError> {
        let at = &mut self.slots[slot];
        at.finished.synchronize()?;
        let busy = Duration::from_secs_f32(at.started.elapsed_ms(&at.finished)?.max(0.0) / 1000.0);
        let counters = at.read_counters.as_slice()?[0];
        let count = (counters.hits as usize).min(at.hits.len()).min(MAX_REPORTED_HITS);
        let hits = if count <= FIRST_HITS {
            at.read_hits.as_slice()?[..count].to_vec()
        } else {
            self.side.clone_dtoh(&at.hits.slice(..count))?
        };
        Ok((counters, hits, busy))
    }
}

impl Searcher for CudaSearcher {
    fn info(&self) -> &DeviceInfo {
        &self.info
    }

    fn starts(&self) -> usize {
        self.geometry.starts() as usize
    }

    fn in_flight(&self) -> usize {
        IN_FLIGHT
    }

    fn calibration_key(&self) -> Option<&str> {
        Some(&self.calibration_key)
    }

    fn submit(&mut self, launch: Launch) -> Result<(), SearchError> {
        if launch.starts.len() != self.starts() {
            return Err(SearchError::START_COUNT);
        }
        if self.pending.len() == IN_FLIGHT {
            return Err(SearchError::Misused("as many launches as it takes are in flight already"));
        }
        #[cfg(feature = "test-util")]
        if let Some(trap) = &mut self.trap {
            trap.count_launch(&self.stream)
                .map_err(|error| SearchError::DeviceFailed { device: self.info.id, reason: reason(error) })?;
        }
        let slot = self.next_slot;
        self.choose(&launch.patterns).map_err(self.failed())?;
        let method = self.method();
        let whole = self.paces[method as usize].extent(&launch.patterns);
        let extent = whole.part(self.filter.share);
        self.start(slot, &launch, extent).map_err(self.failed())?;
        let (warps, is_whole) = (self.warps(), extent == whole);
        self.pending.push_back(PendingLaunch { slot, launch, extent, method, warps, is_whole });
        self.next_slot = (slot + 1) % IN_FLIGHT;
        Ok(())
    }

    fn collect(&mut self) -> Result<LaunchReport, SearchError> {
        let pending = self.pending.pop_front().ok_or(SearchError::NOTHING_SUBMITTED)?;
        let PendingLaunch { slot, launch, mut extent, method, warps, mut is_whole } = pending;
        let mut all_busy = Duration::ZERO;
        loop {
            let (counters, hits, busy) = self.finish(slot).map_err(self.failed())?;
            all_busy += busy;
            let at = &self.slots[slot];
            let excess = (f64::from(counters.suspects) / self.shared.suspects.len() as f64)
                .max(f64::from(counters.hits) / at.hits.len() as f64);
            if excess <= 1.0 {
                if is_whole {
                    self.paces[method as usize].learn(&launch.patterns, extent, busy);
                }
                let skipped = u64::from(counters.skipped) * u64::from(extent.entries);
                let tested =
                    u64::from(self.geometry.threads(warps)) * u64::from(extent.steps) * u64::from(extent.entries);
                // Candidates count as far as their hits are reported.
                let share = hits.len() as f64 / f64::from(counters.hits.max(1));
                let is_cut_short = hits.len() < counters.hits as usize;
                let candidates = 18 * tested.saturating_sub(skipped);
                return Ok(LaunchReport {
                    candidates: if is_cut_short { (candidates as f64 * share) as u64 } else { candidates },
                    hits: hits.iter().map(|hit| claim(hit, warps)).collect(),
                    busy: all_busy,
                    is_cut_short,
                });
            }
            // More hits than the buffers hold. Search the start of the same stretch again, as much
            // of it as fits.
            let longest = self.paces[method as usize].extent(&launch.patterns);
            let fewer = Extent::of_entries(extent.total() / excess * 0.7, longest.entries);
            tracing::debug!(device = %self.info.id, ?counters, ?extent, ?fewer, "too many hits; searching a part");
            (extent, is_whole) = (fewer, false);
            self.choose(&launch.patterns).map_err(self.failed())?;
            self.start(slot, &launch, extent).map_err(self.failed())?;
            self.filter.share = self.filter.share.min(extent.total() / longest.total());
        }
    }
}

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
pub struct SharedBuffers {
    pub centres: CudaSlice<Point>,
    pub suspects: CudaSlice<Suspect>,
}

impl SharedBuffers {
    /// Bytes of the buffers if they have room for the least number of suspects.
    pub fn least_bytes(geometry: &Geometry) -> usize {
        centres(geometry) * size_of::<Point>() + most_hits(geometry) * size_of::<Suspect>()
    }

    /// Allocates the buffers. `more` bytes beyond the least may be used for suspects.
    pub fn new(stream: &Arc<CudaStream>, geometry: &Geometry, more: usize) -> Result<SharedBuffers, DriverError> {
        let suspects = suspects_that_fit(more, most_hits(geometry));
        // SAFETY: a launch writes suspects before it reads them.
        let suspects = unsafe { stream.alloc(suspects)? };
        Ok(SharedBuffers { centres: stream.alloc_zeros(centres(geometry))?, suspects })
    }
}

/// The buffers that one launch in flight has to itself.
pub struct LaunchBuffers {
    pub starts: CudaSlice<Point>,
    pub hits: CudaSlice<Suspect>,
    pub counters: CudaSlice<Counters>,
    pub staging: PinnedHostSlice<Point>,
    pub read_counters: PinnedHostSlice<Counters>,
    pub read_hits: PinnedHostSlice<Suspect>,
    pub started: CudaEvent,
    pub finished: CudaEvent,
}

impl LaunchBuffers {
    /// Allocates the buffers.
    pub fn new(stream: &Arc<CudaStream>, geometry: &Geometry) -> Result<LaunchBuffers, DriverError> {
        let context = stream.context();
        let event = || context.new_event(Some(CUevent_flags::CU_EVENT_BLOCKING_SYNC));
        // SAFETY: the pinned buffers are written before they are read.
        unsafe {
            Ok(LaunchBuffers {
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
