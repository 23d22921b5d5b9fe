//! Events that are what their authors signed.

use nostr::Event;
use std::ops::Deref;

/// An event whose id and signature were checked. [`VerifiedEvent::check`] is the only way to one.
///
/// `nostr-sdk` checks an id once: a copy that comes later under the same id passes unseen. So an event is checked here
/// before it is believed, opened, or its id remembered.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct VerifiedEvent(Event);

impl VerifiedEvent {
    /// Recomputes the id and verifies the signature; `None` where one of them is wrong.
    pub fn check(event: Event) -> Option<VerifiedEvent> {
        (event.verify_id() && event.verify_signature()).then_some(VerifiedEvent(event))
    }

    /// The event itself.
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
