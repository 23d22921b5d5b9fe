//! The worker: connects to the server of a bot and carries out its orders.

use super::credentials::{Credentials, is_other_server, is_refusal};
use super::received_sets::{ChangePart, ReceivedSets};
use super::session::{ANSWER_TIMEOUT, unix_millis};
use super::subjects;
use super::wire::{Answer, Found, FromWorker, Hello, Hit, MOST_HITS, Ping, Refusal, ToWorker, VERSION, encode};
use async_nats::jetstream::{self, consumer::PullConsumer};
use async_nats::{Client, ConnectErrorKind, Event};
use futures_util::StreamExt;
use npubbot_miner::key::StartPoint;
use npubbot_miner::pattern::PatternSet;
use npubbot_miner::search::{Launch, LaunchReport, MOST_DEVICES, NoName, RemoteId, SearchError, Searcher};
use std::collections::VecDeque;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};
use thiserror::Error;
use tokio::sync::mpsc::error::TryRecvError;
use tokio::sync::mpsc::{Receiver, Sender};
use tokio::sync::{Notify, mpsc};
use tokio::task::JoinSet;

/// Time between two hellos.
const HELLO_EVERY: Duration = Duration::from_secs(2);
/// Pause before a failed attempt is repeated.
const TRY_AGAIN: Duration = Duration::from_millis(500);
/// The most orders fetched at once. The bot sends orders for a second ahead.
const FETCHED: usize = 32;
/// Time that a fetch waits for orders, and time between two signs of life of the server meanwhile.
const FETCH: (Duration, Duration) = (Duration::from_secs(10), Duration::from_secs(2));
/// The most answers that wait to be sent.
const ANSWERS: usize = 16;
/// The most orders that a device keeps. The bot sends orders for a second ahead.
const MOST_WAITING: usize = 128;

