//! Helpers shared by the tests: a relay, an asker with a client of their own, and the bot.

pub mod asker;
pub mod bot;
pub mod disk;
pub mod fleet;
pub mod foreign;
pub mod forger;
pub mod half;
pub mod harness;
pub mod leaks;
pub mod log;
pub mod program;
pub mod relay;
pub mod socks;
pub mod source;
pub mod stub_driver;
pub mod terminal;
pub mod usage;
pub mod vault;

use nostr_sdk::prelude::{Client, Event, EventBuilder, Keys, Kind, RelayUrl, Tag};
use std::future::Future;
use std::sync::LazyLock;
use std::time::{Duration, Instant};

/// The longest time that a test waits for anything. Successful tests need far less. The search has
/// the lowest priority: beside two compilers on two cores it gets a hundredth of the time.
pub const PATIENCE: Duration = Duration::from_secs(400);

/// A pattern that one core does not find within a test.
pub const LONG: &str = "qqqqqqqq";

/// Waits until `condition` returns a value. Fails after [`PATIENCE`], with `what` in the message. A
/// condition may be dear, so the pauses grow to a tenth of the time waited.
pub async fn until<T, F: Future<Output = Option<T>>>(what: &str, mut condition: impl FnMut() -> F) -> T {
    let began = Instant::now();
    let attempt = async {
        loop {
            if let Some(value) = condition().await {
                return value;
            }
            let pause = began.elapsed() / 10;
            tokio::time::sleep(pause.clamp(Duration::from_millis(5), Duration::from_millis(250))).await;
        }
    };
    tokio::time::timeout(PATIENCE, attempt).await.unwrap_or_else(|_| panic!("waited in vain: {what}"))
}

/// Waits until `condition` holds. Fails after [`PATIENCE`], with `what` in the message.
pub async fn wait_for(what: &str, mut condition: impl FnMut() -> bool) {
    until(what, || std::future::ready(condition().then_some(()))).await;
}

/// A list of DM relays (kind 10050) by `keys`.
pub fn dm_list(keys: &Keys, relays: &[RelayUrl]) -> Event {
    let tags = relays.iter().cloned().map(Tag::relay);
    EventBuilder::new(Kind::InboxRelays, "").tags(tags).sign_with_keys(keys).unwrap()
}

/// Connects a client and waits until all its relays are connected. (The library's own wait may
/// overlook a connection.)
pub async fn connect(client: &Client) {
    client.connect().await;
    until("the client is connected", || async {
        client.relays().await.values().all(|relay| relay.is_connected()).then_some(())
    })
    .await;
}

/// A connected client without a key.
pub async fn connected(relay: &RelayUrl) -> Client {
    let client = Client::default();
    client.add_relay(relay).await.unwrap();
    connect(&client).await;
    client
}

/// Publishes an event with a client that exists just for this.
pub async fn publish(to: &RelayUrl, event: &Event) {
    let client = connected(to).await;
    publish_with(&client, event).await;
    client.shutdown().await;
}

/// Publishes an event, again and again until a relay takes it. The library waits ten seconds for a
/// relay's answer, which is too short for a busy machine. Panics after thirty refusals.
pub async fn publish_with(client: &Client, event: &Event) {
    let mut refusal = String::new();
    for _ in 0..30 {
        match client.send_event(event).await {
            Ok(sent) if !sent.success.is_empty() => return,
            other => refusal = format!("{other:?}"),
        }
        tokio::time::sleep(Duration::from_millis(100)).await;
    }
    panic!("no relay took the event: {refusal}");
}

/// An age file with a text, locked with a passphrase that is cheap to try.
pub fn locked(passphrase: &str, text: &str) -> Vec<u8> {
    let mut recipient = age::scrypt::Recipient::new(passphrase.to_owned().into());
    recipient.set_work_factor(10);
    age::encrypt(&recipient, text.as_bytes()).unwrap()
}

/// The variable that sets the seed.
const SEED: &str = "NPUBBOT_TEST_SEED";

/// The seed of this run: from the environment, or else drawn once.
fn seed_of_environment() -> u64 {
    static DRAWN: LazyLock<u64> = LazyLock::new(rand::random);
    std::env::var(SEED).ok().and_then(|text| text.parse().ok()).unwrap_or(*DRAWN)
}

/// The seed for a random test. It is printed, and `NPUBBOT_TEST_SEED` sets it.
pub fn seed() -> u64 {
    let seed = seed_of_environment();
    println!("{SEED}={seed}");
    seed
}
