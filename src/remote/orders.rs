//! A worker's device at work: takes orders from a channel, and puts answers into another.

use super::wire::{Answer, Found, FromWorker, Hit, MOST_HITS, Refusal, ToWorker, encode};
use crate::key::StartPoint;
use crate::pattern::{Pattern, PatternSet};
use crate::search::SearchError;
use crate::search::{Launch, LaunchReport, Searcher};
use std::collections::VecDeque;
use std::sync::Arc;
use tokio::sync::mpsc::error::TryRecvError;
use tokio::sync::mpsc::{Receiver, Sender};

/// Patterns of a set at most, so that a bot cannot fill the memory of a worker.
const MOST_PATTERNS: usize = 1 << 20;

/// The sets of patterns that a device has been sent: the newest only.
#[derive(Default)]
struct Known {
    generation: Option<u64>,
    patterns: Vec<Pattern>,
    /// Whether all of them are patterns, and not too many.
    is_usable: bool,
}

impl Known {
    fn take(&mut self, generation: u64, is_first: bool, texts: &[String]) {
        if is_first {
            *self = Known { generation: Some(generation), patterns: Vec::new(), is_usable: true };
        }
        if self.generation != Some(generation) || self.patterns.len() + texts.len() > MOST_PATTERNS {
            self.is_usable = false;
            return;
        }
        for text in texts {
            match text.parse() {
                Ok(pattern) => self.patterns.push(pattern),
                Err(_) => self.is_usable = false,
            }
        }
    }

    /// The set with this number and these patterns besides.
    fn with(&self, generation: u64, own: &[String]) -> Option<PatternSet> {
        let mut patterns: Vec<Pattern> = own.iter().map(|text| text.parse().ok()).collect::<Option<_>>()?;
        if !self.is_usable || self.generation != Some(generation) {
            return None;
        }
        patterns.extend(self.patterns.iter().cloned());
        (!patterns.is_empty()).then(|| PatternSet::new(patterns))
    }
}

/// Searches what is ordered, until the channel of messages is closed.
///
/// Errors: the device failed. The order at hand is answered with that.
pub fn serve(
    searcher: &mut dyn Searcher,
    messages: &mut Receiver<Vec<u8>>,
    answers: &Sender<Vec<u8>>,
) -> Result<(), SearchError> {
    let mut known = Known::default();
    let mut in_flight: VecDeque<u64> = VecDeque::new();
    loop {
        let message = if in_flight.is_empty() {
            match messages.blocking_recv() {
                Some(message) => Some(message),
                None => return Ok(()),
            }
        } else if in_flight.len() < searcher.in_flight().max(1) {
            match messages.try_recv() {
                Ok(message) => Some(message),
                Err(TryRecvError::Empty) => None,
                Err(TryRecvError::Disconnected) => return Ok(()),
            }
        } else {
            None
        };
        let Some(message) = message else {
            let collected = searcher.collect();
            let order = in_flight.pop_front().unwrap_or_default();
            let failure = collected.as_ref().err().map(SearchError::to_string);
            say(answers, order, collected.map(found).map_err(|_| Refusal::Device));
            if let Some(reason) = failure {
                let device = searcher.info().id;
                return Err(SearchError::DeviceFailed { device, reason });
            }
            continue;
        };
        match ToWorker::read(&message) {
            Ok(ToWorker::Patterns { generation, is_first, patterns }) => known.take(generation, is_first, &patterns),
            Ok(ToWorker::Order { order, generation, own, starts }) => {
                match begin(searcher, &known, generation, &own, starts) {
                    Ok(()) => in_flight.push_back(order),
                    Err(refusal) => say(answers, order, Err(refusal)),
                }
            }
            Err(error) => tracing::warn!(%error, "a message of the bot cannot be read; do both run the same npubbot?"),
        }
    }
}

fn begin(
    searcher: &mut dyn Searcher,
    known: &Known,
    generation: u64,
    own: &[String],
    starts: Vec<StartPoint>,
) -> Result<(), Refusal> {
    if starts.len() != searcher.starts() {
        return Err(Refusal::Starts);
    }
    let patterns = Arc::new(known.with(generation, own).ok_or(Refusal::Patterns)?);
    searcher.submit(Launch { starts, patterns, remaining: None }).map_err(|error| {
        tracing::error!(%error, "the device takes no launch");
        Refusal::Device
    })
}

