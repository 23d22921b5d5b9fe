//! Launches that were submitted and are not collected yet.

use crate::key::StartPoint;
use crate::scheduler::plan::device_plan::PlannedLaunch;
use crate::scheduler::plan::pass::Pass;
use crate::vault::StartId;
use std::collections::VecDeque;
use std::sync::Arc;

/// A launch submitted and not yet collected.
pub(super) struct InFlight {
    /// The launch as it was planned.
    pub planned: PlannedLaunch,
    /// The submitted pass: the planned one, or for a worker's device the planned one with decoys
    /// and a canary for this launch.
    pub pass: Arc<Pass>,
    /// The start points.
    pub starts: Vec<(StartId, StartPoint)>,
}

impl InFlight {
    /// Takes the oldest launch. The device searched it with the patterns of the launch `ahead`
    /// places later ([`crate::search::Searcher::ahead`]).
    pub fn take(launches: &mut VecDeque<InFlight>, ahead: usize) -> Option<InFlight> {
        let mut launch = launches.pop_front()?;
        if let Some(later) = ahead.checked_sub(1).and_then(|later| launches.get(later)) {
            launch.pass = Arc::new(later.pass.with_canary_of(&launch.pass));
        }
        Some(launch)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::job::JobId;
    use crate::pattern::Pattern;
    use crate::scheduler::plan::pass::{Owner, SharedPatterns};

    #[test]
    fn a_launch_that_was_searched_for_later_patterns_is_judged_by_them_and_its_own_canary() {
        let launch = |job: i64| {
            let pattern: Pattern = "m0ctane".parse().unwrap();
            let rare = std::iter::once((JobId(job), &pattern));
            let pass = Arc::new(Pass::new(rare, std::iter::empty(), None, "zz".parse::<Pattern>().unwrap()));
            let own = Arc::new(pass.for_a_stranger(None, &SharedPatterns::new(&pass, &[])));
            InFlight { planned: PlannedLaunch::warm_up(pass), pass: own, starts: Vec::new() }
        };
        for (ahead, job) in [(0, 0), (1, 1), (3, 3), (4, 0)] {
            let mut launches: VecDeque<InFlight> = (0..4).map(launch).collect();
            let canary = launches[0].pass.patterns.iter().next().unwrap().1.clone();
            let taken = InFlight::take(&mut launches, ahead).unwrap();
            assert_eq!(taken.pass.owners(), [Owner::Canary, Owner::Job(JobId(job))], "{ahead}");
            assert_eq!(*taken.pass.patterns.iter().next().unwrap().1, canary);
            assert_eq!(launches.len(), 3);
        }
        assert!(InFlight::take(&mut VecDeque::new(), 0).is_none());
    }
}
