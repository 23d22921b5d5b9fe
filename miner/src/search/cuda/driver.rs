//! The NVIDIA driver, loaded at run time: whether it can be used, and its errors in words.
//!
//! `cudarc` panics at the first call of a function that the driver's library lacks. So
//! [`check`] looks for all of them before the first call, and [`guarded`] makes an error of a panic
//! that comes nevertheless.

use crate::search::device::DeviceId;
use crate::search::error::SearchError;
use cudarc::driver::DriverError;
use cudarc::driver::sys;
use std::any::Any;
use std::ffi::CStr;
use std::panic::{AssertUnwindSafe, catch_unwind};

/// The least version of CUDA that the driver must serve, as the driver counts: that of driver 525.
/// `cudarc`'s feature `cuda-12000` leaves out every function that is newer.
const LEAST_CUDA: i32 = 12000;

/// The functions that we call, directly or through `cudarc`. A driver without one of them is not
/// used. A test runs against a library that has these only.
pub const FUNCTIONS: &[&str] = &[
    "cuCtxGetCurrent",
    "cuCtxSetCurrent",
    "cuCtxSynchronize",
    "cuDeviceGet",
    "cuDeviceGetAttribute",
    "cuDeviceGetCount",
    "cuDeviceGetName",
    "cuDeviceGetPCIBusId",
    "cuDeviceGetUuid",
    "cuDevicePrimaryCtxRelease_v2",
    "cuDevicePrimaryCtxRetain",
    "cuDevicePrimaryCtxSetFlags_v2",
    "cuDeviceTotalMem_v2",
    "cuDriverGetVersion",
    "cuEventCreate",
    "cuEventDestroy_v2",
    "cuEventElapsedTime",
    "cuEventRecord",
    "cuEventSynchronize",
    "cuFuncSetAttribute",
    "cuGetErrorString",
    "cuInit",
    "cuLaunchKernel",
    "cuMemAllocAsync",
    "cuMemAlloc_v2",
    "cuMemFreeAsync",
    "cuMemFreeHost",
    "cuMemFree_v2",
    "cuMemGetInfo_v2",
    "cuMemHostAlloc",
    "cuMemcpyDtoHAsync_v2",
    "cuMemcpyHtoDAsync_v2",
    "cuMemsetD8Async",
    "cuModuleGetFunction",
    "cuModuleLoadData",
    "cuModuleUnload",
    "cuStreamCreate",
    "cuStreamDestroy_v2",
    "cuStreamSynchronize",
    "cuStreamWaitEvent",
];

/// Finds out whether the driver can be used. Errors: the reason why not, with the remedy.
pub fn check() -> Result<(), String> {
    // SAFETY: this only tries to load the library.
    if !unsafe { sys::is_culib_present() } {
        return Err(
            "the NVIDIA driver's library (libcuda) is not there; install driver 525 or newer, or search on the CPU"
                .into(),
        );
    }
    // SAFETY: the library is there.
    let library = unsafe { sys::culib() };
    // SAFETY: the address is only compared, not called.
    let has = |name: &str| unsafe { library.get::<*const ()>(name.as_bytes()) }.is_ok();
    if has("cuDriverGetVersion") {
        let version = version()?;
        if version < LEAST_CUDA {
            let served = dotted(version);
            return Err(format!("the NVIDIA driver is too old: it serves CUDA {served}; install 525 or newer"));
        }
    }
    match FUNCTIONS.iter().find(|&&name| !has(name)) {
        Some(missing) => Err(format!(
            "the NVIDIA driver's library lacks {missing}, which driver 525 and all newer ones have; install the driver \
             again, or a newer one"
        )),
        None => Ok(()),
    }
}

/// The newest version of CUDA that the driver serves, such as 12020 for 12.2. The library must be
/// there.
pub fn version() -> Result<i32, String> {
    let mut version = 0;
    // SAFETY: the pointer is valid.
    unsafe { sys::cuDriverGetVersion(&mut version) }.result().map_err(reason)?;
    Ok(version)
}

/// A version of CUDA as people write it: 12020 is 12.2.
pub fn dotted(version: i32) -> String {
    format!("{}.{}", version / 1000, version % 1000 / 10)
}

/// Calls `act`, which uses a device. A panic there, such as `cudarc`'s at a missing function, is an
/// error of the device.
pub fn guarded<T>(device: DeviceId, act: impl FnOnce() -> Result<T, SearchError>) -> Result<T, SearchError> {
    catch_unwind(AssertUnwindSafe(act)).unwrap_or_else(|panic| {
        let reason = format!("a call of the NVIDIA driver panicked ({}); update the driver", panic_text(&*panic));
        Err(SearchError::DeviceFailed { device, reason })
    })
}

