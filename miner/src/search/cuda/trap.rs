//! A GPU that fails, for tests: a kernel that traps, in the context of the search.

use cudarc::driver::{CudaFunction, CudaStream, DriverError, LaunchConfig};
use cudarc::nvrtc::Ptx;
use std::sync::Arc;

/// Names the GPU that fails and the launch at which it does, such as `0:60`.
const VARIABLE: &str = "NPUBBOT_TEST_TRAP";
const KERNEL: &str = ".version 7.0\n.target sm_70\n.address_size 64\n.visible .entry boom() { trap; }\n";

/// The failure to come.
pub struct Trap {
    kernel: CudaFunction,
    launches_left: u32,
}

impl Trap {
    /// The failure of this GPU; `None` if it has none to come.
    pub fn of_environment(ordinal: usize, stream: &Arc<CudaStream>) -> Result<Option<Trap>, DriverError> {
        let value = std::env::var(VARIABLE).unwrap_or_default();
        let Some((gpu, launches)) = value.split_once(':').filter(|(gpu, _)| *gpu == ordinal.to_string()) else {
            return Ok(None);
        };
        tracing::info!(gpu, launches, "this GPU will trap");
        let kernel = stream.context().load_module(Ptx::from_src(KERNEL))?.load_function("boom")?;
        Ok(Some(Trap { kernel, launches_left: launches.parse().unwrap_or(0) }))
    }

    /// Counts a launch, and traps if it is the last one.
    pub fn count_launch(&mut self, stream: &Arc<CudaStream>) -> Result<(), DriverError> {
        self.launches_left = self.launches_left.saturating_sub(1);
        if self.launches_left == 0 {
            // SAFETY: the kernel takes no arguments and touches no memory.
            unsafe { stream.launch_builder(&self.kernel).launch(LaunchConfig::for_num_elems(1)) }?;
        }
        Ok(())
    }
}
