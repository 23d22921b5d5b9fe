//! Serves the web page with which people without a Nostr account ask for a key.
//!
//! The page is one static file, the same bytes for everybody; its address names the bot and its
//! relays. The room holds no secret and knows no job: whoever breaks it can serve another page,
//! and no more.

mod headers;
mod page;
mod server;
#[cfg(test)]
mod tests;

pub use page::{PAGE_SHA256, link};
pub use server::{WebError, WebServer};
