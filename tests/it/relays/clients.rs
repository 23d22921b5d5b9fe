//! Every client whose source is public: the bot reads its wraps, and it can read the bot's answers.
//! The bot does not believe an impostor, whatever a relay does to help.

use super::client_wraps::{ClientForm, FORMS, Reads, Sender, open};
use super::interop::needs_foreign_clients;
use crate::support::asker::{Asker, DeliveredKey, is_late_notice};
use crate::support::bot::Home;
use crate::support::foreign::{ForeignRelay, Manner as ForeignManner, embedded_relay};
use crate::support::harness::{Test, figure, test};
use crate::support::relay::TestRelay;
use crate::support::{connect, dm_list, publish, publish_with, seed, until, wait_for};
use ::rand::rngs::StdRng;
use ::rand::{Rng, SeedableRng};
use nostr_sdk::prelude::*;
use std::collections::HashSet;
use std::path::Path;
use std::time::{Duration, Instant};
use tokio::net::TcpListener;

pub const TESTS: &[Test] = &[
    test!(every_client_is_heard_once_and_reads_its_answers_through_the_embedded_relay),
    test!(every_client_is_heard_once_and_reads_its_answers_through_nostr_relay),
    test!(every_client_is_heard_once_and_reads_its_answers_through_nostr_rs_relay)
        .long("nostr-rs-relay 0.8.12 takes ten minutes to build: name its program in NOSTR_RS_RELAY"),
    test!(an_impostor_is_not_heard_whatever_a_relay_shows_or_hides),
    test!(claims_whose_authors_relays_say_nothing_hold_nobody_up).measures("latency"),
];

/// The kind that announces an encryption key.
const ANNOUNCEMENT: Kind = Kind::Custom(10044);

fn sender(bot: PublicKey, relay: &RelayUrl, back: f64) -> Sender {
    let (identity, encryption) = (Keys::generate(), Keys::generate());
    Sender { identity, encryption, bot, relay: relay.clone(), now: Timestamp::now().as_secs(), back }
}

/// An announcement by `by` that `key` is their encryption key, dated `ago` seconds back.
fn announcement(by: &Keys, key: &Keys, ago: i64) -> Event {
    let date = Timestamp::from_secs(Timestamp::now().as_secs().saturating_add_signed(-ago));
    let tag = Tag::parse(["n", &key.public_key().to_hex()]).unwrap();
    EventBuilder::new(ANNOUNCEMENT, "").tag(tag).custom_created_at(date).sign_with_keys(by).unwrap()
}

/// A connected client without a key.
async fn connected(relay: &RelayUrl) -> Client {
    let client = Client::default();
    client.add_relay(relay).await.unwrap();
    connect(&client).await;
    client
}

async fn fetch(client: &Client, filter: Filter) -> Vec<Event> {
    client
        .fetch_events(filter, Duration::from_secs(10))
        .await
        .map(|events| events.into_iter().collect())
        .unwrap_or_default()
}

