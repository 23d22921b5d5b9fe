//! Planning, without threads, locks or devices: which patterns and start points a launch gets.
//!
//! [`jobs`] holds the open jobs. A [`device_plan`] decides the launches of one device:
//! [`fair_share`] says whether the pool or a split job is next, [`select`] which of the pool's jobs
//! are in a pass, and [`hit_budget`] how often passes have the plentiful (easy) patterns.
//! [`split_line`] says which split jobs have a seat and which wait. [`rest`] and [`duty`] apply the
//! operator's hours and caps.

mod canary;
pub(in crate::scheduler) mod compared;
pub(in crate::scheduler) mod device_plan;
pub(in crate::scheduler) mod duty;
pub(in crate::scheduler) mod fair_share;
mod hit_budget;
pub(in crate::scheduler) mod jobs;
pub(in crate::scheduler) mod lane;
pub(in crate::scheduler) mod pass;
mod pattern_index;
mod profile;
pub(in crate::scheduler) mod rest;
mod select;
pub(in crate::scheduler) mod shared_passes;
pub(in crate::scheduler) mod shares;
pub(in crate::scheduler) mod split_line;
pub(in crate::scheduler) mod split_queue;
mod turns;
pub(in crate::scheduler) mod wait_estimate;
