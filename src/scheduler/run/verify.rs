//! What a launch brought, and what of it is true.

use crate::job::JobId;
use crate::key::{StartPoint, VerifiedHit};
use crate::pattern::{Pattern, PatternId};
use crate::scheduler::plan::pass::{Owner, Pass};
use crate::search::LaunchReport;
use crate::vault::StartId;
use std::sync::Arc;

/// A collected launch with all that is needed to judge it.
#[derive(Debug)]
pub struct CollectedLaunch {
    /// The place of the device among the workers.
    pub device: usize,
    pub pass: Arc<Pass>,
    pub starts: Vec<(StartId, StartPoint)>,
    pub report: LaunchReport,
}

/// One start point and a pattern found under it: what may become a key.
#[derive(Clone, Debug)]
pub struct Find {
    pub job: JobId,
    pub pattern: Pattern,
    pub start: StartId,
    pub hit: VerifiedHit,
}

/// A judged launch.
#[derive(Debug, Default)]
pub struct Judged {
    /// The finds of each start point that has any, in the order in which they have a right to it: [`Pass::precedence`].
    /// At most one of a start point may be redeemed.
    pub starts: Vec<Vec<Find>>,
    /// Hits whose npub matches some pattern.
    pub hits_right: u64,
    /// Hits that match nothing, or name a start point the launch did not have.
    pub hits_wrong: u64,
    pub canary_found: u64,
}

/// Recomputes every claimed hit with libsecp256k1 and sorts what is true by start point.
pub fn judge(harvest: &CollectedLaunch) -> Judged {
    let mut judged = Judged::default();
    let mut by_start: Vec<Vec<(PatternId, Find)>> = vec![Vec::new(); harvest.starts.len()];
    // A device that names a hit twice found one.
    let mut claimed = harvest.report.hits.clone();
    let mut seen = std::collections::HashSet::with_capacity(claimed.len());
    claimed.retain(|hit| seen.insert(*hit));
    for claim in claimed {
        let verified = harvest.starts.get(claim.start).and_then(|&(start, point)| {
            let hit = VerifiedHit::recompute(point, claim.tweak)?;
            let matches = harvest.pass.patterns.matches(&hit.npub());
            (!matches.is_empty()).then_some((start, hit, matches))
        });
        let Some((start, hit, matches)) = verified else {
            judged.hits_wrong += 1;
            continue;
        };
        judged.hits_right += 1;
        for id in matches {
            match harvest.pass.owner(id) {
                Owner::Canary => judged.canary_found += 1,
                Owner::Job(job) => {
                    let pattern = harvest.pass.patterns.get(id).clone();
                    by_start[claim.start].push((id, Find { job, pattern, start, hit }));
                }
            }
        }
    }
    for mut finds in by_start.into_iter().filter(|finds| !finds.is_empty()) {
        finds.sort_by_key(|(id, _)| harvest.pass.precedence(*id));
        judged.starts.push(finds.into_iter().map(|(_, find)| find).collect());
    }
    judged
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::job::JobSpec;
    use crate::key::{Offset, Rotation, Tweak};
    use crate::scheduler::plan::pass::Lane;
    use crate::scheduler::plan::pool::{Next, Pool};
    use crate::search::ClaimedHit;
    use crate::vault::Vault;

    /// A pass of an easy and a hard request, and a launch of two start points with every hit among the first offsets of the first.
    fn harvest() -> CollectedLaunch {
        let pool = Pool::default();
        pool.insert(JobId(1), JobSpec::local(vec![Pattern::parse("q").unwrap()]));
        pool.insert(JobId(2), JobSpec::local(vec![Pattern::parse("qq").unwrap()]));
        let Next::Search(pass, _) = pool.next(&mut pool.subscribe(Lane::All), None) else {
            panic!("two jobs are open")
        };
        let vault = Vault::without_identity().unwrap();
        let starts = vec![vault.open_start().unwrap(), vault.open_start().unwrap()];
        let tweaks = (1..3000)
            .map(|step| Tweak { offset: Offset::of_point(0, step, Rotation::ALL[0]), rotation: Rotation::ALL[1] });
        let requested = pass.patterns.iter().skip(1).map(|(_, pattern)| pattern.clone()).collect::<Vec<_>>();
        let is_hit = |tweak: &Tweak| {
            let npub = VerifiedHit::recompute(starts[0].1, *tweak).unwrap().npub();
            requested.iter().any(|pattern| pattern.matches(&npub))
        };
        let hits = tweaks.filter(is_hit).map(|tweak| ClaimedHit { start: 0, tweak }).collect();
        CollectedLaunch {
            device: 0,
            pass,
            starts,
            report: LaunchReport { candidates: 3000, hits, ..LaunchReport::default() },
        }
    }

    #[test]
    fn of_one_start_point_the_hardest_pattern_comes_first() {
        let harvest = harvest();
        let judged = judge(&harvest);
        assert_eq!((judged.hits_right, judged.hits_wrong), (harvest.report.hits.len() as u64, 0));
        assert_eq!(judged.starts.len(), 1, "the other start found nothing");
        let bits: Vec<u32> = judged.starts[0].iter().map(|find| find.pattern.bits()).collect();
        assert!(bits.is_sorted_by(|a, b| a >= b), "{bits:?}");
        assert!(judged.starts[0].iter().all(|find| find.pattern.matches(&find.hit.npub())));
        // One in 32 hits of the easy request is one of the hard request: among some 90 there is one, but for 6 in 100 runs.
        let hard = judged.starts[0].iter().filter(|find| find.job == JobId(2)).count();
        assert_eq!(hard > 0, judged.starts[0][0].job == JobId(2));
    }

    #[test]
    fn a_hit_that_was_changed_is_counted_and_dropped() {
        let honest = harvest();
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
            let judged = judge(&CollectedLaunch {
                device: 0,
                pass: Arc::clone(&honest.pass),
                starts: honest.starts.clone(),
                report,
            });
            // By chance one in 32 still matches the easy request: that one is a true hit after all.
            assert!(judged.hits_wrong as f64 > 0.75 * right.len() as f64, "{} of {}", judged.hits_wrong, right.len());
            assert!(judged.starts.iter().flatten().all(|find| find.pattern.matches(&find.hit.npub())));
        }
    }

    #[test]
    fn a_hit_that_is_named_twice_counts_once() {
        let once = harvest();
        let mut hits = once.report.hits.clone();
        hits.extend(once.report.hits.clone());
        let report = LaunchReport { hits, ..once.report.clone() };
        let twice =
            judge(&CollectedLaunch { device: 0, pass: Arc::clone(&once.pass), starts: once.starts.clone(), report });
        assert_eq!(twice.hits_right, judge(&once).hits_right);
    }
}
