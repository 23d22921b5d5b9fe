//! The bound on a ledger's size.

use super::*;
use std::fs;

/// Bytes of an ordinary answer's wrap.
const WRAP: usize = 4_000;

fn with_budget(budget: LedgerBudget) -> Bench {
    let folder = TempDir::new().unwrap();
    let clock = Clock::at(NOW);
    let ledger = Ledger::open_with(folder.path(), clock.clone(), budget).unwrap();
    Bench { folder, clock, ledger }
}

fn numbered(number: u32) -> [u8; 32] {
    let mut bytes = [9; 32];
    bytes[..4].copy_from_slice(&number.to_be_bytes());
    // A hash, because random ids fill the pages differently from numbered ones.
    nostr::hashes::Hash::to_byte_array(<nostr::hashes::sha256::Hash as nostr::hashes::Hash>::hash(&bytes))
}

/// A `help` message of a first-time asker, and its answer.
fn help(number: u32) -> AnsweredMessage {
    let asker = Asker(numbered(number));
    let reply = GiftWrap { id: numbered(number), to: asker, json: "x".repeat(WRAP), expires_at: NOW + 30 * DAY };
    AnsweredMessage { asker, rumor: RumorId(numbered(number)), reply: Some(reply), ..reply_to_nobody() }
}

fn chatter(bench: &Bench, number: u32) -> Recorded {
    bench.ledger.answer(&help(number)).unwrap()
}

/// Records the answers to many `help` messages in one transaction.
fn flood(bench: &Bench, numbers: std::ops::Range<u32>) {
    let recorded = bench.ledger.answer_all(&numbers.map(help).collect::<Vec<_>>()).unwrap();
    assert!(recorded.iter().all(|(recorded, _)| *recorded == Recorded::Now));
}

fn reply_to_nobody() -> AnsweredMessage {
    AnsweredMessage { reply: None, ..reply(1, 1) }
}

fn send_all(bench: &Bench) {
    let due = bench.ledger.due_messages(usize::MAX).unwrap();
    let reached = vec!["wss://one.example".to_owned()];
    let sent = |message: DueMessage| Attempt { message: message.id, reached: reached.clone(), again_at: None };
    bench.ledger.record_attempts(&due.into_iter().map(sent).collect::<Vec<_>>()).unwrap();
}

fn file_size(bench: &Bench) -> u64 {
    let connection = bench.ledger.read();
    connection.query_row("PRAGMA wal_checkpoint(TRUNCATE)", [], |_| Ok(())).unwrap();
    ["ledger.sqlite", "ledger.sqlite-wal"]
        .iter()
        .map(|file| fs::metadata(bench.folder.path().join(file)).map_or(0, |meta| meta.len()))
        .sum()
}

/// The bound of the table in the threat model: 300 bytes per message.
#[test]
fn a_message_that_was_answered_takes_at_most_300_bytes() {
    const MESSAGES: u32 = 10_000;
    let bench = bench();
    let empty = file_size(&bench);
    for first in (0..MESSAGES).step_by(100) {
        flood(&bench, first..first + 100);
        send_all(&bench);
    }
    bench.ledger.delete_expired().unwrap();
    bench.sql("PRAGMA incremental_vacuum");
    let bytes = (file_size(&bench) - empty) as f64 / f64::from(MESSAGES);
    println!("{bytes:.0} bytes a message");
    assert!(bytes <= 300.0, "{bytes}");
}

#[test]
fn over_the_budget_answers_to_first_time_askers_go_first_and_results_never() {
    let bench = with_budget(LedgerBudget { answers: 100_000, ..LedgerBudget::default() });
    let job = bench.accept(1, 10);
    bench.found(job, 1, 50);
    for number in 0..500 {
        assert_eq!(chatter(&bench, number), Recorded::Now);
        let sizes = bench.ledger.sizes().unwrap();
        assert!(sizes.answers <= 100_000, "{sizes:?}");
    }
    let sizes = bench.ledger.sizes().unwrap();
    assert!(sizes.dropped > 450, "{sizes:?}");
    let due = bench.ledger.due_messages(usize::MAX).unwrap();
    assert_eq!(due.iter().filter(|message| message.wrap.to == asker(1)).count(), 2, "acceptance and result");
    // Without first-time askers the oldest answers are dropped, and the result stays.
    for rumor in 60..=250 {
        bench.ledger.answer(&AnsweredMessage { reply: Some(large(1, rumor)), ..reply(1, rumor) }).unwrap();
    }
    let due = bench.ledger.due_messages(usize::MAX).unwrap();
    assert!(due.iter().any(|message| message.result_of == Some(job)) && due.len() < 100);
    assert!(!due.iter().any(|message| message.wrap.id == wrap(1, 10).id), "the oldest");
}

