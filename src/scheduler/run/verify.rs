//! Verification: decides which claims of a collected launch are true.

use crate::job::JobId;
use crate::key::{HalfPoint, StartPoint, VerifiedHit};
use crate::pattern::{Pattern, PatternId};
use crate::scheduler::plan::pass::{Owner, Pass};
use crate::search::{ClaimedHit, LaunchReport};
use crate::vault::StartId;
use std::collections::HashSet;
use std::sync::Arc;

/// A collected launch, with the data for verifying it.
#[derive(Debug)]
pub struct CollectedLaunch {
    /// Index of the device among the workers.
    pub device: usize,
    /// The patterns and their owners.
    pub pass: Arc<Pass>,
    /// The start points, in the order of the launch.
    pub starts: Vec<(StartId, StartPoint)>,
    /// The device's claims.
    pub report: LaunchReport,
}

/// A verified hit and its job. It becomes a key if its start point is still unused.
#[derive(Clone, Debug)]
pub struct Find {
    /// The job of the pattern.
    pub job: JobId,
    /// The pattern of the job that the key matches.
    pub pattern: Pattern,
    /// The asker's half point at which it was found; `None` for a job of the pool.
    pub half: Option<HalfPoint>,
    /// The start point.
    pub start: StartId,
    /// The tweak, and the key that it leads to.
    pub hit: VerifiedHit,
}

/// A pattern of a job that a verified hit matches. Kept small, because one easy hit may have
/// thousands.
#[derive(Clone, Copy, Debug)]
pub struct Match {
    /// The job of the pattern.
    pub job: JobId,
    /// The pattern, in the pass of the launch.
    pub pattern: PatternId,
    /// Index of the start point in the launch.
    pub start: usize,
    /// The tweak, and the key that it leads to.
    pub hit: VerifiedHit,
}

/// The verified hits of a launch, and the counts for judging the device.
#[derive(Debug, Default)]
pub struct VerifiedFinds {
    /// For each start point that has matches, these matches in the order of `Pass::precedence`. At
    /// most one match of a start point becomes a key.
    pub by_start: Vec<Vec<Match>>,
    /// Hits whose npub matches a pattern of the pass.
    pub hits_right: u64,
    /// Hits outside the intervals of the pass, and hits that name a start point the launch did not
    /// have.
    pub hits_wrong: u64,
    /// Hits that match the canary.
    pub canary_found: u64,
    /// The decoys that hits match, with one entry for each hit.
    pub decoys_found: Vec<Pattern>,
}

/// Recomputes every claimed hit with libsecp256k1.
pub fn verify(launch: &CollectedLaunch) -> VerifiedFinds {
    verify_unless(launch, || false).unwrap_or_default()
}

/// Like [`verify`], but asks `is_over` before each hit and returns `None` once it is true. A launch
/// may claim tens of thousands of hits.
pub(super) fn verify_unless(launch: &CollectedLaunch, is_over: impl Fn() -> bool) -> Option<VerifiedFinds> {
    let mut verified = VerifiedFinds::default();
    let mut by_start: Vec<Vec<Match>> = vec![Vec::new(); launch.starts.len()];
    // A hit claimed twice counts once.
    let mut seen = HashSet::with_capacity(launch.report.hits.len());
    for &claim in launch.report.hits.iter().filter(|&&claim| seen.insert(claim)) {
        if is_over() {
            return None;
        }
        let Some((hit, matches)) = recompute(launch, claim) else {
            verified.hits_wrong += 1;
            continue;
        };
        // A device that filters by intervals reports some keys that only the whole pattern rules
        // out.
        verified.hits_right += u64::from(!matches.is_empty());
        for pattern in matches {
            match launch.pass.owner(pattern) {
                Owner::Canary => verified.canary_found += 1,
                Owner::Decoy => verified.decoys_found.push(launch.pass.patterns.get(pattern).clone()),
                Owner::Job(job) => by_start[claim.start].push(Match { job, pattern, start: claim.start, hit }),
            }
        }
    }
    by_start.retain(|matches| !matches.is_empty());
    for matches in &mut by_start {
        matches.sort_by_key(|found| launch.pass.precedence(found.pattern));
    }
    verified.by_start = by_start;
    Some(verified)
}

