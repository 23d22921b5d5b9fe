//! Verification: decides which claims of a collected launch are true.
//!
//! The verifier: one thread that verifies collected launches, judges the devices, and passes on
//! finds.

use super::health::Record;
use super::pool::Pool;
use crate::fault;
use crate::job::JobId;
use crate::key::{HalfPoint, StartPoint, VerifiedHit};
use crate::pattern::{Pattern, PatternId, by_difficulty};
use crate::roster::Roster;
use crate::scheduler::plan::pass::Pass;
use crate::search::{ClaimedHit, LaunchReport};
use crate::vault::{StartId, Vault};
use std::cell::Cell;
use std::collections::HashSet;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Arc;
use std::sync::mpsc::Receiver;
use std::thread::JoinHandle;
use std::time::Instant;

/// A collected launch, with the data for verifying it.
#[derive(Debug)]
pub struct CollectedLaunch {
    /// The patterns and their jobs.
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
pub struct PatternMatch {
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
    pub by_start: Vec<Vec<PatternMatch>>,
    /// Hits whose npub matches a pattern of the pass.
    pub hits_right: u64,
    /// Hits outside the intervals of the pass, and hits that name a start point the launch did not
    /// have.
    pub hits_wrong: u64,
    /// Hits that match the canary.
    pub canary_found: u64,
    /// The part of the launch that was verified, 0 to 1: as much of its canary hits are expected.
    pub share: f64,
}

/// Claims of a start point that are recomputed, where not all are.
const MAX_CLAIMS_OF_START: usize = 64;

/// The claims of one start point.
#[derive(Clone, Debug, Default)]
struct StartClaims {
    /// Those to be recomputed.
    kept: Vec<ClaimedHit>,
    count: usize,
}

impl StartClaims {
    /// The part of a start point's canary hits that is expected among the kept claims, if at most
    /// [`MAX_CLAIMS_OF_START`] are. With `n` claims of which `k` are kept it is `k / (n + 1)`, not
    /// `k / n`: given that a claim is a canary's, there are `n` others on average (Palm). Without
    /// the 1 an honest device would seem to drop hits.
    fn share(&self) -> f64 {
        (MAX_CLAIMS_OF_START as f64 / (self.count + 1) as f64).min(1.0)
    }
}

/// Recomputes every claimed hit with libsecp256k1.
pub fn verify(launch: &CollectedLaunch) -> VerifiedFinds {
    verify_until(launch, None, || false).unwrap_or_default()
}

/// Recomputes the claimed hits with libsecp256k1, start point by start point. A launch for easy
/// patterns may claim millions of hits; with `enough`, it recomputes some of each start point,
/// until that many start points have a match for a job. Asks `is_over` before each hit and returns
/// `None` once it is true.
pub(super) fn verify_until(
    launch: &CollectedLaunch,
    enough: Option<usize>,
    is_over: impl Fn() -> bool,
) -> Option<VerifiedFinds> {
    let mut verified = VerifiedFinds::default();
    let mut by_start = vec![StartClaims::default(); launch.starts.len()];
    let most = if enough.is_some() { MAX_CLAIMS_OF_START } else { usize::MAX };
    // A hit claimed twice counts once.
    let mut seen = HashSet::new();
    for &claim in &launch.report.hits {
        let Some(of_start) = by_start.get_mut(claim.start) else {
            verified.hits_wrong += u64::from(seen.insert(claim));
            continue;
        };
        of_start.count += 1;
        if of_start.kept.len() < most && seen.insert(claim) {
            of_start.kept.push(claim);
        }
    }
    let mut share = 0.0;
    for (start, of_start) in by_start.into_iter().enumerate() {
        if enough.is_some_and(|enough| verified.by_start.len() >= enough) {
            break;
        }
        share += if enough.is_some() { of_start.share() } else { 1.0 };
        let mut found = Vec::new();
        for claim in of_start.kept {
            if is_over() {
                return None;
            }
            let Some((hit, matches)) = recompute(launch, claim) else {
                verified.hits_wrong += 1;
                continue;
            };
            // A device that filters by intervals reports some keys that only the whole pattern
            // rules out.
            verified.hits_right += u64::from(!matches.is_empty());
            for pattern in matches {
                match launch.pass.owner(pattern) {
                    None => verified.canary_found += 1,
                    Some(job) => found.push(PatternMatch { job, pattern, start: claim.start, hit }),
                }
            }
        }
        found.sort_by_cached_key(|found| launch.pass.precedence(found.pattern, launch.starts[start].0));
        verified.by_start.extend((!found.is_empty()).then_some(found));
    }
    verified.share = share / launch.starts.len().max(1) as f64;
    Some(verified)
}

impl CollectedLaunch {
    /// The find of a match of this launch.
    pub fn find(&self, found: PatternMatch) -> Find {
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

/// The name of the verifier's thread.
const VERIFIER: &str = "verifier";
/// The most launches that wait for the verifier. If there are more, the devices wait.
pub const LAUNCHES_WAITING: usize = 64;

/// The receiver's answer to a find.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum FindOutcome {
    /// The job has its key and leaves the pool.
    Done,
    /// The key is kept as the best so far of a job without a target. The job goes on with rarer
    /// patterns.
    Kept,
    /// The job stays open: it asks for more keys, or the find could not be recorded.
    GoesOn,
}

/// The receiver of finds.
pub trait FindHandler: Send + 'static {
    /// Takes a find. The answer says what happens to the job.
    fn found(&mut self, find: Find) -> FindOutcome;