fn large(to: u8, number: u8) -> GiftWrap {
    GiftWrap { json: "x".repeat(WRAP), ..wrap(to, number) }
}

/// When the table of ids is full, the dates that are accepted move on. Whoever writes now is
/// answered, and nobody is answered twice.
#[test]
fn a_full_table_of_ids_refuses_old_messages_and_answers_new_ones() {
    let bench = with_budget(LedgerBudget { seen: 50, ..LedgerBudget::default() });
    let job = bench.accept(1, 10);
    bench.found(job, 1, 50);
    let dated = |number: u64, dated| AnsweredMessage { dated, ..help(number as u32) };
    let answer = |message: &AnsweredMessage| bench.ledger.answer(message).unwrap();
    // Two an hour, for a week: far more than the table holds. The asker who has a job writes too.
    for hour in 0..7 * 24 {
        bench.clock.set(NOW + hour * 3600);
        assert_eq!(answer(&dated(hour, NOW + hour * 3600)), Recorded::Now, "hour {hour}");
        let known = AnsweredMessage { dated: NOW + hour * 3600, rumor: RumorId(numbered(hour as u32)), ..reply(1, 0) };
        assert_eq!(answer(&AnsweredMessage { reply: None, ..known }), Recorded::Now, "hour {hour}");
        assert!(bench.ledger.sizes().unwrap().seen <= 50);
    }
    let sizes = bench.ledger.sizes().unwrap();
    let since = (bench.clock.now() - sizes.seen_from) / 3600;
    assert!((18..=25).contains(&since), "{sizes:?}");
    assert!(sizes.bounds_reached(bench.clock.now())[0].contains("older ones are refused"));
    for hour in 0..7 * 24 {
        let again = answer(&dated(hour, NOW + hour * 3600));
        assert!([Recorded::TooOld, Recorded::Before].contains(&again), "hour {hour}: {again:?}");
    }
    assert!(
        bench.ledger.is_too_old(sizes.seen_from - 1).unwrap() && !bench.ledger.is_too_old(sizes.seen_from).unwrap()
    );
    let now = bench.clock.now();
    assert_eq!(answer(&dated(1000, sizes.seen_from - 1)), Recorded::TooOld);
    let bench = bench.reopened();
    assert_eq!(bench.ledger.answer(&dated(1000, sizes.seen_from - 1)).unwrap(), Recorded::TooOld);
    assert_eq!(bench.ledger.answer(&dated(1001, now)).unwrap(), Recorded::Now);
    bench.clock.set(now + 9 * DAY);
    bench.ledger.delete_expired().unwrap();
    bench.clock.set(now + 10 * DAY);
    bench.ledger.delete_expired().unwrap();
    assert!(bench.ledger.sizes().unwrap().bounds_reached(now + 10 * DAY).is_empty(), "the week is accepted again");
}

/// Work is spent for as long as it counts, also where the id of a message that was dated back goes
/// at once.
#[test]
fn work_stays_spent_whatever_happens_to_the_ids_of_messages() {
    let bench = with_budget(LedgerBudget { seen: 50, ..LedgerBudget::default() });
    let paid = AnsweredMessage { dated: NOW - 6 * DAY, work: Some(u64::MAX), ..help(1) };
    assert_eq!(bench.ledger.answer(&paid).unwrap(), Recorded::Now);
    for number in 2..100 {
        bench.ledger.answer(&AnsweredMessage { dated: NOW, ..help(number) }).unwrap();
    }
    let is_spent = || bench.ledger.has_spent(paid.asker, u64::MAX).unwrap();
    assert!(!bench.ledger.has_seen(paid.asker, paid.rumor).unwrap() && is_spent());
    assert!(!bench.ledger.has_spent(Asker(numbered(2)), u64::MAX).unwrap());
    bench.ledger.delete_expired().unwrap();
    bench.clock.set(NOW + 2 * DAY - 1);
    (0..2).for_each(|_| bench.ledger.delete_expired().unwrap());
    assert!(is_spent());
    bench.clock.set(NOW + 2 * DAY);
    bench.ledger.delete_expired().unwrap();
    assert!(!is_spent());
}

/// Nobody moves the accepted dates into the last hour: neither by many messages, nor by dates ahead.
#[test]
fn the_last_hour_is_always_accepted_and_what_does_not_fit_waits() {
    let bench = with_budget(LedgerBudget { seen: 50, ..LedgerBudget::default() });
    for number in 0..50 {
        let dated = NOW + u64::from(number % 3) * 1800;
        bench.ledger.answer(&AnsweredMessage { dated, ..help(number) }).unwrap();
    }
    let late = AnsweredMessage { dated: NOW, ..help(60) };
    assert_eq!(bench.ledger.answer(&late).unwrap(), Recorded::Full);
    assert!(!bench.ledger.has_seen(late.asker, late.rumor).unwrap() && !bench.ledger.is_too_old(NOW).unwrap());
    bench.clock.set(NOW + 3601);
    assert_eq!(bench.ledger.answer(&AnsweredMessage { dated: NOW + 3600, ..late }).unwrap(), Recorded::Now);
    assert_eq!(bench.ledger.sizes().unwrap().seen_from, NOW + 1);
}

