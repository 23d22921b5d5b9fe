//! Tests that run on a GPU, or compile for one.

pub mod checks;
pub mod device_memory;
pub mod hits;
pub mod host_probe;
pub mod kernels;
pub mod launch;
pub mod precision;
pub mod processes;
pub mod secrets;
pub mod workers;
