//! Measures how fast the devices search, over wall time. The number of hits proves the rate.

use super::device_threads::DeviceOpener;
use super::health::{DeviceStatus, Health};
use super::pool::Pool;
use super::verify::{CollectedLaunch, Delivered, verify};
use crate::clock::Clock;
use crate::job::{JobId, JobSpec};
use crate::key::HalfPoint;
use crate::pattern::{ALPHABET, Difficulty, Pattern, PatternSet, Rate};
use crate::scheduler::Scheduler;
use crate::scheduler::plan::profile::Lane;
use crate::search::{DeviceId, SearchError, SearchOptions, Sensors, Surroundings};
use crate::vault::{Vault, VaultError};
use std::collections::{HashMap, HashSet};
use std::sync::Arc;
use std::sync::mpsc::{self, RecvTimeoutError};
use std::time::{Duration, Instant};
use thiserror::Error;

/// A measurement should find at least this many hits: the relative error is then 3 % (one standard
/// deviation).
const ENOUGH_HITS: f64 = 1000.0;
/// Length of the shortest patterns in a measurement, in characters. GPUs do not search shorter
/// ones.
const SHORTEST_PATTERN: u32 = 4;
/// Time limit until a device's first rate is known.
const FIRST_RATE_TIMEOUT: Duration = Duration::from_secs(60);
/// How much longer than asked a measurement may take until its first launch ends.
const FIRST_LAUNCH_TIMEOUT: Duration = Duration::from_secs(10);

/// The settings of a measurement.
#[derive(Clone, Debug)]
pub struct Trial {
    /// Number of random prefixes searched at once, besides the canary: at least 1.
    pub patterns: usize,
    /// Length of the prefixes in characters; `None` for the greatest length that still gives a
    /// thousand hits.
    pub characters: Option<u32>,
    /// Patterns to search for in place of random prefixes, if any.
    pub chosen: Vec<Pattern>,
    /// Wall time, in seconds.
    pub seconds: f64,
    /// Whether to search at an asker's half point, as for a split job.
    pub split: bool,
}

impl Trial {
    /// Number of patterns searched at once, besides the canary.
    pub fn count(&self) -> usize {
        if self.chosen.is_empty() { self.patterns } else { self.chosen.len() }
    }
}

/// The result of a measurement.
#[derive(Clone, Debug)]
pub struct Measurement {
    /// The state of the devices at the end.
    pub devices: Vec<DeviceStatus>,
    /// Length of the random prefixes, in characters.
    pub characters: u32,
    /// Wall time from submitting the first launch to collecting the last one.
    pub wall: Duration,
    /// The time that a device claims to have worked, on average.
    pub busy: Duration,
    /// Candidates tested.
    pub candidates: u64,
    /// Hits expected among `candidates`.
    pub hits_expected: f64,
    /// Hits that match a pattern.
    pub hits_found: u64,
    /// Hits that match no pattern of the measurement.
    pub hits_wrong: u64,
    /// Energy that the devices used in `wall` time, by their power until the end of the trial;
    /// `None` if one of them has no readable counter.
    pub joules: Option<f64>,
    /// Driver and clock of each device, as far as they can be read.
    pub hardware: Vec<Hardware>,
}

/// What a measured device worked with.
#[derive(Clone, PartialEq, Debug, Default)]
pub struct Hardware {
    /// Version of the GPU's driver.
    pub driver: Option<String>,
    /// Clock of the arithmetic units during the trial, megahertz, as the driver states it.
    pub megahertz: Option<f64>,
}

impl Measurement {
    /// Mean power of the devices, in watts.
    pub fn watts(&self) -> Option<f64> {
        Some(self.joules? / self.wall.as_secs_f64())
    }

    /// Candidates tested for each joule.
    pub fn candidates_per_joule(&self) -> Option<f64> {
        Some(self.candidates as f64 / self.joules?)
    }

    /// Candidates tested per second of wall time.
    pub fn rate(&self) -> Rate {
        Rate(self.candidates as f64 / self.wall.as_secs_f64())
    }

    /// Difference of the number of hits from the expected one, in standard deviations (Poisson).
    pub fn deviation(&self) -> f64 {
        (self.hits_found as f64 - self.hits_expected) / self.hits_expected.sqrt()
    }
}

