//! A ledger that fails permanently. A message that can never be recorded delays no other asker. A
//! damaged file ends the program, with an error that says to restore a backup.

use crate::support::asker::Asker;
use crate::support::bot::{Home, Met, met_process};
use crate::support::harness::{Test, test};

use rustix::process::{Pid, Signal, kill_process};
use std::fs::OpenOptions;
use std::io::{Seek, SeekFrom, Write};

pub const TESTS: &[Test] = &[
    test!(a_message_that_can_never_be_recorded_holds_up_nobody),
    test!(damage_after_a_reload_is_not_taken_for_a_wrong_configuration),
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
    kill_process(Pid::from_raw(bot.pid() as i32).unwrap(), Signal::HUP).unwrap();
    let served = "serving; Ctrl-C stops";
    home.logs(served, 2).await;
    asker.ask("status").await;
    damage(&home);
    asker.send("status 1").await;
    assert_eq!(bot.ended().await.code(), Some(2), "{}", home.log());
    assert!(home.log().contains("restore a backup"), "{}", home.log());
    assert!(!home.log().contains("new configuration"), "{}", home.log());
}
