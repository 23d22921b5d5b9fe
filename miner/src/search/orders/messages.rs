//! The messages between a bot and a device that searches elsewhere, in postcard's encoding, with
//! their bounds: in a process of its own ([`super::process`]) or on another machine (the package
//! `fleet`).
//!
//! An order is public data: start points, and patterns without their jobs. It does not tell who
//! asked, and start secrets never leave the vault. [`carry_out`] is the device's side.

use super::sets::{PatternChange, ReceivedSets};
use crate::key::StartPoint;
use crate::search::{Launch, LaunchReport, SearchError, Searcher};
use serde::de::DeserializeOwned;
use serde::{Deserialize, Serialize};
use std::collections::VecDeque;
use std::sync::mpsc::TryRecvError;
use thiserror::Error;

/// Largest message to a device, bytes. A larger set of patterns is sent in several.
pub const LARGEST_ORDER: usize = 512 << 10;
/// The most start points in an order. A GPU of 160 multiprocessors has 27, a CPU one per thread.
pub const MAX_STARTS: usize = 1024;
/// The most candidates that an answer may claim. 4,096 of the fastest GPUs test as many in a tenth
/// of a second.
pub const MAX_CANDIDATES: u64 = 1 << 46;
/// Longest text about a device, bytes.
const LONGEST_TEXT: usize = 64;

/// Why bytes are not a message.
#[derive(Debug, Error)]
#[error("{0}")]
pub struct WireError(pub String);

impl From<&str> for WireError {
    fn from(reason: &str) -> WireError {
        WireError(reason.to_owned())
    }
}

/// A message from the bot to a device.
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize)]
pub enum ToDevice {
    /// A part of a change to a set of patterns.
    Patterns(PatternChange),
    /// Search around these start points.
    Order {
        /// The number of the order.
        order: u64,
        /// The number of the set to search for.
        set: u64,
        /// The start points, 33 bytes each.
        starts: Vec<StartPoint>,
    },
}

/// The answer to an order.
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize)]
pub struct Answer {
    /// The number of the order.
    pub order: u64,
    /// The claims, or why the order was not searched.
    pub result: Result<LaunchReport, Refusal>,
}

/// Why an order is not searched.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub enum Refusal {
    /// The device lacks the set, or a text is not a pattern.
    Patterns,
    /// The number of start points is not the one that the device announced.
    Starts,
    /// The device failed.
    Device,
}

const NOT_A_MESSAGE: &str = "it does not decode";

/// Encodes a message.
pub fn encode(message: &impl Serialize) -> Result<Vec<u8>, WireError> {
    postcard::to_stdvec(message).map_err(|_| NOT_A_MESSAGE.into())
}

/// Decodes a message of at most `largest` bytes, with nothing after it.
pub fn decode<T: DeserializeOwned>(bytes: &[u8], largest: usize) -> Result<T, WireError> {
    if bytes.len() > largest {
        return Err(WireError(format!("{} bytes are more than such a message has", bytes.len())));
    }
    match postcard::take_from_bytes(bytes) {
        Ok((message, [])) => Ok(message),
        _ => Err(NOT_A_MESSAGE.into()),
    }
}

/// Makes a text about a device fit for a message: only printable characters, cut to the allowed
/// length.
pub fn text(text: &str) -> String {
    text.chars().filter(|c| *c == ' ' || c.is_ascii_graphic()).take(LONGEST_TEXT).collect()
}

/// Whether a text about a device is one that [`text`] returns.
pub fn is_text(text: &str) -> bool {
    text.len() <= LONGEST_TEXT && text.chars().all(|c| c == ' ' || c.is_ascii_graphic())
}

impl ToDevice {
    /// Reads a message to a device.
    pub fn read(bytes: &[u8]) -> Result<ToDevice, WireError> {
        let message = decode(bytes, LARGEST_ORDER)?;
        match &message {
            ToDevice::Order { starts, .. } if starts.is_empty() || starts.len() > MAX_STARTS => {
                Err("an order has too many or no start points".into())
            }
            _ => Ok(message),
        }
    }
}

impl LaunchReport {
    /// Reduces the report to the first `most_hits` hits, and to a part of the candidates in the same
    /// proportion.
    pub fn reduced(mut self, most_hits: usize) -> LaunchReport {
        let all = self.hits.len();
        if all > most_hits {
            self.hits.truncate(most_hits);
            self.candidates = (self.candidates as f64 * most_hits as f64 / all as f64) as u64;
        }
        self
    }

    /// Checks the claims about an order with this number of start points.
    pub fn check(&self, starts: usize, most_hits: usize) -> Result<(), WireError> {
        if self.hits.len() > most_hits {
            return Err("an answer has too many hits".into());
        }
        if !(1..=MAX_CANDIDATES).contains(&self.candidates) {
            return Err("an answer claims no candidates, or more than any device tests".into());
        }
        if self.hits.iter().any(|hit| hit.start >= starts) {
            return Err("a hit names a start point that the order did not have".into());
        }
        Ok(())
    }
}

/// An order as it is to be searched, or why it is not.
pub struct ReceivedOrder {
    /// The number of the order.
    pub order: u64,
    /// The launch.
    pub launch: Result<Launch, Refusal>,
}

impl ReceivedSets {
    /// Takes a message to a device. Returns the order, if it is one.
    pub fn receive(&mut self, message: ToDevice) -> Option<ReceivedOrder> {
        match message {
            ToDevice::Patterns(change) => {
                self.take(change);
                None
            }
            ToDevice::Order { order, set, starts } => {
                let launch = match self.get(set) {
                    Some(patterns) => Ok(Launch { starts, patterns, remaining: None }),
                    None => Err(Refusal::Patterns),
                };
                Some(ReceivedOrder { order, launch })
            }
        }
    }
}

/// Carries out orders until `next` is disconnected, as many at a time as the device has in flight.
/// `next(wait)` returns the next order, and waits for it only if `wait`.
///
/// Errors: the device failed. The answer to the order says so.
pub fn carry_out(
    searcher: &mut dyn Searcher,
    mut next: impl FnMut(bool) -> Result<ReceivedOrder, TryRecvError>,
    mut answer: impl FnMut(Answer),
) -> Result<(), SearchError> {
    let mut in_flight = VecDeque::new();
    loop {
        let has_room = in_flight.len() < searcher.in_flight().max(1);
        let received = if has_room { next(in_flight.is_empty()) } else { Err(TryRecvError::Empty) };
        match received {
            Ok(ReceivedOrder { order, launch }) => {
                let refusal = match launch {
                    Ok(launch) if launch.starts.len() != searcher.starts() => Refusal::Starts,
                    Ok(launch) => match searcher.submit(launch) {
                        Ok(()) => {
                            in_flight.push_back(order);
                            continue;
                        }
                        Err(error) => return fail(order, error, answer),
                    },
                    Err(refusal) => refusal,
                };
                answer(Answer { order, result: Err(refusal) });
            }
            Err(TryRecvError::Disconnected) => return Ok(()),
            Err(TryRecvError::Empty) => {
                let Some(order) = in_flight.pop_front() else { continue };
                match searcher.collect() {
                    Ok(report) => answer(Answer { order, result: Ok(report) }),
                    Err(error) => return fail(order, error, answer),
                }
            }
        }
    }
}

fn fail(order: u64, error: SearchError, mut answer: impl FnMut(Answer)) -> Result<(), SearchError> {
    answer(Answer { order, result: Err(Refusal::Device) });
    Err(error)
}
