//! Linux only.

pub mod kernel;
pub mod walls;
