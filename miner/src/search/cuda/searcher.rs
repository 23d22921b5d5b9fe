//! The searcher of one GPU: its tables, the launches in flight, and their results.

use super::abi::{Counters, Point, Search, Suspect};
use super::buffers::Buffer;
use super::constants::CENTRE_CONSTANTS;
use super::filter::Filter;
use super::geometry::{Extent, FIELD_BYTES, GROUP, Geometry, STEP, TABLE, multiple, prefixes_that_fit};
use super::launch::{claim, confirm, multiple_point, search_top_words, search_whole_keys};
use super::module::{BUILT_FOR, Kernels};
use super::pace::{Aim, Method, Pace};
use super::screened::Screened;
use super::slot::{FIRST_HITS, Slot};
use super::tables::Tables;
use super::variant::{self, Variant};
use crate::pattern::{Pattern, PatternSet};
use crate::search::device::{DeviceId, DeviceInfo};
use crate::search::error::SearchError;
use crate::search::searcher::{Launch, LaunchReport, Searcher};
use cudarc::driver::sys::CUdevice_attribute;
use cudarc::driver::{CudaContext, CudaSlice, CudaStream, DevicePtr, DriverError};
use std::collections::VecDeque;
use std::sync::Arc;
use std::time::Duration;

const IN_FLIGHT: usize = 2;
/// Prefix products per thread for a variant without groups: with this many it is fastest.
const KEPT_ALONE: u32 = 1024;
/// Part of a launch that the first trial of whole keys is: they take several times as long.
const WHOLE_KEYS_TRIAL: f64 = 1.0 / 16.0;
/// The same for the first launches that compare texts, which takes longer the more tests there are.
const FIRST_TEXTS: f64 = 1.0 / 8.0;

struct Pending {
    slot: usize,
    launch: Launch,
    extent: Extent,
    method: Method,
    /// Whether the extent is that of a whole launch.
    is_whole: bool,
}

pub struct CudaSearcher {
    info: DeviceInfo,
    stream: Arc<CudaStream>,
    /// A second stream. It fetches hits while the next launch runs.
    side: Arc<CudaStream>,
    kernels: Kernels,
    variant: Variant,
    geometry: Geometry,
    aim: Aim,
    tables: Tables,
    /// The fast kernel for whole keys, if the GPU can run it.
    screened: Option<Screened>,
    constants: CudaSlice<u8>,
    step: Point,
    prefixes: CudaSlice<u8>,
    /// Prefix products per thread that fit into `prefixes`.
    kept: u32,
    filter: Filter,
    slots: Vec<Slot>,
    pending: VecDeque<Pending>,
    next_slot: usize,
    /// The pace of each [`Method`], in their order.
    paces: [Pace; 3],
}

impl CudaSearcher {
    /// Opens a GPU and measures it. `polite`: with launches so short that people at its screen do
    /// not notice them.
    pub fn open(ordinal: usize, context: Arc<CudaContext>, polite: bool) -> Result<CudaSearcher, SearchError> {
        let id = DeviceId::Cuda(ordinal);
        let failed = |reason: String| SearchError::DeviceFailed { device: id, reason };
        let kernels = Kernels::load(&context).map_err(failed)?;
        let text = |error: DriverError| failed(error.to_string());
        let count = context.attribute(CUdevice_attribute::CU_DEVICE_ATTRIBUTE_MULTIPROCESSOR_COUNT).map_err(text)?;
        let geometry = Geometry { multiprocessors: count as u32 };
        let variants = variant::available(&kernels.module, geometry.multiprocessors).map_err(failed)?;
        let plain = variants[0].clone();
        let aim = Aim::of_gpu(|attribute| context.attribute(attribute), polite).map_err(text)?;
        let mut searcher = CudaSearcher::with_tables(id, &context, kernels, geometry, plain, aim).map_err(text)?;
        searcher.calibrate(&variants)?;
        Ok(searcher)
    }

    fn with_tables(
        id: DeviceId,
        context: &Arc<CudaContext>,
        kernels: Kernels,
        geometry: Geometry,
        variant: Variant,
        aim: Aim,
    ) -> Result<CudaSearcher, DriverError> {
        let (free, _) = context.mem_get_info()?;
        let stream = context.new_stream()?;
        let (major, minor) = context.compute_capability()?;
        let points: Vec<Point> = (1..=TABLE as u64).map(multiple).collect();
        let points = stream.clone_htod(&points)?;
        let tables = Tables::new(&stream, &kernels, &geometry, &points)?;
        let screened = Screened::new(&stream, &kernels.module, &points)?;
        let threads = geometry.threads() as usize;
        let filter = Filter::new(&stream)?;
        let constants = stream.alloc_zeros(threads * CENTRE_CONSTANTS as usize * FIELD_BYTES)?;
        let slots: Vec<Slot> = (0..IN_FLIGHT).map(|_| Slot::new(&stream, &geometry)).collect::<Result<_, _>>()?;
        stream.synchronize()?;
        let (left, _) = context.mem_get_info()?;
        let kept = prefixes_that_fit(left.saturating_sub(free / 2), threads);
        Ok(CudaSearcher {
            info: DeviceInfo {
                id,
                name: context.name()?,
                kernel: format!("cuda sm_{major}{minor} ({})", kernels.compiler),
                threads: 1,
            },
            side: context.new_stream()?,
            tables,
            screened,
            constants,
            step: multiple(STEP),
            // SAFETY: a launch writes every prefix product before it reads it.
            prefixes: unsafe { stream.alloc(threads * kept as usize * FIELD_BYTES)? },
            kept,
            filter,
            slots,
            pending: VecDeque::new(),
            next_slot: 0,
            // Until they are calibrated, launches are as short as can be.
            paces: std::array::from_fn(|_| Pace::new(aim, kept.min(TABLE), 0.0, 1.0)),
            kernels,
            variant,
            geometry,
            aim,
            stream,
        })
    }

