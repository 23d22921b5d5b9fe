//! The worker: connects to the server of a bot and carries out its orders.

use super::credentials::{Credentials, is_other_server, is_refusal};
use super::orders;
use super::pings::unix_millis;
use super::subjects;
use super::wire::{FromWorker, Hello, Ping, VERSION, encode};
use crate::search::DeviceId;
use crate::search::SearchError;
use crate::search::Searcher;
use crate::search::cuda;
use crate::search::open;
use crate::search::{DeviceChoice, SearchOptions};
use crate::search::{MOST_DEVICES, NoName, RemoteId};
use crate::shutdown::Shutdown;
use async_nats::jetstream::{self, consumer::PullConsumer};
use async_nats::{Client, ConnectErrorKind, Event};
use futures_util::StreamExt;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;
use thiserror::Error;
use tokio::sync::{Notify, mpsc};
use tokio::task::JoinSet;

/// Time between two hellos.
const HELLO_EVERY: Duration = Duration::from_secs(2);
/// Pause before a failed attempt is repeated.
const TRY_AGAIN: Duration = Duration::from_millis(500);
/// The most orders fetched at once. The bot sends orders for at most two seconds ahead.
const FETCHED: usize = 32;
/// Time that a fetch waits for orders, and time between two signs of life of the server meanwhile.
const FETCH: (Duration, Duration) = (Duration::from_secs(10), Duration::from_secs(2));
/// The most answers that wait to be sent.
const ANSWERS: usize = 16;

/// Why a worker cannot work.
#[derive(Debug, Error)]
pub enum WorkerError {
    /// No device works.
    #[error(transparent)]
    Search(#[from] SearchError),
    /// The credentials are not those of a worker.
    #[error("these are the credentials of `{user}`, and that is no worker: {error}")]
    NoWorker {
        /// The user that the credentials name.
        user: String,
        /// The mistake in that name.
        error: NoName,
    },
    /// The server refuses the worker.
    #[error(
        "the server {server} refuses this worker, or is another one ({reason}); ask its operator for new credentials"
    )]
    Refused {
        /// Address of the server.
        server: String,
        /// The server's answer.
        reason: String,
    },
    /// Every device failed.
    #[error("every device has failed; the log has the reasons")]
    AllFailed,
    /// The system gives no randomness.
    #[error("the system gives no randomness ({0})")]
    NoRandomness(getrandom::Error),
}

/// Opens the devices of a worker: at most [`MOST_DEVICES`], at least one.
pub fn open_devices(options: &SearchOptions) -> Result<Vec<Box<dyn Searcher>>, SearchError> {
    let gpus = |count: usize| {
        let (mut opened, mut first_error) = (Vec::new(), None);
        for ordinal in 0..count.min(usize::from(MOST_DEVICES)) {
            match open(DeviceId::Cuda(ordinal), options) {
                Ok(searcher) => opened.push(searcher),
                Err(error) => {
                    tracing::warn!(%error, "a GPU does not open; the others search");
                    first_error.get_or_insert(error);
                }
            }
        }
        if opened.is_empty() { first_error.map_or(Ok(opened), Err) } else { Ok(opened) }
    };
    match options.devices {
        DeviceChoice::Cpu => Ok(vec![open(DeviceId::Cpu, options)?]),
        DeviceChoice::CudaOrdinal(ordinal) => Ok(vec![open(DeviceId::Cuda(ordinal), options)?]),
        DeviceChoice::Cuda => {
            let no_gpu = |reason| SearchError::NoSuchDevice { asked: "cuda".to_owned(), reason };
            gpus(cuda::device_count().map_err(no_gpu)?)
        }
        DeviceChoice::All => match gpus(cuda::device_count().unwrap_or_default()) {
            Ok(opened) if !opened.is_empty() => Ok(opened),
            _ => Ok(vec![open(DeviceId::Cpu, options)?]),
        },
    }
}

/// Works for the bot of this server until shutdown. If the server is away, it tries again without
/// end.
///
/// Errors: [`WorkerError`] if the server refuses the credentials, or no device works.
pub async fn run_worker(
    server: &str,
    credentials: Credentials,
    devices: Vec<Box<dyn Searcher>>,
    mut shutdown: Shutdown,
) -> Result<(), WorkerError> {
    let user = credentials.user().to_owned();
    let worker = user.parse().map_err(|error| WorkerError::NoWorker { user, error })?;
    let session = getrandom::u64().map_err(WorkerError::NoRandomness)?;
    let refused = Arc::new(Notify::new());
    let client = tokio::select! {
        client = connect(server, &credentials, &refused) => client?,
        () = shutdown.stopped() => return Ok(()),
    };
    let mut running = JoinSet::new();
    for (number, searcher) in devices.into_iter().take(usize::from(MOST_DEVICES)).enumerate() {
        let id = RemoteId { worker, device: number as u8 };
        running.spawn(work(client.clone(), id, session, searcher));
    }
    let all_failed = async { while running.join_next().await.is_some() {} };
    tokio::select! {
        () = shutdown.stopped() => Ok(()),
        () = all_failed => Err(WorkerError::AllFailed),
        () = refused.notified() => {
            let reason = "its credentials were revoked".to_owned();
            Err(WorkerError::Refused { server: server.to_owned(), reason })
        }
    }
}

