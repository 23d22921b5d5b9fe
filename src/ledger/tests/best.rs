//! Jobs without a target: their kept result, and how they end.

use super::*;
use crate::job::BestSearch;
use crate::key::HalfPoint;
use std::time::Duration;

const POINT: &str = "0279be667ef9dcbbac55a06295ce870b07029bfcdb2dce28d959f2815b16f81798";

fn pattern(text: &str) -> Pattern {
    text.parse().unwrap()
}

impl Bench {
    fn accept_best(&self, from: u8, rumor: u8, half: Option<HalfPoint>) -> JobId {
        let search = BestSearch::new("best zeros 10m".parse().unwrap());
        self.accept_with(from, rumor, |job| {
            job.patterns = search.best.family.floor();
            (job.best, job.half) = (Some(Box::new(search)), half);
        })
    }

    fn keep(&self, job: JobId, text: &str, number: u8) -> bool {
        self.ledger.keep_best(job, &pattern(text), &wrap(1, number)).unwrap()
    }

    fn search(&self, job: JobId) -> BestSearch {
        *self.ledger.open_job(job).unwrap().unwrap().spec.best.unwrap()
    }

    fn rows(&self) -> i64 {
        self.ledger.read().query_row("SELECT count(*) FROM best", [], |row| row.get(0)).unwrap()
    }
}

#[test]
fn the_best_so_far_survives_a_restart_and_only_a_rarer_key_replaces_it() {
    let bench = bench();
    let job = bench.accept_best(1, 1, None);
    assert_eq!(bench.search(job), BestSearch::new("best zeros 10m".parse().unwrap()));
    assert!(!bench.ledger.deliver_best(job).unwrap(), "nothing is kept");
    assert!(bench.keep(job, "zeros:24", 10));
    assert!(!bench.keep(job, "zeros:24", 11), "as rare");
    assert!(!bench.keep(job, "zeros:23", 12), "more frequent");
    assert!(bench.keep(job, "zeros:30", 13));
    bench.ledger.record_searched(&[(job, Duration::from_millis(90_500)), (JobId(99), Duration::ZERO)]).unwrap();
    bench.ledger.record_searched(&[(job, Duration::from_secs(3))]).unwrap();
    assert!(bench.result_of(job).is_none(), "nothing of it is sent yet");
    let bench = bench.reopened();
    let search = bench.search(job);
    assert_eq!((search.kept, search.searched), (Some(pattern("zeros:30")), Duration::from_millis(90_500)));
    assert!(bench.ledger.deliver_best(job).unwrap());
    assert_eq!(bench.result_of(job).unwrap().wrap, wrap(1, 13), "the one that was kept last");
    assert!(!bench.ledger.deliver_best(job).unwrap(), "one result a job");
    assert_eq!((bench.rows(), bench.ledger.totals().unwrap().found), (0, 1));
    assert!(!bench.keep(job, "zeros:40", 14), "the job is over");
}

#[test]
fn a_kept_result_is_for_the_asker_of_a_job_without_a_target() {
    let bench = bench();
    let (best, other) = (bench.accept_best(1, 1, None), bench.accept(1, 2));
    let elsewhere = bench.ledger.keep_best(best, &pattern("zeros:24"), &wrap(2, 10));
    assert!(matches!(elsewhere, Err(LedgerError::Misaddressed)), "{elsewhere:?}");
    assert!(!bench.keep(other, "zeros:24", 11) && !bench.keep(JobId(99), "zeros:24", 12));
    bench.ledger.record_searched(&[(other, Duration::from_secs(1))]).unwrap();
    assert_eq!(bench.rows(), 0);
}

#[test]
fn however_a_job_ends_nothing_of_it_is_left() {
    let bench = bench();
    let jobs: Vec<JobId> = (1..=5).map(|rumor| bench.accept_best(1, rumor, None)).collect();
    for (at, &job) in jobs.iter().enumerate() {
        assert!(bench.keep(job, "zeros:24", 20 + at as u8));
    }
    let cancel = |effect, rumor| bench.ledger.answer(&AnsweredMessage { effect, ..reply(1, rumor) }).unwrap();
    cancel(Effect::Cancel(vec![jobs[0]]), 50);
    assert_eq!(bench.rows(), 4);
    assert!(bench.ledger.expire(jobs[1], &wrap(1, 40)).unwrap());
    assert_eq!(bench.rows(), 3);
    assert!(bench.ledger.found(jobs[2], &wrap(1, 41)).unwrap());
    assert_eq!(bench.rows(), 2);
    cancel(Effect::Forget, 51);
    assert_eq!(bench.rows(), 0);
    let job = bench.accept_best(1, 60, None);
    assert!(bench.keep(job, "zeros:24", 61));
    cancel(Effect::Stop, 62);
    assert_eq!(bench.rows(), 0);
}

/// Kept tweaks are replaced, and only the last one is sent. The half counts as used from then on.
#[test]
fn the_half_of_a_split_job_is_used_when_its_best_key_is_sent() {
    let bench = bench();
    let half: HalfPoint = POINT.parse().unwrap();
    let job = bench.accept_best(1, 1, Some(half));
    assert!(bench.keep(job, "zeros:24", 10) && bench.keep(job, "zeros:25", 11));
    assert_eq!(bench.ledger.half_use(&half).unwrap(), Some(HalfUse::Open));
    assert!(bench.ledger.deliver_best(job).unwrap());
    assert_eq!(bench.ledger.half_use(&half).unwrap(), Some(HalfUse::Spent));
}

/// The asker may have got a better tweak than the one in a restored ledger.
#[test]
fn a_restore_ends_split_jobs_with_what_they_kept() {
    let bench = bench();
    let half: HalfPoint = POINT.parse().unwrap();
    let job = bench.accept_best(1, 1, Some(half));
    assert!(bench.keep(job, "zeros:24", 10));
    let copy = tempfile::tempdir().unwrap();
    let file = copy.path().join("ledger.sqlite");
    crate::ledger::copy(bench.folder.path(), &file).unwrap();
    assert!(bench.keep(job, "zeros:30", 11) && bench.ledger.deliver_best(job).unwrap());
    let halves = crate::ledger::used_halves(bench.folder.path()).unwrap();
    let restored = tempfile::tempdir().unwrap();
    crate::ledger::restore(restored.path(), &file, &[halves]).unwrap();
    let ledger = Ledger::open(restored.path(), bench.clock.clone()).unwrap();
    assert_eq!(ledger.lost_jobs().unwrap().len(), 1);
    assert!(!ledger.deliver_best(job).unwrap(), "the older tweak is never sent");
    let kept: i64 = ledger.read().query_row("SELECT count(*) FROM best", [], |row| row.get(0)).unwrap();
    assert_eq!((kept, ledger.half_use(&half).unwrap()), (0, Some(HalfUse::Spent)));
}