#[test]
fn delivered_results_and_ended_jobs_have_a_budget() {
    let bench = with_budget(LedgerBudget { results: 20_000, ended_jobs: 30, ..LedgerBudget::default() });
    for number in 0..100 {
        let job = bench.accept(1, number);
        assert!(bench.ledger.found(job, &large(1, 100 + number)).unwrap());
        if number < 98 {
            send_all(&bench);
        }
    }
    bench.ledger.delete_expired().unwrap();
    let results = kept_results(&bench);
    assert!(results.len() <= 6 && results.contains(&99) && results.contains(&100), "{results:?}");
    bench.ledger.delete_expired().unwrap();
    let totals = bench.ledger.totals().unwrap();
    assert!(totals.found + totals.delivered <= 34, "{totals:?}");
    assert_eq!(bench.ledger.next_job().unwrap(), JobId(101));
}

fn kept_results(bench: &Bench) -> Vec<i64> {
    let connection = bench.ledger.read();
    let mut statement = connection.prepare("SELECT result_of FROM outbox WHERE result_of IS NOT NULL").unwrap();
    statement.query_map([], |row| row.get(0)).unwrap().collect::<Result<_, _>>().unwrap()
}

/// Results that nobody takes are counted apart, and delete no other. They go first once they are
/// given up.
#[test]
fn results_that_nobody_takes_delete_no_delivered_one() {
    let bench = with_budget(LedgerBudget { results: 20_000, undelivered: 100_000, ..LedgerBudget::default() });
    let honest = bench.accept(1, 1);
    bench.ledger.found(honest, &large(1, 201)).unwrap();
    send_all(&bench);
    let untaken: Vec<DueMessage> = (2..=50)
        .map(|number| {
            let job = bench.accept(number, number);
            bench.ledger.found(job, &large(number, 200u8.wrapping_add(number))).unwrap();
            bench.result_of(job).unwrap()
        })
        .collect();
    bench.ledger.delete_expired().unwrap();
    assert_eq!(kept_results(&bench).len(), 50);
    let sizes = bench.ledger.sizes().unwrap();
    assert_eq!((sizes.results, sizes.undelivered), (5_000, 49 * 5_000));
    assert!(sizes.undelivered_part() > 2.0);
    for (undelivered, text) in
        [(49_999, None), (50_000, Some("owe work")), (100_000, Some("get no job")), (200_000, Some("only friends"))]
    {
        let told = Sizes { undelivered, ..sizes }.bounds_reached(NOW);
        assert_eq!(told.len(), usize::from(text.is_some()), "{told:?}");
        assert!(told.iter().zip(text).all(|(told, text)| told.contains(text)), "{told:?}");
    }
    // The first attempts failed: these askers get no further job, whoever took a result does.
    let view = |number| bench.ledger.asker_view(asker(number)).unwrap();
    let facts = |number| (view(number).undelivered, view(number).untaken, view(number).served);
    assert_eq!((facts(1), facts(2)), ((0, false, true), (1, false, false)));
    for _ in 0..3 {
        bench.postpone(untaken[0].id, NOW).unwrap();
    }
    assert_eq!(facts(2), (1, true, false));
    bench.ledger.acknowledge(untaken[0].id, "wss://a").unwrap();
    assert_eq!(facts(2), (0, false, true));
    untaken[1..].iter().for_each(|given_up| bench.finish(given_up.id).unwrap());
    assert_eq!(facts(3), (1, true, false));
    bench.ledger.delete_expired().unwrap();
    assert_eq!(kept_results(&bench), [honest.0, 2], "those that were given up go first");
    let sizes = bench.ledger.sizes().unwrap();
    assert_eq!((sizes.results, sizes.undelivered), (10_000, 0));
    bench.ledger.forget(asker(1), NOW).unwrap();
    assert_eq!(bench.ledger.sizes().unwrap().results, 5_000);
}

#[test]
fn the_file_shrinks_when_a_flood_is_over() {
    let bench = bench();
    flood(&bench, 0..8_000);
    let full = file_size(&bench);
    assert!(full > 30 << 20);
    send_all(&bench);
    bench.ledger.delete_expired().unwrap();
    let after = file_size(&bench);
    assert!(after < 10 << 20, "{full} bytes, then {after}");
}
