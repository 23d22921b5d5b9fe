//! R7: a full disk. The bot promises nothing that it has not recorded, the search waits, and
//! everything continues when there is room.

use crate::support::asker::Asker;
use crate::support::bot::Home;
use crate::support::harness::{Test, figure, test};
use crate::support::log::Log;
use crate::support::relay::TestRelay;
use crate::support::{until, wait_for};
use std::time::{Duration, Instant};

pub const TESTS: &[Test] = &[test!(a_full_disk_delays_and_loses_nothing).measures("latency")];

/// Number of messages that were ever in the outbox. It is the highest id, because sent answers are
/// deleted.
const QUEUED: &str = "SELECT coalesce(max(seq), 0) FROM sqlite_sequence WHERE name = 'outbox'";
/// Number of jobs whose asker was told that the job takes long. This happens on a busy machine.
const LATE: &str = "SELECT count(*) FROM job WHERE notice_at IS NULL";
const SOON: Duration = Duration::from_secs(5);

/// Fills the unused pages inside the ledger file.
fn occupy_free_pages(home: &Home) {
    let ledger = rusqlite::Connection::open(home.data().join("ledger/ledger.sqlite")).unwrap();
    ledger.busy_timeout(SOON).unwrap();
    ledger.execute_batch("CREATE TABLE IF NOT EXISTS filler (bytes BLOB)").unwrap();
    let free = || ledger.query_row("PRAGMA freelist_count", [], |row| row.get::<_, i64>(0)).unwrap();
    while free() > 0 {
        ledger.execute("INSERT INTO filler VALUES (zeroblob(3000))", []).unwrap();
    }
}

async fn a_full_disk_delays_and_loses_nothing() {
    let log = Log::of_warnings();
    let relay = TestRelay::start().await;
    let limits = "[limits]\nopen_jobs_per_asker = 1000\njobs_per_day = 1000\n";
    let home = Home::with(&[relay.url()], limits);
    let running = home.start().await;
    let (service, ledger) = (&running.service, running.service.ledger());
    let fill = || ledger.limit_pages(1).unwrap();
    let free = || ledger.limit_pages(u32::MAX).unwrap();
    let mut asker = Asker::connect(&relay.url(), running.public_key).await;
    asker.ask("help").await;
    let messages = || async {
        let mail = asker.mail_on(&relay).await;
        (mail.keys.len() + mail.texts.len() + mail.late_notices) as i64
    };

    // T1. Some rows may still fit into existing pages, but not for long. Every message on the relay
    // must be in the ledger, always.
    let mut sent = 0;
    loop {
        occupy_free_pages(&home);
        fill();
        asker.send(&format!("{}relay", " ".repeat(sent))).await;
        sent += 1;
        let seen = format!("SELECT count(*) = {} FROM seen", sent + 1);
        let outcome = || async {
            let put_off = log.text().contains("cannot be answered yet");
            (put_off || home.count(&seen) == Some(1)).then_some(put_off)
        };
        let put_off = until("it is answered or put off", outcome).await;
        assert!(messages().await <= home.count(QUEUED).unwrap());
        if put_off {
            break;
        }
        assert!(sent < 20, "the disk never fills");
    }
    let accepted_so_far = home.count("SELECT count(*) FROM job").unwrap();
    assert!(accepted_so_far < sent as i64, "the disk was full before the last");
    assert!(messages().await <= home.count(QUEUED).unwrap(), "no message without a row in the ledger");
    free();
    let began = Instant::now();
    let all_seen = format!("SELECT count(*) = {} FROM seen", sent + 1);
    until("every message is answered", || async { home.count(&all_seen).filter(|all| *all == 1) }).await;
    let answered = began.elapsed();
    let done = || async {
        (service.totals().unwrap().delivered as i64 == home.count("SELECT count(*) FROM job")?).then_some(())
    };
    until("every job is done", done).await;

    // T2 and T3: there is no room for the results of the open jobs.
    let before = service.totals().unwrap().delivered;
    let mut requests = 0;
    loop {
        // A new text each time: the same text within a second is the same message.
        asker.send(&format!("relay{}", " ".repeat(requests + 1))).await;
        requests += 1;
        let row = format!("SELECT count(*) = {} FROM seen", sent + 1 + requests);
        until("it is accepted", || async { home.count(&row).filter(|all| *all == 1) }).await;
        // A delivered acceptance is deleted. The result must not fit into its pages.
        until("its acceptance is gone", || async {
            home.count("SELECT count(*) = 0 FROM outbox WHERE result_of IS NULL").filter(|all| *all == 1)
        })
        .await;
        occupy_free_pages(&home);
        fill();
        // Either there is no room for the result, or it just fits once more.
        let outcome = || async {
            let full = log.text().contains("result cannot be recorded yet");
            let fitted = service.totals().unwrap().accepted == 0;
            (full || fitted).then_some(full)
        };
        if until("the key is found", outcome).await {
            break;
        }
        free();
        wait_for("the result that fitted is delivered", || {
            service.totals().unwrap().delivered as usize == before as usize + requests
        })
        .await;
        assert!(requests < 20, "the disk never fills");
    }
    // The search pauses: the verifier waits for the disk, and the devices wait for the verifier.
    // Only launches already in flight or waiting for the verifier are still counted.
    let mut candidates = service.scheduler().candidates();
    until("the search pauses", || {
        let now = service.scheduler().candidates();
        let still = now == candidates;
        candidates = now;
        async move {
            tokio::time::sleep(Duration::from_millis(200)).await;
            still.then_some(())
        }
    })
    .await;
    assert_eq!(service.totals().unwrap().delivered as usize, before as usize + requests - 1, "its key is not sent");
    free();
    let began = Instant::now();
    wait_for("the key is delivered", || service.totals().unwrap().delivered as usize == before as usize + requests)
        .await;
    let found = began.elapsed();

    // Nothing is lost and nothing doubled: one answer per message, one key per job, and one notice
    // per late job.
    wait_for("every message is out", || service.totals().unwrap().unsent_messages == 0).await;
    let answers = 1 + sent as i64 + requests as i64;
    let (jobs, late) = (home.count("SELECT count(*) FROM job").unwrap(), home.count(LATE).unwrap());
    assert_eq!(messages().await, answers + jobs + late, "{answers} answers, {jobs} keys, {late} notices");
    assert_eq!(service.totals().unwrap().delivered as i64, jobs);
    running.service.stop().await;
    home.assert_sound();
    figure("T1: every answer after the disk was freed", answered, SOON);
    figure("T2: the key after the disk was freed", found, SOON);
}
