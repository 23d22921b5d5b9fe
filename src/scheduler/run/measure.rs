//! How fast the devices search, over wall time, proven by what they find.

use super::health::{DeviceView, Health};
use super::verify::{CollectedLaunch, judge};
use super::worker::Workers;
use crate::job::{JobId, JobSpec};
use crate::pattern::{ALPHABET, Difficulty, Pattern, Rate};
use crate::scheduler::LAUNCHES_WAITING;
use crate::scheduler::plan::pool::Pool;
use crate::search::{self, SearchError, SearchOptions};
use crate::vault::{Half, Vault, VaultError};
use std::collections::HashSet;
use std::sync::Arc;
use std::sync::mpsc::{self, RecvTimeoutError};
use std::time::{Duration, Instant};
use thiserror::Error;

/// Hits a measurement should find at least: a relative error of 3 % at one standard deviation.
const ENOUGH_HITS: f64 = 1000.0;
/// The shortest patterns: a GPU leaves easier ones to the CPU.
const SHORTEST: u32 = 4;
/// How long a device may take to show its first rate.
const PATIENCE: Duration = Duration::from_secs(60);

/// What to measure.
#[derive(Clone, Debug)]
pub struct Trial {
    /// Patterns searched at once, beside the canary: 1 or more.
    pub patterns: usize,
    /// Their length in characters; `None` for the longest that still hits some thousand times.
    pub characters: Option<u32>,
    pub seconds: f64,
    /// At an asker's point, as a split job has it, instead of start points of our own.
    pub split: bool,
}

/// What was measured.
#[derive(Clone, Debug)]
pub struct Measurement {
    pub devices: Vec<DeviceView>,
    /// Length of the patterns, in characters.
    pub characters: u32,
    /// Wall time from the first launch asked for to the last one collected.
    pub wall: Duration,
    /// The time the busiest device says it worked.
    pub busy: Duration,
    pub candidates: u64,
    pub hits_expected: f64,
    pub hits_found: u64,
    pub hits_wrong: u64,
}

impl Measurement {
    /// Candidates a second over wall time.
    pub fn rate(&self) -> Rate {
        Rate(self.candidates as f64 / self.wall.as_secs_f64())
    }

    /// How many standard deviations the hits found are off what was expected (Poisson).
    pub fn deviation(&self) -> f64 {
        (self.hits_found as f64 - self.hits_expected) / self.hits_expected.sqrt()
    }
}

