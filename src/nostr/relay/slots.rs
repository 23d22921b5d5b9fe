//! The slots of external connections, and who gets one.
//!
//! Anybody can make the bot visit relays: a message from a new key is enough, and a job costs no
//! more. So slots are limited per asker and per host, and every asker's first relay comes before
//! anybody's second. Even if new askers come as fast as the bot answers, each first relay has 0.7 s
//! to answer.
//!
//! | limit | slots |
//! | --- | --- |
//! | all | [`MAX_CONNECTIONS`] |
//! | all askers with a job; all askers without a job | [`MAX_CONNECTIONS_OF_CLASS`] each |
//! | one host | [`MAX_PER_HOST`] |
//! | one asker without a job, at relays that have not answered | [`MAX_PER_ASKER`] |
//!
//! | rank, highest first | replaces unanswered connections of | is replaced by its own rank after |
//! | --- | --- | --- |
//! | first relay of an asker with a job | the next rank after 0.4 s; lower ones at once | 0.6 s |
//! | first relay of another asker | both lower ranks, at once | 0.4 s |
//! | further relay or attempt, with a job | the lowest rank, at once | 0.4 s |
//! | further relay or attempt, without a job | | 0.4 s |
//!
//! A lower rank replaces a higher one after 3 s, but not the first relay of an asker with a job.

use super::host::Host;
use crate::job::Asker;
use nostr_sdk::RelayUrl;
use std::cmp::Ordering;
use std::collections::HashMap;
use std::time::{Duration, Instant};

/// The most external connections at a time.
pub(super) const MAX_CONNECTIONS: usize = 200;
/// The most connections for askers without a job, and for askers with one.
const MAX_CONNECTIONS_OF_CLASS: usize = 150;
/// The most connections to one host.
pub(super) const MAX_PER_HOST: usize = 4;
/// The most unanswered connections for one asker without a job.
const MAX_PER_ASKER: usize = 3;
/// An unanswered connection may be replaced after this time.
const LEAST_TIME: Duration = Duration::from_millis(400);
/// The first connection for an asker with a job may be replaced by another asker's first one after
/// this time.
const URGENT_LEAST_TIME: Duration = Duration::from_millis(600);
/// An unanswered connection may be replaced by one of a lower rank after this time.
const LONG_TIME: Duration = Duration::from_secs(3);
/// A connection that answered may be replaced after this time without use.
const ANSWERED_LEAST_TIME: Duration = Duration::from_secs(3);
/// Time after its last use for which a connection counts as one for an asker with a job. It is
/// longer than dialling and publishing may take.
const URGENT_TIME: Duration = Duration::from_secs(30);

/// The answer to a request for a slot.
#[derive(Debug)]
pub(super) enum Admission<R> {
    /// The relay has a slot, and this connection, which may still be being made.
    Granted(R),
    /// There is no slot now. The first relay of an asker gets one within a second.
    Later,
    /// There is no slot.
    Refused,
}

/// All slots, each with its connection `R`.
#[derive(Debug)]
pub(super) struct Slots<R>(HashMap<RelayUrl, ConnectionSlot<R>>);

#[derive(Debug)]
struct ConnectionSlot<R> {
    relay: R,
    host: Host,
    asker: Asker,
    rank: Rank,
    dialled: Instant,
    used: Instant,
    answered: bool,
}

impl<R> Default for Slots<R> {
    fn default() -> Slots<R> {
        Slots(HashMap::new())
    }
}

impl<R> ConnectionSlot<R> {
    fn rank(&self, now: Instant) -> Rank {
        let is_over = self.rank.is_urgent && now >= self.used + URGENT_TIME;
        if is_over { Rank { is_first: false, is_urgent: false } } else { self.rank }
    }

