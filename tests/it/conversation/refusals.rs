//! Every message gets one answer, and a refusal says what would work.

use crate::support::asker::{Asker, DeliveredKey};
use crate::support::bot::{Met, met};
use crate::support::harness::{Test, test};
use crate::support::until;

pub const TESTS: &[Test] = &[
    test!(limits_are_named_when_they_are_reached),
    test!(a_result_is_sent_again_as_the_same_event),
    test!(an_asker_who_asks_too_often_gets_one_notice_and_then_silence),
];

const LIMITS: &str = "[limits]\nopen_jobs_per_asker = 2\njobs_per_day = 4\n";

async fn limits_are_named_when_they_are_reached() {
    // Eight characters take hours on a CPU: these jobs stay open.
    let Met { relay, home: _home, bot: running, mut asker } = met(LIMITS).await;
    assert!(asker.ask("qqqqqqqq").await.contains("#1"));
    // Spelled differently: the same text within the same second would be the same message.
    let again = asker.ask("npub1qqqqqqqq").await;
    assert!(again.contains("#1") && !again.contains("#2"), "the same request is no second job: {again}");
    assert!(asker.ask("pppppppp").await.contains("#2"));
    let full = asker.ask("zzzzzzzz").await;
    assert!(!full.contains("#3") && full.contains("cancel"), "{full}");
    let status = asker.ask("status").await;
    assert!(status.contains("#1") && status.contains("#2"), "{status}");

    assert!(asker.ask("cancel 1").await.contains("#1"));
    assert!(asker.ask("npub1zzzzzzzz").await.contains("#3"));
    asker.ask("cancel").await;
    assert!(asker.ask("rrrrrrrr").await.contains("#4"));
    asker.ask("cancel 4").await;
    let spent = asker.ask("yyyyyyyy").await;
    assert!(!spent.contains("#5"), "four a day: {spent}");
    assert_eq!(running.service.totals().unwrap().accepted, 0);

    // Another asker has limits of their own, and cannot affect these jobs.
    let mut other = Asker::connect(&relay.url(), running.public_key).await;
    assert!(other.ask("yyyyyyyy").await.contains("#5"));
    asker.ask("cancel 5").await;
    assert_eq!(running.service.totals().unwrap().accepted, 1);
}

async fn a_result_is_sent_again_as_the_same_event() {
    let Met { relay, home: _home, bot: _running, mut asker } = met("").await;
    asker.ask("cat").await;
    asker.next_key().await.assert_starts_with("cat");
    let answer = asker.ask("resend").await;
    assert!(answer.contains("#1"), "{answer}");
    assert!(DeliveredKey::read(&answer).is_none(), "{answer}");
    // Only the answer is a new event: the result was sent again under its old id.
    let last = asker.ask("help").await;
    assert!(DeliveredKey::read(&last).is_none(), "{last}");
    let mail = asker.mail_on(&relay).await;
    assert_eq!((mail.texts.len(), mail.keys.len()), (3, 1), "an acceptance, two answers, one key: {:?}", mail.texts);
}

async fn an_asker_who_asks_too_often_gets_one_notice_and_then_silence() {
    let Met { relay, home, bot: running, mut asker } = met("[limits]\nanswers_per_hour = 3\n").await;
    assert!(asker.ask("qqqqqqqq").await.contains("#1"));
    // Not the same text twice: within one second that would be the same message.
    for text in ["help", "help "] {
        assert!(asker.ask(text).await.contains("m0ctane"));
    }
    let notice = asker.ask("pppppppp").await;
    assert!(notice.contains("I answer again at") && notice.contains("UTC"), "{notice}");
    for text in ["help  ", "rrrrrrrr", "cancel"] {
        asker.send(text).await;
    }
    let all_seen = || async { (home.count("SELECT count(*) FROM seen") == Some(7)).then_some(()) };
    until("every message is dealt with", all_seen).await;
    assert_eq!(
        home.count("SELECT max(seq) FROM sqlite_sequence WHERE name = 'outbox'"),
        Some(4),
        "three answers and the notice"
    );
    assert_eq!(home.count("SELECT count(*) FROM job"), Some(1), "no job was started");
    assert_eq!(
        home.count("SELECT count(*) FROM job WHERE state = 'accepted'"),
        Some(0),
        "cancel works without an answer"
    );
    let mut other = Asker::connect(&relay.url(), running.public_key).await;
    assert!(other.ask("help").await.contains("m0ctane"), "other askers are still answered");
}