    /// Keeps the fastest variant that finds the plain one's hits; sets the extent of a launch.
    fn calibrate(&mut self, variants: &[Variant]) -> Result<(), SearchError> {
        let patterns = |texts: &[&str]| {
            let parsed = texts.iter().map(|text| text.parse::<Pattern>().expect("patterns"));
            Arc::new(PatternSet::new(parsed.collect()))
        };
        let kinds = [patterns(&["n0st"]), patterns(&["n0str", "00000", "zzzzz"]), patterns(&["n0??rq"])];
        let mut best: Option<(f64, &Variant)> = None;
        let mut expected = None;
        for variant in variants {
            self.variant = variant.clone();
            let short = Extent { steps: 1, entries: self.kept };
            let found =
                [self.trial(&kinds[0], short)?.1, self.trial(&kinds[1], short)?.1, self.trial(&kinds[2], short)?.1];
            if *expected.get_or_insert_with(|| found.clone()) != found {
                tracing::warn!(device = %self.info.id, variant = variant.name, "finds other hits than the plain variant: not used");
                continue;
            }
            let speed = self.speed(&kinds[0], Extent { steps: 1, entries: self.table_entries() })?;
            tracing::debug!(device = %self.info.id, variant = variant.name, speed, "measured");
            if best.is_none_or(|(most, _)| speed > most) {
                best = Some((speed, variant));
            }
        }
        let (speed, variant) = best.expect("the plain variant agrees with itself");
        self.variant = variant.clone();
        self.info.kernel += &format!(", {} variant", variant.name);
        if variant.group == 1 && self.kept == TABLE / GROUP {
            let bytes = self.geometry.threads() as usize * KEPT_ALONE as usize * FIELD_BYTES;
            // SAFETY: a launch writes every prefix product before it reads it.
            self.prefixes = unsafe { self.stream.alloc(bytes) }.map_err(self.failed())?;
            self.kept = KEPT_ALONE;
        }
        self.paces[Method::TopWords as usize] = Pace::new(self.aim, self.table_entries(), speed, 1.0);
        // Where whole keys are compared, every entry has a prefix product of its own.
        let entries = self.kept.min(TABLE);
        let trial = Extent::of_entries(speed * self.aim.seconds() * WHOLE_KEYS_TRIAL, entries);
        for (text, first_part) in [("*n0str", 1.0), ("=6*", FIRST_TEXTS)] {
            let speed = self.speed(&patterns(&[text]), trial)?;
            self.paces[self.method() as usize] = Pace::new(self.aim, entries, speed, first_part);
        }
        tracing::debug!(device = %self.info.id, built_for = BUILT_FOR, paces = ?self.paces, "calibrated");
        Ok(())
    }

    /// How the current patterns are searched.
    fn method(&self) -> Method {
        match (&self.screened, &self.filter.tests.screen) {
            _ if !self.filter.tests.are_needed() => Method::TopWords,
            (Some(_), Some(_)) => Method::Screen,
            _ => Method::Texts,
        }
    }

    /// Table entries per centre whose prefix products fit into memory.
    fn table_entries(&self) -> u32 {
        (self.kept * self.variant.group).min(TABLE)
    }

    /// Runs one launch over fixed start points. Returns its duration and its hits, sorted.
    fn trial(&mut self, patterns: &Arc<PatternSet>, extent: Extent) -> Result<(Duration, Vec<Suspect>), SearchError> {
        let starts = (1..=self.starts() as u64).map(|n| multiple_point(n << 40)).collect();
        let launch = Launch { starts, patterns: patterns.clone(), remaining: None };
        self.choose(patterns).map_err(self.failed())?;
        self.start(0, &launch, extent).map_err(self.failed())?;
        let (_, mut hits, busy) = self.finish(0).map_err(self.failed())?;
        hits.sort_unstable();
        Ok((busy, hits))
    }

    /// Table entries per thread and second: the faster of two trials.
    fn speed(&mut self, patterns: &Arc<PatternSet>, extent: Extent) -> Result<f64, SearchError> {
        let busy = self.trial(patterns, extent)?.0.min(self.trial(patterns, extent)?.0);
        Ok(extent.total() / busy.as_secs_f64().max(1e-6))
    }

