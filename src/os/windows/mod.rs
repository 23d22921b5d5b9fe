//! Windows.

mod account;
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

use npubbot_vault::os::windows::{acl, wide};
