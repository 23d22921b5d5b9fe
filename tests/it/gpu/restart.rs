//! A bot whose GPUs all fail while a thousand askers wait: after a trap, CUDA refuses every GPU of
//! the process. The next process goes on.

use super::failure::destroy_the_context;
use crate::support::asker::DeliveredKey;
use crate::support::bot::Home;
use crate::support::harness::{Test, needs_gpu, test};
use crate::support::relay::TestRelay;
use crate::support::{PATIENCE, connect, until};
use nostr_sdk::prelude::*;
use npubbot::scheduler::{DeviceStatus, Health};
use npubbot::search::DeviceId;
use std::collections::HashMap;
use std::time::Instant;
use tokio::sync::broadcast::Receiver;

pub const TESTS: &[Test] = &[test!(a_gpu_fails_under_a_thousand_requests_and_after_a_restart_each_has_its_key)];

const ASKERS: usize = 1000;
/// Keys that are delivered before the GPU fails.
const BEFORE_THE_FAILURE: usize = 200;
/// Index of the GPU that fails.
const FAILING: usize = 0;
const DELIVERED: &str = "SELECT count(*) FROM job WHERE state = 'delivered'";

/// A prefix of eight characters, different for each number. A match takes 10^12 candidates on
/// average.
fn prefix(number: usize) -> String {
    let alphabet = b"qpzry9x8gf2tvdw0s3jn54khce6mua7l";
    let tail: String = (0..4).map(|at| char::from(alphabet[number >> (5 * at) & 31])).collect();
    format!("m0ct{tail}")
}

/// A client on the relay with room for all that a thousand askers receive.
async fn client(relay: &TestRelay) -> Client {
    let pool = RelayPoolOptions::new().notification_channel_size(65_536);
    let client = Client::builder().opts(ClientOptions::new().pool(pool)).build();
    client.add_relay(relay.url()).await.unwrap();
    connect(&client).await;
    client
}

type Askers = HashMap<PublicKey, (Keys, String)>;

/// Waits for the next key, and checks that its asker had none.
async fn next_key(
    notifications: &mut Receiver<RelayPoolNotification>,
    askers: &Askers,
    delivered: &mut HashMap<PublicKey, DeliveredKey>,
) {
    loop {
        let next = tokio::time::timeout(PATIENCE, notifications.recv()).await.expect("a key");
        let Ok(RelayPoolNotification::Event { event, .. }) = next else { continue };
        let receiver = event.tags.public_keys().next().copied();
        let Some((keys, prefix)) = receiver.and_then(|receiver| askers.get(&receiver)) else { continue };
        let gift = UnwrappedGift::from_gift_wrap(keys, &event).await.unwrap();
        let Some(key) = DeliveredKey::read(&gift.rumor.content) else { continue };
        key.assert_starts_with(prefix);
        assert!(delivered.insert(keys.public_key(), key).is_none(), "one key for each asker");
        return;
    }
}

async fn a_gpu_fails_under_a_thousand_requests_and_after_a_restart_each_has_its_key() {
    let _ = tracing_subscriber::fmt().with_max_level(tracing::Level::ERROR).try_init();
    needs_gpu();
    let relay = TestRelay::start().await;
    let home = Home::with(&[relay.url()], "[search]\ndevice = \"cuda\"\n");
    let running = home.start().await;
    let (writer, reader) = (client(&relay).await, client(&relay).await);
    let mut notifications = reader.notifications();
    reader.subscribe(Filter::new().kind(Kind::GiftWrap).limit(0), None).await.unwrap();

    let mut askers = Askers::new();
    let (mut lists, mut requests) = (Vec::new(), Vec::new());
    for number in 0..ASKERS {
        let keys = Keys::generate();
        let list = EventBuilder::new(Kind::InboxRelays, "").tag(Tag::relay(relay.url()));
        lists.push(list.sign_with_keys(&keys).unwrap());
        requests.push(EventBuilder::private_msg(&keys, running.public_key, prefix(number), []).await.unwrap());
        askers.insert(keys.public_key(), (keys, prefix(number)));
    }
    // All at once: one after the other each waits for the relay's delayed acknowledgement.
    futures_util::future::join_all(lists.iter().map(|list| writer.send_event(list))).await;
    until("every GPU searches", || async {
        running.service.devices().iter().all(|device| device.rate.is_some()).then_some(())
    })
    .await;
    let gpus = running.service.devices().len();
    let began = Instant::now();
    for request in requests {
        let writer = writer.clone();
        tokio::spawn(async move { writer.send_event(&request).await.map(|_| ()) });
    }

    let mut delivered: HashMap<PublicKey, DeliveredKey> = HashMap::new();
    while delivered.len() < BEFORE_THE_FAILURE {
        next_key(&mut notifications, &askers, &mut delivered).await;
    }
    let failed_after = began.elapsed();
    tokio::task::spawn_blocking(|| destroy_the_context(FAILING)).await.unwrap();
    // CUDA refuses the other GPUs too.
    let are_out = || async {
        let devices = running.service.devices();
        let out = |device: &DeviceStatus| match &device.health {
            Health::Out(reason) => reason.contains("until npubbot is started again"),
            _ => device.id == DeviceId::Cpu,
        };
        devices.iter().all(out).then_some(())
    };
    until("every GPU is taken out, and the log says what to do", are_out).await;
    running.service.stop().await;

    let bot = home.spawn().await;
    while delivered.len() < ASKERS {
        next_key(&mut notifications, &askers, &mut delivered).await;
    }
    let took = began.elapsed();
    // Nothing comes twice: the ledger has one job per asker, and all are delivered.
    let all_delivered = || async { (home.count(DELIVERED) == Some(ASKERS as i64)).then_some(()) };
    until("the ledger knows that every key is delivered", all_delivered).await;
    assert_eq!(home.count("SELECT count(*) FROM job"), Some(ASKERS as i64));
    println!(
        "{gpus} GPUs, {ASKERS} requests at once: they failed after {:.2} s, the last key came after {:.2} s",
        failed_after.as_secs_f64(),
        took.as_secs_f64()
    );
    bot.stop(&home).await;
}
