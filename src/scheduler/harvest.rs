//! What a launch brought, and what of it is true.

use super::pass::{Owner, Pass};
use crate::ids::JobId;
use crate::key::{BasePoint, VerifiedHit};
use crate::pattern::{Pattern, PatternId};
use crate::search::LaunchReport;
use crate::vault::BaseId;
use std::sync::Arc;

/// A collected launch with all that is needed to judge it.
#[derive(Debug)]
pub struct Harvest {
    /// The place of the device among the workers.
    pub device: usize,
    pub pass: Arc<Pass>,
    pub bases: Vec<(BaseId, BasePoint)>,
    pub report: LaunchReport,
}

/// One base and a pattern found under it: what may become a key.
#[derive(Clone, Debug)]
pub struct Find {
    pub job: JobId,
    pub pattern: Pattern,
    pub base: BaseId,
    pub hit: VerifiedHit,
}

/// A judged launch.
#[derive(Debug, Default)]
pub struct Judged {
    /// The finds of each base that has any, in the order in which they have a right to it: [`Pass::precedence`].
    /// At most one of a base may be redeemed.
    pub bases: Vec<Vec<Find>>,
    /// Hits whose npub matches some pattern.
    pub hits_right: u64,
    /// Hits that match nothing, or name a base the launch did not have.
    pub hits_wrong: u64,
    pub canary_found: u64,
}

/// Recomputes every claimed hit with libsecp256k1 and sorts what is true by base.
pub fn judge(harvest: &Harvest) -> Judged {
    let mut judged = Judged::default();
    let mut by_base: Vec<Vec<(PatternId, Find)>> = vec![Vec::new(); harvest.bases.len()];
    // A device that names a hit twice found one.
    let mut claimed = harvest.report.hits.clone();
    let mut seen = std::collections::HashSet::with_capacity(claimed.len());
    claimed.retain(|hit| seen.insert(*hit));
    for claim in claimed {
        let verified = harvest.bases.get(claim.base).and_then(|&(base, point)| {
            let hit = VerifiedHit::recompute(point, claim.tweak)?;
            let matches = harvest.pass.patterns.matches(&hit.npub());
            (!matches.is_empty()).then_some((base, hit, matches))
        });
        let Some((base, hit, matches)) = verified else {
            judged.hits_wrong += 1;
            continue;
        };
        judged.hits_right += 1;
        for id in matches {
            match harvest.pass.owner(id) {
                Owner::Canary => judged.canary_found += 1,
                Owner::Job(job) => {
                    let pattern = harvest.pass.patterns.get(id).clone();
                    by_base[claim.base].push((id, Find { job, pattern, base, hit }));
                }
            }
        }
    }
    for mut finds in by_base.into_iter().filter(|finds| !finds.is_empty()) {
        finds.sort_by_key(|(id, _)| harvest.pass.precedence(*id));
        judged.bases.push(finds.into_iter().map(|(_, find)| find).collect());
    }
    judged
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::key::{Offset, Rotation, Tweak};
    use crate::scheduler::pass::Lane;
    use crate::scheduler::pool::{Next, Pool, Wanted};
    use crate::search::ClaimedHit;
    use crate::vault::Vault;

    /// A pass of an easy and a hard wish, and a launch of two bases with every hit among the first offsets of the first.
    fn harvest() -> Harvest {
        let pool = Pool::default();
        pool.insert(JobId(1), Wanted::in_pool(vec![Pattern::parse("q").unwrap()]));
        pool.insert(JobId(2), Wanted::in_pool(vec![Pattern::parse("qq").unwrap()]));
        let Next::Search(pass, _) = pool.next(&mut pool.subscribe(Lane::All), None) else {
            panic!("two jobs are open")
        };
        let vault = Vault::without_identity().unwrap();
        let bases = vec![vault.open_base().unwrap(), vault.open_base().unwrap()];
        let tweaks = (1..3000)
            .map(|step| Tweak { offset: Offset::of_point(0, step, Rotation::ALL[0]), rotation: Rotation::ALL[1] });
        let wished = pass.patterns.iter().skip(1).map(|(_, pattern)| pattern.clone()).collect::<Vec<_>>();
        let is_hit = |tweak: &Tweak| {
            let npub = VerifiedHit::recompute(bases[0].1, *tweak).unwrap().npub();
            wished.iter().any(|pattern| pattern.matches(&npub))
        };
        let hits = tweaks.filter(is_hit).map(|tweak| ClaimedHit { base: 0, tweak }).collect();
        Harvest { device: 0, pass, bases, report: LaunchReport { candidates: 3000, hits, ..LaunchReport::default() } }
    }

    #[test]
    fn of_one_base_the_hardest_pattern_comes_first() {
        let harvest = harvest();
        let judged = judge(&harvest);
        assert_eq!((judged.hits_right, judged.hits_wrong), (harvest.report.hits.len() as u64, 0));
        assert_eq!(judged.bases.len(), 1, "the other base found nothing");
        let bits: Vec<u32> = judged.bases[0].iter().map(|find| find.pattern.bits()).collect();
        assert!(bits.is_sorted_by(|a, b| a >= b), "{bits:?}");
        assert!(judged.bases[0].iter().all(|find| find.pattern.matches(&find.hit.npub())));
        // One in 32 hits of the easy wish is one of the hard wish: among some 90 there is one, but for 6 in 100 runs.
        let hard = judged.bases[0].iter().filter(|find| find.job == JobId(2)).count();
        assert_eq!(hard > 0, judged.bases[0][0].job == JobId(2));
    }

    #[test]
    fn a_hit_that_was_changed_is_counted_and_dropped() {
        let honest = harvest();
        let right = honest.report.hits.clone();
        let elsewhere = |mut hit: ClaimedHit| {
            hit.base = 1;
            hit
        };
        let turned = |mut hit: ClaimedHit| {
            hit.tweak.rotation = Rotation::ALL[2];
            hit
        };
        let unknown = |mut hit: ClaimedHit| {
            hit.base = 7;
            hit
        };
        for forge in [&elsewhere as &dyn Fn(ClaimedHit) -> ClaimedHit, &turned, &unknown] {
            let forged: Vec<ClaimedHit> = right.iter().copied().map(forge).collect();
            let report = LaunchReport { hits: forged, ..honest.report.clone() };
            let judged =
                judge(&Harvest { device: 0, pass: Arc::clone(&honest.pass), bases: honest.bases.clone(), report });
            // By chance one in 32 still matches the easy wish: that one is a true hit after all.
            assert!(judged.hits_wrong as f64 > 0.75 * right.len() as f64, "{} of {}", judged.hits_wrong, right.len());
            assert!(judged.bases.iter().flatten().all(|find| find.pattern.matches(&find.hit.npub())));
        }
    }

    #[test]
    fn a_hit_that_is_named_twice_counts_once() {
        let once = harvest();
        let mut hits = once.report.hits.clone();
        hits.extend(once.report.hits.clone());
        let report = LaunchReport { hits, ..once.report.clone() };
        let twice = judge(&Harvest { device: 0, pass: Arc::clone(&once.pass), bases: once.bases.clone(), report });
        assert_eq!(twice.hits_right, judge(&once).hits_right);
    }
}
