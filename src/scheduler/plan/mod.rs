//! Planning, without threads or devices: which patterns and start points a launch gets.

mod canary;
pub(in crate::scheduler) mod fair_share;
mod hit_budget;
pub(in crate::scheduler) mod pass;
pub(in crate::scheduler) mod pool;
mod select;
pub(in crate::scheduler) mod wait_estimate;
