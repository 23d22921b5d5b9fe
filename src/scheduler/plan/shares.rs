//! The shares of the devices, as the bot tells them to an asker.

use super::compared::Compared;
use super::fair_share::{POOL_PART, WAITING_PART};
use super::jobs::OpenJobs;
use super::split_line::Seats;
use crate::job::{Asker, JobSpec};

/// The open jobs and their shares of the devices (0 to 1), from the view of one asker.
#[derive(Clone, Copy, PartialEq, Debug, Default)]
pub struct Shares {
    /// Open jobs of the pool.
    pub pool_jobs: usize,
    /// Open split jobs.
    pub split_jobs: usize,
    /// Intervals that the devices' filters need for all open jobs.
    pub intervals: usize,
    /// Tests of whole texts, summed over the patterns of all open jobs.
    pub text_tests: usize,
    /// The share of keys that pass a filter and need a full check, summed over the patterns of all
    /// open jobs ([`crate::pattern::Pattern::handed_on`]).
    pub handed_on: f64,
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
}

impl Shares {
    pub(in crate::scheduler) fn new(jobs: &OpenJobs, seats: &Seats, asker: Asker) -> Shares {
        let (split_jobs, askers, own) = (jobs.split_line().len(), seats.askers.len(), seats.jobs_of(asker));
        let pool_jobs = jobs.len() - split_jobs;
        let split_part = if pool_jobs > 0 { 1.0 - POOL_PART } else { 1.0 };
        let each = |askers: usize, own: usize, has_waiting: bool| {
            let seated_part = if has_waiting { 1.0 - WAITING_PART } else { 1.0 };
            split_part * seated_part / askers.max(1) as f64 / own.max(1) as f64
        };
        // The kinds of launches share the pool's time equally.
        let beside = |other: Compared| if jobs.pool_index(other).is_empty() { 1.0 } else { 0.5 };
        // A new asker takes a free seat, or else waits for one.
        let takes_new_seat = own == 0 && !seats.is_full;
        Shares {
            pool_jobs,
            intervals: jobs.intervals(),
            text_tests: jobs.text_tests(),
            handed_on: jobs.handed_on(),
            split_jobs,
            pool_part: if split_jobs > 0 { POOL_PART } else { 1.0 },
            top_words_part: beside(Compared::WholeKeys),
            whole_keys_part: beside(Compared::TopWords),
            own_split_part: each(askers, own, seats.has_waiting),
            part_of_one_more: each(
                askers + usize::from(takes_new_seat),
                own + 1,
                seats.has_waiting || (own == 0 && seats.is_full),
            ),
        }
    }

    /// The share of the devices that a job of this asker has. For a job with patterns of both
    /// kinds, it is a share of the rate that applies while the two kinds take turns.
    pub fn part_of(&self, spec: &JobSpec) -> f64 {
        if spec.half.is_some() {
            return self.own_split_part;
        }
        let has = |compared: Compared| spec.patterns.iter().any(|pattern| compared.takes(pattern));
        self.pool_part
            * match (has(Compared::TopWords), has(Compared::WholeKeys)) {
                (true, true) => 1.0,
                (false, true) => self.whole_keys_part,
                _ => self.top_words_part,
            }
    }
}
