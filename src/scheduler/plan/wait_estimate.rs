//! An estimate of how long a new easy job waits for older ones.

use super::compared::Compared;
use super::lane::Lane;
use super::pattern_index::PatternIndex;
use super::profile::DeviceProfile;
use std::time::Duration;

/// The longest wait an asker is told, in seconds: thirty years.
const LONGEST: f64 = 1e9;

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
pub(in crate::scheduler) struct Serving {
    /// The lane of the devices.
    pub lane: Lane,
    /// Candidates per start point, on the device where this number is largest.
    pub stretch: f64,
    /// Start points in one launch of each device.
    pub starts: usize,
    /// Start points searched per second.
    pub starts_per_second: f64,
    /// Duration of the longest launch.
    pub launch_seconds: f64,
    /// Whether all devices have an early stop ([`crate::search::Searcher::early_stop`]).
    pub early_stop: bool,
}

impl WaitEstimate {
    /// Estimates the wait behind the jobs of `index`. Each of these takes one start point. Beside
    /// rare patterns it takes more if it has more hits than are worth verifying.
    pub(in crate::scheduler) fn new(index: &PatternIndex, serving: Serving) -> WaitEstimate {
        let early_stop = serving.early_stop;
        let (lane, compared) = (serving.lane, Compared::TopWords);
        let device = DeviceProfile { lane, compared, stretch: Some(serving.stretch), part: 1.0, early_stop };
        let rare_from = index.rare_from(device);
        let has_rare = index.counts(device.lane).any(|(bits, _)| bits >= rare_from);
        let worth = device.goal(serving.starts, has_rare).most;
        let seconds = |(bits, jobs): (u32, usize)| {
            let hits = device.hits(bits) / worth;
            let launches = if has_rare { hits } else { hits.min(1.0) };
            let on_device = (launches * serving.starts as f64).max(1.0) / serving.starts_per_second;
            let has_side_thread = serving.lane == Lane::Hard && Lane::Easy.takes(bits);
            jobs as f64 * if has_side_thread { on_device.min(SIDE_THREAD_SECONDS) } else { on_device }
        };
        let seconds: f64 = index.counts(device.lane).filter(|&(bits, _)| bits < rare_from).map(seconds).sum();
        let wait = Duration::from_secs_f64(if seconds.is_finite() { seconds.min(LONGEST) } else { 0.0 });
        WaitEstimate { up_to_bits: rare_from.saturating_sub(1), wait }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::job::{JobId, JobSpec};

    /// A CPU core that searches twenty start points a second, with 2^25 candidates each.
    const CORE: Serving = Serving {
        lane: Lane::All,
        stretch: (1u64 << 25) as f64,
        starts: 1,
        launch_seconds: 0.05,
        starts_per_second: 20.0,
        early_stop: true,
    };

    fn index(jobs: i64, text: &str) -> PatternIndex {
        let mut index = PatternIndex::default();
        (1..=jobs).for_each(|job| index.insert(JobId(job), &JobSpec::for_tests(&[text], None), Compared::TopWords));
        index
    }

    #[test]
    fn older_requests_take_a_start_point_each_or_more_beside_a_rare_one() {
        assert_eq!(WaitEstimate::new(&index(0, "q"), CORE), WaitEstimate { up_to_bits: 30, wait: Duration::ZERO });
        let mut easy = index(100, "qqqq");
        assert_eq!(WaitEstimate::new(&easy, CORE).wait, Duration::from_secs(5), "one start point each");
        easy.insert(JobId(101), &JobSpec::for_tests(&["qqqqqqqq"], None), Compared::TopWords);
        assert_eq!(WaitEstimate::new(&easy, CORE).wait, Duration::from_secs(5), "still one start point each");
        let other = Serving { early_stop: false, ..CORE };
        assert_eq!(
            WaitEstimate::new(&easy, other).wait,
            Duration::from_secs(20),
            "32 hits per start point, of which 8 are worth verifying"
        );
        assert_eq!(WaitEstimate::new(&index(100, "qqqqqqqq"), CORE).wait, Duration::ZERO, "rare requests do not wait");
        let many = Serving { starts: 64, launch_seconds: 0.05, starts_per_second: 1280.0, ..CORE };
        assert_eq!(
            WaitEstimate::new(&easy, many).wait,
            Duration::from_secs_f64(100.0 / 1280.0),
            "a start, not a launch of 64"
        );
        let gpu = Serving {
            lane: Lane::Hard,
            stretch: (1u64 << 29) as f64,
            starts: 22,
            launch_seconds: 0.05,
            starts_per_second: 400.0,
            early_stop: false,
        };
        assert_eq!(WaitEstimate::new(&easy, gpu).wait, Duration::from_secs(5), "the CPU thread beside it serves them");
        assert_eq!(
            WaitEstimate::new(&index(100, "qqqqqq"), gpu).wait,
            Duration::from_millis(250),
            "one start point each"
        );
    }
}
