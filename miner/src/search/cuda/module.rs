//! The kernels as the driver loads them: code from the build, or compiled here by NVRTC.

use super::driver::{self, reason};
use super::nvrtc::Nvrtc;
use crate::search::options::KernelStore;
use crate::search::os;
use bitcoin_hashes::{Hash, sha256};
use cudarc::driver::{CudaContext, CudaFunction, CudaModule};
use cudarc::nvrtc::Ptx;
use std::sync::Arc;

/// The source of all kernels in one text, with the includes expanded.
const SOURCE: &str = include_str!(concat!(env!("OUT_DIR"), "/kernels.cu"));

/// Code of all kernels for one architecture.
struct Image {
    /// Compute capability: 90 for 9.0.
    architecture: u32,
    /// Whether it is PTX, which the driver compiles for this architecture or a newer one, and not
    /// machine code.
    is_ptx: bool,
    bytes: &'static [u8],
}

/// The build's code, by architecture.
const IMAGES: &[Image] = include!(concat!(env!("OUT_DIR"), "/images.rs"));

/// The compute capabilities for which the build has code, and its compiler, such as
/// `80 90+ptx by NVRTC 12.9`; `none` if it had no NVRTC.
pub const BUILT_FOR: &str = env!("NPUBBOT_KERNELS_BUILT");

/// [`BUILT_FOR`] as a line for people.
pub const BUILT_FOR_LINE: &str = concat!("CUDA kernels: ", env!("NPUBBOT_KERNELS_BUILT"));

/// The oldest NVRTC that knows all that the kernels use: early clobbers in inline PTX came with it.
const LEAST_NVRTC: (i32, i32) = (12, 1);

/// What helps if no code can be had for a GPU.
const NVRTC_REMEDY: &str = "install NVRTC 12.9, which driver 525 and newer take (`pip install \
                            nvidia-cuda-nvrtc-cu12==12.9.86`), and name its libnvrtc.so.12 in NPUBBOT_NVRTC; or use a \
                            release of npubbot, which has the kernels in it";

/// The assembler's report on all kernels that the build compiled; empty if it had no NVRTC.
#[cfg(feature = "test-util")]
pub const ASSEMBLER_REPORT: &str = include_str!(concat!(env!("OUT_DIR"), "/assembler.txt"));

/// The module of the kernels, and those of them that change the filter and recompute suspects.
pub struct Kernels {
    pub module: Arc<CudaModule>,
    pub confirm: CudaFunction,
    pub build_filter: CudaFunction,
    /// The compiler of the kernels, such as `NVRTC 12.9`.
    pub compiler: String,
}

impl Kernels {
    /// Loads the kernels. `store` keeps what is compiled here.
    pub fn load(context: &Arc<CudaContext>, store: Option<&dyn KernelStore>) -> Result<Kernels, String> {
        let (module, compiler) = load(context, store)?;
        let function =
            |name: &str| module.load_function(name).map_err(|error| format!("kernel {name}: {}", reason(error)));
        Ok(Kernels { confirm: function("confirm")?, build_filter: function("build_filter")?, compiler, module })
    }
}

