//! The verifier: one thread that verifies collected launches, judges the devices, and passes on
//! finds.

use super::health::Record;
use super::pool::Pool;
use super::verify::{CollectedLaunch, Find, verify};
use crate::fault::{self, Step};
use crate::scheduler::plan::pass::Pass;
use crate::vault::{StartId, Vault};
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Arc;
use std::sync::mpsc::Receiver;
use std::thread::JoinHandle;

/// Launches that may wait for the verifier. When there are more, devices wait.
pub(in crate::scheduler) const LAUNCHES_WAITING: usize = 64;

/// The receiver's answer to a find.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum FindOutcome {
    /// The job has its key and leaves the pool.
    Done,
    /// The job stays open: it asks for more keys, or the find could not be recorded.
    GoesOn,
}

/// A collected launch and the record of its device.
pub(in crate::scheduler) type Delivered = (CollectedLaunch, Arc<Record>);

/// Starts the verifier. It ends when every sender of launches is gone.
pub(in crate::scheduler) fn spawn(
    launches: Receiver<Delivered>,
    pool: Arc<Pool>,
    vault: Vault,
    mut on_find: impl FnMut(Find) -> FindOutcome + Send + 'static,
) -> JoinHandle<()> {
    let run = move || {
        for (launch, record) in launches {
            let starts: Vec<StartId> = launch.starts.iter().map(|&(start, _)| start).collect();
            // A panic over one launch must not end the verification of the others.
            let settled = catch_unwind(AssertUnwindSafe(|| settle(&launch, &record, &pool, &mut on_find)));
            if settled.is_err() {
                tracing::error!(device = %record.view().id, "verifying a launch panicked; its finds are searched again");
            }
            vault.discard(&starts);
        }
    };
    std::thread::Builder::new().name("verifier".to_owned()).spawn(run).expect("the system starts threads")
}

/// Marks a step of the flow at which tests inject a fault. Only launches that serve a job count.
pub(in crate::scheduler) fn reach(side: fn(Step), pass: &Pass, step: Step) {
    if pass.is_for_a_job() {
        side(step);
    }
}

fn settle(launch: &CollectedLaunch, record: &Record, pool: &Pool, on_find: &mut impl FnMut(Find) -> FindOutcome) {
    reach(fault::before, &launch.pass, Step::Verify);
    let verified = verify(launch);
    reach(fault::after, &launch.pass, Step::Verify);
    let expected = launch.report.candidates as f64 * launch.pass.canary_chance;
    record.judge(verified.hits_wrong, expected, verified.canary_found);
    if verified.hits_wrong > 0 {
        tracing::warn!(device = %record.view().id, wrong = verified.hits_wrong, "hits that match nothing were dropped");
    }
    for finds in verified.by_start {
        // Take the first find whose job is still open. A start point yields one key, so drop the
        // others.
        let Some(find) = finds.into_iter().find(|find| pool.contains(find.job)) else { continue };
        let job = find.job;
        if on_find(find) == FindOutcome::Done {
            pool.remove(job);
        }
    }
}
