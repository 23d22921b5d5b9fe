//! What a further job can expect: its share of the devices, its place in line, and the time until it
//! is searched.

use super::device_plan::{POOL_PART, seated_part};
use super::jobs::{OpenJobs, PatternIndex, RoomTaken};
use super::profile::{DeviceProfile, EARLY_STOP_HITS, KeyPart, Lane, stretch_bits};
use super::split_line::SEATS;
use crate::job::{Asker, JobSpec, Priority};
use std::time::Duration;

/// The open jobs and their shares of the devices (0 to 1), from the view of one asker.
#[derive(Clone, Copy, PartialEq, Debug, Default)]
pub struct Shares {
    /// Open jobs of the pool.
    pub pool_jobs: usize,
    /// Open split jobs.
    pub split_jobs: usize,
    /// The room that all open jobs take.
    pub room: RoomTaken,
    /// The pool's share, once it has a job.
    pub pool_part: f64,
    /// The share of the pool's time for patterns compared by top words.
    pub top_words_part: f64,
    /// The share of the pool's time for patterns that need whole keys compared.
    pub whole_keys_part: f64,
    /// The share of each split job of this asker, once it has a seat.
    pub own_split_part: f64,
    /// The value that `own_split_part` would have if the asker had one more split job.
    pub part_of_one_more: f64,
    /// The place in line of one more split job, from 1; `None` if it would be searched at once.
    pub place_of_one_more: Option<usize>,
}

impl Shares {
    /// Counts a job that is accepted and not added yet.
    pub fn count(&mut self, spec: &JobSpec) {
        self.room.add(spec);
        match spec.half {
            Some(_) => self.split_jobs += 1,
            None => self.pool_jobs += 1,
        }
    }

    /// The shares that this asker is told.
    pub fn new(jobs: &OpenJobs, asker: Asker) -> Shares {
        // Those on a device that searches all patterns.
        let seats = jobs.split_line().seats(Lane::All);
        let (split_jobs, askers, own) = (jobs.split_line().len(), seats.askers.len(), seats.jobs_of(asker));
        let pool_jobs = jobs.len() - split_jobs;
        let each = |askers, own, has_waiting| seated_part(pool_jobs > 0, has_waiting, askers, own);
        // The kinds of launches share the pool's time equally.
        let beside = |other: KeyPart| if jobs.pool_index(other).is_empty() { 1.0 } else { 0.5 };
        let line = jobs.split_line();
        let place = line.askers_before(asker).map_or(line.askers() - askers, |before| before - askers.min(before));
        // A new asker takes a free seat, or else waits for one.
        let (is_new, is_full) = (own == 0, askers == SEATS);
        Shares {
            pool_jobs,
            room: jobs.room(),
            split_jobs,
            pool_part: if split_jobs > 0 { POOL_PART } else { 1.0 },
            top_words_part: beside(KeyPart::Whole),
            whole_keys_part: beside(KeyPart::Top32),
            own_split_part: each(askers, own, seats.has_waiting),
            part_of_one_more: each(
                askers + usize::from(is_new && !is_full),
                own + 1,
                seats.has_waiting || (is_new && is_full),
            ),
            place_of_one_more: (is_new && is_full).then_some(place + 1),
        }
    }

    /// The share of the devices that a job of this asker has. For a job with patterns of both
    /// kinds, it is a share of the rate that applies while the two kinds take turns.
    pub fn part_of(&self, spec: &JobSpec) -> f64 {
        if spec.half.is_some() {
            return self.own_split_part;
        }
        let has = |compared: KeyPart| spec.patterns.iter().any(|pattern| compared.takes(pattern));
        self.pool_part
            * match (has(KeyPart::Top32), has(KeyPart::Whole)) {
                (true, true) => 1.0,
                (false, true) => self.whole_keys_part,
                _ => self.top_words_part,
            }
    }
}

/// The longest wait an asker is told, in seconds: thirty years.
const LONGEST_WAIT: f64 = 1e9;

/// Hits of plentiful patterns after which a device stops early.
const EARLY_STOP_AFTER: f64 = 4.0;