    /// Called when the search of a job without a target is over
    /// ([`crate::job::BestSearch::is_over`]): its best key is its result. Until the answer is
    /// `Done`, this is called again after every launch for the job.
    fn finish_search(&mut self, _job: JobId) -> FindOutcome {
        FindOutcome::Done
    }
}

impl<F: FnMut(Find) -> FindOutcome + Send + 'static> FindHandler for F {
    fn found(&mut self, find: Find) -> FindOutcome {
        self(find)
    }
}

/// A collected launch and the record of its device.
pub struct Delivered {
    /// The device's claims.
    pub launch: CollectedLaunch,
    /// The record of the device.
    pub record: Arc<Record>,
    /// When the launch was collected.
    pub collected: Instant,
}

/// Starts the verifier. It ends when every sender of launches is gone.
pub fn spawn_verifier(
    launches: Receiver<Delivered>,
    pool: Arc<Pool>,
    vault: Vault,
    mut handler: impl FindHandler,
    roster: Roster,
) -> JoinHandle<()> {
    let run = move || {
        let is_over = Cell::new(false);
        roster.keep_thread(VERIFIER, || is_over.get(), || {
            roster.check(VERIFIER);
            while let Ok(Delivered { launch, record, .. }) = launches.recv() {
                let starts: Vec<StartId> = launch.starts.iter().map(|&(start, _)| start).collect();
                // A panic over one launch must not end the verification of the others.
                let settled = catch_unwind(AssertUnwindSafe(|| settle(&launch, &record, &pool, &mut handler)));
                if settled.is_err() {
                    tracing::error!(device = %record.view().id, "verifying a launch panicked; its finds are searched again");
                }
                vault.discard(&starts);
                roster.check(VERIFIER);
            }
            is_over.set(true);
        });
    };
    std::thread::Builder::new().name(VERIFIER.to_owned()).spawn(run).expect("the system starts threads")
}

/// Marks a step of the flow at which tests inject a fault. Only launches that serve a job count.
pub fn reach(side: fn(&str), pass: &Pass, step: &str) {
    if pass.is_for_a_job() {
        side(step);
    }
}

fn settle(launch: &CollectedLaunch, record: &Record, pool: &Pool, handler: &mut impl FindHandler) {
    reach(fault::before, &launch.pass, "verify");
    // Once the search ends and its last job is gone, no find is wanted and no device is judged.
    let is_over = || pool.is_closed() && pool.is_empty();
    let verified = verify_until(launch, launch.pass.starts_worth_verifying(), is_over);
    reach(fault::after, &launch.pass, "verify");
    let Some(verified) = verified else { return };
    let expected = launch.report.candidates as f64 * verified.share * launch.pass.canary_chance;
    record.lock().view.hits += verified.hits_right;
    record.judge(verified.hits_wrong, expected, verified.canary_found);
    if verified.hits_wrong > 0 {
        tracing::warn!(device = %record.view().id, wrong = verified.hits_wrong, "hits that match nothing were dropped");
    }
    for finds in verified.by_start {
        // A start point yields one key, so its other finds are dropped.
        let Some(find) = wanted(launch, &finds, pool) else { continue };
        let (job, pattern) = (find.job, find.pattern.clone());
        match handler.found(find) {
            FindOutcome::Done => pool.remove(job),
            FindOutcome::Kept => pool.raise(job, &pattern),
            FindOutcome::GoesOn => {}
        }
    }
    for job in pool.count(&launch.pass, launch.report.candidates) {
        if handler.finish_search(job) == FindOutcome::Done {
            pool.remove(job);
        }
    }
}

