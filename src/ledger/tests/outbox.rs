//! T3, and the later life of messages.

use super::*;

#[test]
fn the_first_ok_delivers_a_result_and_others_are_noted_once() {
    let bench = bench();
    let id = bench.accept(1, 10);
    let message = bench.found(id, 1, 50);
    for relay in ["wss://a", "wss://b", "wss://a"] {
        bench.ledger.acknowledge(message.id, relay).unwrap();
        assert_eq!(bench.ledger.totals().unwrap().delivered, 1);
    }
    let bench = bench.reopened();
    assert_eq!(bench.result_of(id).unwrap().acknowledged_by, ["wss://a", "wss://b"]);
}

#[test]
fn an_ok_to_another_message_or_to_none_delivers_nothing() {
    let bench = bench();
    let id = bench.accept(1, 10);
    let acceptance = bench.ledger.due_messages(1).unwrap()[0].id;
    bench.found(id, 1, 50);
    bench.ledger.acknowledge(acceptance, "wss://a").unwrap();
    bench.ledger.acknowledge(MessageId(99), "wss://a").unwrap();
    let totals = bench.ledger.totals().unwrap();
    assert_eq!((totals.found, totals.delivered), (1, 0));
}

#[test]
fn a_postponed_message_waits_and_counts() {
    let bench = bench();
    bench.accept(1, 10);
    let message = bench.ledger.due_messages(1).unwrap()[0].id;
    assert_eq!(bench.ledger.next_due().unwrap(), Some(NOW));
    bench.postpone(message, NOW + 60).unwrap();
    assert!(bench.ledger.due_messages(9).unwrap().is_empty());
    assert_eq!(bench.ledger.next_due().unwrap(), Some(NOW + 60));
    bench.clock.set(NOW + 60);
    let due = bench.ledger.due_messages(9).unwrap();
    assert_eq!((due[0].attempts, due[0].queued_at), (1, NOW));
    bench.finish(message).unwrap();
    assert!(bench.ledger.due_messages(9).unwrap().is_empty());
    assert_eq!(bench.ledger.next_due().unwrap(), None);
}

#[test]
fn the_longest_due_comes_first_and_no_more_than_asked_for() {
    let bench = bench();
    for rumor in [10, 11, 12] {
        bench.accept(1, rumor);
    }
    let first = bench.ledger.due_messages(1).unwrap()[0].id;
    bench.postpone(first, NOW + 5).unwrap();
    bench.clock.set(NOW + 10);
    let order: Vec<u8> = bench.ledger.due_messages(9).unwrap().iter().map(|message| message.wrap.id[0]).collect();
    assert_eq!(order, [11, 12, 10]);
    assert_eq!(bench.ledger.due_messages(2).unwrap().len(), 2);
}

#[test]
fn messages_for_askers_with_a_job_leave_room_for_others_however_many_they_are() {
    let bench = bench();
    for rumor in 10..20 {
        bench.accept(1, rumor);
    }
    bench.ledger.answer(&reply(2, 50)).unwrap();
    let due = bench.ledger.due_messages(3).unwrap();
    assert_eq!(due.iter().map(|message| message.urgent).collect::<Vec<_>>(), [true, true, true, false]);
}

#[test]
fn messages_that_are_being_sent_are_passed_over_and_do_not_count() {
    let bench = bench();
    for rumor in 10..20 {
        bench.accept(1, rumor);
    }
    let sent: Vec<MessageId> = bench.ledger.due_messages(4).unwrap().iter().map(|message| message.id).collect();
    let next = bench.ledger.due_messages_except(3, |message| sent.contains(&message)).unwrap();
    assert_eq!(next.iter().map(|message| message.wrap.id[0]).collect::<Vec<_>>(), [14, 15, 16]);
}

#[test]
fn a_result_is_sent_again_as_the_same_wrap_to_its_asker_only() {
    let bench = bench();
    let id = bench.accept(1, 10);
    let message = bench.found(id, 1, 50);
    bench.ledger.acknowledge(message.id, "wss://a").unwrap();
    bench.finish(message.id).unwrap();
    assert!(bench.result_of(id).is_none());
    bench.clock.set(NOW + DAY);

    let ask = |from, rumor| AnsweredMessage { effect: Effect::Resend(id), reply: None, ..reply(from, rumor) };
    bench.ledger.answer(&ask(2, 20)).unwrap();
    assert!(bench.result_of(id).is_none(), "somebody else's result stays where it is");

    let again = AnsweredMessage { seen_on: vec!["wss://new".to_owned(), "wss://two.example".to_owned()], ..ask(1, 21) };
    bench.ledger.answer(&again).unwrap();
    let due = bench.result_of(id).unwrap();
    assert_eq!((due.id, &due.wrap, due.attempts, due.queued_at), (message.id, &wrap(1, 50), 0, NOW + DAY));
    assert_eq!(due.seen_on, ["wss://new", "wss://two.example", "wss://one.example"]);
    assert!(due.acknowledged_by.is_empty(), "relays that had it are asked to take it again");
    assert_eq!(bench.ledger.totals().unwrap().delivered, 1, "delivered stays delivered");

    bench.finish(message.id).unwrap();
    bench.ledger.answer(&again).unwrap();
    assert!(bench.result_of(id).is_none(), "a replayed request to send again sends nothing");
}

#[test]
fn a_view_of_an_asker_shows_nobody_else() {
    let bench = bench();
    let (first, second, third) = (bench.accept(1, 10), bench.accept(1, 11), bench.accept(1, 12));
    bench.accept(2, 13);
    bench.found(first, 1, 50);
    let delivered = bench.found(second, 1, 51);
    bench.ledger.acknowledge(delivered.id, "wss://a").unwrap();
    bench.clock.set(NOW + DAY / 2);
    let fourth = bench.accept(1, 14);
    let view = bench.ledger.asker_view(asker(1)).unwrap();
    assert_eq!(ids(&view.open), [third.0, fourth.0]);
    assert_eq!(numbers(&view.results), [second.0, first.0]);
    assert_eq!(view.accepted_last_day, [NOW, NOW, NOW, NOW + DAY / 2]);
    bench.clock.set(NOW + DAY);
    assert_eq!(bench.ledger.asker_view(asker(1)).unwrap().accepted_last_day, [NOW + DAY / 2]);
    let nobody = bench.ledger.asker_view(asker(3)).unwrap();
    assert!(nobody.open.is_empty() && nobody.results.is_empty() && nobody.accepted_last_day.is_empty());
}

#[test]
fn a_new_message_comes_before_one_that_was_tried_and_is_due_longer() {
    let bench = bench();
    bench.accept(1, 10);
    let tried = bench.ledger.due_messages(1).unwrap()[0].id;
    bench.postpone(tried, NOW + 1).unwrap();
    bench.clock.set(NOW + 10);
    bench.accept(1, 11);
    let order: Vec<u8> = bench.ledger.due_messages(9).unwrap().iter().map(|message| message.wrap.id[0]).collect();
    assert_eq!(order, [11, 10]);
}
