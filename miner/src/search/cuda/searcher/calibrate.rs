//! The choice of a GPU's variant, of the length of its table and of the extent of its launches, by
//! measuring.

use super::super::abi::Suspect;
use super::super::constants::{FEWER_WARPS, WARPS};
use super::super::geometry::{
    Extent, FIELD_BYTES, GROUP, Geometry, KEPT_ALONE, TABLE, multiple_of_generator, threads_per_start,
};
use super::super::launch::Variant;
use super::super::launch::claim;
use super::super::module::{BUILT_FOR, fingerprint};
use super::super::pace::{LaunchPace, Method};
use super::CudaSearcher;
use crate::key::{StartPoint, VerifiedHit};
use crate::pattern::{Pattern, PatternSet};
use crate::search::calibration::Choice;
use crate::search::error::SearchError;
use crate::search::options::{Preference, SearchOptions};
use crate::search::searcher::{Launch, Searcher};
use crate::search::sensors::Sensors;
use cudarc::driver::{CudaContext, DriverError};
use std::sync::Arc;
use std::time::{Duration, Instant};

/// The least ratio of the speeds at which a shorter table is chosen. Repeated trials differ by less
/// than 1 %.
const CLEARLY_FASTER: f64 = 1.02;
/// Share of a launch for the first trial of whole keys, which take several times as long.
const WHOLE_KEYS_TRIAL: f64 = 1.0 / 16.0;
/// Share of a launch for the first launches that compare texts, which take longer with more tests.
const FIRST_TEXTS: f64 = 1.0 / 8.0;

/// Threads of a launch whose hits the CPU computes too. It takes 0.1 s for them.
const CHECKED_AT_OPENING: u32 = 16;
/// How long a variant's energy is measured, the first half not counted. The GPU's counter is read in
/// steps of up to 0.1 s. Its rate is measured for a third of that.
const LONG_TRIAL: Duration = Duration::from_millis(1800);
/// The share of the highest rate in short trials with which a variant is measured longer.
const RIVAL: f64 = 0.95;

/// A variant that finds the right hits.
struct Tried<'a> {
    merit: f64,
    /// Table entries per thread and second.
    speed: f64,
    /// The most table entries at a centre.
    entries: u32,
    variant: &'a Variant,
}

/// The hits of a trial that every variant finds, whatever number of warps its blocks have: those of
/// the centres that are searched whole, and of the threads of a start point that all have.
fn comparable(hits: &[Suspect], warps: u32, geometry: &Geometry) -> Vec<(u32, u32, u32, u32)> {
    let per_start = threads_per_start(warps);
    let is_common = |&(start, own, ..): &(u32, u32, u32, u32)| {
        own < threads_per_start(FEWER_WARPS)
            && [FEWER_WARPS, WARPS]
                .iter()
                .all(|&warps| start * threads_per_start(warps) + own < geometry.threads(warps))
    };
    let of_middle = hits.iter().filter(|hit| hit.step == 1);
    let all = of_middle.map(|hit| (hit.thread / per_start, hit.thread % per_start, hit.entry, hit.which));
    let mut common: Vec<_> = all.filter(is_common).collect();
    common.sort_unstable();
    common
}

fn patterns(texts: &[&str]) -> Arc<PatternSet> {
    let parsed = texts.iter().map(|text| text.parse::<Pattern>().expect("patterns"));
    Arc::new(PatternSet::new(parsed.collect()))
}

/// Start point of this number in a trial.
fn trial_start(number: usize) -> StartPoint {
    multiple_of_generator((number as u64 + 1) << 40)
}

