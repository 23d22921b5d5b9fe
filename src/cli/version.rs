//! The version, and the parts of this build.

use crate::search::cuda;

/// The text of `npubbot --version` after the program's name. Its line about kernels names the
/// compute capabilities that have machine code. If there are none, NVRTC compiles the kernels at
/// the first start.
pub(super) fn long() -> String {
    format!(
        "{}\ncommit: {}\ntarget: {}\n{}\nfeatures: {}",
        env!("CARGO_PKG_VERSION"),
        env!("NPUBBOT_COMMIT"),
        env!("NPUBBOT_TARGET"),
        cuda::BUILT_FOR_LINE,
        env!("NPUBBOT_FEATURES"),
    )
}
