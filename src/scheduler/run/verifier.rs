//! The verifier: one thread that verifies collected launches, judges the devices, and passes on
//! finds.

use super::health::Record;
use super::pool::Pool;
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
            while let Ok(Delivered { launch, record }) = launches.recv() {
                let starts: Vec<StartId> = launch.starts.iter().map(|&(start, _)| start).collect();
                // A panic over one launch must not end the verification of the others.
                let settled = catch_unwind(AssertUnwindSafe(|| settle(&launch, &record, &pool, &mut handler)));
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

fn settle(launch: &CollectedLaunch, record: &Record, pool: &Pool, handler: &mut impl FindHandler) {
    reach(fault::before, &launch.pass, Step::Verify);
    // Once the search ends and its last job is gone, no find is wanted and no device is judged.
    let is_over = || pool.is_closed() && pool.is_empty();
    let verified = verify_until(launch, launch.pass.starts_worth_verifying(), is_over);
    reach(fault::after, &launch.pass, Step::Verify);
    let Some(verified) = verified else { return };
    let expected = launch.report.candidates as f64 * verified.share * launch.pass.canary_chance;
    record.add_hits(verified.hits_right);
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
        if handler.is_over(job) == FindOutcome::Done {
            pool.remove(job);
        }
    }
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
