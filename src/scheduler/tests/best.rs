//! Tests of jobs without a target: their patterns, and the time they are searched for.

use super::{pass, planned};
use crate::job::{Asker, JobId, JobSpec, Priority};
use crate::key::HalfPoint;
use crate::pattern::{Pattern, Rate};
use crate::scheduler::plan::device_plan::PlannedLaunch;
use crate::scheduler::plan::profile::KeyPart;
use crate::scheduler::run::pool::{Pool, PoolDevice};
use crate::scheduler::{Lane, Pass};
use crate::search::LaunchReport;
use crate::vault::StartId;
use std::sync::Arc;
use std::time::Duration;

fn best(text: &str, half: Option<u8>) -> JobSpec {
    let split = half.map(|asker| JobSpec::for_tests(&["qqqqqq"], Some(Asker([asker; 32]))));
    let local = JobSpec::local_best(text.parse().unwrap());
    match split {
        Some(split) => JobSpec { best: local.best, patterns: local.patterns, ..split },
        None => local,
    }
}

fn pattern(text: &str) -> Pattern {
    text.parse().unwrap()
}

/// The patterns of the next pass, without the canary.
fn texts(pool: &Pool, held: &mut PoolDevice) -> Vec<String> {
    let pass = pass(pool, held);
    pass.patterns.iter().skip(1).map(|(_, pattern)| pattern.to_string()).collect()
}

#[test]
fn a_raised_job_is_searched_for_rarer_keys_on_every_device_and_others_keep_their_pass() {
    let pool = Pool::default();
    let (mut one, mut other) = (pool.add_device(Lane::All), pool.add_device(Lane::Hard));
    pool.insert(JobId(1), JobSpec::for_tests(&["m0ctane"], None));
    pool.insert(JobId(2), best("best 10m", None));
    let first = ["m0ctane", "zeros:20", "=5", "words:6"];
    assert_eq!(texts(&pool, &mut one), first);
    assert_eq!(texts(&pool, &mut other), first);
    pool.raise(JobId(2), &pattern("zeros:31"));
    let raised = ["m0ctane", "zeros:32", "=8", "words:8"];
    assert_eq!(texts(&pool, &mut one), raised, "one pass for all, as for one more job");
    assert_eq!(texts(&pool, &mut other), raised);
    pool.raise(JobId(2), &pattern("zeros:64"));
    pool.raise(JobId(9), &pattern("zeros:31"));
    assert_eq!(texts(&pool, &mut one), raised, "nothing is rarer, so the job ends");
    assert_eq!(pool.count(&pass(&pool, &mut one), 1), [JobId(2)]);
}

/// A start point yields one key. Jobs without a target get one only where no other job has a hit,
/// and first keys come before improvements. At every sixteenth start point the oldest comes first.
#[test]
fn jobs_are_served_in_turn_and_those_without_a_target_last() {
    let pool = Pool::default();
    let mut held = pool.add_device(Lane::All);
    held.set_device(4, true);
    let report = LaunchReport { candidates: 1 << 25, ..LaunchReport::default() };
    held.settle(&PlannedLaunch::warm_up(Arc::new(Pass::canary_alone(KeyPart::Top32, None))), &report, 1);
    pool.insert(JobId(1), best("best zeros 10m", None));
    pool.insert(JobId(2), best("best zeros 10m", None));
    for (job, priority) in (3..).zip([Priority::New, Priority::Paid, Priority::Known, Priority::Friend]) {
        pool.insert(JobId(job), JobSpec { priority, ..JobSpec::for_tests(&["m0ct"], None) });
    }
    pool.insert(JobId(7), JobSpec::for_tests(&["m0ctane"], None));
    let mut order = |start| {
        let pass = pass(&pool, &mut held);
        let mut patterns: Vec<_> = pass.patterns.iter().map(|(id, _)| id).collect();
        patterns.sort_by_key(|&id| pass.precedence(id, StartId(start)));
        let jobs = patterns.into_iter().filter_map(|id| Some(pass.owner(id)?.0));
        jobs.collect::<Vec<i64>>()
    };
    pool.raise(JobId(1), &pattern("zeros:40"));
    assert_eq!((order(14), order(15)), (vec![7, 6, 5, 4, 3, 2, 1], vec![7, 1, 2, 3, 4, 5, 6]));
}

#[test]
fn a_raised_split_job_keeps_its_turns_and_its_seat() {
    let pool = Pool::default();
    let mut held = pool.add_device(Lane::All);
    pool.insert(JobId(1), best("best zeros 10m", Some(1)));
    assert_eq!(texts(&pool, &mut held), ["zeros:20"]);
    pool.raise(JobId(1), &pattern("zeros:30"));
    assert_eq!(texts(&pool, &mut held), ["zeros:31"]);
    assert!(pass(&pool, &mut held).half.is_some());
    // An asker who waits for a seat does not come first again when the job is raised.
    let hard = || JobSpec::for_tests(&["qqqqqqqqqqqq"], Some(Asker([9; 32])));
    let line = Pool::default();
    let mut held = line.add_device(Lane::All);
    (1..=40u8).for_each(|asker| {
        line.insert(JobId(i64::from(asker)), JobSpec::for_tests(&["qqqqqqqqqqqq"], Some(Asker([asker; 32]))))
    });
    line.insert(JobId(50), best("best zeros 10m", Some(50)));
    line.insert(JobId(51), hard());
    let before = line.new_split_askers();
    while line.new_split_askers() > before - 10 {
        pass(&line, &mut held);
    }
    let waiting = line.new_split_askers();
    line.raise(JobId(50), &pattern("zeros:30"));
    assert_eq!(line.new_split_askers(), waiting, "a raised job is no new one");
    line.remove(JobId(50));
    assert_eq!(line.len(), 41);
}

#[test]
fn time_counts_only_while_a_job_is_searched_for() {
    let pool = Pool::default();
    let mut held = pool.add_device(Lane::All);
    let half: HalfPoint = "0279be667ef9dcbbac55a06295ce870b07029bfcdb2dce28d959f2815b16f81798".parse().unwrap();
    pool.insert(JobId(1), best("best zeros 10s", None));
    pool.insert(JobId(2), JobSpec { half: Some(half), ..JobSpec::for_tests(&["qqqqqqqq"], Some(Asker([1; 32]))) });
    let searched = || pool.best().first().map(|(_, search)| search.searched).unwrap();
    // Two devices of a million candidates a second each: a million candidates are half a second.
    let mut second = pool.add_device(Lane::All);
    planned(&pool, &mut second, Some(Rate(1e6)));
    for _ in 0..10 {
        let pass = planned(&pool, &mut held, Some(Rate(1e6))).pass;
        assert_eq!(pool.count(&pass, 1_000_000), [], "nothing is kept, so it is not over");
    }
    assert_eq!(searched(), Duration::from_millis(2500), "every other launch is the split job's");
    pool.raise(JobId(1), &pattern("zeros:24"));
    while searched() < Duration::from_secs(10) {
        let pass = planned(&pool, &mut held, Some(Rate(1e6))).pass;
        let over = pool.count(&pass, 1_000_000);
        assert_eq!(over.is_empty(), searched() < Duration::from_secs(10), "{:?}", searched());
    }
    pool.remove(JobId(1));
    assert!(pool.best().is_empty());
}
