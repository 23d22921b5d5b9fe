//! The bot, or its vault, is killed while a peer searches. The start secret is gone, so the bot
//! withdraws the request and makes it again at another point.

use super::{PlayedPeer, peers, sent};
use crate::cli::control::{answering, operate};
use crate::support::asker::Asker;
use crate::support::bot::{BotProcess, Home};
use crate::support::harness::{Test, test};
use crate::support::program::stdout;
use crate::support::relay::TestRelay;
use crate::support::until;
use crate::support::vault::{kill, next_vault};
use nostr_sdk::prelude::*;

pub const TESTS: &[Test] = &[
    test!(a_bot_that_is_killed_after_handing_over_delivers_once),
    test!(with_its_vault_killed_a_bot_asks_again_at_another_point),
];

/// Configuration of a bot that has these peers, accepts only jobs of a second, and searches for a
/// hundredth of the time.
fn too_slow(bots: &[PublicKey]) -> String {
    let search = "[search]\ndevice = \"cpu\"\nthreads = 1\ncpu_kernel = \"portable\"\nshare_percent = 1\n";
    let limits = "[limits]\nlongest_expected_time = \"1 s\"\ngive_up_after = \"30 days\"\n";
    format!("{search}{}{limits}", peers(bots))
}

/// The bot as a process, with its search paused.
async fn paused(home: &Home) -> BotProcess {
    let bot = home.spawn_logged().await;
    answering(home).await;
    assert!(operate(home, &["pause"]).status.success());
    bot
}

async fn a_bot_that_is_killed_after_handing_over_delivers_once() {
    let relay = TestRelay::start().await;
    let (slow, fast) = (Home::new(&[relay.url()]), Home::new(&[relay.url()]));
    let fast_key = fast.vault().public_key();
    let slow = slow.reconfigured(&too_slow(&[fast_key]));
    // The peer publishes its relays and goes away.
    fast.start().await.service.stop().await;
    let bot = paused(&slow).await;
    let mut asker = Asker::connect(&relay.url(), bot.public_key).await;
    let acceptance = asker.ask("ccccc").await;
    assert!(acceptance.contains("another bot"), "{acceptance}");
    let (from, to) = (bot.public_key, fast.keys());
    let all_sent = async |count| {
        until("messages to the peer", || async { (sent(&relay, from, &to).await.len() >= count).then_some(()) }).await;
    };
    all_sent(1).await;
    bot.kill();
    let bot = paused(&slow).await;
    // The first request, its withdrawal, and the second request.
    all_sent(3).await;
    let fast_bot = fast.start().await;
    asker.next_key().await.assert_starts_with("ccccc");
    let over = "SELECT count(*) FROM peer_request WHERE state IN ('asked', 'accepted')";
    until("no request is open", || async { (slow.count(over)? == 0).then_some(()) }).await;
    assert_eq!(slow.count("SELECT count(*) FROM peer_request"), Some(2));
    assert_eq!(slow.count("SELECT count(*) FROM mail WHERE result_of IS NOT NULL"), Some(1));
    drop(bot);
    fast_bot.service.stop().await;
    let points = "SELECT count(DISTINCT split_point) = count(*) FROM job";
    assert_eq!(fast.count(points), Some(1), "no point twice");
    let keys = relay.wraps_to(asker.keys.public_key()).await;
    let mut delivered = 0;
    for wrap in keys {
        let gift = UnwrappedGift::from_gift_wrap(&asker.keys, &wrap).await.unwrap();
        delivered += usize::from(gift.rumor.content.contains("nsec1"));
    }
    assert_eq!(delivered, 1);
}

async fn with_its_vault_killed_a_bot_asks_again_at_another_point() {
    let relay = TestRelay::start().await;
    let home = Home::new(&[relay.url()]);
    let mut peer = PlayedPeer::connect(&relay.url(), home.vault().public_key()).await;
    let home = home.reconfigured(&too_slow(&[peer.key()]));
    let bot = home.spawn_logged().await;
    let mut asker = Asker::connect(&relay.url(), bot.public_key).await;
    // One core finds it in days.
    let acceptance = asker.ask("cccccccc").await;
    assert!(acceptance.contains("another bot"), "{acceptance}");
    let first = peer.next_request().await;
    peer.accept(&first).await;
    kill(next_vault(bot.pid(), None).await);
    peer.next_withdrawal(&first).await;
    let second = peer.next_request().await;
    assert_ne!(first.point, second.point);
    peer.accept(&second).await;
    // The operator sees the peer's state.
    answering(&home).await;
    let status: serde_json::Value = serde_json::from_str(&stdout(&operate(&home, &["status", "--json"]))).unwrap();
    let seen = &status["peers"][0];
    assert_eq!(seen["npub"], peer.key().to_bech32().unwrap());
    assert_eq!((&seen["open_jobs"], &seen["requests_last_day"]), (&1.into(), &2.into()), "{seen}");
    assert!(stdout(&operate(&home, &["status"])).contains("1 jobs there, 0 keys from it"));
    assert!(stdout(&operate(&home, &["doctor"])).contains("has room: 1 jobs, 2 requests in 24 h"));
    // The operator gives the job up.
    assert!(operate(&home, &["jobs", "cancel", "1"]).status.success());
    peer.next_withdrawal(&second).await;
    let log = home.log();
    assert!(!log.contains("cccccccc") && !log.contains(&asker.keys.public_key().to_hex()), "{log}");
}
