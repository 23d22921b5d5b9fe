//! Fair shares of a device, in levels.
//!
//! ```text
//! device ─┬─ pool ─┬─ top words                           1/2 · 1/2
//!         │        └─ whole keys                          1/2 · 1/2
//!         └─ split jobs ─┬─ seated ── askers ── jobs      1/2 · 3/4
//!                        └─ waiting askers, in rotation   1/2 · 1/4
//! ```
//!
//! Each level is divided among its members by candidates. Candidates of launches that compare whole
//! keys count by the time they take ([`super::profile::Rates::cost`]). If a member has no work,
//! the others on its level get its share. The pool is one of only two members on its level, so it
//! has every other launch, however many split jobs there are. It has its half at any time, not only
//! on average.

use super::profile::Compared;
use super::split_line::Seats;
use crate::job::{Asker, JobId};
use std::collections::BTreeMap;

/// The pool's share of a device while there are split jobs, 0 to 1.
pub const POOL_PART: f64 = 0.5;
/// The waiting askers' share of the split jobs' launches, 0 to 1.
pub const WAITING_PART: f64 = 0.25;

#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
enum Side {
    // Listed first, so that the pool wins a tie.
    Pool,
    Split,
}

#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
enum Group {
    Seated,
    Waiting,
}

/// The member whose turn a launch is.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Turn {
    /// All jobs of the pool with patterns for launches of this kind.
    Pool(Compared),
    /// A split job that has a seat.
    Seated(Asker, JobId),
    /// The waiting asker who is next in the rotation.
    Waiting,
}

/// The accounts of one device. They count candidates, not launches, because launches on a busy
/// processor differ in length.
#[derive(Debug, Default)]
pub struct FairShare {
    sides: Turns<Side>,
    kinds: Turns<Compared>,
    groups: Turns<Group>,
    askers: Turns<Asker>,
    jobs: BTreeMap<Asker, Turns<JobId>>,
    /// Candidates of the last launch. The next launch is charged this many until its own number is
    /// known.
    last_launch: f64,
}

impl FairShare {
    /// Sets the members that have work. `pool` lists the kinds of launches that the pool has work
    /// for. Members that already had work keep their accounts.
    pub fn renew(&mut self, pool: &[Compared], seats: &Seats) {
        self.kinds.renew(pool.iter().map(|&compared| (compared, 1.0)));
        let sides = [(Side::Pool, POOL_PART, !pool.is_empty()), (Side::Split, 1.0 - POOL_PART, !seats.is_empty())];
        self.sides.renew(sides.into_iter().filter(|side| side.2).map(|(side, part, _)| (side, part)));
        let waiting = seats.has_waiting.then_some((Group::Waiting, WAITING_PART));
        self.groups.renew([(Group::Seated, 1.0 - WAITING_PART)].into_iter().chain(waiting));
        self.askers.renew(seats.askers.keys().map(|&asker| (asker, 1.0)));
        self.jobs.retain(|asker, _| seats.askers.contains_key(asker));
        for (&asker, jobs) in &seats.askers {
            self.jobs.entry(asker).or_default().renew(jobs.iter().map(|&job| (job, 1.0)));
        }
    }

    /// Chooses the next turn and charges it. Returns the turn and the charge in candidates; `None`
    /// if nobody has work.
    pub fn next(&mut self) -> Option<(Turn, f64)> {
        let turn = match (self.sides.next()?, self.groups.next()) {
            (Side::Pool, _) => Turn::Pool(self.kinds.next()?),
            (Side::Split, Some(Group::Waiting)) => Turn::Waiting,
            (Side::Split, _) => {
                let asker = self.askers.next()?;
                Turn::Seated(asker, self.jobs.get(&asker)?.next()?)
            }
        };
        let charged = self.last_launch.max(1.0);
        self.charge(turn, charged);
        Some((turn, charged))
    }

    /// Corrects the charge of a launch once its candidates are known.
    pub fn settle(&mut self, turn: Turn, charged: f64, candidates: f64) {
        self.last_launch = candidates;
        self.charge(turn, candidates - charged);
    }

