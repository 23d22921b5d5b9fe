//! The kernels as the driver loads them: machine code from the build, or compiled here by NVRTC.

use cudarc::driver::{CudaContext, CudaFunction, CudaModule};
use cudarc::nvrtc::{CompileOptions, Ptx, compile_ptx_with_opts};
use std::sync::Arc;

/// The source of all kernels in one text, with the includes expanded.
const SOURCE: &str = include_str!(concat!(env!("OUT_DIR"), "/kernels.cu"));

#[cfg(npubbot_fatbin)]
const FATBIN: Option<&[u8]> = Some(include_bytes!(concat!(env!("OUT_DIR"), "/kernels.fatbin")));
#[cfg(not(npubbot_fatbin))]
const FATBIN: Option<&[u8]> = None;

/// The compute capabilities for which the build has machine code, such as `80 90`; `none` if it had
/// no nvcc.
pub const BUILT_FOR: &str = env!("NPUBBOT_KERNELS_BUILT");

/// [`BUILT_FOR`] as a line for people: `CUDA kernels: 80 90`.
pub const BUILT_FOR_LINE: &str = concat!("CUDA kernels: ", env!("NPUBBOT_KERNELS_BUILT"));

/// The assembler's report on the machine code of a kernel.
#[cfg(feature = "test-util")]
#[derive(Clone, Copy, Debug)]
pub struct KernelReport {
    /// Its architecture, such as `90`.
    pub arch: &'static str,
    /// Name of the kernel.
    pub kernel: &'static str,
    /// Registers of a thread.
    pub registers: u32,
    /// Bytes of spilled registers that its instructions load again. Each instruction counts once.
    pub spilled: u32,
}

/// Reports on all kernels that the build compiled; none if it had no nvcc.
#[cfg(feature = "test-util")]
pub const KERNEL_REPORTS: &[KernelReport] = include!(concat!(env!("OUT_DIR"), "/machine_code.rs"));

pub fn nvrtc_is_present() -> bool {
    // SAFETY: this only tries to load the library.
    unsafe { cudarc::nvrtc::sys::is_culib_present() }
}

/// A number that changes with the kernels: FNV-1a over their source, the architectures they are
/// built for, and their compiled size.
pub fn fingerprint() -> u64 {
    let size = FATBIN.map_or(0, <[u8]>::len).to_le_bytes();
    let bytes = SOURCE.bytes().chain(BUILT_FOR.bytes()).chain(size);
    bytes.fold(0xcbf2_9ce4_8422_2325, |hash, byte| (hash ^ u64::from(byte)).wrapping_mul(0x0100_0000_01b3))
}

/// All kernels except those of the search itself, whose variants are in `variant.rs`.
pub struct Kernels {
    pub module: Arc<CudaModule>,
    pub whole_keys: CudaFunction,
    pub confirm: CudaFunction,
    pub build_table: CudaFunction,
    pub build_filter: CudaFunction,
    pub build_matrices: CudaFunction,
    pub build_groups: CudaFunction,
    pub probe: CudaFunction,
    /// The compiler of the kernels: `nvcc` or `NVRTC`.
    pub compiler: &'static str,
}

impl Kernels {
    pub fn load(context: &Arc<CudaContext>) -> Result<Kernels, String> {
        let (module, compiler) = match FATBIN.map(|image| context.load_module(Ptx::from_binary(image.to_vec()))) {
            Some(Ok(module)) => (module, "nvcc"),
            // The build may lack machine code for this GPU's architecture.
            Some(Err(error)) => {
                (compile(context).map_err(|reason| format!("its kernels do not load ({error}); {reason}"))?, "NVRTC")
            }
            None => (compile(context)?, "NVRTC"),
        };
        let function = |name: &str| module.load_function(name).map_err(|error| format!("kernel {name}: {error}"));
        Ok(Kernels {
            whole_keys: function("whole_keys")?,
            confirm: function("confirm")?,
            build_table: function("build_table")?,
            build_filter: function("build_filter")?,
            build_matrices: function("build_matrices")?,
            build_groups: function("build_groups")?,
            probe: function("probe")?,
            compiler,
            module,
        })
    }
}

fn compile(context: &Arc<CudaContext>) -> Result<Arc<CudaModule>, String> {
    if !nvrtc_is_present() {
        return Err("this build has no kernels for it and the NVRTC library is not there; install the CUDA toolkit's \
                    NVRTC (libnvrtc), or build with nvcc on the PATH"
            .to_owned());
    }
    let ptx = ptx_for(context.compute_capability().map_err(|error| error.to_string())?)?;
    context.load_module(ptx).map_err(|error| format!("the compiled kernels do not load: {error}"))
}

/// Compiles the kernels with NVRTC. Errors: the library is missing, or does not compile them.
pub fn ptx_for((major, minor): (i32, i32)) -> Result<Ptx, String> {
    let options = CompileOptions {
        options: vec![format!("--gpu-architecture=compute_{major}{minor}"), "--std=c++17".to_owned()],
        ..Default::default()
    };
    compile_ptx_with_opts(SOURCE, options).map_err(|error| format!("NVRTC refuses the kernels: {error}"))
}
