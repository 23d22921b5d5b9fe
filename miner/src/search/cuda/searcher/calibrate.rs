//! The choice of a GPU's variant, of the length of its table and of the extent of its launches, by
//! measuring.

use super::super::abi::Suspect;
use super::super::geometry::{Extent, FIELD_BYTES, GROUP, KEPT_ALONE, TABLE};
use super::super::launch::{claim, multiple_point};
use super::super::module::BUILT_FOR;
use super::super::pace::{Method, Pace};
use super::super::variant::Variant;
use super::CudaSearcher;
use crate::key::{StartPoint, VerifiedHit};
use crate::pattern::{Pattern, PatternSet};
use crate::search::calibration::Choice;
use crate::search::error::SearchError;
use crate::search::searcher::{Launch, Searcher};
use std::sync::Arc;
use std::time::Duration;

/// The least ratio of the speeds at which a shorter table is chosen. Repeated trials differ by less
/// than 1 %.
const CLEARLY_FASTER: f64 = 1.02;
/// Share of a launch for the first trial of whole keys, which take several times as long.
const WHOLE_KEYS_TRIAL: f64 = 1.0 / 16.0;
/// Share of a launch for the first launches that compare texts, which take longer with more tests.
const FIRST_TEXTS: f64 = 1.0 / 8.0;

/// Threads of a launch whose hits the CPU computes too. It takes 0.1 s for them.
const CHECKED_AT_OPENING: u32 = 16;

fn patterns(texts: &[&str]) -> Arc<PatternSet> {
    let parsed = texts.iter().map(|text| text.parse::<Pattern>().expect("patterns"));
    Arc::new(PatternSet::new(parsed.collect()))
}

/// Start point of this number in a trial.
fn trial_start(number: usize) -> StartPoint {
    multiple_point((number as u64 + 1) << 40)
}

impl CudaSearcher {
    /// Measures the variants. Keeps the fastest one that finds the same hits as the plain one, with
    /// its fastest length of the table, and sets the extents of launches. Returns the choice.
    pub(super) fn calibrate(&mut self, variants: &[Variant]) -> Result<Choice, SearchError> {
        let kinds = [patterns(&["n0st"]), patterns(&["n0str", "00000", "zzzzz"]), patterns(&["n0??rq"])];
        let mut best: Option<(f64, u32, &Variant)> = None;
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
            let (speed, entries) = self.fastest_table(&kinds[0])?;
            if best.is_none_or(|(most, ..)| speed > most) {
                best = Some((speed, entries, variant));
            }
        }
        let (speed, entries, variant) = best.expect("the plain variant agrees with itself");
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
        let every = (self.geometry.threads() / threads).max(1) as usize;
        // An odd step, so that the threads are of different warps and places in them.
        let sampled: Vec<u32> = (0..self.geometry.threads()).step_by(every | 1).collect();
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
        let claimed = claim(candidate, &self.geometry);
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
    /// Each entry has 10 KB of constants for the tensor cores, and a centre reads those of all
    /// entries. A GPU with a small L2 cache may be faster with fewer entries, although it then has
    /// more centres to prepare.
    fn fastest_table(&mut self, patterns: &Arc<PatternSet>) -> Result<(f64, u32), SearchError> {
        let [whole, shorter @ ..] = Extent::of_shorter_tables(self.table_entries());
        let mut best = (self.speed(patterns, whole)?, TABLE);
        self.report(whole, best.0);
        for extent in shorter {
            let speed = self.speed(patterns, extent)?;
            self.report(extent, speed);
            if speed > best.0 * CLEARLY_FASTER {
                best = (speed, extent.entries);
            }
        }
        Ok(best)
    }

    fn report(&self, extent: Extent, speed: f64) {
        let candidates = 18.0 * f64::from(self.geometry.threads()) * speed;
        tracing::debug!(device = %self.info.id, variant = self.variant.name, ?extent, speed, candidates, "measured");
    }

    /// Takes more memory for prefix products if the chosen variant is faster with it.
    fn take_memory(&mut self) -> Result<(), SearchError> {
        self.info.kernel += &format!(", {} variant", self.variant.name);
        let threads = self.geometry.threads() as usize;
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
            self.paces[method as usize] = Pace::new(self.aim, entries, speeds[method as usize], first_part);
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
