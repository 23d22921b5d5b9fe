//! A bot with several GPUs. One fails while a thousand askers wait.

use super::failure::destroy_the_context;
use crate::support::asker::DeliveredKey;
use crate::support::bot::Home;
use crate::support::harness::{Test, needs_gpus, test};
use crate::support::relay::TestRelay;
use crate::support::{PATIENCE, connect, until};
use nostr_sdk::prelude::*;
use npubbot::scheduler::Health;
use std::collections::HashMap;
use std::time::{Duration, Instant};

pub const TESTS: &[Test] = &[test!(a_gpu_of_several_fails_under_a_thousand_requests_and_none_is_lost).alone()];

const ASKERS: usize = 1000;
/// Keys that are delivered before the GPU fails.
const BEFORE_THE_FAILURE: usize = 200;
/// Index of the GPU that fails.
const FAILING: usize = 1;

/// A prefix of eight characters, another for each number: a match is expected after 10^12 tests.
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

async fn a_gpu_of_several_fails_under_a_thousand_requests_and_none_is_lost() {
    let _ = tracing_subscriber::fmt().with_max_level(tracing::Level::ERROR).try_init();
    needs_gpus(2);
    let relay = TestRelay::start().await;
    let home = Home::with(&[relay.url()], "[search]\ndevice = \"cuda\"\n");
    let running = home.start().await;
    let (writer, reader) = (client(&relay).await, client(&relay).await);
    let mut notifications = reader.notifications();
    reader.subscribe(Filter::new().kind(Kind::GiftWrap).limit(0), None).await.unwrap();

    let mut askers = HashMap::new();
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
    let mut failed_after = None;
    while delivered.len() < ASKERS {
        let next = tokio::time::timeout(PATIENCE, notifications.recv()).await.expect("a key");
        let Ok(RelayPoolNotification::Event { event, .. }) = next else { continue };
        let receiver = event.tags.public_keys().next().copied();
        let Some((keys, prefix)) = receiver.and_then(|receiver| askers.get(&receiver)) else { continue };
        let gift = UnwrappedGift::from_gift_wrap(keys, &event).await.unwrap();
        let Some(key) = DeliveredKey::read(&gift.rumor.content) else { continue };
        key.assert_starts_with(prefix);
        assert!(delivered.insert(keys.public_key(), key).is_none(), "one key for each asker");
        if delivered.len() == BEFORE_THE_FAILURE {
            tokio::task::spawn_blocking(|| destroy_the_context(FAILING)).await.unwrap();
            failed_after = Some(began.elapsed());
        }
    }
    let took = began.elapsed();
    let is_out = || async {
        let out = running.service.devices().iter().filter(|device| matches!(device.health, Health::Out(_))).count();
        (out > 0).then_some(out)
    };
    assert_eq!(until("the GPU is taken out", is_out).await, 1, "the others go on");
    // Nothing comes twice: the ledger has one result a job, and all are delivered.
    let all_delivered = || async { (running.service.totals().unwrap().delivered == ASKERS as u64).then_some(()) };
    until("the ledger knows that every key is delivered", all_delivered).await;
    println!(
        "{gpus} GPUs, {ASKERS} requests at once: GPU {FAILING} failed after {:.2} s, the last key came after {:.2} s",
        failed_after.unwrap_or(Duration::ZERO).as_secs_f64(),
        took.as_secs_f64()
    );
    running.service.stop().await;
}
