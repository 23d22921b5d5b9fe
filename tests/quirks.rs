//! Relays that demand AUTH in every form there is, and relays that lie: none of them keeps an answer from its asker.

mod common;

use common::asker::Asker;
use common::bot::Home;
use common::relay::TestRelay;
use common::scripted::{Quirk, ScriptedRelay};
use common::until;
use nostr_sdk::prelude::*;

#[tokio::test(flavor = "multi_thread")]
async fn auth_is_given_however_it_is_demanded() {
    for quirk in [Quirk::AuthAtOnce, Quirk::AuthBeforeRefusal, Quirk::AuthAfterRefusal] {
        let relay = ScriptedRelay::start(quirk).await;
        let running = Home::new(&[relay.url()]).start().await;
        until("the bot proves who it is", || async { (relay.authenticated() > 0).then_some(()) }).await;
        let mut asker = Asker::connect(&relay.url(), running.public_key).await;
        let acceptance = asker.ask("dad").await;
        assert!(acceptance.contains("npub1dad"), "{quirk:?}: {acceptance}");
        asker.next_key().await.assert_starts_with("dad");
        running.service.stop().await;
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_lying_relay_beside_a_good_one_holds_nobody_up() {
    for quirk in [Quirk::RefusesAll, Quirk::NeverOk, Quirk::Repeats(1000)] {
        let (bad, good) = (ScriptedRelay::start(quirk).await, TestRelay::start().await);
        let running = Home::new(&[bad.url(), good.url()]).start().await;
        let mut asker = Asker::connect_without_relay_list(&good.url(), running.public_key).await;
        let list = EventBuilder::new(Kind::InboxRelays, "").tags([Tag::relay(bad.url()), Tag::relay(good.url())]);
        asker.publish(&list.sign_with_keys(&asker.keys).unwrap()).await;
        assert!(asker.ask("dad").await.contains("#1"), "{quirk:?}");
        asker.next_key().await.assert_starts_with("dad");
        assert!(asker.ask("ham").await.contains("#2"), "{quirk:?}: one wish, one job");
        running.service.stop().await;
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_relay_that_went_deaf_is_noticed_and_mended() {
    let relay = ScriptedRelay::start(Quirk::Deaf).await;
    let running = Home::new(&[relay.url()]).start().await;
    let mut asker = Asker::connect(&relay.url(), running.public_key).await;
    assert!(asker.ask("dad").await.contains("#1"));
    asker.next_key().await;
    let before = relay.connections();
    relay.set_deaf();
    // The watchdog's letter to itself does not come back, so it connects anew.
    until("a new connection", || async { (relay.connections() > before).then_some(()) }).await;
    let mut later = Asker::connect(&relay.url(), running.public_key).await;
    assert!(later.ask("ham").await.contains("#2"));
    running.service.stop().await;
}