    fn charge(&mut self, turn: Turn, candidates: f64) {
        let group = match turn {
            Turn::Pool(compared) => {
                self.kinds.charge(compared, candidates);
                return self.sides.charge(Side::Pool, candidates);
            }
            Turn::Waiting => Group::Waiting,
            Turn::Seated(asker, job) => {
                self.askers.charge(asker, candidates);
                if let Some(jobs) = self.jobs.get_mut(&asker) {
                    jobs.charge(job, candidates);
                }
                Group::Seated
            }
        };
        self.groups.charge(group, candidates);
        self.sides.charge(Side::Split, candidates);
    }
}

/// One level of a weighted fair queue. The key that was served least, relative to its part, is
/// next. A level has few keys (seats are bounded), so a linear scan is fastest.
#[derive(Debug)]
pub struct Turns<K> {
    entries: BTreeMap<K, Entry>,
    /// The largest `served` of any key so far.
    most_served: f64,
}

#[derive(Clone, Copy, Debug)]
struct Entry {
    /// The key's weight, above 0.
    part: f64,
    /// Candidates so far, divided by `part`.
    served: f64,
}

impl<K> Default for Turns<K> {
    fn default() -> Turns<K> {
        Turns { entries: BTreeMap::new(), most_served: 0.0 }
    }
}

impl<K: Ord + Copy> Turns<K> {
    /// Replaces the keys and their parts. Old keys keep their accounts. The account of a new key
    /// starts at `most_served`, so old keys need not wait until it has caught up. A new key waits
    /// for at most one launch of each old key. However many new keys come, none overtakes an old
    /// one twice.
    pub fn renew(&mut self, parts: impl IntoIterator<Item = (K, f64)>) {
        let start = self.most_served;
        let before = std::mem::take(&mut self.entries);
        let entry = |(key, part)| {
            let served = before.get(&key).map_or(start, |entry: &Entry| entry.served);
            (key, Entry { part, served })
        };
        self.entries = parts.into_iter().map(entry).collect();
    }

    /// The key whose turn it is; the smallest in a tie.
    pub fn next(&self) -> Option<K> {
        let least = self.entries.iter().min_by(|(_, a), (_, b)| a.served.total_cmp(&b.served));
        least.map(|(&key, _)| key)
    }

