//! The line of split jobs: which are searched now, and which wait.
//!
//! Each split job needs launches of its own, at its asker's half point. The oldest jobs have
//! **seats**: as many as can be found within an hour at the measured rate. The askers behind them
//! **wait**, oldest first. They get single launches in rotation, and an asker without a launch so
//! far comes first. The search has no memory, so a waiting job loses nothing by being searched in
//! single launches. An easy job is often found in its first one, so its asker need not wait for
//! hard jobs.
//!
//! Seats and turns are counted by asker, so ten jobs of one asker count as one. A change costs
//! `O(log jobs)`.

use super::profile::Lane;
use crate::job::{Asker, JobId, JobSpec};
use std::collections::{BTreeMap, BTreeSet};
use std::ops::Bound::{Excluded, Unbounded};

/// Seconds within which all seated jobs should be found. This decides the number of seats.
const FINISH_WITHIN: f64 = 3600.0;
/// The fewest and the most seated jobs, however hard or easy they are. The upper limit bounds the
/// cost of new passes.
pub const FEWEST_SEATS: usize = 4;
pub const MOST_SEATS: usize = 32;
/// The most seats of one asker.
pub const SEATS_PER_ASKER: usize = 8;

/// The split jobs of one lane that are searched now.
#[derive(Clone, PartialEq, Debug, Default)]
pub struct Seats {
    /// The seated jobs of each asker who has a seat, oldest first.
    pub askers: BTreeMap<Asker, Vec<JobId>>,
    /// Whether some asker has no seat.
    pub has_waiting: bool,
    /// Whether a new asker must wait.
    pub is_full: bool,
}

impl Seats {
    /// Whether nobody has a seat.
    pub fn is_empty(&self) -> bool {
        self.askers.is_empty()
    }

    /// Seated jobs of an asker.
    pub fn jobs_of(&self, asker: Asker) -> usize {
        self.askers.get(&asker).map_or(0, Vec::len)
    }
}

/// The search that a job still needs.
#[derive(Clone, Copy, Debug)]
enum Work {
    /// Candidates until the job is found, on average.
    Candidates(f64),
    /// Seconds of search, for a job without a target.
    Seconds(f64),
}

impl Work {
    fn of(lane: Lane, spec: &JobSpec) -> Work {
        match &spec.best {
            Some(search) => Work::Seconds(search.best.time.saturating_sub(search.searched).as_secs_f64()),
            None => Work::Candidates(lane.expected_candidates(&spec.patterns)),
        }
    }

    /// The work in candidates at this rate. Seconds count as 0 candidates while the rate is
    /// unknown.
    fn candidates(self, rate: Option<f64>) -> f64 {
        match self {
            Work::Candidates(candidates) => candidates,
            Work::Seconds(seconds) => rate.map_or(0.0, |rate| rate * seconds),
        }
    }
}

/// All open split jobs.
#[derive(Debug, Default)]
pub struct SplitLine {
    len: usize,
    lines: BTreeMap<Lane, LaneLine>,
}

/// The askers who have split jobs for one lane.
#[derive(Debug, Default)]
struct LaneLine {
    askers: BTreeMap<Asker, AskerJobs>,
    /// Askers ordered by the oldest job of each.
    by_age: BTreeSet<(JobId, Asker)>,
    /// Askers ordered by the turns each has had while waiting, then by oldest job.
    by_turns: BTreeSet<(u64, JobId, Asker)>,
}

#[derive(Debug, Default)]
struct AskerJobs {
    /// The jobs, with the work that each still needs.
    jobs: BTreeMap<JobId, Work>,
    turns: u64,
    /// The job that had the last turn.
    last: Option<JobId>,
}

impl SplitLine {
    /// Replaces the patterns of a split job: none before for a new job, none now for one that is
    /// gone. The asker of a job that stays keeps the count of turns.
    pub fn change(&mut self, job: JobId, before: Option<&JobSpec>, now: Option<&JobSpec>) {
        let Some(asker) = now.or(before).map(|spec| spec.asker) else { return };
        self.len = self.len + usize::from(now.is_some()) - usize::from(before.is_some());
        for lane in Lane::EVERY {
            let of_lane = |spec: &&JobSpec| lane.takes_any(&spec.patterns);
            let (had, has) = (before.filter(of_lane).is_some(), now.filter(of_lane));
            if had || has.is_some() {
                let line = self.lines.entry(lane).or_default();
                line.change(asker, |jobs| match has {
                    Some(spec) => _ = jobs.insert(job, Work::of(lane, spec)),
                    None => _ = jobs.remove(&job),
                });
            }
        }
    }