/// Loads the best code that the GPU's driver takes: of the build, else of a compiler here.
fn load(context: &Arc<CudaContext>, store: Option<&dyn KernelStore>) -> Result<(Arc<CudaModule>, String), String> {
    let (major, minor) = context.compute_capability().map_err(reason)?;
    let capability = (10 * major + minor) as u32;
    let mut refused = Vec::new();
    for image in for_gpu(IMAGES, capability) {
        match context.load_module(code(image.bytes, image.is_ptx)) {
            Ok(module) => return Ok((module, BUILT_FOR.rsplit("by ").next().unwrap_or_default().to_owned())),
            Err(error) => {
                let kind = if image.is_ptx { "PTX" } else { "code" };
                refused.push(format!("the build's {kind} for {}: {}", image.architecture, reason(error)));
            }
        }
    }
    let here = |image: &[u8], is_ptx: bool| context.load_module(code(image, is_ptx)).map_err(reason);
    let compilers = os::nvrtc_names().into_iter().filter_map(|name| Nvrtc::load(&name));
    for nvrtc in compilers {
        let (name, tried) = match &nvrtc {
            Ok(nvrtc) => (nvrtc.name(), compiled(nvrtc, capability, store, here)),
            Err(reason) => ("NVRTC".to_owned(), Err(reason.clone())),
        };
        match tried {
            Ok(module) => return Ok((module, name)),
            Err(reason) => refused.push(format!("{name}: {reason}")),
        }
    }
    if refused.is_empty() {
        refused.push("this build has no kernels in it, and NVRTC is not there".to_owned());
    }
    let cuda = driver::version().map_or_else(|_| "unknown".to_owned(), driver::dotted);
    Err(format!(
        "no kernels for this GPU (compute capability {major}.{minor}, driver for CUDA {cuda}): {}; {NVRTC_REMEDY}",
        refused.join("; ")
    ))
}