/// Sends a request, and reads the answers, as this client does.
async fn try_client(form: &ClientForm, client: &Client, sender: &Sender, prefix: &str) {
    let name = form.name;
    if form.reads == Reads::EncryptionOnly {
        // Jumble does not write to people who announce no encryption key.
        let filter = Filter::new().kind(ANNOUNCEMENT).author(sender.bot);
        let event = until("the bot's key", || async { fetch(client, filter.clone()).await.into_iter().next() }).await;
        let named: Vec<_> = event.tags.iter().map(|tag| tag.as_slice().to_vec()).collect();
        assert_eq!(named, [["n".to_owned(), sender.bot.to_hex()]]);
    }
    if form.lists_relays {
        publish_with(client, &dm_list(&sender.identity, std::slice::from_ref(&sender.relay))).await;
    }
    if form.announces {
        publish_with(client, &announcement(&sender.identity, &sender.encryption, 60)).await;
    }
    for wrap in (form.wraps)(sender, prefix) {
        publish_with(client, &wrap).await;
    }
    // Clients look for wraps to the identity.
    let filter = Filter::new().kind(Kind::GiftWrap).pubkey(sender.identity.public_key());
    let is_key = |text: &str| DeliveredKey::read(text).is_some();
    let messages = until(&format!("{name}: acceptance and key"), || async {
        // Each query costs the relay as much as a message.
        tokio::time::sleep(Duration::from_millis(100)).await;
        let wraps = fetch(client, filter.clone()).await;
        let opened = |wrap| open(sender, form.reads, wrap).unwrap_or_else(|| panic!("{name}: it cannot be read"));
        let messages: Vec<_> = wraps.iter().map(opened).collect();
        // The bot sends both at once, so the key can be there first.
        (messages.len() > 2 && messages.iter().any(|(_, rumor)| is_key(&rumor.content))).then_some(messages)
    })
    .await;
    let late = messages.iter().filter(|(_, rumor)| is_late_notice(&rumor.content)).count();
    assert_eq!(messages.len() - late, 3, "{name}: one acceptance, one result of two messages");
    for (seal, rumor) in &messages {
        assert_eq!((seal.pubkey, rumor.pubkey), (sender.bot, sender.bot), "{name}");
        assert_eq!(rumor.tags.public_keys().copied().collect::<Vec<_>>(), [sender.identity.public_key()], "{name}");
        assert_eq!(rumor.tags.event_ids().count(), 1, "{name}: in the thread of the request");
    }
    let key = messages.iter().find_map(|(_, rumor)| DeliveredKey::read(&rumor.content)).unwrap();
    key.assert_starts_with(prefix);
}

async fn every_client_through(relay: RelayUrl) {
    let mut rng = StdRng::seed_from_u64(seed());
    let running = Home::new(std::slice::from_ref(&relay)).start().await;
    let client = connected(&relay).await;
    for form in FORMS {
        let sender = sender(running.public_key, &relay, rng.random_range(0.0..1.0));
        try_client(form, &client, &sender, "da").await;
    }
    let totals = running.service.totals().unwrap();
    assert_eq!(totals.accepted + totals.found + totals.delivered, FORMS.len() as u64, "one job a message");
}

async fn every_client_is_heard_once_and_reads_its_answers_through_the_embedded_relay() {
    let relay = embedded_relay(false).await;
    every_client_through(relay.url().await).await;
}

async fn every_client_is_heard_once_and_reads_its_answers_through_nostr_relay() {
    needs_foreign_clients();
    let relay = ForeignRelay::python().await;
    every_client_through(relay.url()).await;
}

async fn every_client_is_heard_once_and_reads_its_answers_through_nostr_rs_relay() {
    let program = std::env::var("NOSTR_RS_RELAY").expect("NOSTR_RS_RELAY names the program");
    let relay = ForeignRelay::rust(Path::new(&program), ForeignManner::Plain).await;
    every_client_through(relay.url()).await;
}

fn older_jumble() -> &'static ClientForm {
    FORMS.iter().find(|form| form.name == "Jumble, older").unwrap()
}

