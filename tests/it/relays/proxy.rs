//! A bot behind a SOCKS5 proxy, such as Tor's.

use crate::support::asker::{Asker, DeliveredKey};
use crate::support::bot::Home;
use crate::support::dm_list;
use crate::support::harness::{Test, test};
use crate::support::relay::TestRelay;
use crate::support::socks::Socks;
use nostr_sdk::prelude::*;

pub const TESTS: &[Test] = &[test!(behind_a_proxy_every_relay_is_named_to_it_and_none_is_looked_up)];

fn onion(letter: &str) -> String {
    format!("{}.onion", letter.repeat(56))
}

async fn behind_a_proxy_every_relay_is_named_to_it_and_none_is_looked_up() {
    let relay = TestRelay::start().await;
    let port = Url::parse(relay.url().as_str()).unwrap().port().unwrap();
    let proxy = Socks::start(([127, 0, 0, 1], port).into()).await;
    // Neither name exists, so a lookup fails.
    let (ours, theirs) = (onion("a"), onion("b"));
    let home = Home::with(
        &[RelayUrl::parse(&format!("ws://{ours}")).unwrap()],
        &format!("[network]\nproxy = \"{}\"\n", proxy.address),
    );
    let running = home.start().await;
    let mut asker = Asker::connect_without_relay_list(&relay.url(), running.public_key).await;
    let list = RelayUrl::parse(&format!("ws://{theirs}")).unwrap();
    asker.publish(&dm_list(&asker.keys, &[list])).await;
    asker.send("cat").await;
    assert!(DeliveredKey::read(&asker.next_result().await).unwrap().npub.starts_with("npub1cat"));
    let asked = proxy.asked();
    for host in [&ours, &theirs] {
        let one = asked.iter().find(|asked| asked.host == *host).unwrap_or_else(|| panic!("{host}: {asked:?}"));
        assert!(one.is_name && one.port == 80, "{one:?}");
        // The host is the user name, because Tor gives streams of different users different
        // circuits.
        assert_eq!(one.user, *host);
    }
    assert!(asked.iter().all(|asked| asked.is_name), "{asked:?}");
}
