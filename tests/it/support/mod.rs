//! What the tests share: a relay, an asker with a client of their own, and the bot.

pub mod asker;
pub mod bot;
pub mod foreign;
pub mod forger;
pub mod harness;
pub mod hex;
pub mod leaks;
pub mod log;
pub mod memory_scan;
pub mod program;
pub mod raw_relay;
pub mod relay;
pub mod source;
pub mod usage;

use nostr_sdk::prelude::{Client, Event, RelayUrl};
use std::future::Future;
use std::time::Duration;

/// How long anything may take before a test fails. Nothing waits this long when it works.
pub const PATIENCE: Duration = Duration::from_secs(60);

/// Waits until `condition` gives something, or fails with `what`.
pub async fn until<T, F: Future<Output = Option<T>>>(what: &str, mut condition: impl FnMut() -> F) -> T {
    let attempt = async {
        loop {
            if let Some(value) = condition().await {
                return value;
            }
            tokio::time::sleep(Duration::from_millis(20)).await;
        }
    };
    tokio::time::timeout(PATIENCE, attempt).await.unwrap_or_else(|_| panic!("waited in vain: {what}"))
}

/// A client of the asker's that lives as long as it takes to publish.
pub async fn publish(to: &RelayUrl, event: &Event) {
    let client = Client::default();
    client.add_relay(to).await.unwrap();
    client.connect().await;
    client.wait_for_connection(PATIENCE).await;
    client.send_event(event).await.unwrap();
    client.shutdown().await;
}

/// The seed of a random test: printed, and taken back from `NPUBBOT_TEST_SEED`.
pub fn seed() -> u64 {
    let seed = std::env::var("NPUBBOT_TEST_SEED").ok().and_then(|text| text.parse().ok()).unwrap_or_else(rand::random);
    println!("NPUBBOT_TEST_SEED={seed}");
    seed
}
