//! Runs a worker's device: takes orders from one channel, and puts answers into another.

use super::known::{Known, Part, SharedSet};
use super::session::PATIENCE;
use super::wire::{Answer, Found, FromWorker, Hit, MOST_HITS, Refusal, ToWorker, encode};
use crate::key::StartPoint;
use crate::pattern::Pattern;
use crate::search::SearchError;
use crate::search::{Launch, LaunchReport, Searcher};
use std::collections::VecDeque;
use std::sync::Arc;
use std::time::Instant;
use tokio::sync::mpsc::error::TryRecvError;
use tokio::sync::mpsc::{Receiver, Sender};

/// The most orders that a device keeps. The bot sends orders for at most two seconds ahead.
pub const MOST_WAITING: usize = 128;

/// An order that waits for the device.
struct Waiting {
    order: u64,
    set: SharedSet,
    own: Vec<Pattern>,
    starts: Vec<StartPoint>,
    came: Instant,
}

/// A device at work.
struct Device<'a> {
    searcher: &'a mut dyn Searcher,
    answers: &'a Sender<Vec<u8>>,
    known: Known,
    waiting: VecDeque<Waiting>,
    /// The orders that the device searches, each with the number of the set that it is searched
    /// with.
    in_flight: VecDeque<(u64, u64)>,
}

/// Carries out orders until the channel of messages is closed.
///
/// Errors: the device failed. The answer to the order says so.
pub fn serve(
    searcher: &mut dyn Searcher,
    messages: &mut Receiver<Vec<u8>>,
    answers: &Sender<Vec<u8>>,
) -> Result<(), SearchError> {
    let (known, waiting, in_flight) = (Known::default(), VecDeque::new(), VecDeque::new());
    let mut device = Device { searcher, answers, known, waiting, in_flight };
    loop {
        // Reads all messages before it starts an order, because a change of a set also applies to
        // waiting orders.
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
            Ok(ToWorker::Patterns { set, generation, base, is_first, is_last, removed, added }) => {
                self.known.take(Part { set, generation, base, is_first, is_last, removed, added });
            }
            Ok(ToWorker::Order { order, set, generation, own, starts }) => {
                let own: Option<Vec<Pattern>> = own.iter().map(|text| text.parse().ok()).collect();
                let came = Instant::now();
                match self.known.get(set, generation).zip(own) {
                    _ if starts.len() != self.searcher.starts() => self.refuse(order, Refusal::Starts),
                    Some((set, own)) => self.waiting.push_back(Waiting { order, set, own, starts, came }),
                    None => self.refuse(order, Refusal::Patterns),
                }
            }
            Err(error) => tracing::warn!(%error, "a message of the bot cannot be read; do both run the same npubbot?"),
        }
    }

    fn begin(&mut self, waiting: Waiting) {
        let Waiting { order, set, own, starts, came } = waiting;
        if came.elapsed() > PATIENCE {
            // The bot no longer waits for this order.
            return;
        }
        let set = set.borrow();
        let Some(patterns) = set.with(&own).map(Arc::new) else { return self.refuse(order, Refusal::Patterns) };
        match self.searcher.submit(Launch { starts, patterns, remaining: None }) {
            Ok(()) => self.in_flight.push_back((order, set.generation())),
            Err(error) => {
                tracing::error!(%error, "the device takes no launch");
                self.refuse(order, Refusal::Device);
            }
        }
    }

    fn collect(&mut self) -> Result<(), SearchError> {
        let collected = self.searcher.collect();
        let (order, generation) = self.in_flight.pop_front().unwrap_or_default();
        let failure = collected.as_ref().err().map(SearchError::to_string);
        self.say(order, collected.map(|report| found(generation, report)).map_err(|_| Refusal::Device));
        match failure {
            Some(reason) => Err(SearchError::DeviceFailed { device: self.searcher.info().id, reason }),
            None => Ok(()),
        }
    }

    fn refuse(&self, order: u64, refusal: Refusal) {
        self.say(order, Err(refusal));
    }

    fn say(&self, order: u64, result: Result<Found, Refusal>) {
        if let Ok(bytes) = encode(&FromWorker::Answer(Answer { order, result })) {
            // If nobody takes the answers, the worker is about to end.
            let _ = self.answers.blocking_send(bytes);
        }
    }
}

