//! The external relays in the client, their slots, and hosts that could not be reached.

use super::error::NostrError;
use super::host::{Host, Hosts};
use super::slots::{Admission, Slots};
use super::visitor::Visitor;
use hashlink::LruCache;
use nostr_sdk::{Relay, RelayStatus, RelayUrl};
use std::collections::HashMap;
use std::time::{Duration, Instant};

/// Time before a host that could not be reached is dialled again.
const RETRY: Duration = Duration::from_millis(2500);
/// Number of unreachable hosts that are remembered.
const UNREACHABLE: usize = 1000;
/// Time after which an unused connection is closed.
pub(super) const LINGER: Duration = Duration::from_secs(600);

/// The external relays in the client, with their slots, and the hosts that could not be reached.
pub(super) struct KnownRelays {
    pub slots: Slots,
    /// The relays in the client: one per slot.
    pub relays: HashMap<RelayUrl, Relay>,
    /// The hosts that could not be reached, and when.
    pub unreachable: LruCache<Host, Instant>,
}

impl Default for KnownRelays {
    fn default() -> KnownRelays {
        let unreachable = LruCache::new(UNREACHABLE);
        KnownRelays { slots: Slots::default(), relays: HashMap::new(), unreachable }
    }
}

impl KnownRelays {
    /// Whether a host could not be reached a moment ago.
    pub fn is_unreachable(&self, named: &Host) -> bool {
        self.unreachable.peek(named).is_some_and(|at| at.elapsed() < RETRY)
    }

    /// Removes the relays that were not used for a while, with their slots, and returns them. The
    /// caller removes them from the client.
    pub fn remove_idle(&mut self) -> Vec<RelayUrl> {
        let idle = self.slots.remove_idle(Instant::now(), LINGER);
        idle.iter().for_each(|url| _ = self.relays.remove(url));
        idle
    }

    fn is_active(&self, url: &RelayUrl) -> bool {
        self.relays.get(url).is_some_and(is_active)
    }

    /// Requests a slot for a relay that is not active. The caller removes the leaving relays from
    /// the client. If the client has this relay, it leaves too and is added again, because the
    /// library might never recover its connection.
    pub fn admit(&mut self, url: &RelayUrl, hosts: &Hosts, visitor: Visitor) -> Admission {
        let KnownRelays { slots, relays, .. } = self;
        let is_active = |url: &RelayUrl| relays.get(url).is_some_and(is_active);
        let admission = slots.admit(url, &hosts.limited, visitor, Instant::now(), is_active);
        admission.leaving.iter().for_each(|url| _ = relays.remove(url));
        admission
    }

    /// Looks up the relay or the slot that a visitor can have at once. The client is not changed.
    ///
    /// Errors: [`NostrError::NotConnected`] if the host could not be reached a moment ago,
    /// [`NostrError::NoRoom`] if there is no slot.
    pub fn look(&mut self, url: &RelayUrl, hosts: &Hosts, visitor: Visitor) -> Result<Look, NostrError> {
        let now = Instant::now();
        if let Some(relay) = self.relays.get(url).filter(|relay| is_active(relay)) {
            self.slots.admit(url, &hosts.limited, visitor, now, |_| true);
            return Ok(Look::Active(Box::new(relay.clone())));
        }
        if self.is_unreachable(&hosts.named) {
            return Err(NostrError::not_connected(url));
        }
        let admission = self.slots.ask(url, &hosts.limited, visitor, now, |url| self.is_active(url));
        match (admission.granted, admission.may_wait) {
            (true, _) => Ok(Look::Room),
            (false, true) => Ok(Look::Later),
            (false, false) => Err(NostrError::no_room(url)),
        }
    }
}

/// The answer to a visitor.
pub(super) enum Look {
    /// The relay is connected or being dialled.
    Active(Box<Relay>),
    /// There is a slot, so the relay may be dialled.
    Room,
    /// There is no slot now, but there may be one soon.
    Later,
}

fn is_active(relay: &Relay) -> bool {
    matches!(relay.status(), RelayStatus::Connected | RelayStatus::Connecting | RelayStatus::Pending)
}
