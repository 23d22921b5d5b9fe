//! The version, and what this build was made of.

/// The text of `npubbot --version` after the program's name. The kernels are the compute
/// capabilities that have machine code; with none, NVRTC compiles them at the first start.
pub(super) const LONG: &str = concat!(
    env!("CARGO_PKG_VERSION"),
    "\ncommit: ",
    env!("NPUBBOT_COMMIT"),
    "\ntarget: ",
    env!("NPUBBOT_TARGET"),
    "\nCUDA kernels: ",
    env!("NPUBBOT_KERNELS_BUILT"),
    "\nfeatures: ",
    env!("NPUBBOT_FEATURES"),
);
