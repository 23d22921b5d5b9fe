//! The prospects of a new split job: its place in line, and the proof of work it costs.

use super::fair_share::{POOL_PART, WAITING_PART};
use super::split_line::{Seats, SplitLine};
use crate::job::Asker;
use std::time::Duration;

/// A further split job costs no work while other askers have fewer open split jobs than this.
const FREE_JOBS: usize = 16;
/// Bits of work for a further job when other askers have [`FREE_JOBS`].
const FIRST_BITS: u32 = 16;
/// The most bits of work. They take one core some minutes.
const MOST_BITS: u32 = 32;

/// The prospects of a further split job, for its asker.
#[derive(Clone, Copy, PartialEq, Debug)]
pub struct SplitQueue {
    /// Open split jobs of all askers.
    pub open: usize,
    /// Askers who wait for a seat.
    pub waiting: usize,
    /// The job's place in line, from 1; `None` if it would be searched at once.
    pub place: Option<usize>,
    /// Upper bound on the time until its first launch. `None` while the rate is unknown.
    pub first_launch_within: Option<Duration>,
    /// Bits of proof of work (NIP-13) that the job costs, if any.
    pub work_bits: Option<u32>,
}

impl SplitQueue {
    /// `launch_seconds` is the duration of the longest launch.
    pub(in crate::scheduler) fn new(
        line: &SplitLine,
        seats: &Seats,
        asker: Asker,
        launch_seconds: Option<f64>,
    ) -> SplitQueue {
        let waiting = line.askers() - seats.askers.len();
        let is_seated = seats.jobs_of(asker) > 0 || !seats.is_full;
        let place = match line.askers_before(asker) {
            _ if is_seated => None,
            Some(before) => Some(before + 1 - seats.askers.len().min(before)),
            None => Some(waiting + 1),
        };
        let launches = first_launch_after(line.new_askers());
        SplitQueue {
            open: line.len(),
            waiting,
            place,
            first_launch_within: launch_seconds.map(|seconds| Duration::from_secs_f64(launches as f64 * seconds)),
            work_bits: work_bits(line.len() - line.jobs_of(asker)),
        }
    }
}

/// Upper bound on the launches of a device until a new asker has had one. The `new_askers` have had
/// no turn either, and come before. Waiting askers have one launch in eight. Two launches are added
/// for those in flight and for rounding.
pub(in crate::scheduler) fn first_launch_after(new_askers: usize) -> usize {
    let launches_per_turn = 1.0 / ((1.0 - POOL_PART) * WAITING_PART);
    (new_askers + 1) * launches_per_turn as usize + 2
}

/// Bits of work for a further split job while other askers have `others` open ones. Each time that
/// number doubles, the work has two bits more, so it grows with the square of the number.
pub(in crate::scheduler) fn work_bits(others: usize) -> Option<u32> {
    let times = others.checked_sub(FREE_JOBS).map(|_| others as f64 / FREE_JOBS as f64)?;
    Some((FIRST_BITS + (2.0 * times.log2()) as u32).min(MOST_BITS))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_work_grows_with_the_number_of_open_split_jobs() {
        let bits = [0, 15, 16, 31, 32, 64, 256, 2000, 1_000_000].map(work_bits);
        let expected = [None, None, Some(16), Some(17), Some(18), Some(20), Some(24), Some(29), Some(32)];
        assert_eq!(bits, expected);
    }
}
