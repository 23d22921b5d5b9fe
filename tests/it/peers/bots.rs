//! Two real bots on one relay.

use super::{peers, sent, start_too_slow};
use crate::support::asker::{Asker, DeliveredKey};
use crate::support::bot::Home;
use crate::support::harness::{Test, test};
use crate::support::leaks::{Needle, Search, forms_of};
use crate::support::relay::TestRelay;
use crate::support::until;
use nostr_sdk::prelude::*;

pub const TESTS: &[Test] = &[
    test!(a_peer_finds_what_takes_too_long_and_learns_neither_the_asker_nor_the_key),
    test!(a_job_does_not_travel_further_and_does_not_come_back),
];

/// The messages of one bot to another, once all are sent.
async fn all_sent(relay: &TestRelay, from: &Home, to: &Home) -> Vec<UnsignedEvent> {
    let receiver = to.keys().public_key();
    let unsent = format!("SELECT count(*) FROM mail WHERE asker = x'{}' AND finished = 0", receiver.to_hex());
    until("all messages are sent", || async { (from.count(&unsent)? == 0).then_some(()) }).await;
    sent(relay, from.keys().public_key(), &to.keys()).await
}

async fn a_peer_finds_what_takes_too_long_and_learns_neither_the_asker_nor_the_key() {
    let relay = TestRelay::start().await;
    let (slow, fast) = (Home::new(&[relay.url()]), Home::new(&[relay.url()]));
    let [slow_key, fast_key] = [&slow, &fast].map(|home| home.vault().public_key());
    // Each is the other's peer.
    let (slow, fast) = (slow.reconfigured(&peers(&[fast_key])), fast.reconfigured(&peers(&[slow_key])));
    let fast_bot = fast.start().await;
    let slow_bot = start_too_slow(&slow, |_| {}).await;
    let mut asker = Asker::connect(&relay.url(), slow_key).await;
    let acceptance = asker.ask("~cat dad").await;
    for said in ["#1", "I ask another bot to search too", "not who asks", "Only I can make the key"] {
        assert!(acceptance.contains(said), "{said}: {acceptance}");
    }
    let result = asker.next_result().await;
    let key = DeliveredKey::read(&result).expect("a key, not a tweak");
    let npub = npubbot::key::Npub(PublicKey::from_bech32(&key.npub).unwrap().to_bytes());
    let fits = |text: &str| text.parse::<npubbot::pattern::Pattern>().unwrap().matches(&npub);
    assert!(fits("~cat") || fits("dad"), "{}", key.npub);

    // All messages of the peer are read, and none is answered.
    let seen = format!("SELECT count(*) FROM seen WHERE asker = x'{}'", fast_key.to_hex());
    until("both answers are read", || async { (slow.count(&seen)? >= 2).then_some(()) }).await;
    let requests = all_sent(&relay, &slow, &fast).await;
    assert_eq!(requests.len(), 1, "one request, and no word more");
    // The peer's acceptance and result, perhaps a notice that it was late.
    assert!((2..=3).contains(&all_sent(&relay, &fast, &slow).await.len()));
    assert_eq!(slow.count("SELECT count(*) FROM peer_request WHERE state = 'over'"), Some(1));
    assert_eq!(super::answers(&slow_bot, "key").await, 1);

    // The peer's job is for the bot that asked: a point and the patterns.
    let job = format!("SELECT count(*) FROM job WHERE asker = x'{}' AND patterns = '~cat dad'", slow_key.to_hex());
    assert_eq!(fast.count(&job), Some(1));
    assert_eq!(fast.count("SELECT count(*) FROM job"), Some(1));
    let words: Vec<&str> = requests[0].content.split(' ').collect();
    assert!(matches!(words.as_slice(), ["split", _, "~cat", "dad"]), "{words:?}");
    assert_eq!(requests[0].tags.public_keys().copied().collect::<Vec<_>>(), [fast_key]);
    assert_eq!(requests[0].tags.len(), 1, "the receiver, and nothing else");
    let nsec = result.lines().find(|line| line.starts_with("nsec1")).unwrap();
    let asker_key = asker.keys.public_key();
    let of_asker = [
        ("asker", asker_key.to_bytes().to_vec()),
        ("asker in hex", asker_key.to_hex().into_bytes()),
        ("npub of the asker", asker_key.to_bech32().unwrap().into_bytes()),
    ];
    let mut needles = forms_of(nsec);
    needles.extend(of_asker.map(|(form, bytes)| Needle { form: form.to_owned(), bytes }));
    fast_bot.service.stop().await;
    assert_eq!(Search::new(&needles).files(&fast.data()), [""; 0]);
    let bytes = slow_key.to_bytes().to_vec();
    let found = Search::new(&[Needle { form: "the bot that asked".to_owned(), bytes }]).files(&fast.data());
    assert!(!found.is_empty(), "the search for bytes works");
    slow_bot.service.stop().await;
}

/// Both bots are too slow, and each is the other's peer.
async fn a_job_does_not_travel_further_and_does_not_come_back() {
    let relay = TestRelay::start().await;
    let (one, other) = (Home::new(&[relay.url()]), Home::new(&[relay.url()]));
    let [one_key, other_key] = [&one, &other].map(|home| home.vault().public_key());
    let (one, other) = (one.reconfigured(&peers(&[other_key])), other.reconfigured(&peers(&[one_key])));
    let other_bot = start_too_slow(&other, |_| {}).await;
    let one_bot = start_too_slow(&one, |_| {}).await;
    let mut asker = Asker::connect(&relay.url(), one_key).await;
    assert!(asker.ask("cat").await.contains("another bot"));
    let notice = asker.next_text().await;
    for said in ["#1 is given up: no other bot takes it", "I take nothing that takes longer than"] {
        assert!(notice.contains(said), "{said}: {notice}");
    }
    assert_eq!(all_sent(&relay, &one, &other).await.len(), 1, "one request");
    assert_eq!(all_sent(&relay, &other, &one).await.len(), 1, "one refusal");
    assert_eq!(other.count("SELECT count(*) FROM job"), Some(0));
    assert_eq!(other.count("SELECT count(*) FROM peer_request"), Some(0));
    assert_eq!(one.count("SELECT count(*) FROM job WHERE state = 'expired'"), Some(1));
    // The peer refused, so the bot does not ask it for a while. The next asker is refused at once.
    let mut next = Asker::connect(&relay.url(), one_key).await;
    assert!(next.ask("dad").await.contains("I take nothing that takes longer than"));
    one_bot.service.stop().await;
    other_bot.service.stop().await;
}