    /// Whether this slot may be given to a connection of rank `by`.
    fn is_replaceable(&self, by: Rank, now: Instant) -> bool {
        let own = self.rank(now);
        let since = match (by.cmp(&own), own.is_first) {
            _ if self.answered => self.used + ANSWERED_LEAST_TIME,
            (Ordering::Less, true) if own.is_urgent => return false,
            (Ordering::Less, _) => self.dialled + LONG_TIME,
            (Ordering::Equal, true) if own.is_urgent => self.dialled + URGENT_LEAST_TIME,
            (Ordering::Equal, _) | (Ordering::Greater, true) => self.dialled + LEAST_TIME,
            (Ordering::Greater, false) => self.dialled,
        };
        now >= since
    }
}

impl<R: Clone> Slots<R> {
    /// Number of slots in use.
    #[cfg(test)]
    pub fn len(&self) -> usize {
        self.0.len()
    }

    /// The connection of a relay that has a slot.
    pub fn get(&self, url: &RelayUrl) -> Option<&R> {
        self.0.get(url).map(|slot| &slot.relay)
    }

    /// Requests a slot. `host`: the host whose limits apply. `is_active`: whether a relay is
    /// connected or being dialled; the slots of inactive relays are free. `dial`: connects to the
    /// relay, after it has left those that lose their slots to it or are inactive.
    pub fn admit(
        &mut self,
        url: &RelayUrl,
        host: &Host,
        visitor: Visitor,
        now: Instant,
        is_active: impl Fn(&R) -> bool,
        dial: impl FnOnce(&[RelayUrl]) -> Option<R>,
    ) -> Admission<R> {
        let of_this_asker = self.unanswered(visitor.asker).filter(|own| *own != url).count();
        let rank = Rank { is_first: !visitor.retries && of_this_asker == 0, is_urgent: visitor.urgent };
        if let Some(slot) = self.0.get_mut(url).filter(|slot| is_active(&slot.relay)) {
            slot.rank = slot.rank(now).max(rank);
            slot.used = now;
            return Admission::Granted(slot.relay.clone());
        }
        let mut leaving: Vec<&RelayUrl> =
            self.0.iter().filter(|(_, slot)| !is_active(&slot.relay)).map(|(url, _)| url).collect();
        let of_host = |slot: &ConnectionSlot<R>| slot.host == *host;
        let of_class = |slot: &ConnectionSlot<R>| slot.rank(now).is_urgent == visitor.urgent;
        let any = |_: &ConnectionSlot<R>| true;
        let granted = (visitor.urgent || of_this_asker < MAX_PER_ASKER)
            && self.make_room(&of_host, MAX_PER_HOST, rank, now, &mut leaving)
            && self.make_room(&of_class, MAX_CONNECTIONS_OF_CLASS, rank, now, &mut leaving)
            && self.make_room(&any, MAX_CONNECTIONS, rank, now, &mut leaving);
        if !granted {
            return if rank.is_first { Admission::Later } else { Admission::Refused };
        }
        let leaving: Vec<RelayUrl> = leaving.into_iter().cloned().collect();
        leaving.iter().for_each(|url| self.remove(url));
        let Some(relay) = dial(&leaving) else { return Admission::Refused };
        let (host, asker) = (host.clone(), visitor.asker);
        let slot = ConnectionSlot { relay: relay.clone(), host, asker, rank, dialled: now, used: now, answered: false };
        self.0.insert(url.clone(), slot);
        Admission::Granted(relay)
    }

    /// The relays that are visited for an asker and have not answered.
    fn unanswered(&self, asker: Asker) -> impl Iterator<Item = &RelayUrl> {
        self.0.iter().filter(move |(_, slot)| slot.asker == asker && !slot.answered).map(|(url, _)| url)
    }

