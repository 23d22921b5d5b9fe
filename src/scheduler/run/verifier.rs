//! One thread that turns harvests into finds: every hit recomputed, every device judged, every start point used at most once.

use super::verify::{CollectedLaunch, Find, judge};
use crate::fault::{self, Step};
use crate::scheduler::plan::pass::Pass;
use crate::scheduler::plan::pool::Pool;
use crate::vault::{StartId, Vault};
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Arc;
use std::sync::mpsc::Receiver;
use std::thread::JoinHandle;

/// What the owner of a find says of its job.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum FindOutcome {
    /// The job has what it wants: it leaves the pool.
    Done,
    /// The job goes on: it wants more, or the find could not be recorded.
    GoesOn,
}

/// A harvest and the record of the device it came from.
pub(in crate::scheduler) type Delivered = (CollectedLaunch, Arc<super::health::Record>);

pub(in crate::scheduler) fn spawn(
    harvests: Receiver<Delivered>,
    pool: Arc<Pool>,
    vault: Vault,
    mut on_find: impl FnMut(Find) -> FindOutcome + Send + 'static,
) -> JoinHandle<()> {
    let run = move || {
        for (harvest, record) in harvests {
            let starts: Vec<StartId> = harvest.starts.iter().map(|&(start, _)| start).collect();
            // One bad launch must not end the settling of the others.
            let settled = catch_unwind(AssertUnwindSafe(|| settle(&harvest, &record, &pool, &mut on_find)));
            if settled.is_err() {
                tracing::error!(device = %record.view().id, "settling a launch panicked; its finds are searched again");
            }
            vault.discard(&starts);
        }
    };
    std::thread::Builder::new().name("verifier".to_owned()).spawn(run).expect("the system starts threads")
}

/// A step of a launch. The faults of tests wait for one that is for a job.
pub(in crate::scheduler) fn reach(side: fn(Step), pass: &Pass, step: Step) {
    if pass.is_for_a_job() {
        side(step);
    }
}

fn settle(
    harvest: &CollectedLaunch,
    record: &super::health::Record,
    pool: &Pool,
    on_find: &mut impl FnMut(Find) -> FindOutcome,
) {
    reach(fault::before, &harvest.pass, Step::Verify);
    let judged = judge(harvest);
    reach(fault::after, &harvest.pass, Step::Verify);
    let expected = harvest.report.candidates as f64 * harvest.pass.canary_chance;
    record.judged(judged.hits_wrong, expected, judged.canary_found);
    if judged.hits_wrong > 0 {
        tracing::warn!(device = %record.view().id, wrong = judged.hits_wrong, "hits that match nothing were dropped");
    }
    for finds in judged.starts {
        // The first whose job still wants it; everything else found under this start point is thrown away.
        let Some(find) = finds.into_iter().find(|find| pool.contains(find.job)) else { continue };
        let job = find.job;
        if on_find(find) == FindOutcome::Done {
            pool.remove(job);
        }
    }
}
