//! The worker: connects to the server of a bot and carries out its orders.

use super::credentials::{Credentials, is_other_server, is_refusal};
use super::session::ANSWER_TIMEOUT;
use super::wire::{Hello, MAX_HITS, VERSION};
use super::{FleetError, subjects};
use async_nats::jetstream::{self, consumer::PullConsumer};
use async_nats::{Client, ConnectErrorKind, Event};
use futures_util::StreamExt;
use npubbot_miner::search::orders::{Answer, ReceivedOrder, ReceivedSets, ToDevice, carry_out, encode, text};
use npubbot_miner::search::{MAX_DEVICES, NoName, RemoteId, SearchError, Searcher};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::TryRecvError;
use std::time::{Duration, Instant};
use tokio::sync::mpsc::error::TryRecvError as NotReceived;
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
const MAX_WAITING: usize = 128;

/// Works for the bot of this server until `stopped`. If the server is away, it tries again without
/// end.
///
/// Errors: the server refuses the credentials, or every device fails.
pub async fn run_worker(
    server: &str,
    credentials: Credentials,
    devices: Vec<Box<dyn Searcher>>,
    stopped: impl Future<Output = ()>,
) -> Result<(), FleetError> {
    let user = credentials.user();
    let no_worker = |error: NoName| {
        FleetError::Refused(format!("these are the credentials of `{user}`, which is not a worker: {error}"))
    };
    let worker = user.parse().map_err(no_worker)?;
    let no_randomness = |error| FleetError::Failed(format!("the system gives no randomness ({error})"));
    let session = getrandom::u64().map_err(no_randomness)?;
    let refused = Arc::new(Notify::new());
    let mut stopped = std::pin::pin!(stopped);
    let client = tokio::select! {
        client = connect(server, &credentials, &refused) => client?,
        () = &mut stopped => return Ok(()),
    };
    let mut running = JoinSet::new();
    for (number, searcher) in devices.into_iter().take(usize::from(MAX_DEVICES)).enumerate() {
        let id = RemoteId { worker, device: number as u8 };
        running.spawn(work(client.clone(), id, session, searcher));
    }
    let all_failed = async { while running.join_next().await.is_some() {} };
    tokio::select! {
        () = stopped => Ok(()),
        () = all_failed => Err(FleetError::Failed("every device has failed; the log has the reasons".to_owned())),
        () = refused.notified() => Err(refusal(server, "its credentials were revoked")),
    }
}

/// The error of a worker that its server does not take.
fn refusal(server: &str, reason: &str) -> FleetError {
    FleetError::Refused(format!(
        "the server {server} refuses this worker, or is another one ({reason}); ask its operator for new credentials"
    ))
}

/// Connects to the server. Tries again while the server cannot be reached, but not if it refuses
/// the worker.
///
/// `refused` is notified when the server refuses a later connection.
async fn connect(server: &str, credentials: &Credentials, refused: &Arc<Notify>) -> Result<Client, FleetError> {
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
            return Err(refusal(server, "its certificate is not the one in the credentials"));
        }
        if refuses.contains(&error.kind()) {
            return Err(refusal(server, &error.to_string()));
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
        program: text(env!("CARGO_PKG_VERSION")),
        session,
        name: text(&info.name),
        kernel: text(&info.kernel),
        threads: info.threads as u32,
        starts: searcher.starts() as u32,
    };
    let (orders, mut received) = mpsc::channel(MAX_WAITING);
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
        () = fetch(&client, id, orders) => {}
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
async fn fetch(client: &Client, id: RemoteId, orders: mpsc::Sender<ReceivedMessage>) {
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
                if orders.send((Instant::now(), message.payload.to_vec())).await.is_err() {
                    return;
                }
            }
        }
        tokio::time::sleep(TRY_AGAIN).await;
    }
}

/// A message from the bot, and when it came.
type ReceivedMessage = (Instant, Vec<u8>);

