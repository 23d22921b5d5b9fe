//! What a launch brought, and what of it is true.

use super::pool::{Owner, Pass};
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

/// One base and the hardest pattern found under it: what may become a key.
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
    /// The finds of each base that has any, the hardest first, the oldest job first among equals.
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
        finds.sort_by_key(|(id, find)| (std::cmp::Reverse(find.pattern.bits()), find.job, *id));
        judged.bases.push(finds.into_iter().map(|(_, find)| find).collect());
    }
    judged
}
