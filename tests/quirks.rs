//! Relays that demand AUTH in every form there is, and one that goes deaf. (Liars: `reliability_relays.rs`.)

mod common;

use common::asker::Asker;
use common::bot::Home;
use common::raw_relay::{Challenge, Manner, RawRelay};
use common::until;

#[tokio::test(flavor = "multi_thread")]
async fn auth_is_given_however_it_is_demanded() {
    for challenge in [Challenge::AtOnce, Challenge::BeforeRefusal, Challenge::AfterRefusal] {
        let relay = RawRelay::start(Manner::Asking(challenge)).await;
        let running = Home::new(&[relay.url()]).start().await;
        until("the bot proves who it is", || async { (relay.proofs() > 0).then_some(()) }).await;
        let mut asker = Asker::connect(&relay.url(), running.public_key).await;
        let acceptance = asker.ask("dad").await;
        assert!(acceptance.contains("npub1dad"), "{challenge:?}: {acceptance}");
        asker.next_key().await.assert_starts_with("dad");
        running.service.stop().await;
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_relay_that_went_deaf_is_noticed_and_mended() {
    let relay = RawRelay::start(Manner::Deaf).await;
    let running = Home::with(&[relay.url()], "[bot]\ntry_relays_every = \"5 s\"\n").start().await;
    let mut asker = Asker::connect(&relay.url(), running.public_key).await;
    assert!(asker.ask("dad").await.contains("#1"));
    asker.next_key().await;
    let before = relay.connections();
    relay.go_deaf();
    // The watchdog's letter to itself does not come back, so it connects anew.
    until("a new connection", || async { (relay.connections() > before).then_some(()) }).await;
    let mut later = Asker::connect(&relay.url(), running.public_key).await;
    assert!(later.ask("ham").await.contains("#2"));
    running.service.stop().await;
}
