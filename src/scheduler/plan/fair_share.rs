//! How split-key jobs share a device with the pool: each searches at a point of its own, so they take turns.
//!
//! The pool has half of the turns at least, however many split jobs there are. The other half is divided evenly among
//! the askers who have split jobs, and an asker's part evenly among their jobs. What nobody uses, the others get.

use super::pass::Pass;
use crate::job::{Asker, JobId, JobSpec};
use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

/// The part of a device the pool has, should both sides have work.
const POOL_PART: f64 = 0.5;

/// Who has a turn.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(in crate::scheduler) enum Side {
    Pool,
    Split(JobId),
}

/// One side's claim on a device.
#[derive(Clone, Debug)]
pub(in crate::scheduler) struct Turn {
    pub side: Side,
    pub pass: Arc<Pass>,
    /// Its part of the device, above 0; the parts of all turns make 1.
    pub part: f64,
    /// Candidates had, divided by the part: whoever has least is next.
    served: f64,
}

/// The turns of one device, counted in candidates: launches on a busy processor differ in length.
#[derive(Debug, Default)]
pub(in crate::scheduler) struct FairShare {
    turns: Vec<Turn>,
    /// Candidates of the last launch: what the next one is charged before it is known.
    usual: f64,
}

impl FairShare {
    /// Takes over new claims; who was there before keeps what they had.
    pub fn renew(&mut self, claims: Vec<(Side, Arc<Pass>, f64)>) {
        // A newcomer starts where the least served stands, not at zero: nobody waits until they have caught up.
        let start = self.turns.iter().map(|turn| turn.served).fold(f64::INFINITY, f64::min);
        let start = if start.is_finite() { start } else { 0.0 };
        let before = std::mem::take(&mut self.turns);
        let turn = |(side, pass, part)| {
            let served = before.iter().find(|turn| turn.side == side).map_or(start, |turn| turn.served);
            Turn { side, pass, part, served }
        };
        self.turns = claims.into_iter().map(turn).collect();
    }

    /// The pass this side has now.
    pub fn pass_of(&self, side: Side) -> Option<Arc<Pass>> {
        self.turns.iter().find(|turn| turn.side == side).map(|turn| Arc::clone(&turn.pass))
    }

    /// Whose turn it is, and what it was charged for now. `None` if nobody has any work.
    pub fn next(&mut self) -> Option<(Arc<Pass>, f64)> {
        let turn = self.turns.iter_mut().min_by(|a, b| a.served.total_cmp(&b.served))?;
        let charged = self.usual.max(1.0);
        turn.served += charged / turn.part;
        Some((Arc::clone(&turn.pass), charged))
    }

    /// Puts right what a launch was charged, now that its candidates are known. A pass that is not searched any more is
    /// left out.
    pub fn settle(&mut self, pass: &Arc<Pass>, charged: f64, candidates: u64) {
        let candidates = candidates as f64;
        self.usual = candidates;
        if let Some(turn) = self.turns.iter_mut().find(|turn| Arc::ptr_eq(&turn.pass, pass)) {
            turn.served += (candidates - charged) / turn.part;
        }
    }
}

/// The part of a device each split job has, beside a pool that has work or not.
pub(in crate::scheduler) fn parts(jobs: &BTreeMap<JobId, &JobSpec>, pool_has_work: bool) -> BTreeMap<JobId, f64> {
    let of_asker = |asker: Asker| move |wanted: &&&JobSpec| wanted.split_asker() == Some(asker);
    let askers: BTreeSet<Asker> = jobs.values().filter_map(|wanted| wanted.split_asker()).collect();
    let each = split_part(pool_has_work) / askers.len() as f64;
    let part = |(&id, wanted): (&JobId, &&JobSpec)| {
        let asker = wanted.split_asker()?;
        Some((id, each / jobs.values().filter(of_asker(asker)).count() as f64))
    };
    jobs.iter().filter_map(part).collect()
}

/// The jobs and their parts of a device (up to 1) as one asker sees them.
#[derive(Clone, Copy, PartialEq, Debug, Default)]
pub struct Shares {
    pub pool_jobs: usize,
    pub split_jobs: usize,
    /// What the pool has, once it has a job.
    pub pool_part: f64,
    /// What each split job of this asker has.
    pub own_split_part: f64,
    /// What each would have, were there one more.
    pub part_of_one_more: f64,
}

pub(in crate::scheduler) fn shares(jobs: &BTreeMap<JobId, JobSpec>, asker: Asker) -> Shares {
    let mut askers: BTreeSet<Asker> = jobs.values().filter_map(JobSpec::split_asker).collect();
    let split_jobs = jobs.values().filter(|wanted| wanted.half.is_some()).count();
    let own = jobs.values().filter(|wanted| wanted.split_asker() == Some(asker)).count();
    let pool_jobs = jobs.len() - split_jobs;
    let each = |askers: usize, own: usize| split_part(pool_jobs > 0) / askers.max(1) as f64 / own.max(1) as f64;
    let own_split_part = each(askers.len(), own);
    askers.insert(asker);
    Shares {
        pool_jobs,
        split_jobs,
        pool_part: if split_jobs > 0 { POOL_PART } else { 1.0 },
        own_split_part,
        part_of_one_more: each(askers.len(), own + 1),
    }
}

