//! The bot's connection to the server: workers come, are given orders, and go.
//!
//! ```text
//! hello ──▶ new session ──▶ stream and consumer ──▶ RemoteSearcher ──▶ the scheduler
//!             │ ends: gone (it may say hello again), useless (later), distrusted (never)
//! ```
//!
//! Only the server knows which worker sends a message: each worker may publish to its own subjects
//! only (`subjects.rs`).

use super::credentials::{Credentials, is_refusal};
use super::roll::{FleetStatus, ProvenFigures, Roll};
use super::searcher::{MAX_ORDERS, RemoteSearcher};
use super::session::{End, Session};
use super::subjects;
use super::wire::{Hello, LARGEST_HELLO};
use async_nats::jetstream::{self, consumer, stream};
use async_nats::{Client, Event};
use futures_util::StreamExt;
use npubbot_miner::search::orders::LARGEST_ORDER;
use npubbot_miner::search::{RemoteId, Searcher};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};
use tokio::sync::mpsc;

/// Time after which the server deletes an order that no device has fetched.
const ORDERS_LIVE: Duration = Duration::from_secs(5);
/// The most messages that the server keeps for one worker. The limit is not in bytes, because the
/// server would reserve these bytes, and its 1 GB would suffice for few workers.
const MAX_MESSAGES: i64 = 1 << 12;
/// The most messages in transit to a device: its orders, and parts of a set of patterns.
const OUTGOING: usize = 4 * MAX_ORDERS;
/// The most messages that wait in a subscription until the bot reads them. Further ones are
/// dropped.
const WAITING: usize = HELLOS_AT_ONCE;
/// Time after which the server forgets the consumer of a device that is away.
const FORGOTTEN_AFTER: Duration = Duration::from_secs(300);
/// Time between two checks for silent devices and new hellos.
const LOOK: Duration = Duration::from_secs(1);
/// Time that the first connection may take before the log says that the server cannot be reached.
const FIRST_PATIENCE: Duration = Duration::from_secs(5);

/// The workers of a bot. Cheap to clone; clones share them.
#[derive(Clone)]
pub struct Fleet {
    server: Arc<str>,
    state: Arc<Mutex<State>>,
}

struct State {
    roll: Roll,
    connection: Connection,
}

/// The connection to the server, as the log has told it.
#[derive(PartialEq)]
enum Connection {
    /// None so far, since then.
    New(Instant),
    Connected,
    Away,
    Refused,
}

impl Fleet {
    /// A fleet whose server has this address. Nothing is connected yet.
    pub fn new(server: &str) -> Fleet {
        let state = State { roll: Roll::default(), connection: Connection::New(Instant::now()) };
        Fleet { server: server.into(), state: Arc::new(Mutex::new(state)) }
    }

    /// The state of the workers now. `proven`: the scheduler's figures of a device; `None` before it
    /// has any.
    pub fn status(&self, proven: impl Fn(RemoteId) -> Option<ProvenFigures>) -> FleetStatus {
        let state = self.lock();
        let (server, connected) = (self.server.to_string(), state.connection == Connection::Connected);
        FleetStatus { server, connected, workers: state.roll.workers(Instant::now(), proven) }
    }

    /// Ends all sessions at once. From now on nobody waits for the answers to their orders.
    pub fn close(&self) {
        self.end_all("the bot stops");
    }

    /// Keeps the connection up and passes each new device to `attach`, until `stopped`. If the
    /// server is away, it tries again without end.
    pub async fn run<A>(self, credentials: Arc<Credentials>, attach: A, stopped: impl Future<Output = ()>)
    where
        A: Fn(Box<dyn Searcher>) + Clone + Send + Sync + 'static,
    {
        let events = self.clone();
        let options = credentials.options().subscription_capacity(WAITING).retry_on_initial_connect().event_callback(
            move |event| {
                events.note(&event);
                std::future::ready(())
            },
        );
        let client = match options.connect(&*self.server).await {
            Ok(client) => client,
            Err(error) => {
                tracing::error!(%error, "the fleet's server cannot be used, so workers get no orders");
                return;
            }
        };
        tokio::select! {
            () = self.serve(client, attach) => {}
            () = stopped => self.close(),
        }
    }

