//! Windows.

mod acl;
pub mod files;
pub mod local_socket;
pub mod manager;
pub mod process;
mod session;
pub mod signals;
pub mod vault_channel;
pub mod walls;
mod wide;
