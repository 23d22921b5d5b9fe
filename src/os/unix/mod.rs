//! Linux, macOS and other Unix systems.

pub mod files;
pub mod local_socket;
pub mod manager;
pub mod process;
pub mod service;
pub mod signals;
pub mod terminal;
