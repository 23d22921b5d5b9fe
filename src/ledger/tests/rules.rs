//! The operator's rules for askers, the list of askers, and the retention of finished jobs.

use super::*;
use std::time::Duration;

const NINETY_DAYS: Duration = Duration::from_secs(90 * DAY);

#[test]
fn a_denial_cancels_the_open_jobs_of_that_asker_and_keeps_a_found_result() {
    let bench = bench();
    let (open, found, other) = (bench.accept(1, 1), bench.accept(1, 2), bench.accept(2, 3));
    bench.found(found, 1, 100);
    assert_eq!(bench.ledger.set_standing(asker(1), Standing::Friend).unwrap(), []);
    assert_eq!(bench.ledger.set_standing(asker(1), Standing::Denied).unwrap(), [open]);
    assert_eq!(ids(&bench.ledger.open_jobs().unwrap()), [other.0]);
    assert!(bench.result_of(found).is_some(), "a key that was found is sent");
    assert!(!bench.ledger.found(open, &wrap(1, 101)).unwrap(), "a find that comes later is dropped");
}

#[test]
fn askers_are_listed_by_open_jobs_and_then_by_their_last_job() {
    let bench = bench();
    bench.accept(1, 1);
    bench.clock.set(NOW + 60);
    let done = bench.accept(2, 2);
    bench.found(done, 2, 100);
    bench.accept(3, 3);
    bench.accept(3, 4);
    bench.ledger.answer(&reply(4, 5)).unwrap();
    bench.ledger.set_standing(asker(5), Standing::Denied).unwrap();
    let totals = |from, open_jobs, done, messages, last_job_at, standing| AskerTotals {
        asker: crate::key::Npub(asker(from).0).to_string(),
        open_jobs,
        done,
        messages,
        last_job_at,
        standing,
    };
    let expected = [
        totals(3, 2, 0, 2, Some(NOW + 60), Standing::Ordinary),
        totals(1, 1, 0, 1, Some(NOW), Standing::Ordinary),
        totals(2, 0, 1, 1, Some(NOW + 60), Standing::Ordinary),
        totals(5, 0, 0, 0, None, Standing::Denied),
    ];
    assert_eq!(bench.ledger.list_askers(99).unwrap(), expected, "who never had a job is not listed");
    assert_eq!(bench.ledger.list_askers(2).unwrap(), expected[..2]);
    assert_eq!(bench.ledger.list_askers(0).unwrap(), []);
}

#[test]
fn finished_jobs_go_after_their_time_and_open_ones_and_kept_results_stay() {
    let bench = bench();
    let (open, found, cancelled, expired) =
        (bench.accept(1, 1), bench.accept(1, 2), bench.accept(1, 3), bench.accept(1, 4));
    let delivered = bench.found(found, 1, 100);
    bench.sql(&format!("UPDATE job SET state = 'cancelled' WHERE id = {}", cancelled.0));
    bench.ledger.expire(expired, &wrap(1, 101)).unwrap();
    bench.sql(&format!("UPDATE job SET expires_at = {} WHERE id = {}", NOW + DAY, expired.0));
    let left = |bench: &Bench| -> Vec<i64> {
        let connection = bench.ledger.read();
        let mut jobs = connection.prepare("SELECT id FROM job ORDER BY id").unwrap();
        jobs.query_map([], |row| row.get(0)).unwrap().map(Result::unwrap).collect()
    };
    bench.clock.set(NOW + 90 * DAY - 1);
    assert_eq!(
        (bench.ledger.delete_old_jobs(NINETY_DAYS).unwrap(), left(&bench).len()),
        (0, 4),
        "not a second earlier"
    );
    bench.clock.set(NOW + 90 * DAY);
    assert_eq!(bench.ledger.delete_old_jobs(NINETY_DAYS).unwrap(), 1);
    assert_eq!(left(&bench), [open.0, found.0, expired.0], "one was given up a day later");
    bench.clock.set(NOW + 91 * DAY);
    assert_eq!(bench.ledger.delete_old_jobs(NINETY_DAYS).unwrap(), 1);
    assert_eq!(left(&bench), [open.0, found.0], "the result is not sent yet");
    bench.finish(delivered.id).unwrap();
    bench.ledger.delete_expired().unwrap();
    assert_eq!(bench.ledger.delete_old_jobs(NINETY_DAYS).unwrap(), 1);
    assert_eq!(left(&bench), [open.0]);
    assert!(bench.ledger.next_job().unwrap() > expired, "no number is given twice");
}

#[test]
fn one_call_deletes_a_bounded_number_of_jobs() {
    let bench = bench();
    let job = bench.accept(1, 1);
    bench.sql(&format!("UPDATE job SET state = 'cancelled' WHERE id = {}", job.0));
    bench.sql(
        "WITH RECURSIVE more (n) AS (SELECT 2 UNION ALL SELECT n + 1 FROM more WHERE n < 10001)
         INSERT INTO job (id, asker, rumor, ticket, patterns, state, accepted_at, expires_at, seen_on)
         SELECT n, asker, rumor, ticket, patterns, state, accepted_at, expires_at, seen_on FROM job, more WHERE id = 1",
    );
    bench.clock.set(NOW + 91 * DAY);
    assert_eq!(bench.ledger.delete_old_jobs(NINETY_DAYS).unwrap(), 10_000);
    assert_eq!(bench.ledger.delete_old_jobs(NINETY_DAYS).unwrap(), 1);
    assert_eq!(bench.ledger.next_job().unwrap(), JobId(10_002));
}
