//! Workers on other machines, over a real NATS server with TLS and credentials.

pub mod flood;
pub mod server;
pub mod work;