    /// Queues the change of the filter to these patterns.
    fn choose(&mut self, patterns: &Arc<PatternSet>) -> Result<(), DriverError> {
        self.filter.set(&self.stream, &self.kernels.build_filter, patterns, &self.variant)
    }

    fn failed(&self) -> impl Fn(DriverError) -> SearchError + use<> {
        let device = self.info.id;
        move |error| SearchError::DeviceFailed { device, reason: error.to_string() }
    }

    /// Queues a launch for the current patterns.
    fn start(&mut self, slot: usize, launch: &Launch, extent: Extent) -> Result<(), DriverError> {
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
            centres: at.centres.device_ptr(stream).0,
            suspects: at.suspects.device_ptr(stream).0,
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
            threads_per_start: self.geometry.threads_per_start(),
            suspect_capacity: at.suspects.len() as u32,
            hit_capacity: at.hits.len() as u32,
            step: self.step,
        };
        at.started.record(stream)?;
        if self.filter.tests.are_needed() {
            let whole = self.filter.tests.argument(stream, self.filter.checks.checksums(stream));
            match (&self.screened, &self.filter.tests.screen) {
                (Some(screened), Some(screen)) => screened.search(stream, &search, &whole, screen, &self.geometry)?,
                _ => search_whole_keys(stream, &self.kernels.whole_keys, &search, &whole, &self.geometry)?,
            }
        } else {
            let (kernel, config) = self.variant.kernel(self.filter.form());
            search_top_words(stream, kernel, &search, *config)?;
        }
        let checks = self.filter.checks.argument(stream);
        confirm(stream, &self.kernels.confirm, &search, self.geometry.threads(), &checks)?;
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
        let count = (counters.hits as usize).min(at.hits.len());
        let hits = if count <= FIRST_HITS {
            at.read_hits.as_slice()?[..count].to_vec()
        } else {
            self.side.clone_dtoh(&at.hits.slice(..count))?
        };
        Ok((counters, hits, busy))
    }

    /// All buffers on the device and pinned on the host. The caller makes sure that no kernel runs.
    /// Destructures every field: a new buffer cannot be forgotten here.
    pub(super) fn buffers(&self) -> Result<Vec<Buffer<'_>>, DriverError> {
        let CudaSearcher {
            stream,
            side,
            tables,
            screened,
            constants,
            prefixes,
            kept: _,
            filter,
            slots,
            info: _,
            kernels: _,
            variant: _,
            geometry: _,
            aim: _,
            step: _,
            pending: _,
            next_slot: _,
            paces: _,
        } = self;
        stream.synchronize()?;
        side.synchronize()?;
        let mut buffers = tables.buffers();
        buffers.extend([Buffer::on_device("constants", constants), Buffer::on_device("prefixes", prefixes)]);
        buffers.extend(screened.iter().flat_map(Screened::buffers));
        buffers.extend(filter.buffers()?);
        for slot in slots {
            buffers.extend(slot.buffers()?);
        }
        Ok(buffers)
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

    fn submit(&mut self, launch: Launch) -> Result<(), SearchError> {
        if launch.starts.len() != self.starts() {
            return Err(SearchError::WrongStartCount { given: launch.starts.len(), wanted: self.starts() });
        }
        if self.pending.len() == IN_FLIGHT {
            let reason = format!("{IN_FLIGHT} launches are in flight already; collect one first");
            return Err(SearchError::DeviceFailed { device: self.info.id, reason });
        }
        let slot = self.next_slot;
        self.choose(&launch.patterns).map_err(self.failed())?;
        let method = self.method();
        let whole = self.paces[method as usize].extent(&launch.patterns);
        let extent = whole.part(self.filter.share);
        self.start(slot, &launch, extent).map_err(self.failed())?;
        self.pending.push_back(Pending { slot, launch, extent, method, is_whole: extent == whole });
        self.next_slot = (slot + 1) % IN_FLIGHT;
        Ok(())
    }

    fn collect(&mut self) -> Result<LaunchReport, SearchError> {
        let pending = self.pending.pop_front().ok_or(SearchError::NothingSubmitted)?;
        let Pending { slot, launch, mut extent, method, mut is_whole } = pending;
        let mut all_busy = Duration::ZERO;
        loop {
            let (counters, hits, busy) = self.finish(slot).map_err(self.failed())?;
            all_busy += busy;
            let at = &self.slots[slot];
            let excess = (f64::from(counters.suspects) / at.suspects.len() as f64)
                .max(f64::from(counters.hits) / at.hits.len() as f64);
            if excess <= 1.0 {
                if is_whole {
                    self.paces[method as usize].learn(&launch.patterns, extent, busy);
                }
                let skipped = u64::from(counters.skipped) * u64::from(extent.entries);
                let tested = u64::from(self.geometry.threads()) * u64::from(extent.steps) * u64::from(extent.entries);
                return Ok(LaunchReport {
                    candidates: 18 * tested.saturating_sub(skipped),
                    hits: hits.iter().map(|hit| claim(hit, &self.geometry)).collect(),
                    busy: all_busy,
                    is_cut_short: false,
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