/// The images that may run on a GPU, best first: machine code for its generation, then PTX.
fn for_gpu(images: &'static [Image], capability: u32) -> Vec<&'static Image> {
    let runs = |image: &&Image| {
        image.architecture <= capability && (image.is_ptx || image.architecture / 10 == capability / 10)
    };
    let mut images: Vec<_> = images.iter().filter(runs).collect();
    images.sort_by_key(|image| (image.is_ptx, u32::MAX - image.architecture));
    images
}

fn code(image: &[u8], is_ptx: bool) -> Ptx {
    if is_ptx {
        Ptx::from_src(String::from_utf8_lossy(image).trim_end_matches('\0'))
    } else {
        Ptx::from_binary(image.to_vec())
    }
}

/// What a compiler makes for a GPU: machine code for its generation, else PTX of an older one.
#[derive(Clone, PartialEq, Eq, Debug)]
struct Target {
    architecture: u32,
    is_ptx: bool,
}

impl Target {
    /// The best target that the compiler knows.
    fn of(nvrtc: &Nvrtc, capability: u32) -> Result<Target, String> {
        if nvrtc.version < LEAST_NVRTC {
            return Err("it is too old for these kernels; 12.1 is the oldest that compiles them".to_owned());
        }
        let known = nvrtc.architectures.iter().copied().filter(|&known| known <= capability).max();
        let architecture = known.ok_or("it knows neither this GPU nor an older one")?;
        Ok(Target { architecture, is_ptx: architecture / 10 != capability / 10 })
    }

    fn name(&self) -> String {
        format!("{}_{}", if self.is_ptx { "compute" } else { "sm" }, self.architecture)
    }
}

/// Kernels of this compiler, loaded by `load`: those that an earlier start kept, or new ones.
fn compiled<M>(
    nvrtc: &Nvrtc,
    capability: u32,
    store: Option<&dyn KernelStore>,
    load: impl Fn(&[u8], bool) -> Result<M, String>,
) -> Result<M, String> {
    let target = Target::of(nvrtc, capability)?;
    let key = format!("{} for {}, npubbot {}", nvrtc.name(), target.name(), fingerprint());
    let file = format!("kernels-{}", short_hash(key.as_bytes()));
    let kept = store.and_then(|store| unsealed(&key, store.get(&file)?));
    if let Some(module) = kept.and_then(|image| load(&image, target.is_ptx).ok()) {
        return Ok(module);
    }
    // A warning, because people who start a command see these and would wonder at the silence.
    tracing::warn!(
        compiler = nvrtc.name(),
        architecture = target.name(),
        "compiling the GPU's kernels, which takes a minute or two; the next start has them"
    );
    let image = image_for(nvrtc, &target)?;
    let module = load(&image, target.is_ptx)?;
    if let Some(store) = store {
        store.put(&file, &sealed(&key, &image));
    }
    Ok(module)
}

fn image_for(nvrtc: &Nvrtc, target: &Target) -> Result<Vec<u8>, String> {
    let compiled = nvrtc.compile(SOURCE, &target.name(), &["--std=c++17"])?;
    Ok(if target.is_ptx { compiled.ptx } else { compiled.machine_code })
}

/// A text that changes with the kernels and with the compiler of the build.
pub fn fingerprint() -> String {
    short_hash([SOURCE, BUILT_FOR].concat().as_bytes())
}

/// The first 64 bits of a SHA-256, in hexadecimal digits.
fn short_hash(bytes: &[u8]) -> String {
    sha256::Hash::hash(bytes).to_string()[..16].to_owned()
}

fn checksum(key: &str, image: &[u8]) -> [u8; 32] {
    sha256::Hash::hash(&[key.as_bytes(), &b"\n"[..], image].concat()).to_byte_array()
}

/// An image with a checksum before it, so that a damaged file is never given to the driver.
fn sealed(key: &str, image: &[u8]) -> Vec<u8> {
    [&checksum(key, image)[..], image].concat()
}

fn unsealed(key: &str, sealed: Vec<u8>) -> Option<Vec<u8>> {
    let (sum, image) = sealed.split_at_checked(32)?;
    (sum == checksum(key, image)).then(|| image.to_vec())
}

/// Compiles the kernels with the NVRTC that is here, for a compute capability such as 90. `None`
/// without NVRTC.
pub fn compile_for(capability: u32) -> Option<Result<(), String>> {
    let nvrtc = os::nvrtc_names().into_iter().find_map(|name| Nvrtc::load(&name))?;
    Some(nvrtc.and_then(|nvrtc| image_for(&nvrtc, &Target::of(&nvrtc, capability)?).map(|_| ())))
}

/// The compilers that are here: the names of those that can be used.
pub fn compilers() -> Vec<String> {
    let mut names: Vec<String> = os::nvrtc_names()
        .into_iter()
        .filter_map(|name| Nvrtc::load(&name)?.ok())
        .filter(|nvrtc| nvrtc.version >= LEAST_NVRTC)
        .map(|nvrtc| nvrtc.name())
        .collect();
    names.dedup();
    names
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_gpu_gets_the_code_of_its_generation_first_and_ptx_of_an_older_one_after_it() {
        const fn image(architecture: u32, is_ptx: bool) -> Image {
            Image { architecture, is_ptx, bytes: &[] }
        }
        const BUILT: &[Image] = &[
            image(75, false),
            image(80, false),
            image(86, false),
            image(90, false),
            image(100, false),
            image(100, true),
            image(120, false),
        ];
        let names = |capability: u32| -> Vec<String> {
            let name = |image: &&Image| format!("{}{}", image.architecture, if image.is_ptx { "+ptx" } else { "" });
            for_gpu(BUILT, capability).iter().map(name).collect()
        };
        assert_eq!(names(75), ["75"]);
        assert_eq!(names(86), ["86", "80"]);
        assert_eq!(names(89), ["86", "80"]);
        assert_eq!(names(90), ["90"]);
        assert_eq!(names(103), ["100", "100+ptx"]);
        assert_eq!(names(121), ["120", "100+ptx"]);
        assert_eq!(names(130), ["100+ptx"], "a GPU that is newer than all");
        assert!(names(70).is_empty());
    }

    #[test]
    fn a_damaged_kernel_of_an_earlier_start_is_not_loaded() {
        let whole = sealed("key", b"machine code");
        assert_eq!(unsealed("key", whole.clone()).unwrap(), b"machine code");
        assert_eq!(unsealed("another", whole.clone()), None);
        for length in 0..whole.len() {
            assert_eq!(unsealed("key", whole[..length].to_vec()), None, "{length} bytes");
        }
        for at in 0..whole.len() {
            let mut damaged = whole.clone();
            damaged[at] ^= 1;
            assert_eq!(unsealed("key", damaged), None, "byte {at}");
        }
    }
}