impl CudaSearcher {
    /// Measures the variants that find the same hits as the plain one. Keeps the best with its fastest
    /// length of the table, and sets the extents of launches. Returns the choice.
    pub(super) fn calibrate(&mut self, variants: &[Variant], prefer: Preference) -> Result<Choice, SearchError> {
        let kinds = [patterns(&["n0st"]), patterns(&["n0str", "00000", "zzzzz"]), patterns(&["n0??rq"])];
        let mut tried: Vec<Tried> = Vec::new();
        let mut expected = None;
        for variant in variants {
            self.variant = variant.clone();
            let short = Extent { steps: 2, entries: (self.kept / 2 / GROUP * GROUP).max(GROUP) };
            let mut found = Vec::new();
            for kind in &kinds {
                let (_, hits) = self.trial(kind, short)?;
                found.push(comparable(&hits, self.warps(), &self.geometry));
            }
            if *expected.get_or_insert_with(|| found.clone()) != found {
                tracing::warn!(device = %self.info.id, variant = variant.name, "finds other hits than the plain variant: not used");
                continue;
            }
            let (speed, entries) = self.fastest_table(&kinds[0])?;
            let rate = speed * f64::from(variant.warps);
            tried.push(Tried { merit: rate, speed, entries, variant });
        }
        let most = tried.iter().map(|one| one.merit).fold(0.0, f64::max);
        tried.retain(|one| one.merit >= most * RIVAL);
        if tried.len() > 1 {
            for one in &mut tried {
                (self.variant, self.entries) = (one.variant.clone(), one.entries);
                one.merit = self.merit(&kinds[0], one.speed, prefer)? + self.merit(&kinds[2], one.speed, prefer)?;
                tracing::debug!(device = %self.info.id, variant = one.variant.name, one.merit, ?prefer, "compared");
            }
        }
        let best = tried.into_iter().max_by(|a, b| a.merit.total_cmp(&b.merit));
        let Tried { speed, entries, variant, .. } = best.expect("the plain variant agrees with itself");
        (self.variant, self.entries) = (variant.clone(), entries);
        let prefixes = self.kept;
        self.take_memory()?;
        let mut speeds = [speed; 3];
        // Where whole keys are compared, every entry has a prefix product of its own.
        let trial = Extent::of_entries(speed * self.aim.seconds() * WHOLE_KEYS_TRIAL, self.kept.min(TABLE));
        for text in ["*n0str", "=6*"] {
            let speed = self.speed(&patterns(&[text]), trial)?;
            speeds[self.method() as usize] = speed;
        }
        self.set_paces(speeds);
        self.compare_with_cpu(CHECKED_AT_OPENING)?;
        Ok(Choice { variant: self.variant.name.to_owned(), prefixes, entries, speeds })
    }

    /// Runs the shortest launch, and compares the hits of some of its threads with those that the CPU
    /// computes by plain curve arithmetic. Returns the number of these hits.
    pub(in super::super) fn compare_with_cpu(&mut self, threads: u32) -> Result<usize, SearchError> {
        let patterns = patterns(&["q"]);
        let (_, found) = self.trial(&patterns, Extent { steps: 1, entries: GROUP })?;
        let every = (self.geometry.threads(self.warps()) / threads).max(1) as usize;
        // An odd step, so that the threads are of different warps and places in them.
        let sampled: Vec<u32> = (0..self.geometry.threads(self.warps())).step_by(every | 1).collect();
        let matching = |thread: u32, step: u32| -> Vec<Suspect> {
            let candidates =
                (0..GROUP).flat_map(move |entry| (0..18).map(move |which| Suspect { thread, step, entry, which }));
            candidates.filter(|candidate| self.matches(candidate, &patterns)).collect()
        };
        let mut count = 0;
        for &thread in &sampled {
            let found: Vec<Suspect> = found.iter().copied().filter(|hit| hit.thread == thread).collect();
            // The group is at a thread's first centre or at its second, depending on its warp.
            if found != matching(thread, 0) && found != matching(thread, 1) {
                let expected = matching(thread, u32::from(found.first().is_none_or(|hit| hit.step > 0))).len();
                let reason = format!(
                    "it computes wrongly: its thread {thread} reports {} keys where the CPU finds {expected}; try \
                     another driver, or leave this GPU out with `device`",
                    found.len()
                );
                return Err(SearchError::DeviceFailed { device: self.info.id, reason });
            }
            count += found.len();
        }
        Ok(count)
    }

    /// Whether a candidate of a trial matches, by libsecp256k1.
    fn matches(&self, candidate: &Suspect, patterns: &PatternSet) -> bool {
        let claimed = claim(candidate, self.warps());
        let start = trial_start(claimed.start);
        let key = VerifiedHit::recompute(start, claimed.tweak);
        key.is_some_and(|key| !patterns.matches(&key.npub()).is_empty())
    }

    /// Adopts the choice that an earlier start made by measuring. Its variant is already the
    /// current one.
    pub(super) fn adopt(&mut self, choice: &Choice) -> Result<(), SearchError> {
        self.entries = (choice.entries / GROUP * GROUP).clamp(GROUP, TABLE);
        self.take_memory()?;
        self.set_paces(choice.speeds);
        Ok(())
    }

    /// The speed of the current variant with its fastest table, and the most entries of that table.
    ///
    /// Each entry has 10 KB of constants for the tensor cores, its share of a group's included, and a
    /// centre reads those of all entries. A GPU with a small L2 cache may be faster with fewer
    /// entries, although it then has more centres to prepare.
    fn fastest_table(&mut self, patterns: &Arc<PatternSet>) -> Result<(f64, u32), SearchError> {
        let [whole, shorter @ ..] = Extent::of_shorter_tables(self.table_entries());
        let mut best = (self.speed(patterns, whole)?, TABLE);
        self.report(whole, best.0);
        for extent in shorter {
            let speed = self.speed(patterns, extent)?;
            self.report(extent, speed);
            if speed < best.0 * CLEARLY_FASTER {
                break;
            }
            best = (speed, extent.entries);
        }
        Ok(best)
    }