/// Why nothing was measured.
#[derive(Debug, Error)]
pub enum MeasureError {
    #[error(transparent)]
    Search(#[from] SearchError),
    #[error(transparent)]
    Vault(#[from] VaultError),
    #[error("{patterns} different patterns of {characters} characters do not exist; take fewer, or longer ones")]
    TooManyPatterns { patterns: usize, characters: u32 },
    #[error("a device does not work: {0}")]
    Device(String),
}

/// Measures the devices that `options` asks for, all together. Every hit is recomputed with libsecp256k1, after the
/// clock has stopped. `tick` is told how much of the time is over, 0 to 1.
pub fn measure(options: &SearchOptions, trial: &Trial, mut tick: impl FnMut(f64)) -> Result<Measurement, MeasureError> {
    let pool = Arc::new(Pool::exhaustive());
    let (sender, receiver) = mpsc::sync_channel(LAUNCHES_WAITING);
    let mut workers =
        Workers::start(options, Arc::new(search::open), Arc::clone(&pool), Vault::without_identity()?, sender)?;
    let rate = first_rate(&workers, &receiver)?;
    let characters = match trial.characters {
        Some(characters) => characters,
        None => length_for(rate.0 * trial.seconds, trial.patterns),
    };
    let patterns = random_patterns(trial.patterns, characters)?;

    let began = Instant::now();
    let half = trial.split.then(Half::draw).transpose()?.map(|half| half.point());
    pool.insert(JobId(1), JobSpec { half, ..JobSpec::local(patterns) });
    let ends = began + Duration::from_secs_f64(trial.seconds);
    let (mut harvests, mut ended) = (Vec::new(), began);
    loop {
        let now = Instant::now();
        if now >= ends {
            // What is in flight counts, and so does the time until it is collected.
            pool.close();
        }
        tick((now - began).as_secs_f64() / trial.seconds);
        match receiver.recv_timeout(Duration::from_millis(50)) {
            Ok((harvest, _)) if harvest.pass.patterns.len() > 1 => {
                ended = Instant::now();
                harvests.push(harvest);
            }
            Ok(_) | Err(RecvTimeoutError::Timeout) => {}
            Err(RecvTimeoutError::Disconnected) => break,
        }
    }
    workers.join();
    let devices = workers.devices();
    if let Some(Health::Out(reason)) = devices.iter().map(|device| &device.health).find(|h| **h != Health::Working) {
        return Err(MeasureError::Device(reason.clone()));
    }
    Ok(evaluate(harvests, devices, characters, ended - began))
}

/// Waits for every device's first measured rate.
fn first_rate(workers: &Workers, harvests: &mpsc::Receiver<super::verifier::Delivered>) -> Result<Rate, MeasureError> {
    let deadline = Instant::now() + PATIENCE;
    loop {
        // The warm-up's launches are not part of the trial.
        let _ = harvests.recv_timeout(Duration::from_millis(10));
        let devices = workers.devices();
        if let Some(Health::Out(reason)) = devices.iter().map(|device| &device.health).find(|h| **h != Health::Working)
        {
            return Err(MeasureError::Device(reason.clone()));
        }
        if devices.iter().all(|device| device.rate.is_some()) && workers.are_idle() {
            while harvests.try_recv().is_ok() {}
            return Ok(workers.rate().unwrap_or_default());
        }
        if Instant::now() > deadline {
            return Err(MeasureError::Device(format!("it showed no rate within {} s", PATIENCE.as_secs())));
        }
    }
}

/// The greatest length at which `patterns` patterns still hit often enough among `candidates`.
fn length_for(candidates: f64, patterns: usize) -> u32 {
    let bits = (candidates * patterns as f64 / ENOUGH_HITS).max(1.0).log2();
    ((bits / 5.0) as u32).clamp(SHORTEST, 12)
}

/// Different random patterns of one length.
fn random_patterns(count: usize, characters: u32) -> Result<Vec<Pattern>, MeasureError> {
    // Drawing at random ends soon while at least half of all patterns are left over.
    if count as f64 > Difficulty::from_bits(5 * characters).candidates() / 2.0 {
        return Err(MeasureError::TooManyPatterns { patterns: count, characters });
    }
    let mut texts = HashSet::with_capacity(count);
    let mut random = vec![0u8; characters as usize];
    while texts.len() < count {
        getrandom::fill(&mut random).map_err(|_| VaultError::NoRandomness)?;
        texts.insert(random.iter().map(|byte| char::from(ALPHABET[usize::from(byte % 32)])).collect::<String>());
    }
    Ok(texts.iter().filter_map(|text| Pattern::parse(text).ok()).collect())
}

/// Recomputes every hit, on all cores.
fn evaluate(harvests: Vec<CollectedLaunch>, devices: Vec<DeviceView>, characters: u32, wall: Duration) -> Measurement {
    let threads = std::thread::available_parallelism().map_or(1, usize::from);
    let share = harvests.len().div_ceil(threads).max(1);
    let (mut hits_found, mut hits_wrong) = (0, 0);
    std::thread::scope(|scope| {
        let judging: Vec<_> = harvests
            .chunks(share)
            .map(|share| {
                scope.spawn(move || {
                    share.iter().map(judge).fold((0, 0), |sum, one| (sum.0 + one.hits_right, sum.1 + one.hits_wrong))
                })
            })
            .collect();
        for judged in judging {
            let (right, wrong) = judged.join().expect("judging does not panic");
            hits_found += right;
            hits_wrong += wrong;
        }
    });
    let candidates = harvests.iter().map(|harvest| harvest.report.candidates).sum();
    let expected = |harvest: &CollectedLaunch| {
        let difficulty = harvest.pass.patterns.difficulty().map_or(f64::INFINITY, Difficulty::candidates);
        harvest.report.candidates as f64 / difficulty
    };
    let busy_on = |device| harvests.iter().filter(|h| h.device == device).map(|h| h.report.busy).sum::<Duration>();
    Measurement {
        characters,
        wall,
        busy: (0..=devices.len()).map(busy_on).max().unwrap_or_default(),
        candidates,
        hits_expected: harvests.iter().map(expected).sum(),
        hits_found,
        hits_wrong,
        devices,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn patterns_are_as_long_as_enough_hits_allow() {
        assert_eq!(length_for(80e6 * 10.0, 1), 4);
        assert_eq!(length_for(80e6 * 10.0, 10_000), 6);
        assert_eq!(length_for(130e9 * 10.0, 1), 6);
        assert_eq!(length_for(0.0, 1), SHORTEST);
    }

    #[test]
    fn more_patterns_than_there_are_is_an_error() {
        assert!(matches!(random_patterns(20, 1), Err(MeasureError::TooManyPatterns { .. })));
        assert_eq!(random_patterns(16, 1).unwrap().len(), 16);
    }
}
