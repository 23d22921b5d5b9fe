//! The verifier: one thread that verifies collected launches, judges the devices, and passes on
//! finds.

use super::health::Record;
use super::last_launch::LastLaunch;
use super::pool::Pool;
use super::shared_decoys::SharedDecoys;
use super::verify::{CollectedLaunch, Find, Match, verify_until};
use crate::fault::{self, Step};
use crate::job::JobId;
use crate::pattern::by_difficulty;
use crate::roster::Roster;
use crate::scheduler::plan::pass::Pass;
use crate::vault::{StartId, Vault};
use std::cell::Cell;
use std::collections::HashSet;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Arc;
use std::sync::mpsc::Receiver;
use std::thread::JoinHandle;
use std::time::Duration;

/// The name of the verifier's thread.
const NAME: &str = "verifier";
/// The most launches that wait for the verifier. If there are more, the devices wait.
pub(in crate::scheduler) const LAUNCHES_WAITING: usize = 64;

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
    fn is_over(&mut self, _job: JobId) -> FindOutcome {
        FindOutcome::Done
    }
}

impl<F: FnMut(Find) -> FindOutcome + Send + 'static> FindHandler for F {
    fn found(&mut self, find: Find) -> FindOutcome {
        self(find)
    }
}

/// A collected launch and the record of its device.
pub(in crate::scheduler) struct Delivered {
    /// The device's claims.
    pub launch: CollectedLaunch,
    /// The record of the device.
    pub record: Arc<Record>,
    /// For an untrusted device: its claims about its speed, which canaries must prove first.
    pub unproven: Option<Unproven>,
}

/// The claims of an untrusted device about its speed.
pub(in crate::scheduler) struct Unproven {
    /// Wall time since its previous launch; `None` in the warm-up.
    pub wall: Option<Duration>,
    /// Candidates per start point, from the device's plan.
    pub stretch: Option<f64>,
    /// The decoys in its launches.
    pub decoys: Arc<SharedDecoys>,
}

/// Starts the verifier. It ends when every sender of launches is gone.
pub(in crate::scheduler) fn spawn(
    launches: Receiver<Delivered>,
    pool: Arc<Pool>,
    vault: Vault,
    mut handler: impl FindHandler,
    roster: Roster,
) -> JoinHandle<()> {
    let run = move || {
        let is_over = Cell::new(false);
        roster.keep_thread(NAME, || is_over.get(), || {
            roster.check(NAME);
            while let Ok(Delivered { launch, record, unproven }) = launches.recv() {
                let starts: Vec<StartId> = launch.starts.iter().map(|&(start, _)| start).collect();
                // A panic over one launch must not end the verification of the others.
                let settled =
                    catch_unwind(AssertUnwindSafe(|| settle(&launch, &record, unproven.as_ref(), &pool, &mut handler)));
                if settled.is_err() {
                    tracing::error!(device = %record.view().id, "verifying a launch panicked; its finds are searched again");
                }
                vault.discard(&starts);
                roster.check(NAME);
            }
            is_over.set(true);
        });
    };
    std::thread::Builder::new().name(NAME.to_owned()).spawn(run).expect("the system starts threads")
}

/// Marks a step of the flow at which tests inject a fault. Only launches that serve a job count.
pub(in crate::scheduler) fn reach(side: fn(Step), pass: &Pass, step: Step) {
    if pass.is_for_a_job() {
        side(step);
    }
}

fn settle(
    launch: &CollectedLaunch,
    record: &Record,
    unproven: Option<&Unproven>,
    pool: &Pool,
    handler: &mut impl FindHandler,
) {
    if unproven.is_some() && record.is_disbelieved() {
        // When a liar is found out, up to 64 more of its launches may wait, with thousands of hits
        // each.
        return;
    }
    reach(fault::before, &launch.pass, Step::Verify);
    // Once the search ends and its last job is gone, no find is wanted and no device is judged.
    let is_over = || pool.is_closed() && pool.is_empty();
    // Every claim of an untrusted device counts.
    let enough = launch.pass.starts_worth_verifying().filter(|_| unproven.is_none());
    let verified = verify_until(launch, enough, is_over);
    reach(fault::after, &launch.pass, Step::Verify);
    let Some(verified) = verified else { return };
    let expected = launch.report.candidates as f64 * verified.share * launch.pass.canary_chance;
    record.add_hits(verified.hits_right);
    record.judge(verified.hits_wrong, expected, verified.canary_found);
    let candidates = match unproven {
        Some(claim) => {
            let expected = launch.report.candidates as f64 * launch.pass.decoy_chance();
            record.judge_decoys(expected, verified.decoys_found.len() as u64);
            claim.decoys.found(&verified.decoys_found);
            prove(launch, record, claim)
        }
        None => launch.report.candidates,
    };
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
    for job in pool.count(&launch.pass, candidates) {
        if handler.is_over(job) == FindOutcome::Done {
            pool.remove(job);
        }
    }
}

/// The candidates of a launch that the device's canaries prove. Only these count in its rate.
fn prove(launch: &CollectedLaunch, record: &Record, claim: &Unproven) -> u64 {
    let share = record.proven_share();
    let candidates = (launch.report.candidates as f64 * share) as u64;
    let compared = launch.pass.compared();
    match claim.wall {
        Some(wall) => record.add_proven(compared, candidates, wall),
        None => record.add_warm_up(candidates),
    }
    if let Some(stretch) = claim.stretch {
        let starts = launch.starts.len();
        record.note_launch(LastLaunch { starts, candidates, stretch: stretch * share, early_stop: false });
    }
    candidates
}

/// Chooses the find of a start point: the first match whose job is still open. For a job without a
/// target it takes the job's rarest match, with the rarest pattern that this key meets, and only if
/// it is rarer than the best key so far.
fn wanted(launch: &CollectedLaunch, matches: &[Match], pool: &Pool) -> Option<Find> {
    let mut unwanted = HashSet::new();
    for first in matches {
        if unwanted.contains(&first.job) {
            continue;
        }
        match pool.best_of(first.job) {
            Some(None) => return Some(launch.find(*first)),
            Some(Some(search)) => {
                let rarest = |found: &Match| {
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