/// The seals of impostors are signed by a key that the author does not announce, or no longer
/// announces, or that somebody else announces. The author's newest announcement may be on a relay
/// of their own only.
async fn an_impostor_is_not_heard_whatever_a_relay_shows_or_hides() {
    let (ours, theirs) = (TestRelay::start().await, TestRelay::start().await);
    let home = Home::new(&[ours.url()]);
    let process = home.spawn().await;
    let (form, bot) = (older_jumble(), process.public_key);
    let claim = |sender: &Sender| (form.wraps)(sender, "dad");

    let nothing = sender(bot, &ours.url(), 0.5);
    let another = sender(bot, &ours.url(), 0.5);
    publish(&ours.url(), &announcement(&another.identity, &Keys::generate(), 60)).await;
    // The signer announces its key for itself, which does not count for the author.
    let himself = sender(bot, &ours.url(), 0.5);
    publish(&ours.url(), &announcement(&himself.encryption, &himself.encryption, 60)).await;
    // Our relay shows the earlier announcement; the author's own relay has the newer one.
    let replaced = sender(bot, &ours.url(), 0.5);
    publish(&ours.url(), &announcement(&replaced.identity, &replaced.encryption, 600)).await;
    publish(&ours.url(), &dm_list(&replaced.identity, &[theirs.url()])).await;
    publish(&theirs.url(), &announcement(&replaced.identity, &Keys::generate(), 60)).await;
    // An announcement of the future would stay the newest until then.
    let future = sender(bot, &ours.url(), 0.5);
    publish(&ours.url(), &announcement(&future.identity, &future.encryption, -7200)).await;
    let impostors = [nothing, another, himself, replaced, future];
    for impostor in &impostors {
        for wrap in claim(impostor) {
            publish(&ours.url(), &wrap).await;
        }
    }

    // Our relay withholds this author's announcement, and the bot finds it on the author's own
    // relay.
    let genuine = sender(bot, &ours.url(), 0.5);
    publish(&ours.url(), &dm_list(&genuine.identity, &[theirs.url()])).await;
    publish(&theirs.url(), &announcement(&genuine.identity, &genuine.encryption, 60)).await;
    for wrap in claim(&genuine) {
        publish(&ours.url(), &wrap).await;
    }
    until("the genuine one has a key", || async {
        let wraps = theirs.wraps_to(genuine.identity.public_key());
        let read = |wrap| open(&genuine, Reads::EncryptionOnly, wrap).expect("it can be read");
        wraps.iter().map(read).find_map(|(_, rumor)| DeliveredKey::read(&rumor.content))
    })
    .await
    .assert_starts_with("dad");
    let dropped = || home.log().matches("seal and rumor have different authors").count();
    wait_for("the others are looked up and dropped", || dropped() >= impostors.len()).await;
    assert_eq!(home.count("SELECT count(*) FROM seen"), Some(1), "only the genuine one was seen");
    let written: HashSet<PublicKey> = impostors.iter().map(|one| one.identity.public_key()).collect();
    for relay in [&ours, &theirs] {
        assert!(written.iter().all(|key| relay.wraps_to(*key).is_empty()), "nothing is said to them");
    }
    process.stop(&home).await;
}

/// Claims name authors whose own relay accepts connections and never says a word.
async fn claims_whose_authors_relays_say_nothing_hold_nobody_up() {
    let relay = TestRelay::start().await;
    let silent = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let silent_url = RelayUrl::parse(&format!("ws://{}", silent.local_addr().unwrap())).unwrap();
    let home = Home::new(&[relay.url()]);
    let (bot, client) = (home.vault().public_key(), connected(&relay.url()).await);
    let claim = async || {
        let claimed = sender(bot, &relay.url(), 0.5);
        publish_with(&client, &dm_list(&claimed.identity, std::slice::from_ref(&silent_url))).await;
        for wrap in (older_jumble().wraps)(&claimed, "dad") {
            publish_with(&client, &wrap).await;
        }
    };
    claim().await;
    let running = home.start().await;
    // However many claims come, the cursor moves on while their authors are looked up.
    let endless = async {
        loop {
            claim().await;
            tokio::time::sleep(Duration::from_secs(5)).await;
        }
    };
    let contact = || async { home.count("SELECT value FROM meta WHERE name = 'last_contact'") };
    tokio::select! {
        () = endless => {}
        _ = until("the cursor moves on", contact) => {}
    }
    let mut asker = Asker::connect(&relay.url(), bot).await;
    asker.ask("help").await;
    for _ in 0..60 {
        claim().await;
    }
    let mut longest = Duration::ZERO;
    for prefix in ["da", "ha", "ca"] {
        let began = Instant::now();
        asker.ask(prefix).await;
        longest = began.elapsed().max(longest);
        asker.next_key().await.assert_starts_with(prefix);
    }
    let delivered = || async { (running.service.totals().unwrap().delivered >= 3).then_some(()) };
    until("the ledger knows that the three keys are delivered", delivered).await;
    assert_eq!(running.service.totals().unwrap().delivered, 3, "and of the others nothing came");
    running.service.stop().await;
    figure("the slowest acceptance", longest, Duration::from_secs(2));
}