/// Connects to the server. Tries again while the server cannot be reached, but not if it refuses
/// the worker.
///
/// `refused` is notified when the server refuses a later connection.
async fn connect(server: &str, credentials: &Credentials, refused: &Arc<Notify>) -> Result<Client, WorkerError> {
    let mut is_told = false;
    loop {
        let (is_away, refused) = (Arc::new(AtomicBool::new(false)), Arc::clone(refused));
        let options = credentials.options().event_callback(move |event| {
            note(&event, &is_away, &refused);
            std::future::ready(())
        });
        let error = match options.connect(server).await {
            Ok(client) => return Ok(client),
            Err(error) => error,
        };
        let refuses = [
            ConnectErrorKind::Authentication,
            ConnectErrorKind::AuthorizationViolation,
            ConnectErrorKind::Tls,
            ConnectErrorKind::ServerParse,
        ];
        if is_other_server(&error) {
            let reason = "its certificate is not the one in the credentials".to_owned();
            return Err(WorkerError::Refused { server: server.to_owned(), reason });
        }
        if refuses.contains(&error.kind()) {
            return Err(WorkerError::Refused { server: server.to_owned(), reason: error.to_string() });
        }
        if !std::mem::replace(&mut is_told, true) {
            tracing::warn!(%error, server, "the server cannot be reached; trying again until it can");
        }
        tokio::time::sleep(TRY_AGAIN * 4).await;
    }
}

/// Logs once that the server is away, and that it is back. Notifies `refused` if the server refuses
/// the worker.
fn note(event: &Event, is_away: &AtomicBool, refused: &Notify) {
    match event {
        // The library reports a refusal when it tries to reconnect.
        event if is_refusal(event) => refused.notify_one(),
        Event::Connected if is_away.swap(false, Ordering::Relaxed) => tracing::info!("the server is back"),
        Event::Disconnected if !is_away.swap(true, Ordering::Relaxed) => {
            tracing::warn!("the server is away; trying again until it is back");
        }
        other => tracing::debug!(event = %other, "the server"),
    }
}

/// Runs one device. Returns when it has failed.
async fn work(client: Client, id: RemoteId, session: u64, searcher: Box<dyn Searcher>) {
    let info = searcher.info().clone();
    let hello = Hello {
        version: VERSION,
        program: Hello::text(env!("CARGO_PKG_VERSION")),
        session,
        name: Hello::text(&info.name),
        kernel: Hello::text(&info.kernel),
        threads: info.threads as u32,
        starts: searcher.starts() as u32,
    };
    let (orders, mut received) = mpsc::channel(orders::MOST_WAITING);
    let (answers, mut sent) = mpsc::channel(ANSWERS);
    let name = format!("{} as {id}", info.id);
    let at_work = std::thread::Builder::new().name(name).spawn(move || {
        let mut searcher = searcher;
        if let Err(error) = orders::serve(searcher.as_mut(), &mut received, &answers) {
            tracing::error!(%error, "a device has failed");
        }
    });
    if let Err(error) = at_work {
        tracing::error!(%error, "the system starts no thread");
        return;
    }
    let answering = async {
        while let Some(answer) = sent.recv().await {
            if client.publish(subjects::answers(id), answer.into()).await.is_err() {
                return;
            }
        }
    };
    tokio::select! {
        // Ends when the device's thread, which holds the other side, has ended.
        () = answering => {}
        () = greet(&client, id, &hello) => {}
        () = echo(&client, id) => {}
        () = fetch(&client, id, orders) => {}
    }
}

/// Answers pings, without waiting for orders.
async fn echo(client: &Client, id: RemoteId) {
    let Ok(mut pings) = client.subscribe(subjects::pings(id)).await else { return };
    while let Some(message) = pings.next().await {
        let Ok(Ping { number }) = Ping::read(&message.payload) else { continue };
        let Ok(bytes) = encode(&FromWorker::Pong { number, clock: unix_millis() }) else { continue };
        if client.publish(subjects::answers(id), bytes.into()).await.is_err() {
            return;
        }
    }
}

/// Repeats the hello.
async fn greet(client: &Client, id: RemoteId, hello: &Hello) {
    let Ok(bytes) = encode(hello) else { return };
    let mut often = tokio::time::interval(HELLO_EVERY);
    often.set_missed_tick_behavior(tokio::time::MissedTickBehavior::Delay);
    loop {
        often.tick().await;
        if client.publish(subjects::hello(id), bytes.clone().into()).await.is_err() {
            return;
        }
    }
}

/// Fetches orders as fast as the device takes them. Returns when the device takes no more.
async fn fetch(client: &Client, id: RemoteId, orders: mpsc::Sender<Vec<u8>>) {
    let jetstream = jetstream::with_prefix(client.clone(), subjects::API);
    let (stream, consumer) = (subjects::stream(id.worker), subjects::consumer(id));
    loop {
        // The bot makes stream and consumer when it reads a hello.
        if let Ok(consumer) = jetstream.get_consumer_from_stream(&consumer, &stream).await {
            let consumer: PullConsumer = consumer;
            let builder = consumer.stream().max_messages_per_batch(FETCHED).expires(FETCH.0).heartbeat(FETCH.1);
            let Ok(mut messages) = builder.messages().await else {
                tokio::time::sleep(TRY_AGAIN).await;
                continue;
            };
            while let Some(Ok(message)) = messages.next().await {
                if orders.send(message.payload.to_vec()).await.is_err() {
                    return;
                }
            }
        }
        tokio::time::sleep(TRY_AGAIN).await;
    }
}
