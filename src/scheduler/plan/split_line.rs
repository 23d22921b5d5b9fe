//! The line of split jobs: which are searched now, and which wait.
//!
//! Each split job needs launches of its own, at its asker's half point. The oldest askers have
//! **seats**. Those behind them **wait**, oldest first. They get single launches in rotation, and
//! an asker without a launch so far comes first. The search has no memory, so a waiting job loses
//! nothing by being searched in single launches. An easy job is often found in its first one, so
//! its asker need not wait for hard jobs.
//!
//! Seats and turns are counted by asker, so ten jobs of one asker count as one. A change costs
//! `O(log jobs)`.

use super::profile::Lane;
use crate::job::{Asker, JobId, JobSpec};
use std::collections::{BTreeMap, BTreeSet};
use std::ops::Bound::{Excluded, Unbounded};

/// The most askers with seats. Bounds the cost of new passes.
pub const SEATS: usize = 16;
/// The most jobs of one asker that are searched at the asker's seat.
pub const JOBS_PER_SEAT: usize = 8;

/// The split jobs of one lane that are searched now.
#[derive(Clone, PartialEq, Debug, Default)]
pub struct Seats {
    /// The seated jobs of each asker who has a seat, oldest first.
    pub askers: BTreeMap<Asker, Vec<JobId>>,
    /// Whether some asker has no seat.
    pub has_waiting: bool,
}

impl Seats {
    /// Seated jobs of an asker.
    pub fn jobs_of(&self, asker: Asker) -> usize {
        self.askers.get(&asker).map_or(0, Vec::len)
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
    jobs: BTreeSet<JobId>,
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
            let is_of = |spec: Option<&JobSpec>| spec.is_some_and(|spec| lane.takes_any(&spec.patterns));
            if is_of(before) != is_of(now) {
                self.lines.entry(lane).or_default().change(asker, job, is_of(now));
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
        let oldest = *line.askers.get(&asker)?.jobs.first()?;
        Some(line.by_age.range(..(oldest, asker)).count())
    }

    /// The jobs that are searched now. Costs `O(seats)`.
    pub fn seats(&self, lane: Lane) -> Seats {
        let Some(line) = self.lines.get(&lane) else { return Seats::default() };
        let jobs = |asker| line.askers[asker].jobs.iter().take(JOBS_PER_SEAT).copied().collect();
        let askers = line.by_age.iter().take(SEATS).map(|(_, asker)| (*asker, jobs(asker))).collect();
        Seats { askers, has_waiting: line.askers.len() > SEATS }
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
        let job = own.jobs.range((after, Unbounded)).next().map_or(oldest, |&job| job);
        own.last = Some(job);
        own.turns += 1;
        line.by_turns.remove(&key);
        line.by_turns.insert((turns + 1, oldest, asker));
        Some(job)
    }
}

impl LaneLine {
    /// Adds or removes a job of an asker, and updates the asker's place in both orders.
    fn change(&mut self, asker: Asker, job: JobId, is_open: bool) {
        let own = self.askers.entry(asker).or_default();
        if let Some(&oldest) = own.jobs.first() {
            self.by_age.remove(&(oldest, asker));
            self.by_turns.remove(&(own.turns, oldest, asker));
        }
        let _ = if is_open { own.jobs.insert(job) } else { own.jobs.remove(&job) };
        if let Some(&oldest) = own.jobs.first() {
            self.by_age.insert((oldest, asker));
            self.by_turns.insert((own.turns, oldest, asker));
        } else {
            self.askers.remove(&asker);
        }
    }
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
    fn the_oldest_askers_have_seats_for_a_bounded_number_of_jobs_each() {
        let mut jobs: Vec<(i64, i64, &str)> = (1..=100).map(|n| (n, 1, "qqqqqq")).collect();
        jobs.extend((2..=20).map(|n| (100 + n, n, "qqqqqq")));
        let line = line(&jobs);
        let seats = line.seats(Lane::All);
        assert_eq!(seats.askers.keys().copied().collect::<Vec<_>>(), (1..=16).map(asker).collect::<Vec<_>>());
        assert_eq!((seats.jobs_of(asker(1)), seats.jobs_of(asker(2)), seats.has_waiting), (JOBS_PER_SEAT, 1, true));
        assert!(!self::line(&jobs[..115]).seats(Lane::All).has_waiting);
    }

    #[test]
    fn every_waiting_asker_has_a_first_turn_before_any_has_a_second() {
        let jobs: Vec<(i64, i64, &str)> = (-11..=10).map(|n| (n, n, "qqqqqqqqqq")).collect();
        let mut line = line(&jobs);
        let seats = line.seats(Lane::All);
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
        assert_eq!(line.new_askers(), SEATS, "those with seats");
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
        let seated = |lane| line.seats(lane).askers.into_values().flatten().map(|job| job.0).collect::<Vec<_>>();
        assert_eq!(seated(Lane::Hard), [2, 3]);
        assert_eq!(seated(Lane::Easy), [1, 3]);
        assert_eq!(seated(Lane::All), [1, 2, 3]);
    }
}
