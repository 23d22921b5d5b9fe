//! Flood detection, and the proof of work (NIP-13) that is required during a flood only.
//!
//! The work is in the id of the gift wrap, because nothing else can be checked before decryption,
//! the expensive step. A wrap without work is never refused; it waits behind those with work.
//! During a flood, only requests of new askers without work are refused.

use crate::message::WorkWanted;
use nostr_sdk::Event;
use std::collections::VecDeque;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant};

/// Time over which new askers are counted, and for which an overflow counts as a flood.
const WINDOW: Duration = Duration::from_secs(60);

/// Detects floods. Its times are those of the system's monotonic clock. Cheap to clone: `inbox` and
/// `service::requests` share one.
#[derive(Clone, Debug)]
pub struct Flood {
    bits: u32,
    new_askers_per_minute: usize,
    gauge: Arc<Mutex<Gauge>>,
}

#[derive(Debug, Default)]
struct Gauge {
    /// Times of the latest requests of new askers without work, at most `new_askers_per_minute`.
    new_askers: VecDeque<Instant>,
    /// When a queue was last full.
    overflow: Option<Instant>,
}

impl Flood {
    /// Makes a detector. `bits`: the work required in a flood. `new_askers_per_minute`: the number
    /// of requests of new askers within a minute that is a flood.
    pub fn new(bits: u32, new_askers_per_minute: u32) -> Flood {
        Flood { bits, new_askers_per_minute: new_askers_per_minute as usize, gauge: Arc::default() }
    }

    /// Whether an event has the work that is required of new askers in a flood.
    pub fn is_paid(&self, event: &Event) -> bool {
        work_of(event) >= self.bits
    }

    /// Records that a queue was full.
    pub(super) fn record_overflow(&self, now: Instant) {
        self.with(|gauge| gauge.overflow = Some(now));
    }

    /// Records a request of a new asker without work.
    pub fn record_new_asker(&self, now: Instant) {
        self.with(|gauge| {
            gauge.new_askers.push_back(now);
            while gauge.new_askers.len() > self.new_askers_per_minute {
                gauge.new_askers.pop_front();
            }
        });
    }

    /// The work required of new askers now; `None` while there is no flood.
    pub fn wanted(&self, now: Instant) -> Option<WorkWanted> {
        let left =
            |since: Instant| WINDOW.checked_sub(now.saturating_duration_since(since)).filter(|left| !left.is_zero());
        self.with(|gauge| {
            let is_full = gauge.new_askers.len() >= self.new_askers_per_minute;
            // The flood is over once the oldest of the kept requests is older than the window.
            let new_askers = gauge.new_askers.front().copied().filter(|_| is_full).and_then(left);
            let ends_in = new_askers.max(gauge.overflow.and_then(left))?;
            Some(WorkWanted { bits: self.bits, ends_in })
        })
    }

    fn with<T>(&self, act: impl FnOnce(&mut Gauge) -> T) -> T {
        act(&mut self.gauge.lock().unwrap_or_else(PoisonError::into_inner))
    }
}

/// The proof of work of an event, in bits (NIP-13): the leading zero bits of its id, but no more
/// than the target in its `nonce` tag. 0 without a target.
fn work_of(event: &Event) -> u32 {
    let committed = event.tags.iter().find_map(|tag| match tag.as_slice() {
        [name, _, target, ..] if name == "nonce" => target.parse::<u32>().ok(),
        _ => None,
    });
    let zeros = u32::from(nostr_sdk::nips::nip13::get_leading_zero_bits(event.id.as_bytes()));
    committed.map_or(0, |target| target.min(zeros))
}

#[cfg(test)]
mod tests {
    use super::*;
    use nostr_sdk::{EventBuilder, Keys, Kind, Tag};

    #[test]
    fn a_flood_of_new_askers_begins_at_the_limit_and_ends_a_minute_later() {
        let (flood, start) = (Flood::new(20, 3), Instant::now());
        let at = |seconds| start + Duration::from_secs(seconds);
        for second in [0, 10] {
            flood.record_new_asker(at(second));
            assert_eq!(flood.wanted(at(second)), None);
        }
        flood.record_new_asker(at(20));
        assert_eq!(flood.wanted(at(20)), Some(WorkWanted { bits: 20, ends_in: Duration::from_secs(40) }));
        assert_eq!(flood.wanted(at(59)), Some(WorkWanted { bits: 20, ends_in: Duration::from_secs(1) }));
        assert_eq!(flood.wanted(at(60)), None);
        // The flood lasts as long as the requests continue.
        (61..100).for_each(|second| flood.record_new_asker(at(second)));
        assert!(flood.wanted(at(140)).is_some());
        assert_eq!(flood.wanted(at(160)), None);
    }

    #[test]
    fn an_overflow_is_a_flood_for_a_minute() {
        let (flood, start) = (Flood::new(8, 1000), Instant::now());
        assert_eq!(flood.wanted(start), None);
        flood.record_overflow(start);
        assert!(flood.wanted(start + Duration::from_secs(59)).is_some());
        assert_eq!(flood.wanted(start + WINDOW), None);
    }

    #[test]
    fn work_counts_up_to_its_target() {
        let keys = Keys::generate();
        let mined = EventBuilder::new(Kind::GiftWrap, "x").pow(10).sign_with_keys(&keys).unwrap();
        assert_eq!(work_of(&mined), 10);
        assert!(Flood::new(10, 1).is_paid(&mined) && !Flood::new(11, 1).is_paid(&mined));
        // Zero bits without a target, and a target without zero bits, do not count.
        let mut lucky = mined.clone();
        lucky.tags = nostr_sdk::Tags::new();
        assert_eq!(work_of(&lucky), 0);
        let tag = Tag::parse(["nonce", "1", "200"]).unwrap();
        let unmet = EventBuilder::new(Kind::GiftWrap, "x").tag(tag).sign_with_keys(&keys).unwrap();
        assert!(work_of(&unmet) < 64);
    }
}
