//! The key under which the calibration of a GPU is kept.

use super::module::fingerprint;
use crate::search::options::{Preference, SearchOptions};
use cudarc::driver::{CudaContext, DriverError};

/// The key of a GPU's calibration: all that its measurement depends on.
pub(super) fn calibration_key(
    context: &CudaContext,
    compiler: &str,
    options: &SearchOptions,
) -> Result<String, DriverError> {
    let mut driver = 0;
    // SAFETY: the context has loaded the driver, and the pointer is valid.
    unsafe { cudarc::driver::sys::cuDriverGetVersion(&mut driver) }.result()?;
    let uuid: String = context.uuid()?.bytes.iter().map(|byte| format!("{byte:02x}")).collect();
    let memory = options.gpu_memory.map_or("half of its memory".to_owned(), |bytes| format!("{bytes} bytes"));
    let shared = options.shared_memory.map_or(String::new(), |bytes| format!("; {bytes} bytes shared"));
    let prefer = if options.prefer == Preference::Energy { "; energy" } else { "" };
    let (name, kernels) = (context.name()?, fingerprint());
    Ok(format!("{name} {uuid}; driver {driver}; kernels {kernels:016x} of {compiler}; {memory}{shared}{prefer}"))
}