/// Chooses the find of a start point: the first match whose job is still open. For a job without a
/// target it takes the job's rarest match, with the rarest pattern that this key meets, and only if
/// it is rarer than the best key so far.
fn wanted(launch: &CollectedLaunch, matches: &[PatternMatch], pool: &Pool) -> Option<Find> {
    let mut unwanted = HashSet::new();
    for first in matches {
        if unwanted.contains(&first.job) {
            continue;
        }
        match pool.best_of(first.job) {
            Some(None) => return Some(launch.find(*first)),
            Some(Some(search)) => {
                let rarest = |found: &PatternMatch| {
                    Some(Find { pattern: search.best.family.rarest(&found.hit.npub())?, ..launch.find(*found) })
                };
                let own = matches.iter().filter(|found| found.job == first.job).filter_map(rarest);
                let rarest = own.max_by(|one, other| by_difficulty(&one.pattern, &other.pattern));
                if let Some(find) = rarest.filter(|find| search.is_beaten_by(&find.pattern)) {
                    return Some(find);
                }
            }
            None => {}
        }
        unwanted.insert(first.job);
    }
    None
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::job::JobSpec;
    use crate::key::{Offset, Rotation, Tweak};
    use crate::scheduler::plan::profile::Lane;
    use crate::scheduler::run::pool::Pool;
    use crate::scheduler::tests::{pass, poisson};
    use crate::vault::Vault;
    use rand::Rng;
    use std::cell::Cell;

    /// A pass with an easy and a hard request, and a launch of two start points. The launch claims
    /// every hit among the first offsets of the first start point.
    fn launch() -> CollectedLaunch {
        let pool = Pool::default();
        pool.insert(JobId(1), JobSpec::local(vec![Pattern::parse("q").unwrap()]));
        pool.insert(JobId(2), JobSpec::local(vec![Pattern::parse("qq").unwrap()]));
        let pass = pass(&pool, &mut pool.add_device(Lane::All));
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
        CollectedLaunch { pass, starts, report: LaunchReport { candidates: 3000, hits, ..LaunchReport::default() } }
    }

    #[test]
    fn nothing_more_is_recomputed_once_nobody_waits() {
        let (launch, asked) = (launch(), Cell::new(0));
        let is_over = || {
            asked.set(asked.get() + 1);
            asked.get() == 3
        };
        assert!(verify_until(&launch, None, is_over).is_none());
        assert!(asked.get() == 3 && launch.report.hits.len() > 3);
    }

    #[test]
    fn once_enough_start_points_have_a_match_the_others_are_left_and_do_not_count() {
        let launch = launch();
        let [none, one, all] = [Some(0), Some(1), None].map(|enough| verify_until(&launch, enough, || false).unwrap());
        let claims = launch.report.hits.len();
        // The second start point has no hits.
        let part =
            StartClaims { kept: launch.report.hits[..claims.min(MAX_CLAIMS_OF_START)].to_vec(), count: claims }.share();
        assert_eq!([none.share, one.share, all.share], [0.0, part / 2.0, 1.0]);
        assert!(none.by_start.is_empty() && none.hits_right == 0);
        assert_eq!((one.by_start.len(), one.hits_right), (1, claims.min(MAX_CLAIMS_OF_START) as u64));
        assert_eq!(all.hits_right, claims as u64);
    }

    /// The canary hits expected of an honest device are right however many claims a start point
    /// has.
    #[test]
    fn the_share_of_the_claims_that_are_kept_is_that_of_the_canary_hits_among_them() {
        let mut random = crate::scheduler::tests::seeded();
        for (others, canaries) in [(70.0, 3.0), (63.0, 1.0), (500.0, 10.0), (20.0, 2.0)] {
            let (mut found, mut expected) = (0.0, 0.0);
            for _ in 0..20_000 {
                let (canary, other) = (poisson(canaries, &mut random), poisson(others, &mut random));
                let count = (canary + other) as usize;
                let kept = count.min(MAX_CLAIMS_OF_START);
                // How many of those that are kept are canaries': drawn one by one.
                let mut left = (canary, count);
                for _ in 0..kept {
                    let is_canary = random.random_range(0..left.1) < left.0 as usize;
                    found += f64::from(u8::from(is_canary));
                    left = (left.0 - u64::from(is_canary), left.1 - 1);
                }
                let claims = vec![
                    ClaimedHit {
                        start: 0,
                        tweak: Tweak { offset: Offset::of_point(0, 1, Rotation::ALL[0]), rotation: Rotation::ALL[0] }
                    };
                    kept
                ];
                expected += canaries * StartClaims { kept: claims, count }.share();
            }
            let off = (found - expected) / f64::sqrt(expected);
            assert!(off.abs() < 5.0, "{others} and {canaries}: {found} for {expected}");
        }
    }

    /// Devices filter by intervals. A hit that only the whole pattern rules out is neither a find
    /// nor a lie.
    #[test]
    fn a_key_within_the_intervals_that_does_not_match_is_no_wrong_hit() {
        let pool = Pool::default();
        pool.insert(JobId(1), JobSpec::local(vec!["a*q".parse().unwrap()]));
        let pass = pass(&pool, &mut pool.add_device(Lane::All));
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
        let verified = verify(&CollectedLaunch { pass, starts, report });
        assert_eq!(verified.hits_wrong, 0);
        assert!(verified.by_start.iter().flatten().all(|find| find.hit.npub().to_string().ends_with('q')));
    }

    #[test]
    fn a_hit_that_is_claimed_twice_counts_once() {
        let once = launch();
        let mut hits = once.report.hits.clone();
        hits.extend(once.report.hits.clone());
        let report = LaunchReport { hits, ..once.report.clone() };
        let twice = verify(&CollectedLaunch { pass: Arc::clone(&once.pass), starts: once.starts.clone(), report });
        assert_eq!(twice.hits_right, verify(&once).hits_right);
    }
}
