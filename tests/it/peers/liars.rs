//! Peers that lie, refuse, and say nothing.

use super::{PlayedPeer, answers, peers, start_too_slow, tweak, with_played_peer};
use crate::support::asker::Asker;
use crate::support::bot::Home;
use crate::support::half::Half;
use crate::support::harness::{Test, test};
use crate::support::relay::TestRelay;
use crate::support::until;
use std::time::Duration;

pub const TESTS: &[Test] = &[
    test!(a_lie_is_counted_and_dropped_and_the_truth_after_it_counts),
    test!(a_tweak_serves_one_job_of_one_peer_once),
    test!(a_refusal_goes_to_the_next_peer),
    test!(a_silent_peer_is_asked_no_more_and_the_asker_is_told),
    test!(a_peer_gets_two_jobs_however_many_askers_come),
];

const RESULTS: &str = "SELECT count(*) FROM mail WHERE result_of IS NOT NULL";

/// Waits until this many messages of the peer are read.
async fn read(home: &Home, peer: &PlayedPeer, messages: i64) {
    let seen = format!("SELECT count(*) FROM seen WHERE asker = x'{}'", peer.key().to_hex());
    until("the messages are read", || async { (home.count(&seen)? >= messages).then_some(()) }).await;
}

async fn a_lie_is_counted_and_dropped_and_the_truth_after_it_counts() {
    let relay = TestRelay::start().await;
    let (home, bot, mut peer) = with_played_peer(&relay.url(), |_| {}).await;
    let mut asker = Asker::connect(&relay.url(), bot.public_key).await;
    asker.ask("qq").await;
    let request = peer.next_request().await;
    peer.accept(&request).await;
    read(&home, &peer, 1).await;
    let pattern = &request.patterns[0];
    let right = tweak(&request.point, |npub| pattern.matches(npub));
    let wrong = tweak(&request.point, |npub| !pattern.matches(npub));
    let elsewhere = tweak(&Half::draw().point(), |npub| pattern.matches(npub));
    let lies = [
        format!("Job #9 is done.\n{wrong}"),
        format!("Job #9 is done.\n{elsewhere}"),
        // Too many tweaks, and too long a message: the right tweak is not reached.
        format!("{wrong} {wrong} {wrong} {wrong} {right}"),
        format!("{}\n{right}", "x".repeat(9000)),
        "ntweak1qqqq nsec1qqqq #9 Job #9 is given up".to_owned(),
    ];
    for lie in &lies {
        peer.answer(&request, lie).await;
    }
    read(&home, &peer, 6).await;
    assert_eq!(home.count("SELECT count(*) FROM job WHERE state = 'accepted'"), Some(1));
    assert_eq!((answers(&bot, "wrong").await, answers(&bot, "unread").await, answers(&bot, "key").await), (6, 1, 0));
    // A right tweak from a stranger is an unknown message.
    let mut stranger = Asker::connect(&relay.url(), bot.public_key).await;
    stranger.send(&right.to_string()).await;
    assert!(!stranger.next_text().await.contains("nsec1"));
    assert_eq!(home.count(RESULTS), Some(0));
    peer.serve(&request).await;
    asker.next_key().await.assert_starts_with("qq");
    // The same tweak once more, and another right tweak for the same point, change nothing.
    peer.answer(&request, &format!("Once more: {right}")).await;
    let next = tweak(&request.point, |npub| pattern.matches(npub) && npub.0[31] % 2 == 1);
    peer.answer(&request, &next.to_string()).await;
    read(&home, &peer, 9).await;
    assert_eq!((home.count(RESULTS), answers(&bot, "key").await), (Some(1), 1));
    bot.service.stop().await;
}

