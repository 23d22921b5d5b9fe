//! The search on NVIDIA GPUs: the kernels of `kernels/`, fed and read by one [`Searcher`] per GPU.
//!
//! The driver is loaded at run time. Without it, every function here returns an error text and none
//! panics.

mod abi;
/// The constants of `kernels/constants.h`. `build.rs` generates them.
#[allow(dead_code, missing_docs, reason = "some are only used by the kernels")]
#[doc(hidden)]
pub mod constants {
    include!(concat!(env!("OUT_DIR"), "/constants.rs"));
}
mod driver;
mod filter;
mod geometry;
mod key_tests;
mod launch;
mod module;
mod nvrtc;
mod pace;
pub mod probe;
mod searcher;
mod tables;
#[cfg(feature = "test-util")]
mod trap;

#[doc(hidden)]
pub use driver::FUNCTIONS as DRIVER_FUNCTIONS;
#[cfg(feature = "test-util")]
pub use module::ASSEMBLER_REPORT;
pub use module::BUILT_FOR_LINE;
#[doc(hidden)]
pub use module::compile_for;

use super::device::DeviceId;
use super::error::SearchError;
use super::options::SearchOptions;
use super::searcher::Searcher;
use cudarc::driver::sys::{self, CUctx_flags, CUresult};
use cudarc::driver::{CudaContext, CudaModule, DriverError, result};
use std::sync::Arc;

/// The number of GPUs, 1 or more. Errors: the reason why none can be used.
pub fn device_count() -> Result<usize, String> {
    driver::check()?;
    match CudaContext::device_count() {
        Ok(count) if count > 0 => Ok(count as usize),
        Ok(_) => Err(driver::reason(DriverError(CUresult::CUDA_ERROR_NO_DEVICE))),
        Err(error) => Err(driver::reason(error)),
    }
}

/// Opens GPU number `ordinal`. Computing its tables and measuring its speed takes some tenths of a
/// second. Nothing is measured if `options` have the figures of an earlier start. Their choice of
/// devices is ignored. The GPU's power is capped as they say until the searcher is dropped.
pub fn open(ordinal: usize, options: &SearchOptions) -> Result<Box<dyn Searcher>, SearchError> {
    let id = DeviceId::Cuda(ordinal);
    driver::guarded(id, || {
        let mut searcher = searcher(ordinal, options)?;
        if let Some(watts) = options.restraints.caps_of(id).watts {
            searcher.cap_power(ordinal, watts);
        }
        Ok(Box::new(searcher) as Box<dyn Searcher>)
    })
}

/// PCI address of GPU number `ordinal`, such as `0000:1b:00.0`. Other libraries of the driver name
/// a GPU by it.
pub(super) fn pci_bus_id(ordinal: usize) -> Option<String> {
    let context = context(ordinal).ok()?;
    let mut text = [0; 32];
    // SAFETY: `context` has found the driver. It writes at most the number of bytes it is given.
    let code = unsafe { sys::cuDeviceGetPCIBusId(text.as_mut_ptr(), text.len() as i32, context.cu_device()) };
    code.result().ok()?;
    let bytes: Vec<u8> = text.iter().take_while(|&&byte| byte != 0).map(|&byte| byte as u8).collect();
    String::from_utf8(bytes).ok()
}

fn searcher(ordinal: usize, options: &SearchOptions) -> Result<searcher::CudaSearcher, SearchError> {
    let missing = |reason| SearchError::NoSuchDevice { asked: format!("cuda:{ordinal}"), reason };
    device_count().map_err(missing)?;
    let context = std::thread::scope(|scope| {
        // The host computes its part of the tables while the driver starts.
        scope.spawn(tables::multiples);
        context(ordinal).map_err(missing)
    })?;
    searcher::CudaSearcher::open(ordinal, context, options)
}

/// The kernels, loaded on GPU number `ordinal`. Tests call some of them alone.
#[doc(hidden)]
pub fn kernels_on(ordinal: usize) -> Result<(Arc<CudaContext>, Arc<CudaModule>), String> {
    let context = context(ordinal)?;
    let kernels = module::Kernels::load(&context, None)?;
    Ok((context, kernels.module))
}

fn context(ordinal: usize) -> Result<Arc<CudaContext>, String> {
    let count = device_count()?;
    if ordinal >= count {
        return Err(format!("there are {count} GPUs, numbered from 0"));
    }
    let device = result::device::get(ordinal as i32).map_err(driver::reason)?;
    // The waiting host thread sleeps instead of spinning.
    // SAFETY: `device_count` has initialised the driver.
    unsafe { sys::cuDevicePrimaryCtxSetFlags_v2(device, CUctx_flags::CU_CTX_SCHED_BLOCKING_SYNC as u32) }
        .result()
        .map_err(driver::reason)?;
    let context = CudaContext::new(ordinal).map_err(driver::reason)?;
    // All work is ordered by one stream, so buffers need no events between them.
    // SAFETY: a searcher uses all its buffers on one stream, and reads them after the events of
    // that stream.
    unsafe { context.disable_event_tracking() };
    Ok(context)
}