    /// Number of open split jobs.
    pub fn len(&self) -> usize {
        self.len
    }

    /// Number of askers with split jobs.
    pub fn askers(&self) -> usize {
        self.lines.get(&Lane::All).map_or(0, |line| line.askers.len())
    }

    /// Number of askers who have had no turn while waiting.
    #[cfg(test)]
    pub fn new_askers(&self) -> usize {
        self.lines.get(&Lane::All).map_or(0, |line| line.by_turns.iter().filter(|(turns, ..)| *turns == 0).count())
    }

    /// Number of askers ahead of this one; `None` if the asker has no split job. Costs
    /// `O(askers ahead)`.
    pub fn askers_before(&self, asker: Asker) -> Option<usize> {
        let line = self.lines.get(&Lane::All)?;
        let oldest = line.askers.get(&asker)?.oldest()?;
        Some(line.by_age.range(..(oldest, asker)).count())
    }

    /// The jobs that are searched now. `rate` is the rate of all devices of the lane together, in
    /// candidates per second; `None` while it is unknown. Costs `O(seats)`.
    pub fn seats(&self, lane: Lane, rate: Option<f64>) -> Seats {
        let Some(line) = self.lines.get(&lane) else { return Seats::default() };
        let rate = rate.map(rounded_down);
        let within = rate.map_or(f64::INFINITY, |rate| rate * FINISH_WITHIN);
        let (mut seats, mut work, mut count) = (Seats::default(), 0.0, 0);
        'line: for &(_, asker) in &line.by_age {
            for (&job, needed) in line.askers[&asker].jobs.iter().take(SEATS_PER_ASKER) {
                work += needed.candidates(rate);
                let is_free = count < FEWEST_SEATS || (count < MOST_SEATS && work <= within);
                if !is_free {
                    break 'line;
                }
                seats.askers.entry(asker).or_default().push(job);
                count += 1;
            }
        }
        seats.has_waiting = seats.askers.len() < line.askers.len();
        seats.is_full = seats.has_waiting || count >= MOST_SEATS || (count >= FEWEST_SEATS && work >= within);
        seats
    }

    /// Takes the next turn in the rotation of waiting askers. Returns a job of the asker whose turn
    /// it is. Costs `O(seats + log jobs)`.
    pub fn take_turn(&mut self, lane: Lane, seats: &Seats) -> Option<JobId> {
        let line = self.lines.get_mut(&lane)?;
        // Only seated askers are skipped, so the scan passes at most as many entries as there are
        // seats.
        let &key = line.by_turns.iter().find(|(.., asker)| !seats.askers.contains_key(asker))?;
        let (turns, oldest, asker) = key;
        let own = line.askers.get_mut(&asker)?;
        let after = own.last.map_or(Unbounded, Excluded);
        let job = own.jobs.range((after, Unbounded)).next().map_or(oldest, |(&job, _)| job);
        own.last = Some(job);
        own.turns += 1;
        line.by_turns.remove(&key);
        line.by_turns.insert((turns + 1, oldest, asker));
        Some(job)
    }
}

impl LaneLine {
    /// Changes the jobs of one asker, and updates the asker's place in both orders.
    fn change(&mut self, asker: Asker, change: impl FnOnce(&mut BTreeMap<JobId, Work>)) {
        let own = self.askers.entry(asker).or_default();
        if let Some(oldest) = own.oldest() {
            self.by_age.remove(&(oldest, asker));
            self.by_turns.remove(&(own.turns, oldest, asker));
        }
        change(&mut own.jobs);
        if let Some(oldest) = own.oldest() {
            self.by_age.insert((oldest, asker));
            self.by_turns.insert((own.turns, oldest, asker));
        } else {
            self.askers.remove(&asker);
        }
    }
}

impl AskerJobs {
    fn oldest(&self) -> Option<JobId> {
        self.jobs.first_key_value().map(|(&job, _)| job)
    }
}

