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
fn due_messages_are_bounded_in_both_classes_and_new_ones_come_first() {
    let bench = bench();
    for rumor in 10..20 {
        bench.accept(1, rumor);
    }
    bench.ledger.answer(&reply(2, 50)).unwrap();
    let order = |due: Vec<DueMessage>| due.iter().map(|one| (one.wrap.id[0], one.urgent)).collect::<Vec<_>>();
    let due = bench.ledger.due_messages(3).unwrap();
    let tried = due[0].id;
    assert_eq!(order(due), [(10, true), (11, true), (12, true), (50, false)]);
    let others = bench.ledger.due_messages_except(3, |message| message == tried).unwrap();
    assert_eq!(
        order(others),
        [(11, true), (12, true), (13, true), (50, false)],
        "one that is under way does not count"
    );
    bench.postpone(tried, NOW + 1).unwrap();
    bench.clock.set(NOW + 10);
    assert_eq!(order(bench.ledger.due_messages(99).unwrap())[9..], [(10, true), (50, false)]);
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