/// Why a worker cannot work.
#[derive(Debug, Error)]
pub enum WorkerError {
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

/// Works for the bot of this server until `stopped`. If the server is away, it tries again without
/// end.
///
/// Errors: [`WorkerError`] if the server refuses the credentials, or every device fails.
pub async fn run_worker(
    server: &str,
    credentials: Credentials,
    devices: Vec<Box<dyn Searcher>>,
    stopped: impl Future<Output = ()>,
) -> Result<(), WorkerError> {
    let user = credentials.user().to_owned();
    let worker = user.parse().map_err(|error| WorkerError::NoWorker { user, error })?;
    let session = getrandom::u64().map_err(WorkerError::NoRandomness)?;
    let refused = Arc::new(Notify::new());
    let mut stopped = std::pin::pin!(stopped);
    let client = tokio::select! {
        client = connect(server, &credentials, &refused) => client?,
        () = &mut stopped => return Ok(()),
    };
    let mut running = JoinSet::new();
    for (number, searcher) in devices.into_iter().take(usize::from(MOST_DEVICES)).enumerate() {
        let id = RemoteId { worker, device: number as u8 };
        running.spawn(work(client.clone(), id, session, searcher));
    }
    let all_failed = async { while running.join_next().await.is_some() {} };
    tokio::select! {
        () = stopped => Ok(()),
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
    let (orders, mut received) = mpsc::channel(MOST_WAITING);
    let (answers, mut sent) = mpsc::channel(ANSWERS);
    let name = format!("{} as {id}", info.id);
    let at_work = std::thread::Builder::new().name(name).spawn(move || {
        let mut searcher = searcher;
        if let Err(error) = serve(searcher.as_mut(), &mut received, &answers) {
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
    // Without pings the device works too.
    std::future::pending().await
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

/// An order that waits for the device.
struct QueuedOrder {
    order: u64,
    patterns: Arc<PatternSet>,
    starts: Vec<StartPoint>,
    came: Instant,
}

/// A device at work.
struct Device<'a> {
    searcher: &'a mut dyn Searcher,
    answers: &'a Sender<Vec<u8>>,
    sets: ReceivedSets,
    waiting: VecDeque<QueuedOrder>,
    /// The orders that the device searches.
    in_flight: VecDeque<u64>,
}

/// Carries out orders until the channel of messages is closed.
///
/// Errors: the device failed. The answer to the order says so.
fn serve(
    searcher: &mut dyn Searcher,
    messages: &mut Receiver<Vec<u8>>,
    answers: &Sender<Vec<u8>>,
) -> Result<(), SearchError> {
    let (sets, waiting, in_flight) = (ReceivedSets::default(), VecDeque::new(), VecDeque::new());
    let mut device = Device { searcher, answers, sets, waiting, in_flight };
    loop {
        while device.waiting.len() < MOST_WAITING {
            match messages.try_recv() {
                Ok(message) => device.hear(&message),
                Err(TryRecvError::Empty) => break,
                Err(TryRecvError::Disconnected) => return Ok(()),
            }
        }
        if device.in_flight.len() < device.searcher.in_flight().max(1)
            && let Some(order) = device.waiting.pop_front()
        {
            device.begin(order);
        } else if !device.in_flight.is_empty() {
            device.collect()?;
        } else {
            match messages.blocking_recv() {
                Some(message) => device.hear(&message),
                None => return Ok(()),
            }
        }
    }
}

impl Device<'_> {
    fn hear(&mut self, message: &[u8]) {
        match ToWorker::read(message) {
            Ok(ToWorker::Patterns { set, generation, base, is_first, is_last, removed, added, forgotten }) => {
                self.sets.take(ChangePart { set, generation, base, is_first, is_last, removed, added, forgotten });
            }
            Ok(ToWorker::Order { order, set, generation, starts }) => {
                let came = Instant::now();
                match self.sets.get(set, generation) {
                    _ if starts.len() != self.searcher.starts() => self.refuse(order, Refusal::Starts),
                    Some(patterns) => self.waiting.push_back(QueuedOrder { order, patterns, starts, came }),
                    None => self.refuse(order, Refusal::Patterns),
                }
            }
            Err(error) => tracing::warn!(%error, "a message of the bot cannot be read; do both run the same npubbot?"),
        }
    }

    fn begin(&mut self, order: QueuedOrder) {
        let QueuedOrder { order, patterns, starts, came } = order;
        if came.elapsed() > ANSWER_TIMEOUT {
            // The bot no longer waits for this order.
            return;
        }
        match self.searcher.submit(Launch { starts, patterns, remaining: None }) {
            Ok(()) => self.in_flight.push_back(order),
            Err(error) => {
                tracing::error!(%error, "the device takes no launch");
                self.refuse(order, Refusal::Device);
            }
        }
    }

    fn collect(&mut self) -> Result<(), SearchError> {
        let collected = self.searcher.collect();
        let order = self.in_flight.pop_front().unwrap_or_default();
        let failure = collected.as_ref().err().map(SearchError::to_string);
        self.answer(order, collected.as_ref().map(found).map_err(|_| Refusal::Device));
        match failure {
            Some(reason) => Err(SearchError::DeviceFailed { device: self.searcher.info().id, reason }),
            None => Ok(()),
        }
    }

    fn refuse(&self, order: u64, refusal: Refusal) {
        self.answer(order, Err(refusal));
    }

    fn answer(&self, order: u64, result: Result<Found, Refusal>) {
        if let Ok(bytes) = encode(&FromWorker::Answer(Answer { order, result })) {
            // If nobody takes the answers, the worker is about to end.
            let _ = self.answers.blocking_send(bytes);
        }
    }
}

/// Turns a report into an answer. Of too many hits it keeps the first [`MOST_HITS`], and claims
/// only a part of the candidates in the same proportion.
fn found(report: &LaunchReport) -> Found {
    let all = report.hits.len().max(1);
    let kept = all.min(MOST_HITS);
    Found {
        candidates: (report.candidates as f64 * kept as f64 / all as f64) as u64,
        busy_micros: report.busy.as_micros().try_into().unwrap_or(u64::MAX),
        hits: report.hits.iter().take(MOST_HITS).map(|hit| Hit::new(hit.start, hit.tweak)).collect(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use npubbot_miner::key::{Offset, Rotation, Tweak, VerifiedHit};
    use npubbot_miner::search::ClaimedHit;
    use npubbot_miner::search::cpu::{CpuSearcher, KernelChoice};
    use secp256k1::{PublicKey, SECP256K1, SecretKey};
    use tokio::sync::mpsc::channel;

    fn start(byte: u8) -> StartPoint {
        StartPoint::new(PublicKey::from_secret_key(SECP256K1, &SecretKey::from_slice(&[byte; 32]).unwrap()))
    }

    /// The answers of a single-threaded device to these messages.
    fn answers(messages: &[ToWorker]) -> Vec<Answer> {
        let (orders, mut received) = channel(64);
        let (answers, mut sent) = channel(64);
        for message in messages {
            orders.blocking_send(encode(message).unwrap()).unwrap();
        }
        let mut searcher = CpuSearcher::open(Some(1), KernelChoice::Portable).unwrap();
        let device = std::thread::spawn(move || serve(&mut searcher, &mut received, &answers).unwrap());
        let wanted = messages.iter().filter(|message| matches!(message, ToWorker::Order { .. })).count();
        let read = |bytes: Vec<u8>| match FromWorker::read(&bytes).unwrap() {
            FromWorker::Answer(answer) => answer,
            FromWorker::Pong { .. } => panic!("nobody pinged"),
        };
        let all = (0..wanted).map(|_| read(sent.blocking_recv().unwrap())).collect();
        drop(orders);
        device.join().unwrap();
        all
    }

    fn set(generation: u64, base: Option<u64>, removed: &[&str], added: &[&str]) -> ToWorker {
        let owned = |texts: &[&str]| texts.iter().map(|&text| text.to_owned()).collect();
        let (removed, added) = (owned(removed), owned(added));
        ToWorker::Patterns {
            set: 2,
            generation,
            base,
            is_first: true,
            is_last: true,
            removed,
            added,
            forgotten: Vec::new(),
        }
    }

    fn order(order: u64, generation: u64, starts: Vec<StartPoint>) -> ToWorker {
        ToWorker::Order { order, set: 2, generation, starts }
    }

    /// Number of hits of an answer whose npub begins with `prefix`.
    fn begins_with(answer: &Answer, start: StartPoint, prefix: &str) -> usize {
        let npub = |hit: &Hit| VerifiedHit::recompute(start, hit.tweak()).unwrap().npub().to_string();
        let found = answer.result.clone().unwrap();
        found.hits.iter().filter(|hit| npub(hit)[5..].starts_with(prefix)).count()
    }

    #[test]
    fn an_order_is_searched_for_the_patterns_of_its_set() {
        let messages = [
            set(7, None, &[], &["qq", "zz"]),
            order(1, 7, vec![start(3)]),
            set(8, Some(7), &["zz"], &["pp"]),
            order(2, 8, vec![start(3)]),
        ];
        let answers = answers(&messages);
        for (answer, expected) in answers.iter().zip([[true, true, false], [true, false, true]]) {
            let is_found = ["qq", "zz", "pp"].map(|prefix| begins_with(answer, start(3), prefix) > 0);
            assert_eq!(is_found, expected);
            assert!(answer.result.as_ref().unwrap().candidates > 3000);
        }
    }

    #[test]
    fn an_order_that_nobody_waits_for_any_more_is_not_searched() {
        let (answers, _sent) = channel(64);
        let mut searcher = CpuSearcher::open(Some(1), KernelChoice::Portable).unwrap();
        let (sets, waiting, in_flight) = (ReceivedSets::default(), VecDeque::new(), VecDeque::new());
        let mut device = Device { searcher: &mut searcher, answers: &answers, sets, waiting, in_flight };
        device.hear(&encode(&set(7, None, &[], &["qq"])).unwrap());
        for (late, searched) in [(Duration::from_millis(1), 0), (Duration::ZERO, 1)] {
            device.hear(&encode(&order(1, 7, vec![start(3)])).unwrap());
            let mut waiting = device.waiting.pop_front().unwrap();
            waiting.came = Instant::now() - ANSWER_TIMEOUT * u32::from(!late.is_zero()) - late;
            device.begin(waiting);
            assert_eq!(device.in_flight.len(), searched, "{late:?}");
        }
    }

    #[test]
    fn an_order_that_cannot_be_searched_is_refused() {
        let messages = [
            order(1, 7, vec![start(3)]),
            set(7, None, &[], &["qq"]),
            order(2, 8, vec![start(3)]),
            order(3, 7, vec![start(3), start(4)]),
            set(8, None, &[], &["qq", "i"]),
            order(4, 8, vec![start(3)]),
            set(10, Some(9), &[], &["zz"]),
            order(5, 10, vec![start(3)]),
            set(11, None, &[], &[]),
            order(6, 11, vec![start(3)]),
        ];
        let refused = |answer: Answer| (answer.order, answer.result.map(drop).unwrap_err());
        let results: Vec<_> = answers(&messages).into_iter().map(refused).collect();
        let patterns = |order| (order, Refusal::Patterns);
        assert_eq!(results, [patterns(1), patterns(2), (3, Refusal::Starts), patterns(4), patterns(5), patterns(6)]);
    }

    #[test]
    fn of_too_many_hits_candidates_are_claimed_in_proportion() {
        let tweak = Tweak { offset: Offset::of_point(1, 1, Rotation::ALL[0]), rotation: Rotation::ALL[0] };
        let hits = vec![ClaimedHit { start: 0, tweak }; 4 * MOST_HITS];
        let answer = found(&LaunchReport { candidates: 4_000_000, hits, ..LaunchReport::default() });
        assert_eq!((answer.candidates, answer.hits.len()), (1_000_000, MOST_HITS));
        assert_eq!(found(&LaunchReport { candidates: 5, ..LaunchReport::default() }).candidates, 5);
    }
}
