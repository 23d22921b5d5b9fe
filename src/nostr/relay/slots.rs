//! The slots of external connections, and who gets one.
//!
//! Anybody can make the bot visit relays: a message from a new key is enough. So slots are limited
//! per asker and per host, and slots of visitors with a job cannot be taken away.
//!
//! | limit | slots |
//! | --- | --- |
//! | all | [`MOST`] |
//! | all without a job | [`ORDINARY`] |
//! | one host | [`PER_HOST`] |
//! | one asker without a job, at relays that have not answered | [`PER_ASKER`] |

use super::address::is_private;
use crate::job::Asker;
use nostr_sdk::{RelayUrl, Url};
use std::collections::HashMap;
use std::time::{Duration, Instant};

/// External connections at once.
pub(super) const MOST: usize = 200;
/// Connections for askers without a job.
const ORDINARY: usize = 150;
/// Connections to one host.
const PER_HOST: usize = 4;
/// Unanswered connections for one asker without a job.
const PER_ASKER: usize = 3;
/// An unanswered connection may be replaced after this time.
const LEAST_TIME: Duration = Duration::from_millis(400);
/// A connection that answered may be replaced after this time without use.
const IDLE: Duration = Duration::from_secs(30);
/// A connection for a visitor with a job is kept for this time: longer than dialling and publishing
/// may take.
const URGENT_TIME: Duration = Duration::from_secs(30);

/// The asker on whose behalf an external relay is visited.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(in crate::nostr) struct Visitor {
    /// The receiver of the message.
    pub asker: Asker,
    /// Whether the message is a result, or its asker has an open job.
    pub urgent: bool,
}

impl Visitor {
    /// No asker: the bot itself.
    pub(super) const NOBODY: Visitor = Visitor { asker: Asker([0; 32]), urgent: false };
}

/// A relay's host, the unit of the limits. Other paths and public ports are the same host.
#[derive(Clone, PartialEq, Eq, Hash, Debug)]
pub(super) struct Host(String);

impl Host {
    /// The host of a URL. In a private network the port is part of it, because relays share
    /// addresses there.
    pub fn from_url(url: &RelayUrl) -> Host {
        let private = is_private(url);
        let url = Url::from(url.clone());
        let name = url.host_str().unwrap_or_default().trim_end_matches('.').to_ascii_lowercase();
        Host(match url.port_or_known_default().filter(|_| private) {
            Some(port) => format!("{name}:{port}"),
            None => name,
        })
    }
}

/// The answer to a request for a slot.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(super) struct Admission {
    /// Whether the relay has a slot now.
    pub granted: bool,
    /// Relays that have lost theirs and are to be disconnected.
    pub leaving: Vec<RelayUrl>,
}

/// All slots.
#[derive(Debug, Default)]
pub(super) struct Slots(HashMap<RelayUrl, Slot>);

#[derive(Debug)]
struct Slot {
    host: Host,
    asker: Asker,
    /// The slot is kept until then for a visitor with a job.
    urgent_until: Option<Instant>,
    dialled: Instant,
    used: Instant,
    answered: bool,
}

impl Slot {
    fn is_urgent(&self, now: Instant) -> bool {
        self.urgent_until.is_some_and(|until| now < until)
    }

    /// Whether this slot may be given to another visitor.
    fn is_replaceable(&self, urgent: bool, now: Instant) -> bool {
        if self.is_urgent(now) {
            return false;
        }
        let since = if self.answered { self.used + IDLE } else { self.dialled + LEAST_TIME };
        urgent || now >= since
    }
}

impl Slots {
    /// Number of slots in use.
    #[cfg(test)]
    pub fn len(&self) -> usize {
        self.0.len()
    }

    /// Whether a relay has a slot.
    pub fn holds(&self, url: &RelayUrl) -> bool {
        self.0.contains_key(url)
    }

    /// Requests a slot. `is_active`: whether a relay is connected or being dialled; other slots are
    /// free.
    pub fn admit(
        &mut self,
        url: &RelayUrl,
        visitor: Visitor,
        now: Instant,
        is_active: impl Fn(&RelayUrl) -> bool,
    ) -> Admission {
        let urgent_until = visitor.urgent.then_some(now + URGENT_TIME);
        if let Some(slot) = self.0.get_mut(url) {
            slot.used = now;
            slot.urgent_until = slot.urgent_until.max(urgent_until);
            return Admission { granted: true, leaving: Vec::new() };
        }
        let host = Host::from_url(url);
        let mut leaving: Vec<RelayUrl> = self.0.keys().filter(|url| !is_active(url)).cloned().collect();
        self.0.retain(|url, _| is_active(url));
        let of_host = |slot: &Slot| slot.host == host;
        let of_asker = |slot: &Slot| slot.asker == visitor.asker && !slot.answered && !slot.is_urgent(now);
        let ordinary = |slot: &Slot| !slot.is_urgent(now);
        let any = |_: &Slot| true;
        let granted = self.make_room(&of_host, PER_HOST, visitor, now, &mut leaving)
            && (visitor.urgent
                || (self.count(&of_asker) < PER_ASKER
                    && self.make_room(&ordinary, ORDINARY, visitor, now, &mut leaving)))
            && self.make_room(&any, MOST, visitor, now, &mut leaving);
        if granted {
            let (dialled, used, answered) = (now, now, false);
            let slot = Slot { host: host.clone(), asker: visitor.asker, urgent_until, dialled, used, answered };
            self.0.insert(url.clone(), slot);
        }
        Admission { granted, leaving }
    }

