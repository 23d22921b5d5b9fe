//! Events with a checked id and signature.

use nostr::Event;
use std::ops::Deref;

/// An event whose id and signature were checked. [`VerifiedEvent::check`] is the only constructor.
///
/// `nostr-sdk` checks each id only once, so a forged copy that arrives later under the same id
/// would pass. We check every event before it is used or its id is remembered.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct VerifiedEvent(Event);

impl VerifiedEvent {
    /// Recomputes the id and verifies the signature; `None` if one of them is wrong.
    pub fn check(event: Event) -> Option<VerifiedEvent> {
        (event.verify_id() && event.verify_signature()).then_some(VerifiedEvent(event))
    }

    /// Returns the event.
    pub fn into_event(self) -> Event {
        self.0
    }
}

impl Deref for VerifiedEvent {
    type Target = Event;

    fn deref(&self) -> &Event {
        &self.0
    }
}