fn split_part(pool_has_work: bool) -> f64 {
    if pool_has_work { 1.0 - POOL_PART } else { 1.0 }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn claim(side: Side, part: f64) -> (Side, Arc<Pass>, f64) {
        (side, Arc::new(Pass::of_canary_alone(None)), part)
    }

    fn had(turns: &mut FairShare, launches: usize) -> Vec<f64> {
        let sides: Vec<Arc<Pass>> = turns.turns.iter().map(|turn| Arc::clone(&turn.pass)).collect();
        let mut had = vec![0.0; sides.len()];
        for number in 0..launches {
            let (pass, charged) = turns.next().unwrap();
            // Launches of very different lengths, and always long ones for the first side.
            let at = sides.iter().position(|side| Arc::ptr_eq(side, &pass)).unwrap();
            let candidates = if at == 0 { 900 } else { 100 + number as u64 % 7 * 50 };
            turns.settle(&pass, charged, candidates);
            had[at] += candidates as f64;
        }
        let all: f64 = had.iter().sum();
        had.into_iter().map(|one| one / all).collect()
    }

    fn near(found: &[f64], expected: &[f64]) {
        let off = found.iter().zip(expected).map(|(a, b)| (a - b).abs() / b).fold(0.0, f64::max);
        assert!(found.len() == expected.len() && off < 0.05, "{found:?}, expected {expected:?}");
    }

    #[test]
    fn each_has_its_part_and_newcomers_are_not_paid_for_the_past() {
        let mut turns = FairShare::default();
        let (pool, one) = (Side::Pool, Side::Split(JobId(1)));
        turns.renew(vec![claim(pool, 0.5), claim(one, 0.5)]);
        near(&had(&mut turns, 1000), &[0.5, 0.5]);
        turns.renew(vec![claim(pool, 0.5), claim(one, 0.25), claim(Side::Split(JobId(2)), 0.25)]);
        near(&had(&mut turns, 1000), &[0.5, 0.25, 0.25]);
        turns.renew(vec![claim(one, 1.0)]);
        near(&had(&mut turns, 100), &[1.0]);
        turns.renew(vec![claim(pool, 0.5), claim(one, 0.5)]);
        near(&had(&mut turns, 1000), &[0.5, 0.5]);
        turns.renew(Vec::new());
        assert!(turns.next().is_none());
    }

    fn lent(jobs: &BTreeMap<JobId, JobSpec>) -> BTreeMap<JobId, &JobSpec> {
        jobs.iter().map(|(&id, wanted)| (id, wanted)).collect()
    }

    #[test]
    fn parts_go_by_asker() {
        let wanted = |asker: Option<u8>| JobSpec::for_tests(&["qqqqq"], asker.map(|asker| Asker([asker; 32])));
        let jobs = |askers: &[Option<u8>]| (1..).map(JobId).zip(askers.iter().map(|&a| wanted(a))).collect();
        let parts_of =
            |jobs: &BTreeMap<JobId, JobSpec>, pool| parts(&lent(jobs), pool).into_values().collect::<Vec<_>>();
        let two: BTreeMap<JobId, JobSpec> = jobs(&[None, Some(1), Some(2)]);
        near(&parts_of(&two, true), &[0.25, 0.25]);
        let greedy: BTreeMap<JobId, JobSpec> = jobs(&[Some(1), Some(1), Some(1), Some(2)]);
        near(&parts_of(&greedy, true), &[1.0 / 12.0, 1.0 / 12.0, 1.0 / 12.0, 0.25]);
        near(&parts_of(&greedy, false), &[1.0 / 6.0, 1.0 / 6.0, 1.0 / 6.0, 0.5]);
        let one_more = |jobs: &BTreeMap<JobId, JobSpec>, asker| shares(jobs, Asker([asker; 32])).part_of_one_more;
        near(&[one_more(&two, 3), one_more(&two, 1), one_more(&BTreeMap::new(), 1)], &[1.0 / 6.0, 0.125, 1.0]);
    }

    #[test]
    fn what_an_asker_is_told_is_what_the_turns_give() {
        let wanted = |asker: Option<u8>| JobSpec::for_tests(&["qqqqq"], asker.map(|asker| Asker([asker; 32])));
        for askers in [&[None, Some(1), Some(1), Some(2)][..], &[Some(1), Some(2)], &[None, None], &[None, Some(1)]] {
            let jobs: BTreeMap<JobId, JobSpec> = (1..).map(JobId).zip(askers.iter().map(|&a| wanted(a))).collect();
            let parts = parts(&lent(&jobs), askers.contains(&None));
            let told = shares(&jobs, Asker([1; 32]));
            let split = jobs.values().filter(|wanted| wanted.half.is_some()).count();
            assert_eq!((told.pool_jobs, told.split_jobs), (jobs.len() - split, split));
            if askers.contains(&None) {
                near(&[told.pool_part], &[1.0 - parts.values().sum::<f64>()]);
            }
            if let Some((id, _)) = jobs.iter().find(|(_, wanted)| wanted.split_asker() == Some(Asker([1; 32]))) {
                near(&[told.own_split_part], &[parts[id]]);
            }
            // The pool shares with the split jobs as soon as it has one of its own.
            near(&[told.pool_part], &[if split > 0 { 0.5 } else { 1.0 }]);
        }
    }
}
