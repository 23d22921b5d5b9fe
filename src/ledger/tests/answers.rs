//! T1 and T2.

use super::*;

#[test]
fn an_accepted_request_is_a_job_and_a_message_and_survives_reopening() {
    let bench = bench();
    assert_eq!(bench.ledger.next_job().unwrap(), JobId(1));
    let id = bench.accept(1, 10);
    let bench = bench.reopened();
    assert_eq!(bench.ledger.next_job().unwrap(), JobId(2));
    let [job] = &bench.ledger.open_jobs().unwrap()[..] else { panic!("one job") };
    assert_eq!((job.id, job.spec.asker, job.rumor, job.state), (id, asker(1), RumorId([10; 32]), JobState::Accepted));
    assert_eq!(
        (job.spec.subject.as_deref(), job.accepted_at, job.spec.expires_at),
        (Some("vanity"), NOW, NOW + 7 * DAY)
    );
    assert_eq!(
        (&job.spec.patterns, &job.seen_on),
        (&patterns("m0ctane qqqq ~alice m0ct*cafe [5s]at0 words:8"), &request(1, 10, id).seen_on)
    );
    let [message] = &bench.ledger.due_messages(9).unwrap()[..] else { panic!("one message") };
    assert_eq!((&message.wrap, message.result_of, message.queued_at, message.attempts), (&wrap(1, 10), None, NOW, 0));
    assert_eq!(message.seen_on, job.seen_on);
}

#[test]
fn a_job_number_that_is_taken_records_nothing() {
    let bench = bench();
    let id = bench.accept(1, 10);
    assert!(matches!(bench.ledger.answer(&request(1, 11, id)), Err(LedgerError::Database(_))));
    assert!(!bench.ledger.has_seen(asker(1), RumorId([11; 32])).unwrap());
    assert_eq!(bench.ledger.totals().unwrap().unsent_messages, 1);
}

#[test]
fn a_message_to_somebody_else_is_not_queued() {
    let bench = bench();
    let astray = AnsweredMessage { reply: Some(wrap(2, 10)), ..reply(1, 10) };
    assert!(matches!(bench.ledger.answer(&astray), Err(LedgerError::Misaddressed)));
    assert!(!bench.ledger.has_seen(asker(1), RumorId([10; 32])).unwrap());
}

#[test]
fn a_job_that_is_ended_many_times_at_once_ends_once() {
    let bench = bench();
    let id = bench.accept(1, 10);
    let ledger = &bench.ledger;
    let won = std::thread::scope(|scope| {
        let racers: Vec<_> = (0..8u8)
            .map(|n| {
                scope.spawn(move || match n % 2 {
                    0 => ledger.clone().found(id, &wrap(1, 50 + n)).unwrap(),
                    _ => ledger.clone().expire(id, &wrap(1, 50 + n)).unwrap(),
                })
            })
            .collect();
        racers.into_iter().map(|racer| racer.join().unwrap()).filter(|&won| won).count()
    });
    assert_eq!((won, bench.ledger.totals().unwrap().unsent_messages), (1, 2));
}

#[test]
fn debug_output_joins_no_pattern_with_an_asker() {
    let bench = bench();
    let id = bench.accept(1, 10);
    let shown = format!("{:?} {:?}", request(1, 11, JobId(5)), bench.ledger.asker_view(asker(1)).unwrap());
    assert!(!shown.contains("m0ctane") && !shown.contains("qqqq"), "{shown}");
    bench.found(id, 1, 50);
    assert!(!format!("{:?}", bench.ledger.due_messages(9).unwrap()).contains("m0ctane"));
}
