//! R7: a full disk. The bot promises nothing that it has not recorded, the search waits, and
//! everything continues when there is room.

use crate::support::bot::{Met, met};
use crate::support::disk::{Trouble, unwatch, watch};
use crate::support::harness::{Test, figure, gate, test};
use crate::support::log::Log;
use crate::support::{until, wait_for};
use rustix::io::Errno;
use std::time::{Duration, Instant};

pub const TESTS: &[Test] = &[test!(a_full_disk_delays_and_loses_nothing).holding("launch:before").measures("latency")];

/// Every write fails.
const FULL: Trouble = Trouble { fails: Some((0, usize::MAX, Errno::NOSPC)), power: None };
const SOON: Duration = Duration::from_secs(5);

async fn a_full_disk_delays_and_loses_nothing() {
    let log = Log::of_warnings();
    let Met { relay, home, bot, mut asker } = met("").await;
    let (service, folder) = (&bot.service, npubbot::ledger::folder(&home.data()));
    asker.ask("help").await;
    home.all_is_sent("the first answer").await;

    // T1: the request cannot be recorded.
    watch(&folder, FULL);
    asker.send("cats").await;
    wait_for("it is put off", || log.text().contains("cannot be answered yet")).await;
    assert_eq!(home.count("SELECT count(*) FROM seen"), Some(1));
    assert_eq!(asker.mail_on(&relay).await.texts.len(), 1, "no message without a row in the ledger");
    unwatch();
    let began = Instant::now();
    assert!(asker.next_text().await.contains("#1"));
    let answered = began.elapsed();
    home.all_is_sent("the acceptance").await;

    // T2 and T3: the result cannot be recorded.
    watch(&folder, FULL);
    gate::open();
    wait_for("the key is found", || log.text().contains("result cannot be recorded yet")).await;
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
    assert!(asker.mail_on(&relay).await.keys.is_empty(), "its key is not sent");
    unwatch();
    let began = Instant::now();
    asker.next_key().await.assert_starts_with("cats");
    let found = began.elapsed();

    // Nothing is lost and nothing doubled.
    home.has_delivered(1).await;
    home.all_is_sent("the result").await;
    let mail = asker.mail_on(&relay).await;
    assert_eq!((mail.texts.len(), mail.explanations, mail.keys.len()), (2, 1, 1), "{:?}", mail.texts);
    bot.service.stop().await;
    home.assert_sound();
    figure("T1: the answer after the disk was freed", answered, SOON);
    figure("T2: the key after the disk was freed", found, SOON);
}