/// The greatest power of two up to `rate`. Measurements vary, and seats should not change with
/// each.
fn rounded_down(rate: f64) -> f64 {
    rate.max(1.0).log2().floor().exp2()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn asker(number: i64) -> Asker {
        let mut bytes = [0; 32];
        bytes[..8].copy_from_slice(&number.to_be_bytes());
        Asker(bytes)
    }

    fn line(jobs: &[(i64, i64, &str)]) -> SplitLine {
        let mut line = SplitLine::default();
        for &(job, of, text) in jobs {
            line.change(JobId(job), None, Some(&JobSpec::for_tests(&[text], Some(asker(of)))));
        }
        line
    }

    #[test]
    fn the_oldest_have_seats_as_many_as_finish_within_an_hour() {
        let jobs: Vec<(i64, i64, &str)> = (1..=100).map(|n| (n, n, "qqqqqq")).collect();
        let line = line(&jobs);
        let seated = |rate| line.seats(Lane::All, rate).askers.into_values().flatten().collect::<Vec<_>>();
        // A job takes 2^30 candidates, which is 256 seconds at 2^22 a second: 14 jobs take an hour.
        assert_eq!(seated(Some(4_200_000.0)), (1..=14).map(JobId).collect::<Vec<_>>());
        assert_eq!(seated(Some(1.0)), (1..=4).map(JobId).collect::<Vec<_>>());
        assert_eq!(seated(Some(1e12)), (1..=32).map(JobId).collect::<Vec<_>>());
        assert_eq!(seated(None).len(), MOST_SEATS);
        assert!(line.seats(Lane::All, None).has_waiting);
    }

    #[test]
    fn an_asker_with_many_jobs_takes_a_bounded_number_of_seats() {
        let mut jobs: Vec<(i64, i64, &str)> = (1..=1000).map(|n| (n, 1, "qqqqqq")).collect();
        jobs.push((1001, 2, "qqqqqq"));
        let line = line(&jobs);
        let seats = line.seats(Lane::All, None);
        assert_eq!((seats.jobs_of(asker(1)), seats.jobs_of(asker(2))), (SEATS_PER_ASKER, 1));
        assert!(!seats.has_waiting, "both askers have a seat");
    }

    #[test]
    fn every_waiting_asker_has_a_first_turn_before_any_has_a_second() {
        let jobs: Vec<(i64, i64, &str)> = (1..=10).map(|n| (n, n, "qqqqqqqqqq")).collect();
        let mut line = line(&jobs);
        let seats = line.seats(Lane::All, Some(1.0));
        let turn = |line: &mut SplitLine| line.take_turn(Lane::All, &seats).unwrap().0;
        let first: Vec<i64> = (0..4).map(|_| turn(&mut line)).collect();
        assert_eq!(first, [5, 6, 7, 8]);
        for job in [11, 12] {
            line.change(JobId(job), None, Some(&JobSpec::for_tests(&["pppp"], Some(asker(11)))));
        }
        let next: Vec<i64> = (0..6).map(|_| turn(&mut line)).collect();
        assert_eq!(next, [9, 10, 11, 5, 6, 7]);
        let more: Vec<i64> = (0..4).map(|_| turn(&mut line)).collect();
        assert_eq!(more, [8, 9, 10, 12], "the asker's other job");
        assert_eq!(line.new_askers(), 4, "those with seats");
    }

    #[test]
    fn removed_jobs_leave_nothing_behind() {
        let mut line = line(&[(1, 1, "qq"), (2, 1, "qqqqqq"), (3, 2, "qqqq")]);
        assert_eq!((line.len(), line.askers(), line.askers_before(asker(2))), (3, 2, Some(1)));
        line.take_turn(Lane::All, &Seats::default());
        for (job, of, text) in [(2, 1, "qqqqqq"), (1, 1, "qq"), (3, 2, "qqqq")] {
            line.change(JobId(job), Some(&JobSpec::for_tests(&[text], Some(asker(of)))), None);
        }
        assert_eq!((line.len(), line.askers(), line.new_askers()), (0, 0, 0));
        for one in line.lines.values() {
            assert!(one.askers.is_empty() && one.by_age.is_empty() && one.by_turns.is_empty());
        }
    }

    #[test]
    fn lanes_have_their_own_lines() {
        let line = line(&[(1, 1, "qq"), (2, 2, "qqqqqqqq"), (3, 3, "qqqq")]);
        let seated = |lane| line.seats(lane, None).askers.into_values().flatten().map(|job| job.0).collect::<Vec<_>>();
        assert_eq!(seated(Lane::Hard), [2, 3]);
        assert_eq!(seated(Lane::Easy), [1, 3]);
        assert_eq!(seated(Lane::All), [1, 2, 3]);
    }
}
