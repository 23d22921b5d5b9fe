//! A bot of an earlier version with open jobs, and the first start of this one.

use crate::support::asker::{Asker, DeliveredKey};
use crate::support::bot::Home;
use crate::support::half::Half;
use crate::support::harness::{Test, test};
use crate::support::relay::TestRelay;
use crate::support::source;
use npubbot::key::{Npub, SplitTweak};
use npubbot::pattern::Pattern;
use rusqlite::{Connection, params};
use std::fs;

pub const TESTS: &[Test] = &[test!(open_jobs_from_before_there_were_tickets_are_delivered)];

/// Number of open jobs in [`ledger_of_schema_9`]. Each gets one result.
pub const JOBS_OF_SCHEMA_9: usize = 2;

/// Makes an identity older than tickets, and a ledger of schema 9 in which this asker has two open
/// jobs: one for a key, and one for a tweak.
pub fn ledger_of_schema_9(home: &Home, asker: &Asker, half: &Half) {
    home.make_older_than_tickets();
    let dump = fs::read_to_string(source::root().join("tests/fixtures/ledger-v9.sql")).unwrap();
    let ledger = Connection::open(home.data().join("ledger.sqlite")).unwrap();
    ledger.execute_batch(&dump).unwrap();
    fs::write(home.data().join("used-halves"), "npubbot used halves 1\n1 start\n").unwrap();
    ledger.execute_batch("UPDATE mail SET finished = 1; DELETE FROM owner; DELETE FROM language").unwrap();
    keep_open(&ledger);
    let asker = asker.keys.public_key().to_bytes();
    let key =
        "UPDATE job SET asker = ?1, patterns = 'qq', split_point = NULL, half_family = NULL, encryption_key = NULL
               WHERE id = 1";
    ledger.execute(key, [asker]).unwrap();
    let tweak = "INSERT INTO job (id, asker, rumor, patterns, state, accepted_at, expires_at, seen_on, split_point,
                                  half_family)
                 SELECT 9, asker, ?1, 'cc', state, accepted_at, expires_at, seen_on, ?2, ?3 FROM job WHERE id = 1";
    ledger.execute(tweak, params![[9u8; 32], half.point().serialize(), half.point().family()]).unwrap();
}

/// Gives the open jobs of an old ledger time. The fixtures' jobs end in January 2027.
pub fn keep_open(ledger: &Connection) {
    ledger.execute("UPDATE job SET expires_at = unixepoch() + 604800 WHERE state = 'accepted'", []).unwrap();
}

async fn open_jobs_from_before_there_were_tickets_are_delivered() {
    let relay = TestRelay::start().await;
    let home = Home::new(&[relay.url()]);
    let half = Half::draw();
    let mut asker = Asker::connect(&relay.url(), home.vault().public_key()).await;
    ledger_of_schema_9(&home, &asker, &half);
    let process = home.spawn_logged().await;
    let results = [asker.next_result().await, asker.next_result().await];
    let key = results.iter().find_map(|text| DeliveredKey::read(text)).expect("one is a key");
    key.assert_starts_with("qq");
    let tweak = results.iter().find_map(|text| text.split_whitespace().find(|word| word.starts_with("ntweak1")));
    let tweak: SplitTweak = tweak.expect("one is a tweak").parse().unwrap();
    let combined = Npub(half.combine(&tweak).x_only_public_key().0.serialize());
    assert!("cc".parse::<Pattern>().unwrap().matches(&combined), "{combined}");
    let said = "open jobs of an earlier version have their tickets now jobs=2";
    assert!(home.log().contains(said), "{}", home.log());
    assert_eq!(home.count("SELECT count(*) FROM job WHERE ticket IS NOT NULL"), Some(2));
    drop(process);
    assert!(home.data().join("tickets").exists(), "from now on the vault makes none without a message");
}