    /// Table entries of all threads per second, or per joule if the operator prefers that and the GPU
    /// counts its energy. Measured in launches of the usual length, until the GPU has the heat and the
    /// clock that it keeps.
    fn merit(&mut self, patterns: &Arc<PatternSet>, speed: f64, prefer: Preference) -> Result<f64, SearchError> {
        let sensors = Sensors::of(self.info.id);
        let extent = Extent::of_entries(speed * self.aim.seconds(), self.table_entries());
        let long = if prefer == Preference::Energy { LONG_TRIAL } else { LONG_TRIAL / 3 };
        let began = Instant::now();
        while began.elapsed() < long / 2 {
            self.trial(patterns, extent)?;
        }
        let (before, mut busy, mut launches) = (sensors.joules(), Duration::ZERO, 0u32);
        while began.elapsed() < long {
            busy += self.trial(patterns, extent)?.0;
            launches += 1;
        }
        let all = f64::from(launches) * extent.total() * f64::from(self.geometry.threads(self.warps()));
        let joules = Option::zip(before, sensors.joules()).map(|(before, after)| after - before);
        let joules = joules.filter(|&joules| joules > 0.0);
        Ok(match (prefer, joules) {
            (Preference::Energy, Some(joules)) => all / joules,
            _ => all / busy.as_secs_f64().max(1e-6),
        })
    }

    fn report(&self, extent: Extent, speed: f64) {
        let candidates = 18.0 * f64::from(self.geometry.threads(self.warps())) * speed;
        tracing::debug!(device = %self.info.id, variant = self.variant.name, ?extent, speed, candidates, "measured");
    }

    /// Takes more memory for prefix products if the chosen variant is faster with it.
    fn take_memory(&mut self) -> Result<(), SearchError> {
        self.info.kernel += &format!(", {} variant", self.variant.name);
        let threads = self.geometry.most_threads() as usize;
        let alone = u32::try_from(self.room / (threads * FIELD_BYTES)).unwrap_or(KEPT_ALONE).min(KEPT_ALONE);
        if self.variant.group == 1 && alone > self.kept {
            let alone = alone / GROUP * GROUP;
            let (stream, failed) = (Arc::clone(&self.stream), self.failed());
            // SAFETY: a launch writes every prefix product before it reads it.
            let alloc = |bytes: usize| unsafe { stream.alloc(bytes) }.map_err(&failed);
            let bytes = threads * alone as usize * FIELD_BYTES;
            // The former memory is freed first.
            self.prefixes = alloc(FIELD_BYTES)?;
            self.prefixes = alloc(bytes)?;
            self.kept = alone;
        }
        Ok(())
    }

    /// Sets the extents of launches by the speeds of all kinds of kernels.
    fn set_paces(&mut self, speeds: [f64; 3]) {
        for method in [Method::TopWords, Method::Screen, Method::Texts] {
            let (entries, first_part) = match method {
                Method::TopWords => (self.table_entries(), 1.0),
                Method::Screen => (self.kept.min(TABLE), 1.0),
                Method::Texts => (self.kept.min(TABLE), FIRST_TEXTS),
            };
            self.paces[method as usize] = LaunchPace::new(self.aim, entries, speeds[method as usize], first_part);
        }
        tracing::debug!(device = %self.info.id, built_for = BUILT_FOR, paces = ?self.paces, "calibrated");
    }

    /// Runs one launch over fixed start points. Returns its duration and its hits, sorted.
    fn trial(&mut self, patterns: &Arc<PatternSet>, extent: Extent) -> Result<(Duration, Vec<Suspect>), SearchError> {
        let starts = (0..self.starts()).map(trial_start).collect();
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
}

/// The key of a GPU's calibration: all that its measurement depends on.
pub(in super::super) fn calibration_key(
    context: &CudaContext,
    compiler: &str,
    options: &SearchOptions,
) -> Result<String, DriverError> {
    let mut driver = 0;
    // SAFETY: the context has loaded the driver, and the pointer is valid.
    unsafe { cudarc::driver::sys::cuDriverGetVersion(&mut driver) }.result()?;
    let uuid: String = context.uuid()?.bytes.iter().map(|byte| format!("{byte:02x}")).collect();
    let memory = options.gpu_memory.map_or("half of its memory".to_owned(), |bytes| format!("{bytes} bytes"));
    let shared = options.shared_memory.map_or(String::new(), |bytes| format!("; {bytes} bytes shared"));
    let prefer = if options.prefer == Preference::Energy { "; energy" } else { "" };
    let (name, kernels) = (context.name()?, fingerprint());
    Ok(format!("{name} {uuid}; driver {driver}; kernels {kernels} of {compiler}; {memory}{shared}{prefer}"))
}
