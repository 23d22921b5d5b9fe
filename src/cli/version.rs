//! The version, and what this build was made of.

/// The text of `npubbot --version` after the program's name: version, commit, kernels, features.
pub(super) const LONG: &str = concat!(
    env!("CARGO_PKG_VERSION"),
    "\ncommit: ",
    env!("NPUBBOT_COMMIT"),
    "\ntarget: ",
    env!("NPUBBOT_TARGET"),
    "\nCUDA kernels: ",
    env!("NPUBBOT_KERNELS_BUILT"),
    " (compute capabilities; newer GPUs use PTX, and without kernels NVRTC compiles them)",
    "\nfeatures: ",
    env!("NPUBBOT_FEATURES"),
);