/// Carries out orders until the channel of messages is closed.
///
/// Errors: the device failed. The answer to the order says so.
fn serve(
    searcher: &mut dyn Searcher,
    messages: &mut Receiver<ReceivedMessage>,
    answers: &Sender<Vec<u8>>,
) -> Result<(), SearchError> {
    let mut sets = ReceivedSets::default();
    let next = |wait| loop {
        let (came, message) = match messages.try_recv() {
            Ok(message) => message,
            Err(NotReceived::Empty) if wait => messages.blocking_recv().ok_or(TryRecvError::Disconnected)?,
            Err(NotReceived::Empty) => return Err(TryRecvError::Empty),
            Err(NotReceived::Disconnected) => return Err(TryRecvError::Disconnected),
        };
        if let Some(order) = hear(&mut sets, &message, came.elapsed()) {
            return Ok(order);
        }
    };
    carry_out(searcher, next, |answer| {
        let answer = Answer { result: answer.result.map(|report| report.reduced(MAX_HITS)), ..answer };
        if let Ok(bytes) = encode(&answer) {
            // If nobody takes the answers, the worker is about to end.
            let _ = answers.blocking_send(bytes);
        }
    })
}

/// Takes a message that has waited for `age`. Returns the order, if it is one that the bot still
/// waits for.
fn hear(sets: &mut ReceivedSets, message: &[u8], age: Duration) -> Option<ReceivedOrder> {
    match ToDevice::read(message) {
        Ok(message) => sets.receive(message).filter(|_| age <= ANSWER_TIMEOUT),
        Err(error) => {
            tracing::warn!(%error, "a message of the bot cannot be read; do both run the same npubbot?");
            None
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::wire::LARGEST_ANSWER;
    use npubbot_miner::key::{StartPoint, VerifiedHit};
    use npubbot_miner::search::ClaimedHit;
    use npubbot_miner::search::cpu::{CpuSearcher, KernelChoice};
    use npubbot_miner::search::orders::{PatternChange, Refusal, decode};
    use secp256k1::{PublicKey, SECP256K1, SecretKey};
    use tokio::sync::mpsc::channel;

    fn start(byte: u8) -> StartPoint {
        StartPoint::new(PublicKey::from_secret_key(SECP256K1, &SecretKey::from_slice(&[byte; 32]).unwrap()))
    }

    /// The answers of a single-threaded device to these messages.
    fn answers(messages: &[ToDevice]) -> Vec<Answer> {
        let (orders, mut received) = channel(64);
        let (answers, mut sent) = channel(64);
        for message in messages {
            orders.blocking_send((Instant::now(), encode(message).unwrap())).unwrap();
        }
        let mut searcher = CpuSearcher::open(Some(1), KernelChoice::Portable).unwrap();
        let device = std::thread::spawn(move || serve(&mut searcher, &mut received, &answers).unwrap());
        let wanted = messages.iter().filter(|message| matches!(message, ToDevice::Order { .. })).count();
        let all = (0..wanted).map(|_| decode(&sent.blocking_recv().unwrap(), LARGEST_ANSWER).unwrap()).collect();
        drop(orders);
        device.join().unwrap();
        all
    }

    fn set(set: u64, base: Option<u64>, removed: &[&str], added: &[&str]) -> ToDevice {
        let owned = |texts: &[&str]| texts.iter().map(|&text| text.to_owned()).collect();
        let (removed, added) = (owned(removed), owned(added));
        let (is_first, is_last, forgotten, is_only) = (true, true, Vec::new(), false);
        ToDevice::Patterns(PatternChange { set, base, is_first, is_last, removed, added, forgotten, is_only })
    }

    fn order(order: u64, set: u64, starts: Vec<StartPoint>) -> ToDevice {
        ToDevice::Order { order, set, starts }
    }

    /// Number of hits of an answer whose npub begins with `prefix`.
    fn begins_with(answer: &Answer, start: StartPoint, prefix: &str) -> usize {
        let npub = |hit: &ClaimedHit| VerifiedHit::recompute(start, hit.tweak).unwrap().npub().to_string();
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
        let mut sets = ReceivedSets::default();
        hear(&mut sets, &encode(&set(7, None, &[], &["qq"])).unwrap(), Duration::ZERO);
        let order = encode(&order(1, 7, vec![start(3)])).unwrap();
        assert!(hear(&mut sets, &order, ANSWER_TIMEOUT).is_some());
        assert!(hear(&mut sets, &order, ANSWER_TIMEOUT + Duration::from_millis(1)).is_none());
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
}