/// Reason why nothing was measured.
#[derive(Debug, Error)]
pub enum MeasureError {
    /// No device could be opened.
    #[error(transparent)]
    Search(#[from] SearchError),
    /// No start point can be drawn.
    #[error(transparent)]
    Vault(#[from] VaultError),
    /// These patterns cannot be measured.
    #[error("{0}")]
    Patterns(String),
    /// A device was taken out of use, or has no rate yet.
    #[error("a device does not work: {0}")]
    Device(String),
}

/// Measures the chosen devices, all together. Every hit is recomputed with libsecp256k1, after the
/// clock has stopped. `tick` is called with the elapsed part of the time, 0 to 1.
pub fn measure(
    options: &SearchOptions,
    vault: Vault,
    trial: &Trial,
    tick: impl FnMut(f64),
) -> Result<Measurement, MeasureError> {
    measure_with(options, DeviceOpener::here(), vault, trial, tick)
}

/// [`measure`] with another opener of devices.
fn measure_with(
    options: &SearchOptions,
    opener: DeviceOpener,
    vault: Vault,
    trial: &Trial,
    mut tick: impl FnMut(f64),
) -> Result<Measurement, MeasureError> {
    // A half point that belongs to nobody; the vault has its secret.
    let half = trial.split.then(|| vault.open_start()).transpose()?;
    let surroundings = Surroundings::new(Clock::System);
    let (mut scheduler, receiver) = Scheduler::start_devices(options, opener, surroundings, Pool::exhaustive(), vault)?;
    // The channel ends with the devices.
    drop(scheduler.launches.take());
    let pool = Arc::clone(&scheduler.pool);
    if scheduler.devices().iter().any(|device| device.id != DeviceId::Cpu)
        && let Some(pattern) = trial.chosen.iter().find(|pattern| !Lane::Hard.takes(pattern.bits()))
    {
        // The CPU thread beside GPUs is not measured.
        let reason = "is too easy for a GPU: the CPU searches it; take a longer one, or --device cpu";
        return Err(MeasureError::Patterns(format!("{pattern} {reason}")));
    }
    let rate = first_rate(&scheduler, &receiver)?;
    let characters = match trial.characters {
        Some(characters) => characters,
        None => length_for(rate.0 * trial.seconds, trial.patterns),
    };
    let patterns = match trial.chosen.as_slice() {
        [] => random_patterns(trial.patterns, characters)?,
        chosen => chosen.to_vec(),
    };

    let sensors = scheduler.sensors();
    let joules = || sensors.iter().map(Sensors::joules).sum::<Option<f64>>();
    let before = joules();
    let began = Instant::now();
    let half = half.map(|(_, point)| HalfPoint::new(*point.public_key()));
    pool.insert(JobId(1), JobSpec { half, ..JobSpec::local(patterns) });
    let ends = began + Duration::from_secs_f64(trial.seconds);
    let (mut launches, mut ended, mut watts, mut clocks) = (Vec::new(), began, None, Vec::new());
    loop {
        let now = Instant::now();
        // A busy machine may take longer than the trial to begin.
        let has_begun = !launches.is_empty() || now >= ends + FIRST_LAUNCH_TIMEOUT;
        if now >= ends && has_begun {
            // Launches in flight count, and so does the time until they are collected.
            pool.close();
        }
        tick((now - began).as_secs_f64() / trial.seconds);
        match receiver.recv_timeout(Duration::from_millis(50)) {
            Ok(Delivered { launch, collected, .. }) if launch.pass.patterns.len() > 1 => {
                ended = ended.max(collected);
                launches.push(launch);
                // Read once, while all devices still work. Reading eight GPUs takes 40 ms.
                if pool.is_closed() && watts.is_none() {
                    let used = Option::zip(before, joules()).map(|(before, after)| after - before);
                    watts = Some(used.map(|joules| joules / began.elapsed().as_secs_f64()));
                    clocks = sensors.iter().map(|device| device.read().megahertz).collect();
                }
            }
            Ok(_) | Err(RecvTimeoutError::Timeout) => {}
            Err(RecvTimeoutError::Disconnected) => break,
        }
    }
    scheduler.join_devices();
    let devices = scheduler.devices();
    all_work(&devices)?;
    let wall = ended - began;
    let joules = watts.flatten().map(|watts| watts * wall.as_secs_f64());
    let clocks = clocks.into_iter().chain(std::iter::repeat(None));
    let hardware =
        sensors.iter().zip(clocks).map(|(device, megahertz)| Hardware { driver: device.driver(), megahertz });
    let (hits_found, hits_wrong) = count_hits(&launches);
    Ok(Measurement {
        characters,
        wall,
        busy: launches.iter().map(|launch| launch.report.busy).sum::<Duration>() / devices.len().max(1) as u32,
        candidates: launches.iter().map(|launch| launch.report.candidates).sum(),
        hits_expected: expected_hits(&launches),
        hits_found,
        hits_wrong,
        joules,
        hardware: hardware.collect(),
        devices,
    })
}

/// Fails if a device was taken out of use.
fn all_work(devices: &[DeviceStatus]) -> Result<(), MeasureError> {
    devices.iter().try_for_each(|device| match &device.health {
        Health::Working => Ok(()),
        Health::Out(reason) => Err(MeasureError::Device(reason.clone())),
    })
}

/// Waits for every device's first measured rate.
fn first_rate(scheduler: &Scheduler, launches: &mpsc::Receiver<Delivered>) -> Result<Rate, MeasureError> {
    let deadline = Instant::now() + FIRST_RATE_TIMEOUT;
    loop {
        // The warm-up's launches are not part of the trial.
        let _ = launches.recv_timeout(Duration::from_millis(10));
        let devices = scheduler.devices();
        all_work(&devices)?;
        if devices.iter().all(|device| device.rate.is_some()) && scheduler.are_idle() {
            while launches.try_recv().is_ok() {}
            return Ok(scheduler.rate().unwrap_or_default());
        }
        if Instant::now() > deadline {
            return Err(MeasureError::Device(format!("it showed no rate within {} s", FIRST_RATE_TIMEOUT.as_secs())));
        }
    }
}

/// The greatest length at which this many patterns still have enough hits among `candidates`.
fn length_for(candidates: f64, patterns: usize) -> u32 {
    let bits = (candidates * patterns as f64 / ENOUGH_HITS).max(1.0).log2();
    ((bits / 5.0) as u32).clamp(SHORTEST_PATTERN, 12)
}

/// Different random patterns of one length.
fn random_patterns(count: usize, characters: u32) -> Result<Vec<Pattern>, MeasureError> {
    // Drawing until all are different is fast only if at least half of all patterns stay unused.
    if count as f64 > Difficulty::from_bits(5 * characters).candidates() / 2.0 {
        return Err(MeasureError::Patterns(format!(
            "{count} different patterns of {characters} characters do not exist; take fewer, or longer ones"
        )));
    }
    let mut texts = HashSet::with_capacity(count);
    let mut random = vec![0u8; characters as usize];
    while texts.len() < count {
        getrandom::fill(&mut random).map_err(|_| VaultError::NoRandomness)?;
        texts.insert(random.iter().map(|byte| char::from(ALPHABET[usize::from(byte % 32)])).collect::<String>());
    }
    Ok(texts.iter().filter_map(|text| Pattern::parse(text).ok()).collect())
}

/// Recomputes every hit, on all cores. Returns the numbers of right and wrong ones.
fn count_hits(launches: &[CollectedLaunch]) -> (u64, u64) {
    let threads = std::thread::available_parallelism().map_or(1, usize::from);
    let add = |sum: (u64, u64), one: (u64, u64)| (sum.0 + one.0, sum.1 + one.1);
    let count = |launch: &CollectedLaunch| {
        let verified = verify(launch);
        (verified.hits_right, verified.hits_wrong)
    };
    std::thread::scope(|scope| {
        let shares = launches.chunks(launches.len().div_ceil(threads).max(1));
        let threads: Vec<_> =
            shares.map(|share| scope.spawn(move || share.iter().map(count).fold((0, 0), add))).collect();
        threads.into_iter().map(|share| share.join().expect("verification does not panic")).fold((0, 0), add)
    })
}

/// The number of hits that an honest device finds, on average.
fn expected_hits(launches: &[CollectedLaunch]) -> f64 {
    // Most launches share a pass. Its difficulty may take a while to compute, so it is computed
    // once.
    let mut known: HashMap<*const PatternSet, f64> = HashMap::new();
    let mut expected = |launch: &CollectedLaunch| {
        let patterns = &launch.pass.patterns;
        let difficulty = || patterns.difficulty().map_or(f64::INFINITY, Difficulty::candidates);
        launch.report.candidates as f64 / *known.entry(Arc::as_ptr(patterns)).or_insert_with(difficulty)
    };
    launches.iter().map(&mut expected).sum()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::scheduler::tests::FakeDevice;
    use crate::search::{self, DeviceChoice, Searcher, cuda};

    /// The rate of the CPU thread beside a GPU was once mistaken for that of the GPU.
    #[test]
    fn a_pattern_that_the_measured_gpu_leaves_to_the_cpu_is_refused() {
        let opener = DeviceOpener::new(cuda::device_count, |id, options: &SearchOptions| match id {
            DeviceId::Cpu => search::open(id, options),
            DeviceId::Cuda(_) | DeviceId::Remote(_) => Ok(Box::new(FakeDevice::new(id)) as Box<dyn Searcher>),
        });
        let options = SearchOptions { devices: DeviceChoice::CudaOrdinal(0), ..SearchOptions::default() };
        let measured = |text: &str| {
            let chosen = vec![text.parse().unwrap()];
            // The trial is over before its first launch, and waits for it.
            let trial = Trial { patterns: 1, chosen, characters: None, seconds: 1e-9, split: false };
            measure_with(&options, opener.clone(), Vault::without_identity().unwrap(), &trial, |_| {})
        };
        for easy in ["cat", "*al7ce*"] {
            let refused = measured(easy);
            assert!(matches!(&refused, Err(MeasureError::Patterns(reason)) if reason.starts_with(easy)), "{refused:?}");
        }
        for hard in ["m0ctane", "*al7cet*"] {
            let found = measured(hard).unwrap();
            assert!(found.candidates > 0 && found.candidates % 1000 == 0, "{hard}: {found:?}");
            let wall = Duration::from_secs(2);
            let told = Measurement { wall, candidates: 10, hits_expected: 4.0, hits_found: 10, ..found };
            assert_eq!((told.rate(), told.deviation()), (Rate(5.0), 3.0));
        }
    }

    #[test]
    fn more_patterns_than_exist_are_an_error() {
        assert!(matches!(random_patterns(20, 1), Err(MeasureError::Patterns(_))));
        assert_eq!(random_patterns(16, 1).unwrap().len(), 16);
    }
}