/// The least part of a start point that is searched: passes hold no more jobs than that.
const LEAST_EARLY_PART: f64 = EARLY_STOP_AFTER / EARLY_STOP_HITS;

/// Seconds that the CPU thread beside GPUs spends on a start point.
const SIDE_THREAD_SECONDS: f64 = 0.05;

/// The time that a new job of the pool waits before it is searched.
#[derive(Clone, Copy, PartialEq, Debug, Default)]
pub struct WaitEstimate {
    /// Requests of at most this many bits wait for older ones. Harder requests are searched at
    /// once.
    pub up_to_bits: u32,
    /// Time until the older jobs are served, if all devices worked only for the pool.
    pub wait: Duration,
}

/// The capacity of all working devices together.
#[derive(Clone, Copy, PartialEq, Debug)]
pub struct Serving {
    /// The lane of the devices.
    pub lane: Lane,
    /// Candidates per start point, on the device where this number is largest.
    pub stretch: f64,
    /// Start points in one launch of each device.
    pub starts: usize,
    /// Start points searched per second.
    pub starts_per_second: f64,
    /// Whether all devices have an early stop ([`crate::search::Searcher::early_stop`]).
    pub early_stop: bool,
}

impl WaitEstimate {
    /// Estimates the wait behind the jobs of `index` that come before a new one of this priority.
    /// Each takes one start point. Beside rare patterns it takes more if it has more hits than are
    /// worth verifying. Without, devices with an early stop take a part of one.
    pub fn new(index: &PatternIndex, serving: Serving, priority: Priority) -> WaitEstimate {
        let early_stop = serving.early_stop;
        let (lane, compared) = (serving.lane, KeyPart::Top32);
        let stretch_bits = Some(stretch_bits(serving.stretch));
        let device = DeviceProfile { lane, compared, stretch_bits, early_stop };
        let rare_from = index.rare_from(device);
        let has_rare = index.has_rare(device.lane, rare_from);
        let worth = device.goal(serving.starts, has_rare).most;
        let seconds = |(bits, jobs): (u32, usize)| {
            let hits = device.hits(bits) / worth;
            let launches = if has_rare { hits } else { hits.min(1.0) };
            let on_device = (launches * serving.starts as f64).max(1.0) / serving.starts_per_second;
            let has_side_thread = serving.lane == Lane::Hard && Lane::Easy.takes(bits);
            jobs as f64 * if has_side_thread { on_device.min(SIDE_THREAD_SECONDS) } else { on_device }
        };
        let plentiful = || index.counts(device.lane, priority).filter(|&(bits, _)| bits < rare_from);
        let stops_early = if early_stop && !has_rare { part_before_early_stop(device, plentiful()) } else { 1.0 };
        let seconds = stops_early * plentiful().map(seconds).sum::<f64>();
        let wait = Duration::from_secs_f64(if seconds.is_finite() { seconds.min(LONGEST_WAIT) } else { 0.0 });
        WaitEstimate { up_to_bits: rare_from.saturating_sub(1), wait }
    }
}

