//! Runs the search: one thread per device, and one that verifies the hits they claim.

mod canaries;
pub(in crate::scheduler) mod device_thread;
pub(in crate::scheduler) mod device_threads;
pub(in crate::scheduler) mod energy;
mod first_rates;
pub(in crate::scheduler) mod health;
pub(in crate::scheduler) mod measure;
pub(in crate::scheduler) mod open;
pub(in crate::scheduler) mod pool;
pub(in crate::scheduler) mod verifier;
pub(in crate::scheduler) mod verify;
pub(in crate::scheduler) mod watch;