async fn a_tweak_serves_one_job_of_one_peer_once() {
    let relay = TestRelay::start().await;
    let home = Home::new(&[relay.url()]);
    let mut first = PlayedPeer::connect(&relay.url(), home.vault().public_key()).await;
    let other = PlayedPeer::connect(&relay.url(), home.vault().public_key()).await;
    let home = home.reconfigured(&peers(&[first.key(), other.key()]));
    let bot = start_too_slow(&home, |_| {}).await;
    let mut asker = Asker::connect(&relay.url(), bot.public_key).await;
    asker.ask("qq").await;
    let one = first.next_request().await;
    asker.ask("qqq q").await;
    let two = first.next_request().await;
    assert_ne!(one.text.split(' ').nth(1), two.text.split(' ').nth(1), "each has a point of its own");
    // An answer to a request that another peer got does not count.
    other.serve(&one).await;
    read(&home, &other, 1).await;
    assert_eq!(home.count(RESULTS), Some(0));
    first.serve(&one).await;
    asker.next_key().await.assert_starts_with("qq");
    // The tweak of the first job does not count for the second, though its key would fit.
    first.answer(&two, &tweak(&one.point, |npub| one.patterns[0].matches(npub)).to_string()).await;
    read(&home, &first, 2).await;
    assert_eq!(home.count(RESULTS), Some(1));
    first.serve(&two).await;
    asker.next_key().await.assert_starts_with("q");
    bot.service.stop().await;
}

async fn a_refusal_goes_to_the_next_peer() {
    let relay = TestRelay::start().await;
    let home = Home::new(&[relay.url()]);
    let mut first = PlayedPeer::connect(&relay.url(), home.vault().public_key()).await;
    let mut second = PlayedPeer::connect(&relay.url(), home.vault().public_key()).await;
    let home = home.reconfigured(&peers(&[first.key(), second.key()]));
    let bot = start_too_slow(&home, |_| {}).await;
    let mut asker = Asker::connect(&relay.url(), bot.public_key).await;
    asker.ask("qq").await;
    let refused = first.next_request().await;
    first.refuse(&refused).await;
    let taken = second.next_request().await;
    assert_eq!(refused.patterns, taken.patterns);
    assert_ne!(refused.point, taken.point, "a fresh point");
    // The first peer has refused, so its tweak comes too late.
    first.serve(&refused).await;
    read(&home, &first, 2).await;
    assert_eq!(home.count(RESULTS), Some(0));
    second.accept(&taken).await;
    second.serve(&taken).await;
    asker.next_key().await.assert_starts_with("qq");
    bot.service.stop().await;
}

async fn a_silent_peer_is_asked_no_more_and_the_asker_is_told() {
    let relay = TestRelay::start().await;
    let at_once = |config: &mut npubbot::config::Config| config.peers.answer_within = Duration::from_millis(1);
    let (home, bot, mut peer) = with_played_peer(&relay.url(), at_once).await;
    let mut asker = Asker::connect(&relay.url(), bot.public_key).await;
    assert!(asker.ask("qq").await.contains("another bot"));
    let request = peer.next_request().await;
    peer.next_withdrawal(&request).await;
    let notice = asker.next_text().await;
    assert!(notice.contains("no other bot takes it") && notice.contains("I take nothing"), "{notice}");
    // The peer's tweak comes too late: the start secret is forgotten, and the asker knows of the
    // refusal.
    peer.serve(&request).await;
    read(&home, &peer, 1).await;
    assert_eq!((home.count(RESULTS), answers(&bot, "wrong").await), (Some(0), 1));
    assert_eq!(home.count("SELECT count(*) FROM job WHERE state = 'expired'"), Some(1));
    bot.service.stop().await;
}

async fn a_peer_gets_two_jobs_however_many_askers_come() {
    let relay = TestRelay::start().await;
    let (home, bot, mut peer) = with_played_peer(&relay.url(), |_| {}).await;
    let mut taken = 0;
    for number in 0..6 {
        let mut asker = Asker::connect(&relay.url(), bot.public_key).await;
        let answer = asker.ask("qqqqqq").await;
        let is_taken = answer.contains("another bot");
        assert_eq!(is_taken, number < 2, "{answer}");
        taken += usize::from(is_taken);
        if is_taken {
            let request = peer.next_request().await;
            peer.accept(&request).await;
        }
    }
    assert_eq!((taken, home.count("SELECT count(*) FROM peer_request")), (2, Some(2)));
    assert_eq!(relay.wraps_to(peer.key()).await.len(), 2);
    bot.service.stop().await;
}
