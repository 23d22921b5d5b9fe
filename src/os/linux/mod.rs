//! Linux alone.

pub mod kernel;
pub mod walls;
