//! Tests that run on a GPU, or compile for one.

pub mod arithmetic;
pub mod checks;
pub mod hits;
pub mod host_probe;
pub mod processes;
pub mod secrets;