/// The part of their start points that a device with an early stop searches, on average, while it
/// serves these jobs (bits, jobs): the fewer are left, the later it stops.
fn part_before_early_stop(device: DeviceProfile, jobs: impl Iterator<Item = (u32, usize)>) -> f64 {
    let (mut count, mut hits) = (0.0, 0.0);
    for (bits, jobs) in jobs {
        count += jobs as f64;
        hits += jobs as f64 * device.hits(bits);
    }
    // With so many jobs in a pass, a start point has as many hits as the early stop waits for.
    let enough = count * EARLY_STOP_AFTER / hits;
    if count <= enough { 1.0 } else { (enough * (1.0 + (count / enough).ln()) / count).max(LEAST_EARLY_PART) }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::job::{JobId, JobSpec};
    use crate::pattern::Rate;
    use crate::scheduler::plan::profile::DeviceRates;

    /// A CPU core that searches twenty start points a second, with 2^25 candidates each.
    const CORE: Serving =
        Serving { lane: Lane::All, stretch: (1u64 << 25) as f64, starts: 1, starts_per_second: 20.0, early_stop: true };

    fn index(jobs: i64, text: &str) -> PatternIndex {
        let mut index = PatternIndex::default();
        (1..=jobs).for_each(|job| index.insert(JobId(job), &JobSpec::for_tests(&[text], None), KeyPart::Top32));
        index
    }

    fn wait(index: &PatternIndex, serving: Serving, priority: Priority) -> Duration {
        WaitEstimate::new(index, serving, priority).wait
    }

    #[test]
    fn older_requests_take_a_start_point_each_or_more_beside_a_rare_one() {
        use Priority::New;
        assert_eq!(WaitEstimate::new(&index(0, "q"), CORE, New), WaitEstimate { up_to_bits: 30, ..Default::default() });
        let mut easy = index(100, "qqqq");
        let alone = wait(&easy, CORE, New);
        assert!(alone < Duration::from_millis(250), "the early stop comes after a part of a start point: {alone:?}");
        assert_eq!(wait(&index(100, "qqqqqq"), CORE, New), Duration::from_secs(5), "not where there are few hits");
        easy.insert(JobId(101), &JobSpec::for_tests(&["qqqqqqqq"], None), KeyPart::Top32);
        assert_eq!(wait(&easy, CORE, New), Duration::from_secs(5), "a whole one beside a rare pattern");
        let other = Serving { early_stop: false, ..CORE };
        assert_eq!(wait(&easy, other, New), Duration::from_secs(20), "8 of 32 hits a start point are worth verifying");
        assert_eq!(wait(&index(100, "qqqqqqqq"), CORE, New), Duration::ZERO, "rare requests do not wait");
        let many = Serving { starts: 64, starts_per_second: 1280.0, ..CORE };
        assert_eq!(wait(&easy, many, New), Duration::from_secs_f64(100.0 / 1280.0), "a start, not a launch of 64");
        let gpu = Serving {
            lane: Lane::Hard,
            stretch: (1u64 << 29) as f64,
            starts: 22,
            starts_per_second: 400.0,
            early_stop: false,
        };
        assert_eq!(wait(&easy, gpu, New), Duration::from_secs(5), "the CPU thread beside it serves them");
        assert_eq!(wait(&index(100, "qqqqqq"), gpu, New), Duration::from_millis(250), "one start point each");
    }

    /// Nobody waits for those who come after them, and nobody for a job without a target.
    #[test]
    fn an_asker_waits_only_for_those_who_come_first() {
        let mut index = index(0, "q");
        let waits = |index: &PatternIndex| Priority::EVERY.map(|priority| wait(index, CORE, priority).as_millis());
        let mut insert = |job, spec| index.insert(JobId(job), &spec, KeyPart::Top32);
        (0..300).for_each(|job| insert(job, JobSpec::local_best("best zeros 10s".parse().unwrap())));
        for (job, priority) in (300..).zip(Priority::EVERY) {
            (0..10).for_each(|n| insert(10 * job + n, JobSpec { priority, ..JobSpec::for_tests(&["qqqqqq"], None) }));
        }
        assert_eq!(waits(&index), [500, 1000, 1500, 2000]);
    }

    #[test]
    fn a_split_job_has_its_own_part_and_a_job_of_the_pool_that_of_its_kind() {
        let shares = Shares {
            pool_part: 0.5,
            own_split_part: 0.125,
            top_words_part: 1.0,
            whole_keys_part: 0.25,
            ..Shares::default()
        };
        let split = JobSpec::for_tests(&["qqqq"], Some(Asker([1; 32])));
        assert_eq!(shares.part_of(&split), 0.125);
        let of_pool = |text: &str| shares.part_of(&JobSpec::local(vec![text.parse().unwrap()]));
        assert_eq!((of_pool("qqqq"), of_pool("*cafe")), (0.5, 0.125));
        let mut counted = shares;
        counted.count(&split);
        counted.count(&JobSpec::local(vec!["qqqq".parse().unwrap()]));
        assert_eq!((counted.pool_jobs, counted.split_jobs), (1, 1));
    }

    #[test]
    fn a_rate_of_zero_is_no_rate() {
        let rates = DeviceRates { top_words: Some(Rate(1e6)), whole_keys: Some(Rate(0.0)) };
        assert!(rates.cost(KeyPart::Whole).is_finite());
    }
}
