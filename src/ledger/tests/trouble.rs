//! Full disks, damaged files and long tables.

use super::*;

/// Leaves no room for another page. In write-ahead mode a row needs a new page only if the table is
/// full, so the tests write large rows.
fn fill(bench: &Bench) {
    bench.ledger.limit_pages(1).unwrap();
}

fn free(bench: &Bench) {
    bench.ledger.limit_pages(u32::MAX).unwrap();
}

fn large(wrap: GiftWrap) -> GiftWrap {
    GiftWrap { json: "x".repeat(20_000), ..wrap }
}

/// Each transaction is undone as a whole, and succeeds once there is room.
#[test]
fn a_full_disk_undoes_each_transaction() {
    let bench = bench();
    let (id, totals) = (bench.ledger.next_job().unwrap(), || bench.ledger.totals().unwrap());
    let relay = format!("wss://{}", "x".repeat(20_000));
    let attempt = |write: &dyn Fn() -> Result<(), LedgerError>| {
        let before = totals();
        fill(&bench);
        for _ in 0..3 {
            assert!(matches!(write(), Err(LedgerError::Database(_))));
            assert_eq!(totals(), before, "no half of it");
        }
        free(&bench);
        write().unwrap();
    };
    let request = AnsweredMessage { reply: Some(large(wrap(1, 10))), ..request(1, 10, id) };
    attempt(&|| bench.ledger.answer(&request).map(|_| ()));
    attempt(&|| bench.ledger.found(id, &large(wrap(1, 50))).map(|_| ()));
    let message = bench.result_of(id).unwrap();
    attempt(&|| bench.ledger.acknowledge(message.id, &relay));
    assert_eq!((totals().delivered, totals().unsent_messages), (1, 2));
}

#[test]
fn a_disk_that_became_read_only_is_an_error_and_not_the_end() {
    let bench = bench();
    let id = bench.accept(1, 10);
    bench.sql("PRAGMA query_only = 1");
    assert!(matches!(bench.ledger.found(id, &wrap(1, 50)), Err(LedgerError::Database(_))));
    assert!(matches!(bench.ledger.delete_expired(), Err(LedgerError::Database(_))));
    assert_eq!(ids(&bench.ledger.open_jobs().unwrap()), [id.0]);
    bench.sql("PRAGMA query_only = 0");
    assert!(bench.ledger.found(id, &wrap(1, 50)).unwrap());
}

/// This query runs every half minute, with up to ten thousand open jobs. The index finds the
/// expired ones without reading another row.
#[test]
fn jobs_past_their_time_are_found_without_reading_the_others() {
    let bench = bench();
    let (early, late) = (bench.accept(1, 1), bench.accept(1, 2));
    bench.sql(&format!("UPDATE job SET expires_at = {} WHERE id = {}", NOW + 60, early.0));
    assert!(bench.ledger.overdue_jobs(NOW + 59).unwrap().is_empty());
    assert_eq!(ids(&bench.ledger.overdue_jobs(NOW + 60).unwrap()), [early.0]);
    assert_eq!(ids(&bench.ledger.overdue_jobs(NOW + 30 * DAY).unwrap()), [early.0, late.0]);
    for (query, index) in [(jobs::overdue_query(), "job_by_expiry"), (jobs::late_query(), "job_by_notice")] {
        let plan: String = bench
            .ledger
            .read()
            .query_row(&format!("EXPLAIN QUERY PLAN {query}"), [NOW as i64], |row| row.get("detail"))
            .unwrap();
        assert!(plan.contains(index) && plan.starts_with("SEARCH"), "{plan}");
    }
    bench.ledger.expire(early, &wrap(1, 50)).unwrap();
    assert!(bench.ledger.overdue_jobs(NOW + 60).unwrap().is_empty());
}
