//! What runs on a GPU, or is compiled for one.

pub mod failure;
pub mod kernels;
pub mod secrets;
pub mod several;
