//! Serves the web page with which people without a Nostr account ask for a key.
//!
//! The page is one static file with the same bytes for everybody. Its address names the bot and its
//! relays. This room holds no secret and knows no job: an attacker who controls it can serve
//! another page, but nothing else.
//!
//! Its listener also serves metrics and health at another address (`service::monitor`).

mod listener;
mod server;
#[cfg(test)]
mod tests;

pub(crate) use listener::{ServerLimits, bind_error, serve};
pub use server::{PAGE_SHA256, WebServer, link};
