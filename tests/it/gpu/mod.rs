//! Tests that run on a GPU, or compile for one.

pub mod failure;
pub mod kernels;
pub mod secrets;
pub mod several;
