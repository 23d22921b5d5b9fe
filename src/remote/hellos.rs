//! The hellos of workers. The server keeps the newest one of each device, and the bot fetches them
//! when it has time. So a worker that floods hellos hides no other worker, and costs the bot
//! little.

use super::subjects;
use super::wire::LARGEST_HELLO;
use crate::search::RemoteId;
use async_nats::Client;
use async_nats::jetstream::{self, consumer, stream};
use futures_util::StreamExt;
use std::time::Duration;

/// Time after which the server forgets a hello.
const KEPT: Duration = Duration::from_secs(10);
/// Number of hellos requested at once. As many messages may wait in a subscription of the bot.
pub const AT_ONCE: usize = 64;
/// The most requests in one fetch: enough for the hellos of 4,096 devices.
const TIMES: usize = 64;
/// The most hellos that the server keeps.
const MOST: i64 = 1 << 17;
/// Time after which the server forgets a bot that requests nothing.
const FORGOTTEN_AFTER: Duration = Duration::from_secs(60);
/// Time limit for a fetch.
const PATIENCE: Duration = Duration::from_secs(10);

/// A hello as it arrived.
pub struct RawHello {
    /// The device that the subject of the hello names.
    pub id: RemoteId,
    /// The hello, not decoded yet.
    pub bytes: Vec<u8>,
}

/// The hellos that the server keeps.
pub struct Hellos {
    client: Client,
    consumer: Option<consumer::PullConsumer>,
}

impl Hellos {
    /// The hellos at the server of this connection.
    pub fn new(client: Client) -> Hellos {
        Hellos { client, consumer: None }
    }

    /// The newest hello of each device since the last fetch, without those that arrive during this
    /// one.
    ///
    /// Errors: the server is away, or has forgotten the bot. The next call starts over.
    pub async fn fetch(&mut self) -> Result<Vec<RawHello>, async_nats::Error> {
        let fetched = match tokio::time::timeout(PATIENCE, self.ask()).await {
            Ok(fetched) => fetched,
            Err(elapsed) => Err(elapsed.into()),
        };
        if fetched.is_err() {
            self.consumer = None;
        }
        fetched
    }

    async fn ask(&mut self) -> Result<Vec<RawHello>, async_nats::Error> {
        let consumer = match &mut self.consumer {
            Some(consumer) => consumer,
            none => none.insert(open(&self.client).await?),
        };
        let mut heard = Vec::new();
        for _ in 0..TIMES {
            let mut messages = consumer.fetch().max_messages(AT_ONCE).messages().await?;
            let mut count = 0;
            while let Some(message) = messages.next().await {
                let message = message?;
                count += 1;
                if let Some(id) = subjects::of_hello(&message.subject) {
                    heard.push(RawHello { id, bytes: message.payload.to_vec() });
                }
            }
            if count < AT_ONCE {
                break;
            }
        }
        Ok(heard)
    }
}

/// Makes the server keep hellos and pass on those that arrive from now on.
async fn open(client: &Client) -> Result<consumer::PullConsumer, async_nats::Error> {
    let jetstream = jetstream::new(client.clone());
    let config = stream::Config {
        name: subjects::HELLOS.to_owned(),
        subjects: subjects::hellos(),
        storage: stream::StorageType::Memory,
        max_messages_per_subject: 1,
        max_messages: MOST,
        max_message_size: LARGEST_HELLO as i32,
        max_age: KEPT,
        duplicate_window: KEPT,
        no_ack: true,
        ..stream::Config::default()
    };
    jetstream.create_or_update_stream(config).await?;
    let config = consumer::pull::Config {
        ack_policy: consumer::AckPolicy::None,
        deliver_policy: consumer::DeliverPolicy::New,
        inactive_threshold: FORGOTTEN_AFTER,
        memory_storage: true,
        ..consumer::pull::Config::default()
    };
    Ok(jetstream.create_consumer_on_stream(config, subjects::HELLOS).await?)
}