/// Turns a report into an answer. Of too many hits it keeps the first [`MOST_HITS`], and claims
/// only a part of the candidates in the same proportion.
fn found(generation: u64, report: LaunchReport) -> Found {
    let all = report.hits.len().max(1);
    let kept = all.min(MOST_HITS);
    Found {
        generation,
        candidates: (report.candidates as f64 * kept as f64 / all as f64) as u64,
        busy_micros: report.busy.as_micros().try_into().unwrap_or(u64::MAX),
        hits: report.hits.iter().take(MOST_HITS).map(|hit| Hit::new(hit.start, hit.tweak)).collect(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::key::VerifiedHit;
    use crate::search::cpu::{CpuSearcher, KernelChoice};
    use secp256k1::{PublicKey, SECP256K1, SecretKey};
    use std::time::Duration;
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
        ToWorker::Patterns { set: 2, generation, base, is_first: true, is_last: true, removed, added }
    }

    fn order(order: u64, generation: u64, own: &[&str], starts: Vec<StartPoint>) -> ToWorker {
        let own = own.iter().map(|&text| text.to_owned()).collect();
        ToWorker::Order { order, set: 2, generation, own, starts }
    }

    /// Number of hits of an answer whose npub begins with `prefix`.
    fn begins_with(answer: &Answer, start: StartPoint, prefix: &str) -> usize {
        let npub = |hit: &Hit| VerifiedHit::recompute(start, hit.tweak()).unwrap().npub().to_string();
        let found = answer.result.clone().unwrap();
        found.hits.iter().filter(|hit| npub(hit)[5..].starts_with(prefix)).count()
    }

    #[test]
    fn an_order_is_searched_for_its_set_and_for_its_own_patterns() {
        let first = set(7, None, &[], &["qq"]);
        let messages = [first, set(8, Some(7), &[], &["pp"]), order(1, 8, &["zz"], vec![start(3)])];
        let answer = &answers(&messages)[0];
        for prefix in ["qq", "pp", "zz"] {
            assert!(begins_with(answer, start(3), prefix) > 0, "{prefix}");
        }
        let found = answer.result.clone().unwrap();
        assert!(found.candidates > 3000 && found.generation == 8);
    }

    #[test]
    fn orders_that_wait_are_searched_for_what_has_come_since() {
        let mut messages = vec![set(7, None, &[], &["qq"])];
        messages.extend((1..4).map(|number| order(number, 7, &["zz"], vec![start(3)])));
        messages.push(set(8, Some(7), &["qq"], &["pp"]));
        // Waiting orders do not use the set of another line in that place.
        messages.push(set(9, None, &[], &["rr"]));
        let answers = answers(&messages);
        for answer in &answers {
            assert_eq!(answer.result.as_ref().unwrap().generation, 8);
            let counts = ["qq", "pp", "zz", "rr"].map(|prefix| begins_with(answer, start(3), prefix) > 0);
            assert_eq!(counts, [false, true, true, false]);
        }
    }

    #[test]
    fn an_order_that_nobody_waits_for_any_more_is_not_searched() {
        let (answers, _sent) = channel(64);
        let mut searcher = CpuSearcher::open(Some(1), KernelChoice::Portable).unwrap();
        let (known, waiting, in_flight) = (Known::default(), VecDeque::new(), VecDeque::new());
        let mut device = Device { searcher: &mut searcher, answers: &answers, known, waiting, in_flight };
        device.hear(&encode(&set(7, None, &[], &["qq"])).unwrap());
        for (late, searched) in [(Duration::from_millis(1), 0), (Duration::ZERO, 1)] {
            device.hear(&encode(&order(1, 7, &["zz"], vec![start(3)])).unwrap());
            let mut waiting = device.waiting.pop_front().unwrap();
            waiting.came = Instant::now() - PATIENCE * u32::from(!late.is_zero()) - late;
            device.begin(waiting);
            assert_eq!(device.in_flight.len(), searched, "{late:?}");
        }
    }

    #[test]
    fn an_order_that_cannot_be_searched_is_refused() {
        let messages = [
            order(1, 7, &["zz"], vec![start(3)]),
            set(7, None, &[], &["qq"]),
            order(2, 8, &["zz"], vec![start(3)]),
            order(3, 7, &["zz"], vec![start(3), start(4)]),
            order(4, 7, &["b"], vec![start(3)]),
            set(8, None, &[], &["qq", "i"]),
            order(5, 8, &["zz"], vec![start(3)]),
            set(10, Some(9), &[], &["zz"]),
            order(6, 10, &["zz"], vec![start(3)]),
        ];
        let refused = |answer: Answer| (answer.order, answer.result.map(drop).unwrap_err());
        let results: Vec<_> = answers(&messages).into_iter().map(refused).collect();
        let patterns = |order| (order, Refusal::Patterns);
        assert_eq!(results, [patterns(1), patterns(2), (3, Refusal::Starts), patterns(4), patterns(5), patterns(6)]);
        let none = set(9, None, &[], &[]);
        let messages = [none.clone(), order(6, 9, &[], vec![start(3)]), none, order(7, 9, &["zz"], vec![start(3)])];
        let results: Vec<_> = answers(&messages).into_iter().map(|answer| answer.result.map(drop)).collect();
        assert_eq!(results, [Err(Refusal::Patterns), Ok(())]);
    }

    #[test]
    fn of_too_many_hits_candidates_are_claimed_in_proportion() {
        let tweak = crate::key::Tweak {
            offset: crate::key::Offset::of_point(1, 1, crate::key::Rotation::ALL[0]),
            rotation: crate::key::Rotation::ALL[0],
        };
        let hits = vec![crate::search::ClaimedHit { start: 0, tweak }; 4 * MOST_HITS];
        let answer = found(3, LaunchReport { candidates: 4_000_000, hits, ..LaunchReport::default() });
        assert_eq!((answer.candidates, answer.hits.len()), (1_000_000, MOST_HITS));
        assert_eq!(found(3, LaunchReport { candidates: 5, ..LaunchReport::default() }).candidates, 5);
    }
}
