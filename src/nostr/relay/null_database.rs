//! A database for nostr-sdk that stores nothing.
//!
//! The default database remembers 35,000 event ids per client, for a stream of new events that we
//! do not use (`inbox::queue` says why). This one claims to know every event, so the library does
//! not copy events for that stream either.

use nostr_relay_pool::prelude::{
    Backend, DatabaseError, DatabaseEventStatus, Events, NostrDatabase, RejectedReason, SaveEventStatus,
};
use nostr_sdk::{Event, EventId, Filter};
use std::future::{Future, ready};
use std::pin::Pin;

/// Stores nothing, and says that it knows every event.
#[derive(Debug)]
pub(super) struct NullDatabase;

type Reply<'a, T> = Pin<Box<dyn Future<Output = Result<T, DatabaseError>> + Send + 'a>>;

fn reply<'a, T: Send + 'a>(what: T) -> Reply<'a, T> {
    Box::pin(ready(Ok(what)))
}

impl NostrDatabase for NullDatabase {
    fn backend(&self) -> Backend {
        Backend::Custom("none".to_owned())
    }

    fn save_event<'a>(&'a self, _: &'a Event) -> Reply<'a, SaveEventStatus> {
        reply(SaveEventStatus::Rejected(RejectedReason::Duplicate))
    }

    fn check_id<'a>(&'a self, _: &'a EventId) -> Reply<'a, DatabaseEventStatus> {
        reply(DatabaseEventStatus::Saved)
    }

    fn event_by_id<'a>(&'a self, _: &'a EventId) -> Reply<'a, Option<Event>> {
        reply(None)
    }

    fn count(&self, _: Filter) -> Reply<'_, usize> {
        reply(0)
    }

    fn query(&self, filter: Filter) -> Reply<'_, Events> {
        reply(Events::new(&filter))
    }

    fn delete(&self, _: Filter) -> Reply<'_, ()> {
        reply(())
    }

    fn wipe(&self) -> Reply<'_, ()> {
        reply(())
    }
}