    /// Makes room for a connection of this rank under one limit: at most `most` of the slots that
    /// `which` selects, without those `leaving`. If the limit is reached, adds a replaceable slot
    /// to `leaving`: an unanswered one before an answered one, then one of the lowest rank, then
    /// the longest unused. Returns whether there is room.
    fn make_room<'a>(
        &'a self,
        which: &dyn Fn(&ConnectionSlot<R>) -> bool,
        most: usize,
        rank: Rank,
        now: Instant,
        leaving: &mut Vec<&'a RelayUrl>,
    ) -> bool {
        let staying = || self.0.iter().filter(|(url, slot)| which(slot) && !leaving.contains(url));
        if staying().count() < most {
            return true;
        }
        let candidates = staying().filter(|(_, slot)| slot.is_replaceable(rank, now));
        let first = candidates.min_by_key(|(_, slot)| (slot.answered, slot.rank(now), slot.used));
        let Some((url, _)) = first else { return false };
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
        let is_idle = |slot: &ConnectionSlot<R>| now.saturating_duration_since(slot.used) > idle;
        let urls: Vec<RelayUrl> = self.0.iter().filter(|(_, slot)| is_idle(slot)).map(|(url, _)| url.clone()).collect();
        urls.iter().for_each(|url| self.remove(url));
        urls
    }
}

/// The asker on whose behalf an external relay is visited.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(in crate::nostr) struct Visitor {
    /// The receiver of the message.
    pub asker: Asker,
    /// Whether the message is a result, or its asker has an open job.
    pub urgent: bool,
    /// Whether the message was tried before, and no relay accepted it.
    pub retries: bool,
}

impl Visitor {
    /// No asker: the bot itself.
    pub(super) const NOBODY: Visitor = Visitor { asker: Asker([0; 32]), urgent: false, retries: false };
}

/// The rank of a connection. Connections of a higher rank are kept first.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
struct Rank {
    /// Whether it is to the first relay of its asker, at the first attempt.
    is_first: bool,
    /// Whether its asker has a job.
    is_urgent: bool,
}

#[cfg(test)]
mod tests {
    use super::*;

    fn url(host: usize, path: usize) -> RelayUrl {
        RelayUrl::parse(&format!("wss://relay-{host}.example/{path}")).unwrap()
    }

    fn asker(number: usize) -> Asker {
        let mut key = [0; 32];
        key[..8].copy_from_slice(&number.to_be_bytes());
        Asker(key)
    }

    fn visitor(number: usize, urgent: bool) -> Visitor {
        Visitor { asker: asker(number), urgent, retries: false }
    }

    fn request(
        slots: &mut Slots<RelayUrl>,
        url: &RelayUrl,
        visitor: Visitor,
        now: Instant,
        is_active: impl Fn(&RelayUrl) -> bool,
    ) -> Admission<RelayUrl> {
        slots.admit(url, &Host::from_url(url), visitor, now, is_active, |_| Some(url.clone()))
    }

    fn admit(slots: &mut Slots<RelayUrl>, url: &RelayUrl, visitor: Visitor, now: Instant) -> bool {
        matches!(request(slots, url, visitor, now, |_| true), Admission::Granted(_))
    }

    #[test]
    fn a_host_and_an_asker_have_a_few_slots_each() {
        let (mut slots, now) = (Slots::default(), Instant::now());
        let admitted = |slots: &mut Slots<RelayUrl>, host, path, who| admit(slots, &url(host, path), who, now);
        let of_one_host = (0..100).filter(|&path| admitted(&mut slots, 0, path, visitor(path, false))).count();
        assert_eq!(of_one_host, MAX_PER_HOST);
        let of_one_asker = (1..100).filter(|&host| admitted(&mut slots, host, 0, visitor(200, false))).count();
        assert_eq!(of_one_asker, MAX_PER_ASKER);
        assert!(admitted(&mut slots, 1000, 0, visitor(201, false)), "others have theirs");
        assert_eq!(slots.len(), MAX_PER_HOST + MAX_PER_ASKER + 1);
    }

    #[test]
    fn a_visitor_with_a_job_gets_and_keeps_a_slot_however_many_others_come() {
        let (mut slots, start) = (Slots::default(), Instant::now());
        for number in 0..10_000 {
            let now = start + Duration::from_millis(number as u64);
            admit(&mut slots, &url(number, 0), visitor(number, false), now);
            assert!(slots.len() <= MAX_CONNECTIONS_OF_CLASS);
        }
        let now = start + Duration::from_secs(11);
        let with_job: Vec<RelayUrl> = (20_000..20_000 + MAX_CONNECTIONS_OF_CLASS).map(|host| url(host, 0)).collect();
        for (number, url) in with_job.iter().enumerate() {
            assert!(admit(&mut slots, url, visitor(number, true), now), "{number}");
        }
        for number in 30_000..31_000 {
            admit(&mut slots, &url(number, 0), visitor(number, false), now + Duration::from_secs(20));
        }
        assert!(with_job.iter().all(|url| slots.get(url).is_some()), "none of them is replaced while it is dialled");
        assert_eq!(slots.len(), MAX_CONNECTIONS);
    }

