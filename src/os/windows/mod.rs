//! Windows.

mod account;
mod acl;
pub mod files;
mod handover;
pub mod local_socket;
pub mod manager;
pub mod process;
pub mod service;
mod service_log;
mod session;
pub mod signals;
pub mod terminal;
pub mod vault_channel;
pub mod walls;
mod wide;
