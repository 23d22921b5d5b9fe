//! How long the plentiful patterns of a new job wait for their turn: for the older ones, at so many keys a second.

use super::pass::Lane;
use super::select::{Device, PatternIndex};
use std::time::Duration;

/// Thirty years, in seconds.
const LONGEST: f64 = 1e9;

/// What waits before a new job of the pool.
#[derive(Clone, Copy, PartialEq, Debug, Default)]
pub struct Queue {
    /// A request of at most so many bits waits for the older ones; a harder one is searched at once, and always.
    pub up_to_bits: u32,
    /// Until those that are open now are served, were all devices the pool's.
    pub wait: Duration,
}

/// What the working devices do together.
#[derive(Clone, Copy, PartialEq, Debug)]
pub(in crate::scheduler) struct Serving {
    pub lane: Lane,
    /// Candidates a start point is searched over, of the device that has most.
    pub stretch: f64,
    /// Start points of a launch.
    pub starts: usize,
    pub bases_a_second: f64,
    /// Whether hits of easy patterns take nothing from rare ones: [`crate::search::Searcher::early_stop`].
    pub early_stop: bool,
}

/// How long the CPU thread beside GPUs searches a start point, in seconds.
const BASE_BESIDE: f64 = 0.05;

impl Queue {
    /// A job takes a start point. One with more hits than are worth verifying takes up more while there are rare ones.
    pub(in crate::scheduler) fn of(crowd: &PatternIndex, serving: Serving) -> Queue {
        let early_stop = serving.early_stop;
        let device = Device { lane: serving.lane, stretch: Some(serving.stretch), part: 1.0, early_stop };
        let rare_from = crowd.rare_from(device);
        let has_rare = crowd.counts(device.lane).any(|(bits, _)| bits >= rare_from);
        let worth = device.goal(serving.starts, has_rare).most;
        let of_class = |(bits, jobs): (u32, usize)| {
            let hits = device.hits(bits) / worth;
            let launches = if has_rare { hits } else { hits.min(1.0) };
            let on_device = (launches * serving.starts as f64).max(1.0) / serving.bases_a_second;
            let is_taken_beside = serving.lane == Lane::Hard && Lane::Easy.takes(bits);
            jobs as f64 * if is_taken_beside { on_device.min(BASE_BESIDE) } else { on_device }
        };
        let seconds: f64 = crowd.counts(device.lane).filter(|&(bits, _)| bits < rare_from).map(of_class).sum();
        let wait = Duration::from_secs_f64(if seconds.is_finite() { seconds.min(LONGEST) } else { 0.0 });
        Queue { up_to_bits: rare_from.saturating_sub(1), wait }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::job::{JobId, JobSpec};

    /// Twenty start points a second over 2^25 candidates each.
    const CORE: Serving =
        Serving { lane: Lane::All, stretch: (1u64 << 25) as f64, starts: 1, bases_a_second: 20.0, early_stop: true };

    fn crowd(jobs: i64, text: &str) -> PatternIndex {
        let mut crowd = PatternIndex::default();
        (1..=jobs).for_each(|job| crowd.insert(JobId(job), &JobSpec::for_tests(&[text], None)));
        crowd
    }

    #[test]
    fn older_requests_take_a_start_point_each_or_more_beside_a_rare_one() {
        assert_eq!(Queue::of(&PatternIndex::default(), CORE), Queue { up_to_bits: 30, wait: Duration::ZERO });
        let mut easy = crowd(100, "qqqq");
        assert_eq!(Queue::of(&easy, CORE).wait, Duration::from_secs(5), "a start each");
        easy.insert(JobId(101), &JobSpec::for_tests(&["qqqqqqqq"], None));
        assert_eq!(Queue::of(&easy, CORE).wait, Duration::from_secs(5), "a start each all the same");
        let other = Serving { early_stop: false, ..CORE };
        assert_eq!(Queue::of(&easy, other).wait, Duration::from_secs(20), "32 hits a start, of which 8 are worth it");
        assert_eq!(Queue::of(&crowd(100, "qqqqqqqq"), CORE).wait, Duration::ZERO, "nobody waits for a rare one");
        let many = Serving { starts: 64, bases_a_second: 1280.0, ..CORE };
        assert_eq!(Queue::of(&easy, many).wait, Duration::from_secs_f64(100.0 / 1280.0), "a start, not a launch of 64");
        let gpu = Serving {
            lane: Lane::Hard,
            stretch: (1u64 << 29) as f64,
            starts: 22,
            bases_a_second: 400.0,
            early_stop: false,
        };
        assert_eq!(Queue::of(&easy, gpu).wait, Duration::from_secs(5), "the CPU thread beside it serves them");
        assert_eq!(Queue::of(&crowd(100, "qqqqqq"), gpu).wait, Duration::from_millis(250), "a start each");
    }
}
