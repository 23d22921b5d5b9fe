//! Planning, without threads, locks or devices: which patterns and start points a launch gets.
//!
//! [`jobs`] holds the open jobs. A [`device_plan`] decides the launches of one device:
//! [`fair_share`] says whether the pool or a split job is next, [`select`] which of the pool's jobs
//! are in a pass, and [`profile`] how often passes have the plentiful (easy) patterns.
//! [`split_line`] says which split jobs have a seat and which wait. [`rest`] applies the operator's
//! hours and caps. [`prospects`] is what askers are told.

mod canary;
pub(in crate::scheduler) mod device_plan;
pub(in crate::scheduler) mod fair_share;
pub(in crate::scheduler) mod jobs;
pub(in crate::scheduler) mod pass;
pub(in crate::scheduler) mod profile;
pub(in crate::scheduler) mod prospects;
pub(in crate::scheduler) mod rest;
mod select;
pub(in crate::scheduler) mod split_line;
