//! Time: when rows are deleted, and clocks that jump.

use super::*;

#[test]
fn ids_are_kept_for_eight_days_and_then_their_messages_are_too_old() {
    let bench = bench();
    bench.accept(1, 10);
    let again = || bench.ledger.answer(&request(1, 10, JobId(2))).unwrap();
    for day in 0..=8 {
        bench.clock.set(NOW + day * DAY);
        bench.ledger.delete_expired().unwrap();
        assert_eq!(again(), Recorded::Before, "day {day}");
    }
    bench.clock.set(NOW + 9 * DAY);
    bench.ledger.delete_expired().unwrap();
    assert!(!bench.ledger.has_seen(asker(1), RumorId([10; 32])).unwrap());
    assert_eq!(again(), Recorded::TooOld);
    assert_eq!(bench.ledger.open_jobs().unwrap().len(), 1, "jobs are kept");
}

/// However long a wrong clock goes on, nothing is answered twice, and who writes now is answered.
#[test]
fn a_clock_a_year_ahead_and_back_doubles_nothing_and_refuses_nobody() {
    let bench = bench();
    bench.ledger.delete_expired().unwrap();
    bench.accept(1, 10);
    for jump in [365 * DAY, 0, 365 * DAY, 2 * DAY, 0].into_iter().chain([365 * DAY; 20]).chain([0]) {
        bench.clock.set(NOW + jump);
        bench.ledger.delete_expired().unwrap();
        assert_ne!(bench.ledger.answer(&request(1, 10, JobId(2))).unwrap(), Recorded::Now, "{jump}");
    }
    assert_eq!(bench.ledger.totals().unwrap().accepted, 1);
    assert_eq!(bench.ledger.answer(&AnsweredMessage { dated: NOW + 1, ..reply(2, 11) }).unwrap(), Recorded::Now);
}

#[test]
fn a_message_postponed_by_a_clock_that_was_ahead_is_due_now() {
    let bench = bench();
    bench.clock.set(NOW + 365 * DAY);
    bench.accept(1, 10);
    let message = bench.ledger.due_messages(1).unwrap()[0].id;
    bench.postpone(message, NOW + 365 * DAY + 60).unwrap();
    bench.clock.set(NOW);
    assert_eq!(bench.ledger.next_due().unwrap(), Some(NOW));
    assert_eq!(bench.ledger.due_messages(9).unwrap().len(), 1);
    bench.postpone(message, NOW + 30).unwrap();
    assert_eq!((bench.ledger.due_messages(9).unwrap().len(), bench.ledger.next_due().unwrap()), (0, Some(NOW + 30)));
}

#[test]
fn quota_times_of_a_clock_that_was_far_ahead_do_not_count() {
    let bench = bench();
    let counted = || bench.ledger.asker_view(asker(1)).unwrap().accepted_last_day;
    bench.accept(1, 10);
    bench.clock.set(NOW - 3600);
    assert_eq!(counted(), [NOW - 3600], "an hour back opens no second quota");
    bench.clock.set(NOW - 365 * DAY);
    assert!(counted().is_empty());
}

#[test]
fn last_contact_is_never_in_the_future() {
    let bench = bench();
    let last = || bench.ledger.last_contact().unwrap();
    assert_eq!(last(), None);
    bench.ledger.set_last_contact(NOW + 500).unwrap();
    assert_eq!(last(), Some(NOW));
    bench.ledger.set_last_contact(NOW - 100).unwrap();
    assert_eq!(last(), Some(NOW), "what was fetched stays fetched");
    bench.clock.set(NOW - 365 * DAY);
    assert_eq!(last(), Some(NOW - 365 * DAY));
    bench.ledger.set_last_contact(NOW - 366 * DAY).unwrap();
    assert_eq!(last(), Some(NOW - 366 * DAY), "a time from the future is replaced");
}