    fn count(&self, which: &dyn Fn(&Slot) -> bool) -> usize {
        self.0.values().filter(|slot| which(slot)).count()
    }

    /// Frees a slot among those that `which` selects, if there are `most` of them: first the
    /// longest unanswered, then the longest unused. Returns whether there is room.
    fn make_room(
        &mut self,
        which: &dyn Fn(&Slot) -> bool,
        most: usize,
        visitor: Visitor,
        now: Instant,
        leaving: &mut Vec<RelayUrl>,
    ) -> bool {
        if self.count(which) < most {
            return true;
        }
        let replaceable = self.0.iter().filter(|(_, slot)| which(slot) && slot.is_replaceable(visitor.urgent, now));
        let first = replaceable.min_by_key(|(_, slot)| (slot.answered, slot.used)).map(|(url, _)| url.clone());
        let Some(url) = first else { return false };
        self.0.remove(&url);
        leaving.push(url);
        true
    }

    /// Records that a relay answered, which shows that it works.
    pub fn answered(&mut self, url: &RelayUrl) {
        if let Some(slot) = self.0.get_mut(url) {
            slot.answered = true;
        }
    }

    /// Removes a slot.
    pub fn remove(&mut self, url: &RelayUrl) {
        self.0.remove(url);
    }

    /// Removes and returns the relays that were unused for this long.
    pub fn remove_idle(&mut self, now: Instant, idle: Duration) -> Vec<RelayUrl> {
        let is_idle = |slot: &Slot| now.saturating_duration_since(slot.used) > idle;
        let urls: Vec<RelayUrl> = self.0.iter().filter(|(_, slot)| is_idle(slot)).map(|(url, _)| url.clone()).collect();
        urls.iter().for_each(|url| self.remove(url));
        urls
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn url(host: usize, path: usize) -> RelayUrl {
        RelayUrl::parse(&format!("wss://relay-{host}.example/{path}")).unwrap()
    }

    fn visitor(number: usize, urgent: bool) -> Visitor {
        Visitor { asker: Asker([(number % 251) as u8; 32]), urgent }
    }

    #[test]
    fn a_host_is_its_name_and_in_a_private_network_its_port() {
        let host = |text: &str| Host::from_url(&RelayUrl::parse(text).unwrap());
        assert_eq!(host("wss://Relay.example/1"), host("ws://relay.example.:8080/2"));
        assert_ne!(host("wss://relay.example"), host("wss://other.example"));
        assert_ne!(host("ws://127.0.0.1:8080"), host("ws://127.0.0.1:8081"));
    }

    #[test]
    fn a_host_and_an_asker_have_a_few_slots_each() {
        let (mut slots, now) = (Slots::default(), Instant::now());
        let admitted = |slots: &mut Slots, host, path, who| slots.admit(&url(host, path), who, now, |_| true).granted;
        let of_one_host = (0..100).filter(|&path| admitted(&mut slots, 0, path, visitor(path, false))).count();
        assert_eq!(of_one_host, PER_HOST);
        let of_one_asker = (1..100).filter(|&host| admitted(&mut slots, host, 0, visitor(200, false))).count();
        assert_eq!(of_one_asker, PER_ASKER);
        assert!(admitted(&mut slots, 1000, 0, visitor(201, false)), "others have theirs");
        assert_eq!(slots.len(), PER_HOST + PER_ASKER + 1);
    }

    #[test]
    fn a_visitor_with_a_job_gets_and_keeps_a_slot_however_many_others_come() {
        let (mut slots, start) = (Slots::default(), Instant::now());
        for number in 0..10_000 {
            let now = start + Duration::from_millis(number as u64);
            slots.admit(&url(number, 0), visitor(number, false), now, |_| true);
            assert!(slots.len() <= ORDINARY);
        }
        let now = start + Duration::from_secs(10);
        let with_job: Vec<RelayUrl> = (20_000..20_000 + MOST).map(|host| url(host, 0)).collect();
        for (number, url) in with_job.iter().enumerate() {
            assert!(slots.admit(url, visitor(number, true), now, |_| true).granted, "{number}");
        }
        for number in 30_000..31_000 {
            slots.admit(&url(number, 0), visitor(number, false), now + Duration::from_secs(20), |_| true);
        }
        assert!(with_job.iter().all(|url| slots.holds(url)), "none of them is replaced while it is dialled");
        assert_eq!(slots.len(), MOST);
    }

    #[test]
    fn an_unanswered_relay_is_replaced_before_one_that_answers() {
        let (mut slots, now) = (Slots::default(), Instant::now());
        let good = url(0, 0);
        slots.admit(&good, visitor(0, false), now, |_| true);
        slots.answered(&good);
        for number in 1..2 * ORDINARY {
            let now = now + LEAST_TIME * number as u32;
            assert!(slots.admit(&url(number, 0), visitor(number, false), now, |_| true).granted, "{number}");
        }
        assert!(slots.holds(&good));
        // The slot of a disconnected relay is free at once.
        let mut slots = Slots::default();
        for number in 0..2 * ORDINARY {
            let gone = |known: &RelayUrl| *known == good;
            assert!(slots.admit(&url(number, 0), visitor(number, false), now, gone).granted, "{number}");
        }
        assert_eq!(slots.len(), 2);
    }
}
