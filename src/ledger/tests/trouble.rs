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

#[test]
fn a_panic_between_rows_leaves_nothing_behind() {
    let bench = bench();
    let ledger = bench.ledger.clone();
    let died = std::thread::spawn(move || {
        let _ = ledger.write(|transaction| -> Result<Option<()>, LedgerError> {
            transaction.execute("INSERT INTO meta (name, value) VALUES ('half', 1)", []).unwrap();
            panic!("in mid-transaction");
        });
    })
    .join();
    assert!(died.is_err());
    bench.accept(1, 10);
    let half: i64 =
        bench.ledger.read().query_row("SELECT count(*) FROM meta WHERE name = 'half'", [], |row| row.get(0)).unwrap();
    assert_eq!(half, 0);
}

#[test]
fn the_file_holds_nothing_but_wraps_keys_and_patterns() {
    let bench = bench();
    let columns: Vec<String> = {
        let connection = bench.ledger.read();
        let query = "SELECT m.name || '.' || c.name FROM sqlite_master m, pragma_table_info(m.name) c
                     WHERE m.type = 'table' AND m.name NOT LIKE 'sqlite_%' ORDER BY m.name, c.cid";
        let mut statement = connection.prepare(query).unwrap();
        statement.query_map([], |row| row.get(0)).unwrap().collect::<Result<_, _>>().unwrap()
    };
    let expected = "acknowledged.message acknowledged.relay best.job best.searched best.pattern best.wrap best.json \
         best.expires_at day.day day.candidates day.accepted day.delivered day.joules followed.asker job.id job.asker job.rumor \
         job.ticket job.subject job.patterns job.best job.state job.accepted_at job.expires_at \
         job.notice_at job.seen_on job.split_point job.half_family job.encryption_key job.time_class job.priority \
         language.asker \
         language.code language.since lost_job.job meta.name meta.value outbox.id outbox.wrap \
         outbox.asker outbox.result_of outbox.json outbox.expires_at outbox.queued_at outbox.due_at \
         outbox.due_set_at outbox.attempts outbox.finished outbox.seen_on owner.bot post.id post.topic \
         post.json post.relays post.queued_at post.expires_at posted.post posted.relay quarantine.kind \
         quarantine.row quarantine.reason quarantine.at redirected.asker redirected.at rule.asker \
         rule.rule rule.since seen.asker seen.rumor seen.dated silent.asker silent.since spent.asker \
         spent.number spent.at started.asker \
         started.at used_half.family";
    assert_eq!(columns.join(" "), expected, "a new column is looked at twice: it must hold no secret in the clear");
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

#[test]
fn the_frequent_questions_use_an_index() {
    let bench = bench();
    let connection = bench.ledger.read();
    for question in [
        "SELECT id FROM job WHERE state = 'accepted' ORDER BY id",
        "SELECT id FROM job WHERE asker = x'00' AND accepted_at > 5",
        "SELECT id FROM outbox WHERE finished = 0 AND (due_at <= 5 OR due_set_at > 5) ORDER BY due_at, id LIMIT 9",
        "SELECT id FROM outbox WHERE result_of = 5",
        "DELETE FROM seen WHERE dated < 5",
        "DELETE FROM outbox WHERE finished = 1 AND expires_at <= 5",
    ] {
        let mut statement = connection.prepare(&format!("EXPLAIN QUERY PLAN {question}")).unwrap();
        let plan: Vec<String> =
            statement.query_map([], |row| row.get(3)).unwrap().collect::<rusqlite::Result<_>>().unwrap();
        assert!(plan.iter().all(|step| !step.starts_with("SCAN") || step.contains("INDEX")), "{question}: {plan:?}");
    }
}
