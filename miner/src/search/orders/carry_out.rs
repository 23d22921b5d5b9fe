//! The device's side: carries out orders.

use super::messages::{Answer, Refusal, ToDevice};
use super::sets::ReceivedSets;
use crate::search::{Launch, SearchError, Searcher};
use std::collections::VecDeque;
use std::sync::mpsc::TryRecvError;

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
