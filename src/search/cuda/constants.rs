//! The numbers of `kernels/constants.h`, which the kernels and the host share. `build.rs` writes them.

include!(concat!(env!("OUT_DIR"), "/constants.rs"));