    /// An attacker creates jobs as easily as keys, so askers with jobs must not displace newcomers.
    #[test]
    fn however_many_askers_with_jobs_come_newcomers_get_a_slot_and_keep_it() {
        let (mut slots, start) = (Slots::default(), Instant::now());
        let mut firsts: Vec<(RelayUrl, Instant)> = Vec::new();
        for number in 0..3_000 {
            let now = start + Duration::from_millis(10 * number as u64);
            for address in 0..6 {
                let granted = admit(&mut slots, &url(number, address), visitor(number, true), now);
                assert!(granted || address > 0, "{number}");
            }
            if number % 10 == 0 {
                let url = url(number, 6);
                assert!(admit(&mut slots, &url, visitor(10_000 + number, false), now), "{number}");
                firsts.push((url, now));
            }
            assert!(slots.len() <= MAX_CONNECTIONS);
            firsts.retain(|(url, dialled)| {
                slots.get(url).is_some() || {
                    assert!(now >= *dialled + LONG_TIME, "replaced after {:?}", now - *dialled);
                    false
                }
            });
        }
    }

    #[test]
    fn the_first_relay_of_each_of_two_hundred_new_askers_a_second_has_a_slot_for_long_enough() {
        let (mut slots, start) = (Slots::default(), Instant::now());
        let mut firsts: Vec<(RelayUrl, Instant)> = Vec::new();
        for number in 0..4_000 {
            let now = start + Duration::from_millis(5 * number as u64);
            // Each asker lists six relays that say nothing, and is tried again 3 and 13 seconds
            // later.
            for address in 0..6 {
                let granted = admit(&mut slots, &url(number, address), visitor(number, false), now);
                if address == 0 {
                    assert!(granted, "{number}");
                    firsts.push((url(number, 0), now));
                }
            }
            let further = request(&mut slots, &url(number, 6), visitor(number, false), now, |_| true);
            assert!(matches!(further, Admission::Refused), "further relays ask once: they are many");
            for back in [600, 2_600] {
                let Some(number) = usize::checked_sub(number, back) else { continue };
                let again = Visitor { retries: true, ..visitor(number, false) };
                (0..6).for_each(|address| _ = admit(&mut slots, &url(number, address), again, now));
            }
            firsts.retain(|(url, dialled)| {
                let is_kept = slots.get(url).is_some();
                assert!(is_kept || now >= *dialled + LEAST_TIME, "replaced after {:?}", now - *dialled);
                is_kept
            });
        }
    }

    #[test]
    fn an_unanswered_relay_is_replaced_before_one_that_answers() {
        let (mut slots, now) = (Slots::default(), Instant::now());
        let good = url(0, 0);
        admit(&mut slots, &good, visitor(0, false), now);
        slots.answered(&good);
        admit(&mut slots, &good, visitor(0, false), now);
        for number in 1..2 * MAX_CONNECTIONS_OF_CLASS {
            let now = now + LEAST_TIME * number as u32;
            assert!(admit(&mut slots, &url(number, 0), visitor(number, false), now), "{number}");
        }
        assert!(slots.get(&good).is_some());
        // The slot of a disconnected relay is free at once.
        let mut slots = Slots::default();
        for number in 0..2 * MAX_CONNECTIONS_OF_CLASS {
            let only_this = |known: &RelayUrl| *known == good;
            let admission = request(&mut slots, &url(number, 0), visitor(number, false), now, only_this);
            assert!(matches!(admission, Admission::Granted(_)), "{number}");
        }
        assert_eq!(slots.len(), 2);
    }
}
