//! When a job has ended in any way, peers no longer search for it, and no trace of it is left.

use super::{answers, with_played_peer};
use crate::support::asker::Asker;
use crate::support::bot::Home;
use crate::support::harness::{Test, test};
use crate::support::relay::TestRelay;
use crate::support::until;
use npubbot::config::Config;
use std::time::Duration;

pub const TESTS: &[Test] = &[
    test!(a_request_is_withdrawn_when_its_job_is_cancelled_or_its_asker_forgotten),
    test!(every_second_hard_job_is_handed_over_and_stays_when_the_peer_refuses),
    test!(a_job_without_a_key_in_time_is_asked_for_again_at_another_point),
    test!(a_peer_that_is_configured_no_longer_is_asked_no_more),
];

const OPEN: &str = "SELECT count(*) FROM peer_request WHERE state IN ('asked', 'accepted')";

async fn until_none_is_open(home: &Home) {
    until("no request is open", || async { (home.count(OPEN)? == 0).then_some(()) }).await;
}

async fn a_request_is_withdrawn_when_its_job_is_cancelled_or_its_asker_forgotten() {
    let relay = TestRelay::start().await;
    let (home, bot, mut peer) = with_played_peer(&relay.url(), |_| {}).await;
    let mut asker = Asker::connect(&relay.url(), bot.public_key).await;
    for (word, prefix) in [("cancel", "qqqqqq"), ("stop", "qqqqqc"), ("delete", "qqqqqd")] {
        asker.ask(prefix).await;
        let request = peer.next_request().await;
        if word == "stop" {
            peer.accept(&request).await;
        }
        asker.ask(word).await;
        peer.next_withdrawal(&request).await;
        until_none_is_open(&home).await;
        if word == "stop" {
            asker.ask("start").await;
        }
    }
    assert_eq!(home.count("SELECT count(*) FROM peer_request WHERE job IS NOT NULL"), Some(0), "after `delete`");
    // Nothing in these rows leads to an asker.
    assert_eq!(home.count("SELECT count(*) FROM peer_request"), Some(3));
    bot.service.stop().await;
}

async fn every_second_hard_job_is_handed_over_and_stays_when_the_peer_refuses() {
    let relay = TestRelay::start().await;
    let all_hard = |config: &mut Config| {
        config.limits.longest_expected_time = Duration::from_secs(86_400);
        config.peers.hard_from = Duration::ZERO;
    };
    let (home, bot, mut peer) = with_played_peer(&relay.url(), all_hard).await;
    let mut asker = Asker::connect(&relay.url(), bot.public_key).await;
    assert!(!asker.ask("qq").await.contains("nother bot"));
    let acceptance = asker.ask("qc").await;
    assert!(acceptance.contains("Another bot is asked") && acceptance.contains("not who asks"), "{acceptance}");
    let request = peer.next_request().await;
    assert_eq!(request.patterns, ["qc".parse().unwrap()]);
    peer.refuse(&request).await;
    until_none_is_open(&home).await;
    // The bot itself still searches for the job.
    assert_eq!(home.count("SELECT count(*) FROM job WHERE state = 'accepted'"), Some(2));
    until("the refusal is counted", || async { (answers(&bot, "refused").await == 1).then_some(()) }).await;
    assert!(asker.ask("status").await.contains("#2"));
    bot.service.stop().await;
}

async fn a_job_without_a_key_in_time_is_asked_for_again_at_another_point() {
    let relay = TestRelay::start().await;
    let at_once = |config: &mut Config| config.peers.key_within = Duration::from_millis(1);
    let (home, bot, mut peer) = with_played_peer(&relay.url(), at_once).await;
    let mut asker = Asker::connect(&relay.url(), bot.public_key).await;
    asker.ask("qq").await;
    let first = peer.next_request().await;
    peer.accept(&first).await;
    peer.next_withdrawal(&first).await;
    let second = peer.next_request().await;
    assert_ne!(first.point, second.point);
    peer.serve(&first).await;
    peer.serve(&second).await;
    asker.next_key().await.assert_starts_with("qq");
    until_none_is_open(&home).await;
    assert_eq!(home.count("SELECT count(*) FROM mail WHERE result_of IS NOT NULL"), Some(1));
    bot.service.stop().await;
}

async fn a_peer_that_is_configured_no_longer_is_asked_no_more() {
    let relay = TestRelay::start().await;
    let (home, bot, mut peer) = with_played_peer(&relay.url(), |_| {}).await;
    let mut asker = Asker::connect(&relay.url(), bot.public_key).await;
    asker.ask("qqqqqq").await;
    let request = peer.next_request().await;
    bot.service.stop().await;
    let home = home.reconfigured("");
    let bot = super::start_too_slow(&home, |_| {}).await;
    peer.next_withdrawal(&request).await;
    let notice = asker.next_text().await;
    assert!(notice.contains("#1 is given up: no other bot takes it"), "{notice}");
    bot.service.stop().await;
}
