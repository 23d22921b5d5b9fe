//! The constants of `kernels/constants.h`, shared by kernels and host. `build.rs` generates them.

include!(concat!(env!("OUT_DIR"), "/constants.rs"));
