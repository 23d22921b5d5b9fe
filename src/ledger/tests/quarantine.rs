//! One bad row stops nothing; a damaged file stops everything.

use super::*;
use std::fs;

fn places(bench: &Bench) -> Vec<String> {
    let rows = bench.ledger.quarantined().unwrap();
    rows.into_iter().map(|row| format!("{}, {}", row.place, row.reason)).collect()
}

#[test]
fn an_unreadable_row_is_named_and_the_others_are_served() {
    let named = |damage: &str, place: &str| {
        let bench = bench();
        bench.accept(1, 10);
        let other = bench.accept(1, 11);
        bench.sql(damage);
        for _ in 0..2 {
            let (open, due) = (bench.ledger.open_jobs().unwrap(), bench.ledger.due_messages(9).unwrap());
            assert!(open.iter().any(|job| job.id == other) && due.iter().any(|due| due.wrap == wrap(1, 11)));
            assert!(ids(&bench.ledger.asker_view(asker(1)).unwrap().open).contains(&other.0));
        }
        assert_eq!(places(&bench), [place]);
        assert!(!places(&bench)[0].contains("bob"), "a pattern is not for the log");
        let bench = bench.reopened();
        let Bench { folder, ledger, .. } = bench;
        drop(ledger);
        let Inspection::Sound { quarantined, .. } = inspect(folder.path()).unwrap() else { panic!("it is sound") };
        assert_eq!(quarantined.len(), 1);
    };
    named("UPDATE job SET patterns = 'm0ctane bob' WHERE id = 1", "job 1, column patterns");
    named("UPDATE job SET patterns = 'M0CTANE' WHERE id = 1", "job 1, column patterns");
    named("UPDATE job SET seen_on = 'wss://bob' WHERE id = 1", "job 1, column seen_on");
    named("UPDATE job SET subject = CAST(x'ff' AS TEXT) WHERE id = 1", "job 1, column subject");
    named("UPDATE job SET split_point = zeroblob(33) WHERE id = 1", "job 1, column split_point");
    named("UPDATE outbox SET seen_on = '[1]' WHERE id = 1", "message 1, column seen_on");
    named("UPDATE outbox SET json = CAST(x'ff' AS TEXT) WHERE id = 1", "message 1, column json");
}

#[test]
fn unreadable_messages_take_no_place_of_others() {
    let bench = bench();
    for rumor in 1..=3 {
        bench.accept(1, rumor);
    }
    bench.sql("UPDATE outbox SET seen_on = 'x' WHERE id < 3");
    assert!(bench.ledger.due_messages(2).unwrap().is_empty(), "both are set aside");
    assert_eq!(bench.ledger.due_messages(2).unwrap().len(), 1);
}

#[test]
fn an_unreadable_post_and_cursor_are_set_aside() {
    let bench = bench();
    for topic in ["bad", "good"] {
        let (topic, json) = (topic.to_owned(), topic.to_owned());
        bench.ledger.post(&Post { topic, json, relays: vec!["wss://a".to_owned()], expires_at: None }).unwrap();
    }
    bench.ledger.set_last_contact(NOW).unwrap();
    bench.sql("UPDATE post SET relays = 'wss://a' WHERE topic = 'bad'; UPDATE meta SET value = -7 WHERE name = 'last_contact'");
    assert_eq!(bench.ledger.due_posts().unwrap().iter().map(|post| &post.json).collect::<Vec<_>>(), ["good"]);
    assert_eq!(bench.ledger.last_contact().unwrap(), None, "as at a first start: nothing is missed");
    assert_eq!(places(&bench), ["cursor 0, value -7", "post 1, column relays"]);
    bench.ledger.set_last_contact(NOW).unwrap();
    assert_eq!(bench.ledger.last_contact().unwrap(), Some(NOW));
}

#[test]
fn a_result_with_unreadable_relays_is_sent_again_to_new_ones() {
    let bench = bench();
    let job = bench.accept(1, 10);
    let message = bench.found(job, 1, 50);
    bench.finish(message.id).unwrap();
    bench.sql("UPDATE outbox SET seen_on = 'x' WHERE result_of = 1");
    let again = AnsweredMessage { effect: Effect::Resend(job), reply: None, ..reply(1, 11) };
    assert_eq!(bench.ledger.answer(&again).unwrap(), Recorded::Now);
    assert_eq!(bench.result_of(job).unwrap().seen_on, again.seen_on);
}

#[test]
fn damage_of_the_file_is_noticed_while_it_is_open() {
    let bench = bench();
    for rumor in 0..200 {
        let patterns = patterns("qqqqqqqqqqqqqqqqqqqqqqqqqqqqqqqqqqq ".repeat(20).trim_end());
        bench.accept_with(1, rumor, |job| job.patterns = patterns);
    }
    let Bench { folder, clock, ledger } = bench;
    ledger.close();
    drop(ledger);
    let path = folder.path().join("ledger.sqlite");
    let mut bytes = fs::read(&path).unwrap();
    let half = bytes.len() / 2;
    bytes[half..].fill(0xa5);
    fs::write(&path, bytes).unwrap();
    // The damage is found either at the start or by a later call.
    match Ledger::open(folder.path(), clock) {
        Err(error) => assert!(matches!(&error, LedgerError::Corrupt(_)), "{error}"),
        Ok(ledger) => {
            let met = ledger.open_jobs().map(|_| ()).and_then(|()| ledger.due_messages(999).map(|_| ()));
            assert!(matches!(met, Err(LedgerError::Corrupt(_))), "{met:?}");
            assert!(ledger.damage().unwrap().contains("restore a backup"));
        }
    }
}
