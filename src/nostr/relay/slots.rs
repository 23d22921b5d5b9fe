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
#[derive(Clone, PartialEq, Eq, Debug)]
pub(super) struct Admission {
    /// Whether the relay has a slot now.
    pub granted: bool,
    /// Whether this is the first relay of an asker, which gets a slot within a second.
    pub is_first: bool,
    /// Relays that lose their slots to this one, or are disconnected already. The caller removes
    /// them from the client.
    pub leaving: Vec<RelayUrl>,
}

impl Admission {
    /// The answer for a relay that has a slot already.
    const HAS_ONE: Admission = Admission { granted: true, is_first: false, leaving: Vec::new() };
}

/// All slots.
#[derive(Debug, Default)]
pub(super) struct Slots(HashMap<RelayUrl, ConnectionSlot>);

#[derive(Debug)]
struct ConnectionSlot {
    host: Host,
    asker: Asker,
    rank: Rank,
    dialled: Instant,
    used: Instant,
    answered: bool,
}

impl ConnectionSlot {
    fn rank(&self, now: Instant) -> Rank {
        if self.rank.is_urgent() && now >= self.used + URGENT_TIME { Rank::Further } else { self.rank }
    }

    /// Whether this slot may be given to a connection of rank `by`.
    fn is_replaceable(&self, by: Rank, now: Instant) -> bool {
        let own = self.rank(now);
        let since = match (by.cmp(&own), own) {
            _ if self.answered => self.used + ANSWERED_LEAST_TIME,
            (Ordering::Greater, Rank::First) | (Ordering::Equal, _) if own != Rank::UrgentFirst => {
                self.dialled + LEAST_TIME
            }
            (Ordering::Greater, _) => self.dialled,
            (Ordering::Equal, _) => self.dialled + URGENT_LEAST_TIME,
            (Ordering::Less, Rank::UrgentFirst) => return false,
            (Ordering::Less, _) => self.dialled + LONG_TIME,
        };
        now >= since
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

    /// Requests a slot. `host`: the host whose limits apply. `is_active`: whether a relay is
    /// connected or being dialled; the slots of inactive relays are free.
    pub fn admit(
        &mut self,
        url: &RelayUrl,
        host: &Host,
        visitor: Visitor,
        now: Instant,
        is_active: impl Fn(&RelayUrl) -> bool,
    ) -> Admission {
        let rank = Rank::of(visitor, self.unanswered(visitor.asker).count());
        if is_active(url)
            && let Some(slot) = self.0.get_mut(url)
        {
            slot.rank = slot.rank(now).max(rank);
            slot.used = now;
            return Admission::HAS_ONE;
        }
        let admission = self.ask(url, host, visitor, now, is_active);
        if admission.granted {
            let rank = Rank::of(visitor, self.unanswered(visitor.asker).filter(|own| *own != url).count());
            admission.leaving.iter().for_each(|url| self.remove(url));
            let (dialled, used, answered) = (now, now, false);
            let slot = ConnectionSlot { host: host.clone(), asker: visitor.asker, rank, dialled, used, answered };
            self.0.insert(url.clone(), slot);
        }
        admission
    }

    /// The answer that [`Slots::admit`] would give.
    pub fn ask(
        &self,
        url: &RelayUrl,
        host: &Host,
        visitor: Visitor,
        now: Instant,
        is_active: impl Fn(&RelayUrl) -> bool,
    ) -> Admission {
        if self.holds(url) && is_active(url) {
            return Admission::HAS_ONE;
        }
        let of_this_asker = self.unanswered(visitor.asker).filter(|own| *own != url).count();
        let rank = Rank::of(visitor, of_this_asker);
        // `is_active` is called once per relay, because a relay may disconnect between two calls.
        // Every relay that loses its slot must be in `leaving`.
        let mut leaving: Vec<&RelayUrl> = self.0.keys().filter(|url| !is_active(url)).collect();
        let of_host = |slot: &ConnectionSlot| slot.host == *host;
        let of_class = |slot: &ConnectionSlot| slot.rank(now).is_urgent() == visitor.urgent;
        let any = |_: &ConnectionSlot| true;
        let granted = (visitor.urgent || of_this_asker < MAX_PER_ASKER)
            && self.make_room(&of_host, MAX_PER_HOST, rank, now, &mut leaving)
            && self.make_room(&of_class, MAX_CONNECTIONS_OF_CLASS, rank, now, &mut leaving)
            && self.make_room(&any, MAX_CONNECTIONS, rank, now, &mut leaving);
        let is_first = matches!(rank, Rank::First | Rank::UrgentFirst);
        let leaving = if granted { leaving.into_iter().cloned().collect() } else { Vec::new() };
        Admission { granted, is_first, leaving }
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
        which: &dyn Fn(&ConnectionSlot) -> bool,
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
        let is_idle = |slot: &ConnectionSlot| now.saturating_duration_since(slot.used) > idle;
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
pub(super) enum Rank {
    /// A connection to another relay of the asker, or for another attempt.
    Further,
    /// A further connection for an asker with a job.
    UrgentFurther,
    /// The first relay of the asker, at the first attempt.
    First,
    /// A first connection for an asker with a job.
    UrgentFirst,
}

impl Rank {
    /// The rank of a new connection. `others`: number of the asker's connections that have not
    /// answered.
    pub fn of(visitor: Visitor, others: usize) -> Rank {
        match (visitor.retries || others > 0, visitor.urgent) {
            (true, false) => Rank::Further,
            (true, true) => Rank::UrgentFurther,
            (false, false) => Rank::First,
            (false, true) => Rank::UrgentFirst,
        }
    }

    /// Whether the asker has a job.
    pub fn is_urgent(self) -> bool {
        matches!(self, Rank::UrgentFurther | Rank::UrgentFirst)
    }
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

    fn admit(
        slots: &mut Slots,
        url: &RelayUrl,
        visitor: Visitor,
        now: Instant,
        is_active: impl Fn(&RelayUrl) -> bool,
    ) -> Admission {
        slots.admit(url, &Host::from_url(url), visitor, now, is_active)
    }

    #[test]
    fn a_host_and_an_asker_have_a_few_slots_each() {
        let (mut slots, now) = (Slots::default(), Instant::now());
        let admitted = |slots: &mut Slots, host, path, who| admit(slots, &url(host, path), who, now, |_| true).granted;
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
            admit(&mut slots, &url(number, 0), visitor(number, false), now, |_| true);
            assert!(slots.len() <= MAX_CONNECTIONS_OF_CLASS);
        }
        let now = start + Duration::from_secs(11);
        let with_job: Vec<RelayUrl> = (20_000..20_000 + MAX_CONNECTIONS_OF_CLASS).map(|host| url(host, 0)).collect();
        for (number, url) in with_job.iter().enumerate() {
            assert!(admit(&mut slots, url, visitor(number, true), now, |_| true).granted, "{number}");
        }
        for number in 30_000..31_000 {
            admit(&mut slots, &url(number, 0), visitor(number, false), now + Duration::from_secs(20), |_| true);
        }
        assert!(with_job.iter().all(|url| slots.holds(url)), "none of them is replaced while it is dialled");
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
                let granted = admit(&mut slots, &url(number, address), visitor(number, true), now, |_| true).granted;
                assert!(granted || address > 0, "{number}");
            }
            if number % 10 == 0 {
                let url = url(number, 6);
                assert!(admit(&mut slots, &url, visitor(10_000 + number, false), now, |_| true).granted, "{number}");
                firsts.push((url, now));
            }
            assert!(slots.len() <= MAX_CONNECTIONS);
            firsts.retain(|(url, dialled)| {
                slots.holds(url) || {
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
                let granted = admit(&mut slots, &url(number, address), visitor(number, false), now, |_| true).granted;
                if address == 0 {
                    assert!(granted, "{number}");
                    firsts.push((url(number, 0), now));
                }
            }
            let further = admit(&mut slots, &url(number, 6), visitor(number, false), now, |_| true);
            assert!(!further.granted && !further.is_first, "further relays ask once: they are many");
            for back in [600, 2_600] {
                let Some(number) = usize::checked_sub(number, back) else { continue };
                let again = Visitor { retries: true, ..visitor(number, false) };
                (0..6).for_each(|address| _ = admit(&mut slots, &url(number, address), again, now, |_| true));
            }
            firsts.retain(|(url, dialled)| {
                let is_kept = slots.holds(url);
                assert!(is_kept || now >= *dialled + LEAST_TIME, "replaced after {:?}", now - *dialled);
                is_kept
            });
        }
    }

    #[test]
    fn a_relay_that_disconnects_at_any_moment_leaves_with_its_slot() {
        for moment in 0..8 {
            let (mut slots, now) = (Slots::default(), Instant::now());
            for host in 0..4 {
                admit(&mut slots, &url(host, 0), visitor(host, false), now, |_| true);
            }
            let looks = std::cell::Cell::new(0);
            let is_active = |known: &RelayUrl| {
                looks.set(looks.get() + 1);
                *known != url(0, 0) || looks.get() <= moment
            };
            let admission = admit(&mut slots, &url(9, 0), visitor(9, false), now, is_active);
            assert_eq!(slots.holds(&url(0, 0)), !admission.leaving.contains(&url(0, 0)), "after {moment} looks");
        }
    }

    #[test]
    fn an_unanswered_relay_is_replaced_before_one_that_answers() {
        let (mut slots, now) = (Slots::default(), Instant::now());
        let good = url(0, 0);
        admit(&mut slots, &good, visitor(0, false), now, |_| true);
        slots.answered(&good);
        for number in 1..2 * MAX_CONNECTIONS_OF_CLASS {
            let now = now + LEAST_TIME * number as u32;
            assert!(admit(&mut slots, &url(number, 0), visitor(number, false), now, |_| true).granted, "{number}");
        }
        assert!(slots.holds(&good));
        // The slot of a disconnected relay is free at once.
        let mut slots = Slots::default();
        for number in 0..2 * MAX_CONNECTIONS_OF_CLASS {
            let gone = |known: &RelayUrl| *known == good;
            assert!(admit(&mut slots, &url(number, 0), visitor(number, false), now, gone).granted, "{number}");
        }
        assert_eq!(slots.len(), 2);
    }
}
