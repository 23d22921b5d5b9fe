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
fn new_messages_come_first_then_the_longest_due_and_no_more_than_asked_for() {
    let bench = bench();
    bench.accept(1, 10);
    let tried = bench.ledger.due_messages(1).unwrap()[0].id;
    bench.postpone(tried, NOW + 1).unwrap();
    bench.accept(1, 11);
    bench.clock.set(NOW + 10);
    bench.accept(1, 12);
    let order: Vec<u8> = bench.ledger.due_messages(9).unwrap().iter().map(|message| message.wrap.id[0]).collect();
    assert_eq!(order, [11, 12, 10]);
    assert_eq!(bench.ledger.due_messages(2).unwrap().len(), 2);
}