/// A report as an answer. Of too many hits it has the first ones, and claims as many candidates as
/// belong to them.
fn found(report: LaunchReport) -> Found {
    let all = report.hits.len().max(1);
    let kept = all.min(MOST_HITS);
    Found {
        candidates: (report.candidates as f64 * kept as f64 / all as f64) as u64,
        busy_micros: report.busy.as_micros().try_into().unwrap_or(u64::MAX),
        hits: report.hits.iter().take(MOST_HITS).map(|hit| Hit::new(hit.start, hit.tweak)).collect(),
    }
}

fn say(answers: &Sender<Vec<u8>>, order: u64, result: Result<Found, Refusal>) {
    if let Ok(bytes) = encode(&FromWorker::Answer(Answer { order, result })) {
        // If nobody takes answers any more, the worker is about to end.
        let _ = answers.blocking_send(bytes);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::key::VerifiedHit;
    use crate::search::cpu::{CpuSearcher, KernelChoice};
    use secp256k1::{PublicKey, SECP256K1, SecretKey};
    use tokio::sync::mpsc::channel;

    fn start(byte: u8) -> StartPoint {
        StartPoint::new(PublicKey::from_secret_key(SECP256K1, &SecretKey::from_slice(&[byte; 32]).unwrap()))
    }

    /// The answers of a device of one thread to these messages.
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

    fn set(generation: u64, is_first: bool, patterns: &[&str]) -> ToWorker {
        ToWorker::Patterns { generation, is_first, patterns: patterns.iter().map(|&text| text.to_owned()).collect() }
    }

    fn order(order: u64, generation: u64, own: &[&str], starts: Vec<StartPoint>) -> ToWorker {
        ToWorker::Order { order, generation, own: own.iter().map(|&text| text.to_owned()).collect(), starts }
    }

    #[test]
    fn an_order_is_searched_for_its_set_and_for_its_own_patterns() {
        let messages = [set(7, true, &["qq"]), set(7, false, &["pp"]), order(1, 7, &["zz"], vec![start(3)])];
        let found = answers(&messages)[0].result.clone().unwrap();
        let npub = |hit: &Hit| VerifiedHit::recompute(start(3), hit.tweak()).unwrap().npub().to_string();
        for prefix in ["qq", "pp", "zz"] {
            let begins = |hit: &&Hit| npub(hit)[5..].starts_with(prefix);
            assert!(found.hits.iter().filter(begins).count() > 0, "{prefix}: {} hits", found.hits.len());
        }
        assert!(found.candidates > 3000);
    }

    #[test]
    fn an_order_that_cannot_be_searched_is_refused() {
        let none: Vec<&str> = Vec::new();
        let messages = [
            order(1, 7, &["zz"], vec![start(3)]),
            set(7, true, &["qq"]),
            order(2, 8, &["zz"], vec![start(3)]),
            order(3, 7, &["zz"], vec![start(3), start(4)]),
            order(4, 7, &["b"], vec![start(3)]),
            set(8, true, &["qq", "i"]),
            order(5, 8, &["zz"], vec![start(3)]),
            set(9, true, &none),
            order(6, 9, &none, vec![start(3)]),
            order(7, 9, &["zz"], vec![start(3)]),
        ];
        let results: Vec<_> = answers(&messages).into_iter().map(|answer| answer.result.map(drop)).collect();
        let patterns = Err(Refusal::Patterns);
        assert_eq!(results, [patterns, patterns, Err(Refusal::Starts), patterns, patterns, patterns, Ok(())]);
    }

    #[test]
    fn of_too_many_hits_candidates_are_claimed_in_proportion() {
        let tweak = crate::key::Tweak {
            offset: crate::key::Offset::of_point(1, 1, crate::key::Rotation::ALL[0]),
            rotation: crate::key::Rotation::ALL[0],
        };
        let hits = vec![crate::search::ClaimedHit { start: 0, tweak }; 4 * MOST_HITS];
        let answer = found(LaunchReport { candidates: 4_000_000, hits, ..LaunchReport::default() });
        assert_eq!((answer.candidates, answer.hits.len()), (1_000_000, MOST_HITS));
        assert_eq!(found(LaunchReport { candidates: 5, ..LaunchReport::default() }).candidates, 5);
    }
}