impl CollectedLaunch {
    /// The find of a match of this launch.
    pub fn find(&self, found: Match) -> Find {
        let pattern = self.pass.patterns.get(found.pattern).clone();
        Find { job: found.job, pattern, half: self.pass.half, start: self.starts[found.start].0, hit: found.hit }
    }
}

/// Recomputes the key of a claim. Returns it with the patterns that it matches, if any; `None` if
/// the claim is wrong.
fn recompute(launch: &CollectedLaunch, claim: ClaimedHit) -> Option<(VerifiedHit, Vec<PatternId>)> {
    let &(_, point) = launch.starts.get(claim.start)?;
    let hit = VerifiedHit::recompute(point, claim.tweak)?;
    let patterns = &launch.pass.patterns;
    patterns.may_match(&hit.npub()).then(|| (hit, patterns.matches(&hit.npub())))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::job::JobSpec;
    use crate::key::{Offset, Rotation, Tweak};
    use crate::scheduler::plan::lane::Lane;
    use crate::scheduler::run::pool::{Next, Pool};
    use crate::vault::Vault;
    use std::cell::Cell;

    /// A pass with an easy and a hard request, and a launch of two start points. The launch claims
    /// every hit among the first offsets of the first start point.
    fn launch() -> CollectedLaunch {
        let pool = Pool::default();
        pool.insert(JobId(1), JobSpec::local(vec![Pattern::parse("q").unwrap()]));
        pool.insert(JobId(2), JobSpec::local(vec![Pattern::parse("qq").unwrap()]));
        let Next::Search(planned) = pool.next(&mut pool.subscribe(Lane::All), None) else {
            panic!("two jobs are open")
        };
        let vault = Vault::without_identity().unwrap();
        let starts = vec![vault.open_start().unwrap(), vault.open_start().unwrap()];
        let tweaks = (1..3000)
            .map(|step| Tweak { offset: Offset::of_point(0, step, Rotation::ALL[0]), rotation: Rotation::ALL[1] });
        let requested = planned.pass.patterns.iter().skip(1).map(|(_, pattern)| pattern.clone()).collect::<Vec<_>>();
        let is_hit = |tweak: &Tweak| {
            let npub = VerifiedHit::recompute(starts[0].1, *tweak).unwrap().npub();
            requested.iter().any(|pattern| pattern.matches(&npub))
        };
        let hits = tweaks.filter(is_hit).map(|tweak| ClaimedHit { start: 0, tweak }).collect();
        CollectedLaunch {
            device: 0,
            pass: planned.pass,
            starts,
            report: LaunchReport { candidates: 3000, hits, ..LaunchReport::default() },
        }
    }

    #[test]
    fn hits_of_one_start_point_are_sorted_hardest_pattern_first() {
        let launch = launch();
        let verified = verify(&launch);
        assert_eq!((verified.hits_right, verified.hits_wrong), (launch.report.hits.len() as u64, 0));
        assert_eq!(verified.by_start.len(), 1, "the other start point has no hit");
        let finds: Vec<Find> = verified.by_start[0].iter().map(|&found| launch.find(found)).collect();
        let bits: Vec<u32> = finds.iter().map(|find| find.pattern.bits()).collect();
        assert!(bits.is_sorted_by(|a, b| a >= b), "{bits:?}");
        assert!(finds.iter().all(|find| find.pattern.matches(&find.hit.npub()) && find.start == launch.starts[0].0));
        // One in 32 hits of the easy request also matches the hard one. With some 90 hits there is
        // at least one, except in 6 of 100 runs.
        let hard = finds.iter().filter(|find| find.job == JobId(2)).count();
        assert_eq!(hard > 0, finds[0].job == JobId(2));
    }

    #[test]
    fn nothing_more_is_recomputed_once_nobody_waits() {
        let (launch, asked) = (launch(), Cell::new(0));
        let is_over = || {
            asked.set(asked.get() + 1);
            asked.get() == 3
        };
        assert!(verify_unless(&launch, is_over).is_none());
        assert!(asked.get() == 3 && launch.report.hits.len() > 3);
    }

    #[test]
    fn a_hit_that_was_changed_is_counted_and_dropped() {
        let honest = launch();
        let right = honest.report.hits.clone();
        let elsewhere = |mut hit: ClaimedHit| {
            hit.start = 1;
            hit
        };
        let turned = |mut hit: ClaimedHit| {
            hit.tweak.rotation = Rotation::ALL[2];
            hit
        };
        let unknown = |mut hit: ClaimedHit| {
            hit.start = 7;
            hit
        };
        for forge in [&elsewhere as &dyn Fn(ClaimedHit) -> ClaimedHit, &turned, &unknown] {
            let forged: Vec<ClaimedHit> = right.iter().copied().map(forge).collect();
            let report = LaunchReport { hits: forged, ..honest.report.clone() };
            let (pass, starts) = (Arc::clone(&honest.pass), honest.starts.clone());
            let changed = CollectedLaunch { device: 0, pass, starts, report };
            let verified = verify(&changed);
            // One in 32 still matches the easy request by chance, and is then a true hit.
            assert!(
                verified.hits_wrong as f64 > 0.75 * right.len() as f64,
                "{} of {}",
                verified.hits_wrong,
                right.len()
            );
            let matches = |find: Find| find.pattern.matches(&find.hit.npub());
            assert!(verified.by_start.iter().flatten().all(|&found| matches(changed.find(found))));
        }
    }

    /// Devices filter by intervals. A hit that only the whole pattern rules out is neither a find
    /// nor a lie.
    #[test]
    fn a_key_within_the_intervals_that_does_not_match_is_no_wrong_hit() {
        let pool = Pool::default();
        pool.insert(JobId(1), JobSpec::local(vec!["a*q".parse().unwrap()]));
        let Next::Search(planned) = pool.next(&mut pool.subscribe(Lane::All), None) else { panic!("a job is open") };
        let vault = Vault::without_identity().unwrap();
        let starts = vec![vault.open_start().unwrap()];
        let tweaks = (1..2000)
            .map(|step| Tweak { offset: Offset::of_point(0, step, Rotation::ALL[0]), rotation: Rotation::ALL[1] });
        let begins = |tweak: &Tweak| {
            let npub = VerifiedHit::recompute(starts[0].1, *tweak).unwrap().npub();
            npub.to_string().starts_with("npub1a")
        };
        let hits: Vec<ClaimedHit> = tweaks.filter(begins).map(|tweak| ClaimedHit { start: 0, tweak }).collect();
        assert!(hits.len() > 20, "{}", hits.len());
        let report = LaunchReport { candidates: 2000, hits, ..LaunchReport::default() };
        let verified = verify(&CollectedLaunch { device: 0, pass: planned.pass, starts, report });
        assert_eq!(verified.hits_wrong, 0);
        assert!(verified.by_start.iter().flatten().all(|find| find.hit.npub().to_string().ends_with('q')));
    }

    #[test]
    fn a_hit_that_is_claimed_twice_counts_once() {
        let once = launch();
        let mut hits = once.report.hits.clone();
        hits.extend(once.report.hits.clone());
        let report = LaunchReport { hits, ..once.report.clone() };
        let twice =
            verify(&CollectedLaunch { device: 0, pass: Arc::clone(&once.pass), starts: once.starts.clone(), report });
        assert_eq!(twice.hits_right, verify(&once).hits_right);
    }
}
