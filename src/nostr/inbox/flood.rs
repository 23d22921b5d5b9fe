//! What is a flood, and the proof of work (NIP-13) that is asked for while there is one and never else.
//!
//! The work lies in the id of the outermost event, the gift wrap: nothing else of a sealed message can be judged before
//! it is decrypted, and decrypting is what a flood makes dear. A wrap without work is never refused for that: it waits.
//! Only the *request* of an asker who never had a job is refused while strangers' requests come too fast.

use crate::message::WorkWanted;
use nostr_sdk::Event;
use std::collections::VecDeque;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant};

/// ExternalRelays' requests are counted over so long, and a backlog that ran over counts as a flood for so long.
const WINDOW: Duration = Duration::from_secs(60);

/// Whether there is a flood. One gauge for inbox and desk; cheap to clone. Measured in real time: a clock that jumps does
/// no harm.
#[derive(Clone, Debug)]
pub struct Flood {
    bits: u32,
    new_askers_per_minute: usize,
    gauge: Arc<Mutex<Gauge>>,
}

#[derive(Debug, Default)]
struct Gauge {
    /// The latest requests of strangers without work, at most `new_askers_per_minute`.
    strangers: VecDeque<Instant>,
    /// When wraps last ran over.
    overflow: Option<Instant>,
}

impl Flood {
    pub fn new(bits: u32, new_askers_per_minute: u32) -> Flood {
        Flood { bits, new_askers_per_minute: new_askers_per_minute as usize, gauge: Arc::default() }
    }

    /// Whether an event has the work that is asked for while flooded.
    pub fn is_paid(&self, event: &Event) -> bool {
        work_of(event) >= self.bits
    }

    /// More wraps came than may wait.
    pub fn note_overflow(&self, now: Instant) {
        self.with(|gauge| gauge.overflow = Some(now));
    }

    /// A stranger without work requested something.
    pub fn note_stranger(&self, now: Instant) {
        self.with(|gauge| {
            gauge.strangers.push_back(now);
            while gauge.strangers.len() > self.new_askers_per_minute {
                gauge.strangers.pop_front();
            }
        });
    }

    /// What strangers are asked for now; `None` while there is no flood.
    pub fn wanted(&self, now: Instant) -> Option<WorkWanted> {
        let left =
            |since: Instant| WINDOW.checked_sub(now.saturating_duration_since(since)).filter(|left| !left.is_zero());
        self.with(|gauge| {
            let is_full = gauge.strangers.len() >= self.new_askers_per_minute;
            // The window holds the latest so many: the flood is over once the first of them is too old.
            let strangers = gauge.strangers.front().copied().filter(|_| is_full).and_then(left);
            let ends_in = strangers.max(gauge.overflow.and_then(left))?;
            Some(WorkWanted { bits: self.bits, ends_in })
        })
    }

    fn with<T>(&self, act: impl FnOnce(&mut Gauge) -> T) -> T {
        act(&mut self.gauge.lock().unwrap_or_else(PoisonError::into_inner))
    }
}

/// NIP-13: the leading zero bits of the id, as far as the `nonce` tag commits to them; 0 without a commitment.
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
    fn a_flood_of_strangers_begins_at_the_limit_and_ends_a_minute_after() {
        let (flood, start) = (Flood::new(20, 3), Instant::now());
        let at = |seconds| start + Duration::from_secs(seconds);
        for second in [0, 10] {
            flood.note_stranger(at(second));
            assert_eq!(flood.wanted(at(second)), None);
        }
        flood.note_stranger(at(20));
        assert_eq!(flood.wanted(at(20)), Some(WorkWanted { bits: 20, ends_in: Duration::from_secs(40) }));
        assert_eq!(flood.wanted(at(59)), Some(WorkWanted { bits: 20, ends_in: Duration::from_secs(1) }));
        assert_eq!(flood.wanted(at(60)), None);
        // Goes on for as long as they go on.
        (61..100).for_each(|second| flood.note_stranger(at(second)));
        assert!(flood.wanted(at(140)).is_some());
        assert_eq!(flood.wanted(at(160)), None);
    }

    #[test]
    fn a_backlog_that_ran_over_is_a_flood_for_a_minute() {
        let (flood, start) = (Flood::new(8, 1000), Instant::now());
        assert_eq!(flood.wanted(start), None);
        flood.note_overflow(start);
        assert!(flood.wanted(start + Duration::from_secs(59)).is_some());
        assert_eq!(flood.wanted(start + WINDOW), None);
    }

    #[test]
    fn work_counts_as_far_as_it_was_promised() {
        let keys = Keys::generate();
        let mined = EventBuilder::new(Kind::GiftWrap, "x").pow(10).sign_with_keys(&keys).unwrap();
        assert_eq!(work_of(&mined), 10);
        assert!(Flood::new(10, 1).is_paid(&mined) && !Flood::new(11, 1).is_paid(&mined));
        // Luck without a promise, and a promise without work, are nothing.
        let mut lucky = mined.clone();
        lucky.tags = nostr_sdk::Tags::new();
        assert_eq!(work_of(&lucky), 0);
        let tag = Tag::parse(["nonce", "1", "200"]).unwrap();
        let boast = EventBuilder::new(Kind::GiftWrap, "x").tag(tag).sign_with_keys(&keys).unwrap();
        assert!(work_of(&boast) < 64);
    }
}
