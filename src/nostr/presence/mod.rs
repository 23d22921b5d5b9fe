//! The bot's public events: profile, relay lists, status and daily note.

mod compose;
mod publisher;

pub use compose::{Presence, Status};
pub use publisher::Publisher;