    async fn serve(&self, client: Client, attach: impl Fn(Box<dyn Searcher>) + Clone + Send + Sync + 'static) {
        let listen = async {
            let mut consumer = None;
            loop {
                match tokio::time::timeout(FETCH_TIMEOUT, fetch_hellos(&client, &mut consumer)).await {
                    Ok(Ok(hellos)) => hellos
                        .into_iter()
                        .filter_map(|(id, hello)| self.hear(id, &hello))
                        .for_each(|session| drop(tokio::spawn(welcome(client.clone(), session, attach.clone())))),
                    // The server is away, or has forgotten the bot.
                    failed => {
                        tracing::debug!(?failed, "the fleet cannot be heard");
                        consumer = None;
                    }
                }
                tokio::time::sleep(LOOK).await;
            }
        };
        let watch = async {
            loop {
                self.look();
                tokio::time::sleep(LOOK).await;
            }
        };
        tokio::join!(listen, watch);
    }

    /// Reads a hello. Returns the session that begins with it, if one does.
    fn hear(&self, id: RemoteId, bytes: &[u8]) -> Option<Arc<Session>> {
        let (mut state, now) = (self.lock(), Instant::now());
        match Hello::read(bytes) {
            Ok(hello) => state.roll.hear(id, hello, now),
            Err(error) => {
                state.roll.refuse_message(id.worker, error.to_string(), now);
                None
            }
        }
    }

    fn look(&self) {
        let mut state = self.lock();
        state.roll.look();
        if matches!(state.connection, Connection::New(since) if since.elapsed() > FIRST_PATIENCE) {
            state.connection = Connection::Away;
            tracing::warn!(server = %self.server, "the fleet's server cannot be reached; workers get no orders until it can");
        }
    }

    /// Follows the connection. The log has one line when it is lost and one when it is back.
    fn note(&self, event: &Event) {
        let mut state = self.lock();
        match event {
            Event::Connected => {
                state.connection = Connection::Connected;
                tracing::info!(server = %self.server, "the fleet's server is connected");
            }
            Event::Disconnected | Event::Closed => {
                if state.connection == Connection::Connected {
                    state.connection = Connection::Away;
                    tracing::warn!(server = %self.server, "the fleet's server is away; workers get no orders until it is back");
                }
                drop(state);
                self.end_all("the server is away");
            }
            event if is_refusal(event) => {
                if std::mem::replace(&mut state.connection, Connection::Refused) != Connection::Refused {
                    tracing::warn!(server = %self.server, "the fleet's server refuses the bot's credentials; workers get no orders until it takes them");
                }
            }
            other => tracing::debug!(event = %other, "the fleet's server"),
        }
    }

    fn end_all(&self, reason: &str) {
        for session in self.lock().roll.sessions() {
            session.end(End::Gone(reason.to_owned()));
        }
    }

