//! Halves that can be used once, `stop` and `delete`, notices, days and public events.

use super::*;
use crate::language::Language;

impl Bench {
    fn say(&self, asker: u8, rumor: u8, effect: Effect) {
        assert_eq!(self.ledger.answer(&AnsweredMessage { effect, ..reply(asker, rumor) }).unwrap(), Recorded::Now);
    }
}

#[test]
fn a_half_serves_once() {
    let mut bench = bench();
    let opposite = HalfPoint::new(half(5).public_key().negate(SECP256K1));
    let job = bench.accept_with(1, 1, |job| job.half = Some(half(5)));
    assert_eq!(bench.ledger.open_job(job).unwrap().unwrap().spec.half, Some(half(5)));
    for point in [half(5), opposite] {
        assert_eq!(bench.ledger.half_use(&point).unwrap(), Some(HalfUse::Open));
    }
    assert_eq!(bench.ledger.half_use(&half(6)).unwrap(), None);
    bench.say(1, 2, Effect::Cancel(vec![job]));
    assert_eq!(bench.ledger.half_use(&half(5)).unwrap(), None, "nothing was found for it");
    let job = bench.accept_with(1, 3, |job| job.half = Some(half(5)));
    bench.found(job, 1, 100);
    bench.say(1, 4, Effect::Forget);
    bench = bench.reopened();
    for point in [half(5), opposite] {
        assert_eq!(bench.ledger.half_use(&point).unwrap(), Some(HalfUse::Spent), "even of an asker forgotten");
    }
}

#[test]
fn english_takes_no_row_and_the_code_of_a_later_version_is_read_as_english() {
    let bench = bench();
    bench.ledger.answer(&AnsweredMessage { language: Some(Language::English), ..reply(3, 7) }).unwrap();
    let rows: i64 = bench.ledger.read().query_row("SELECT count(*) FROM language", [], |row| row.get(0)).unwrap();
    assert_eq!(rows, 0);
    bench.sql("INSERT INTO language VALUES (zeroblob(32), 'tlh', 0)");
    assert_eq!(bench.ledger.asker_view(asker(0)).unwrap().language, Language::English);
}

/// The bound of the table in the threat model.
#[test]
fn the_oldest_languages_of_askers_without_a_job_are_deleted() {
    let bench = bench();
    bench.accept(1, 1);
    for (from, row) in [(1, 1), (2, 2), (3, 3), (4, 100_002)] {
        bench.ledger.answer(&AnsweredMessage { language: Some(Language::Spanish), ..reply(from, 10 + from) }).unwrap();
        bench.sql(&format!("UPDATE language SET rowid = {row} WHERE rowid = (SELECT max(rowid) FROM language)"));
    }
    bench.ledger.delete_expired().unwrap();
    let kept = |of| bench.ledger.asker_view(asker(of)).unwrap().language == Language::Spanish;
    assert_eq!([1, 2, 3, 4].map(kept), [true, false, true, true], "the first has a job");
}

#[test]
fn days_are_counted() {
    let bench = bench();
    let today = NOW / DAY;
    let job = bench.accept(1, 1);
    bench.ledger.count_searched(1 << 40, None).unwrap();
    bench.ledger.count_searched(7, Some(1_800_000)).unwrap();
    let message = bench.found(job, 1, 100);
    for relay in ["wss://one.example", "wss://two.example"] {
        bench.ledger.acknowledge(message.id, relay).unwrap();
    }
    let figures = bench.ledger.day(today).unwrap();
    let DayFigures { candidates, jobs_accepted, jobs_delivered, kwh, .. } = figures;
    assert_eq!((candidates, jobs_accepted, jobs_delivered, kwh), ((1 << 40) + 7, 1, 1, Some(0.5)));
    bench.clock.set(NOW + DAY);
    bench.accept(1, 2);
    assert_eq!(bench.ledger.day(today).unwrap(), figures);
    assert_eq!(bench.ledger.day(today + 1).unwrap().jobs_accepted, 1);
    let date = crate::hours::date((today + 2) * DAY);
    assert_eq!(bench.ledger.day(today + 2).unwrap(), DayFigures { date, ..DayFigures::default() });
}

#[test]
fn a_day_has_one_note() {
    let bench = bench();
    let note =
        Post { topic: "note".to_owned(), json: "one".to_owned(), relays: vec!["wss://a".to_owned()], expires_at: None };
    assert!(bench.ledger.post_of_day(20_000, &note).unwrap());
    let bench = bench.reopened();
    for day in [20_000, 19_999] {
        assert!(!bench.ledger.post_of_day(day, &Post { json: "two".to_owned(), ..note.clone() }).unwrap());
    }
    assert_eq!(bench.ledger.due_posts().unwrap()[0].json, "one");
    assert!(bench.ledger.post_of_day(20_001, &note).unwrap());
    assert_eq!(bench.ledger.posted_day().unwrap(), Some(20_001));
}

#[test]
fn a_public_event_goes_to_each_relay_once_and_gives_way_to_a_newer_one() {
    let bench = bench();
    let post = |json: &str, expires_at| Post {
        topic: "status".to_owned(),
        json: json.to_owned(),
        relays: vec!["wss://one.example".to_owned(), "wss://two.example".to_owned()],
        expires_at,
    };
    bench.ledger.post(&post("first", None)).unwrap();
    let due = bench.ledger.due_posts().unwrap();
    bench.ledger.post_reached(due[0].id, "wss://one.example").unwrap();
    let bench = bench.reopened();
    assert_eq!(bench.ledger.due_posts().unwrap()[0].left, ["wss://two.example"]);
    bench.ledger.post(&post("second", Some(NOW + 60))).unwrap();
    bench.ledger.post_reached(due[0].id, "wss://two.example").unwrap();
    let due = bench.ledger.due_posts().unwrap();
    assert_eq!((due.len(), due[0].json.as_str(), due[0].left.len()), (1, "second", 2));
    assert_eq!(bench.ledger.posted("status").unwrap(), Some(("second".to_owned(), NOW)));
    bench.clock.set(NOW + 60);
    assert!(bench.ledger.due_posts().unwrap().is_empty(), "a status of yesterday is of no use");
}
