//! A ledger that cannot be written. R7: on a full disk the bot promises nothing that it has not
//! recorded, and everything continues when there is room. A message that can never be recorded delays
//! no other asker. A damaged file ends the program, with an error that says to restore a backup.

use crate::support::asker::Asker;
use crate::support::bot::{Home, Met, SERVING, met, met_process};
use crate::support::disk::{Trouble, unwatch, watch};
use crate::support::harness::{Test, figure, gate, test};
use crate::support::log::Log;
use crate::support::vault::signal;
use crate::support::{until, wait_for};
use rustix::io::Errno;
use rustix::process::Signal;
use std::fs::OpenOptions;
use std::io::{Seek, SeekFrom, Write};
use std::time::{Duration, Instant};

pub const TESTS: &[Test] = &[
    test!(a_message_that_can_never_be_recorded_holds_up_nobody),
    test!(damage_after_a_reload_is_not_taken_for_a_wrong_configuration),
    test!(a_full_disk_delays_and_loses_nothing).holding("launch:before").measures("latency"),
];

async fn a_message_that_can_never_be_recorded_holds_up_nobody() {
    let Met { relay, home, bot, asker: mut unlucky } = met_process("").await;
    let mut lucky = Asker::connect(&relay.url(), bot.public_key).await;
    // The ledger has its tables once the bot answers.
    lucky.ask("status").await;
    // The rows of one asker fail for good, as a constraint of a damaged index would.
    let key = unlucky.keys.public_key().to_hex();
    let trigger = format!(
        "CREATE TRIGGER bad BEFORE INSERT ON seen WHEN NEW.asker = x'{key}' BEGIN SELECT RAISE(ABORT, 'bad row'); END"
    );
    home.sql().execute_batch(&trigger).unwrap();
    unlucky.send("help").await;
    home.logs("is left out until the next start", 1).await;
    lucky.ask("help").await;
    // The next start finds the message on the relay.
    bot.kill();
    home.sql().execute_batch("DROP TRIGGER bad").unwrap();
    let bot = home.spawn().await;
    unlucky.next_text().await;
    bot.kill();
}

/// Overwrites all pages of the ledger except the first.
fn damage(home: &Home) {
    // A write by another program makes the bot read its pages again.
    home.sql().execute_batch("CREATE TABLE other (x); PRAGMA wal_checkpoint(TRUNCATE)").unwrap();
    let mut file = OpenOptions::new().write(true).open(home.data().join("ledger/ledger.sqlite")).unwrap();
    let bytes = file.metadata().unwrap().len() - 4096;
    file.seek(SeekFrom::Start(4096)).unwrap();
    file.write_all(&vec![0x55; bytes as usize]).unwrap();
}

async fn damage_after_a_reload_is_not_taken_for_a_wrong_configuration() {
    let Met { relay: _relay, home, bot, mut asker } = met_process("").await;
    asker.ask("help").await;
    signal(bot.pid(), Signal::HUP);
    home.logs(SERVING, 2).await;
    asker.ask("status").await;
    damage(&home);
    asker.send("status 1").await;
    assert_eq!(bot.ended().await.code(), Some(2), "{}", home.log());
    assert!(home.log().contains("restore a backup"), "{}", home.log());
    assert!(!home.log().contains("new configuration"), "{}", home.log());
}

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