    fn lock(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Sets up a new session and passes its device on. Returns when the session is over.
async fn welcome(client: Client, session: Arc<Session>, attach: impl Fn(Box<dyn Searcher>) + Send + 'static) {
    let served = async {
        prepare(&client, session.id).await?;
        let mut answers = client.subscribe(subjects::answers(session.id)).await?;
        client.flush().await?;
        let (outgoing, mut orders) = mpsc::channel(OUTGOING);
        let searcher = RemoteSearcher::new(Arc::clone(&session), outgoing)?;
        let (info, version) = (searcher.info(), &session.hello.program);
        tracing::info!(device = %info.id, name = info.name, kernel = info.kernel, version, "a worker's device has come");
        // The scheduler may wait for the thread of the previous session.
        tokio::task::spawn_blocking(move || attach(Box::new(searcher)));
        let subject = subjects::orders(session.id);
        loop {
            tokio::select! {
                Some(answer) = answers.next() => session.accept(&answer.payload),
                Some(order) = orders.recv() => client.publish(subject.clone(), order.into()).await?,
                else => break,
            }
        }
        Ok::<(), async_nats::Error>(())
    };
    let ended = tokio::select! {
        ended = served => ended,
        () = session.over() => Ok(()),
    };
    if let Err(error) = ended {
        session.end(End::Gone(error.to_string()));
    }
}

/// Makes the stream of a worker and the consumer of its device, and deletes the device's old
/// orders.
async fn prepare(client: &Client, id: RemoteId) -> Result<(), async_nats::Error> {
    let jetstream = jetstream::new(client.clone());
    let name = subjects::stream(id.worker);
    let config = stream::Config {
        name: name.clone(),
        subjects: vec![subjects::all_orders(id.worker)],
        storage: stream::StorageType::Memory,
        // Orders are worthless after any restart, and a full stream drops the oldest.
        max_age: ORDERS_LIVE,
        max_messages: MAX_MESSAGES,
        max_message_size: LARGEST_ORDER as i32,
        duplicate_window: ORDERS_LIVE,
        no_ack: true,
        ..stream::Config::default()
    };
    jetstream.create_or_update_stream(config).await?;
    let stream = jetstream.get_stream_no_info(&name).await?;
    stream.purge().filter(subjects::orders(id)).await?;
    let config = consumer::pull::Config {
        durable_name: Some(subjects::consumer(id)),
        filter_subject: subjects::orders(id),
        // No order is sent twice, or two workers could search one start point.
        ack_policy: consumer::AckPolicy::None,
        deliver_policy: consumer::DeliverPolicy::All,
        inactive_threshold: FORGOTTEN_AFTER,
        memory_storage: true,
        ..consumer::pull::Config::default()
    };
    jetstream.create_consumer_on_stream(config, &name).await?;
    Ok(())
}

/// Time after which the server forgets a hello.
const HELLO_KEPT: Duration = Duration::from_secs(10);
/// Number of hellos requested at once. As many messages may wait in a subscription of the bot.
const HELLOS_AT_ONCE: usize = 64;
/// The most requests in one fetch: enough for the hellos of 4,096 devices.
const MAX_FETCHES: usize = 64;
/// The most hellos that the server keeps.
const MAX_HELLOS: i64 = 1 << 17;
/// Time after which the server forgets a bot that requests nothing.
const BOT_FORGOTTEN_AFTER: Duration = Duration::from_secs(60);
/// Time limit for a fetch.
const FETCH_TIMEOUT: Duration = Duration::from_secs(10);

/// The newest hello of each device since the last call, not decoded yet, without those that arrive
/// during this one. The device is that of the hello's subject.
///
/// The server keeps the newest hello of each device, and the bot fetches them when it has time. So a
/// worker that floods hellos hides no other worker, and costs the bot little.
async fn fetch_hellos(
    client: &Client,
    consumer: &mut Option<consumer::PullConsumer>,
) -> Result<Vec<(RemoteId, Vec<u8>)>, async_nats::Error> {
    let consumer = match consumer {
        Some(consumer) => consumer,
        none => none.insert(subscribe_to_hellos(client).await?),
    };
    let mut heard = Vec::new();
    for _ in 0..MAX_FETCHES {
        let mut messages = consumer.fetch().max_messages(HELLOS_AT_ONCE).messages().await?;
        let mut count = 0;
        while let Some(message) = messages.next().await {
            let message = message?;
            count += 1;
            if let Some(id) = subjects::of_hello(&message.subject) {
                heard.push((id, message.payload.to_vec()));
            }
        }
        if count < HELLOS_AT_ONCE {
            break;
        }
    }
    Ok(heard)
}

/// Makes the server keep hellos and pass on those that arrive from now on.
async fn subscribe_to_hellos(client: &Client) -> Result<consumer::PullConsumer, async_nats::Error> {
    let jetstream = jetstream::new(client.clone());
    let config = stream::Config {
        name: subjects::HELLOS.to_owned(),
        subjects: subjects::hellos(),
        storage: stream::StorageType::Memory,
        max_messages_per_subject: 1,
        max_messages: MAX_HELLOS,
        max_message_size: LARGEST_HELLO as i32,
        max_age: HELLO_KEPT,
        duplicate_window: HELLO_KEPT,
        no_ack: true,
        ..stream::Config::default()
    };
    jetstream.create_or_update_stream(config).await?;
    let config = consumer::pull::Config {
        ack_policy: consumer::AckPolicy::None,
        deliver_policy: consumer::DeliverPolicy::New,
        inactive_threshold: BOT_FORGOTTEN_AFTER,
        memory_storage: true,
        ..consumer::pull::Config::default()
    };
    Ok(jetstream.create_consumer_on_stream(config, subjects::HELLOS).await?)
}