fn panic_text(panic: &(dyn Any + Send)) -> &str {
    let text = panic.downcast_ref::<String>().map(String::as_str);
    text.or_else(|| panic.downcast_ref::<&str>().copied()).unwrap_or("no text")
}

/// What happened, and the remedy if there is one, in words.
pub fn reason(error: DriverError) -> String {
    // A newer driver has errors that the enumeration lacks, so only the number is looked at.
    let code = error.0 as u32;
    let text = match sentence(code) {
        Some(sentence) => sentence.to_owned(),
        None => driver_text(error).unwrap_or_else(|| "the NVIDIA driver reports an error".to_owned()),
    };
    format!("{text} (CUDA error {code})")
}

/// The driver's own text for an error.
fn driver_text(error: DriverError) -> Option<String> {
    let mut text = std::ptr::null();
    // SAFETY: the pointer is valid; the driver sets it to a constant text, or to null.
    let text = catch_unwind(move || unsafe {
        sys::cuGetErrorString(error.0, &mut text).result().ok()?;
        (!text.is_null()).then(|| CStr::from_ptr(text).to_string_lossy().into_owned())
    });
    text.ok().flatten()
}

/// What an error means and what helps. The numbers are those of `cuda.h` (`CUresult`).
fn sentence(code: u32) -> Option<&'static str> {
    Some(match code {
        2 => "the GPU has too little free memory; end other programs that use it, or lower `gpu_memory`",
        34 => {
            "the library that was loaded is the CUDA toolkit's stub, not the driver; take the folder `stubs` out of \
             LD_LIBRARY_PATH, or install the driver"
        }
        46 => "another program has the GPU for itself; end it, or ask `nvidia-smi -q -d COMPUTE` for the compute mode",
        100 => {
            "the NVIDIA driver sees no GPU; `nvidia-smi -L` must list one, a container needs `--gpus all`, and \
             CUDA_VISIBLE_DEVICES must not hide it"
        }
        101 => "there is no GPU of this number; `nvidia-smi -L` lists them",
        209 => "these kernels have no code for this GPU",
        214 | 220 => "the GPU's memory or its link has an error that cannot be corrected; `nvidia-smi -q` says more",
        222 => "the NVIDIA driver is older than the compiler of these kernels; install a newer driver",
        800 => "this user may not use the GPU; the system's log or the container's settings say why",
        802 => {
            "the GPUs of this machine are not ready; start the service nvidia-fabricmanager (in the version of the \
             driver), then npubbot again"
        }
        803 => {
            "the driver's library and its kernel module have different versions; restart the machine, or give the \
             container the driver of its host"
        }
        804 => {
            "the library of CUDA's forward compatibility (cuda-compat) does not work with this GPU; take it out of \
             LD_LIBRARY_PATH, or install a newer driver on the host"
        }
        999 => {
            "the NVIDIA driver fails and does not say why; `nvidia-modprobe -u` loads a module that is often missing, \
             else restart the machine"
        }
        _ => return None,
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use cudarc::driver::sys::CUresult;

    #[test]
    fn an_error_is_a_sentence_with_a_remedy() {
        for (code, remedy) in [
            (CUresult::CUDA_ERROR_STUB_LIBRARY, "LD_LIBRARY_PATH"),
            (CUresult::CUDA_ERROR_NO_DEVICE, "--gpus all"),
            (CUresult::CUDA_ERROR_SYSTEM_NOT_READY, "nvidia-fabricmanager"),
            (CUresult::CUDA_ERROR_SYSTEM_DRIVER_MISMATCH, "restart the machine"),
            (CUresult::CUDA_ERROR_COMPAT_NOT_SUPPORTED_ON_DEVICE, "cuda-compat"),
            (CUresult::CUDA_ERROR_UNKNOWN, "nvidia-modprobe"),
            (CUresult::CUDA_ERROR_OUT_OF_MEMORY, "`gpu_memory`"),
        ] {
            let said = reason(DriverError(code));
            assert!(said.contains(remedy) && said.contains(&format!("(CUDA error {})", code as u32)), "{said}");
        }
    }

    #[test]
    fn a_panic_while_a_device_is_used_is_an_error_of_the_device() {
        let failed = guarded(DeviceId::Cuda(1), || -> Result<(), _> { panic!("Missing symbol {}", "cuNewest") });
        let said = failed.unwrap_err().to_string();
        assert!(said.contains("cuda:1") && said.contains("Missing symbol cuNewest"), "{said}");
        assert_eq!(guarded(DeviceId::Cuda(0), || Ok(7)).unwrap(), 7);
    }
}