    /// Adds candidates to a key's account, or subtracts them. An unknown key is ignored.
    pub fn charge(&mut self, key: K, candidates: f64) {
        if let Some(entry) = self.entries.get_mut(&key) {
            entry.served += candidates / entry.part;
            self.most_served = self.most_served.max(entry.served);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const POOL: Turn = Turn::Pool(Compared::TopWords);

    fn seats(askers: &[(u8, &[i64])], has_waiting: bool) -> Seats {
        let jobs = |jobs: &[i64]| jobs.iter().copied().map(JobId).collect();
        let askers = askers.iter().map(|&(asker, own)| (Asker([asker; 32]), jobs(own))).collect();
        Seats { askers, has_waiting, is_full: false }
    }

    fn seated(asker: u8, job: i64) -> Turn {
        Turn::Seated(Asker([asker; 32]), JobId(job))
    }

    /// Simulates `launches` launches of very different lengths. Returns the share of each of
    /// `turns`.
    fn parts(share: &mut FairShare, turns: &[Turn], launches: usize) -> Vec<f64> {
        let mut had = vec![0.0; turns.len()];
        for number in 0..launches {
            let (turn, charged) = share.next().unwrap();
            let at = turns.iter().position(|&one| one == turn).unwrap();
            // Launches of the first turn are always long.
            let candidates = if at == 0 { 900 } else { 100 + number as u32 % 7 * 50 };
            share.settle(turn, charged, f64::from(candidates));
            had[at] += f64::from(candidates);
        }
        let all: f64 = had.iter().sum();
        had.into_iter().map(|one| one / all).collect()
    }

    fn assert_near(found: &[f64], expected: &[f64]) {
        let off = found.iter().zip(expected).map(|(a, b)| (a - b).abs() / b).fold(0.0, f64::max);
        assert!(found.len() == expected.len() && off < 0.05, "{found:?}, expected {expected:?}");
    }

    #[test]
    fn each_has_its_part_and_newcomers_get_no_launches_for_the_time_before_they_came() {
        let mut share = FairShare::default();
        share.renew(&[Compared::TopWords], &seats(&[(1, &[1])], false));
        assert_near(&parts(&mut share, &[POOL, seated(1, 1)], 1000), &[0.5, 0.5]);
        share.renew(&[Compared::TopWords], &seats(&[(1, &[1]), (2, &[2])], false));
        assert_near(&parts(&mut share, &[POOL, seated(1, 1), seated(2, 2)], 1000), &[0.5, 0.25, 0.25]);
        share.renew(&[], &seats(&[(1, &[1])], false));
        assert_near(&parts(&mut share, &[seated(1, 1)], 100), &[1.0]);
        share.renew(&[Compared::TopWords], &seats(&[(1, &[1])], false));
        assert_near(&parts(&mut share, &[POOL, seated(1, 1)], 1000), &[0.5, 0.5]);
        share.renew(&[], &seats(&[], false));
        assert!(share.next().is_none());
    }

    #[test]
    fn parts_go_by_side_then_group_then_asker_then_job() {
        let mut share = FairShare::default();
        share.renew(&[Compared::TopWords], &seats(&[(1, &[1, 2, 3]), (2, &[4])], true));
        let turns = [POOL, seated(1, 1), seated(1, 2), seated(1, 3), seated(2, 4), Turn::Waiting];
        let third = 0.5 * 0.75 / 6.0;
        assert_near(&parts(&mut share, &turns, 20_000), &[0.5, third, third, third, 3.0 * third, 0.125]);
    }

    #[test]
    fn the_kinds_of_launches_share_the_pools_part_by_time() {
        let mut share = FairShare::default();
        share.renew(&Compared::ALL, &seats(&[(1, &[1])], false));
        let whole = Turn::Pool(Compared::WholeKeys);
        assert_near(&parts(&mut share, &[POOL, whole, seated(1, 1)], 10_000), &[0.25, 0.25, 0.5]);
        share.renew(&Compared::ALL, &seats(&[], false));
        assert_near(&parts(&mut share, &[POOL, whole], 10_000), &[0.5, 0.5]);
        share.renew(&[Compared::WholeKeys], &seats(&[], false));
        assert_near(&parts(&mut share, &[whole], 100), &[1.0]);
    }

    #[test]
    fn new_askers_without_end_do_not_overtake_an_old_one() {
        let mut share = FairShare::default();
        let mut own = 0;
        for number in 0..1000 {
            // The other seat goes to a new asker each time, and all of these sort before the old
            // one.
            share.renew(&[], &seats(&[(number as u8 % 200, &[1]), (255, &[2])], false));
            let (turn, charged) = share.next().unwrap();
            share.settle(turn, charged, 100.0);
            own += usize::from(turn == seated(255, 2));
        }
        assert!(own >= 490, "{own} of 1000 launches");
    }

    #[test]
    fn a_pool_that_comes_late_has_every_other_launch_from_then_on() {
        let mut share = FairShare::default();
        let askers: Vec<(u8, &[i64])> = (0..32).map(|asker| (asker, &[1i64][..])).collect();
        share.renew(&[], &seats(&askers, true));
        for _ in 0..1000 {
            let (turn, charged) = share.next().unwrap();
            share.settle(turn, charged, 100.0);
        }
        share.renew(&[Compared::TopWords], &seats(&askers, true));
        let mut launches = 0;
        for number in 1..=1000 {
            let (turn, charged) = share.next().unwrap();
            share.settle(turn, charged, 100.0);
            launches += usize::from(turn == POOL);
            assert!(launches >= number / 2, "{launches} of {number}");
        }
    }
}
