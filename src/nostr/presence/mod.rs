//! The bot's public events: profile, relay lists, status and daily note.

mod compose;
mod profile;
mod publisher;

pub use compose::Presence;
pub use publisher::Publisher;
