//! Serves the web page with which people without a Nostr account ask for a key.
//!
//! The page is one static file with the same bytes for everybody. Its address names the bot and its
//! relays. This room holds no secret and knows no job: an attacker who controls it can serve
//! another page, but nothing else.
//!
//! At another address it serves metrics and health, for the operator's monitoring only.

mod headers;
mod listener;
mod metrics;
mod page;
mod server;
#[cfg(test)]
mod tests;

pub use metrics::{MetricsServer, Monitored};
pub use page::{PAGE_SHA256, link};
pub use server::{WebError, WebServer};
