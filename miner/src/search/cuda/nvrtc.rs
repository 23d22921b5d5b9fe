//! NVIDIA's run-time compiler (NVRTC), loaded if it is there. `build.rs` includes this file: it
//! compiles the kernels of a release in the same way.

#![allow(dead_code, reason = "the library and build.rs each use a part of it")]

use libloading::Library;
use std::ffi::{CStr, CString, OsStr, c_char, c_int, c_void};

type Program = *mut c_void;
type SizeOf = unsafe extern "C" fn(Program, *mut usize) -> c_int;
type CopyOf = unsafe extern "C" fn(Program, *mut c_char) -> c_int;

/// The compiler.
pub struct Nvrtc {
    loaded: Library,
    /// Major and minor version, that of its CUDA toolkit.
    pub version: (i32, i32),
    /// The architectures that it knows, such as 90.
    pub architectures: Vec<u32>,
}

/// What the compiler made of a source.
pub struct Compiled {
    /// Machine code; empty for a virtual architecture (`compute_90`).
    pub machine_code: Vec<u8>,
    /// PTX, which the driver compiles.
    pub ptx: Vec<u8>,
    /// Warnings and reports.
    pub log: String,
}

impl Nvrtc {
    /// Loads the library of this name or path. `None` if it is not there. Errors: it is not NVRTC,
    /// or too old to name its architectures (before 11.2).
    pub fn load(name: &OsStr) -> Option<Result<Nvrtc, String>> {
        // SAFETY: this is NVIDIA's own library. Its initialisers may run in any process.
        let library = unsafe { Library::new(name) }.ok()?;
        Some(Nvrtc::of(library).map_err(|reason| format!("{}: {reason}", name.display())))
    }

    fn of(library: Library) -> Result<Nvrtc, String> {
        let (mut major, mut minor, mut count) = (0, 0, 0);
        // SAFETY: the functions have these types (nvrtc.h), the pointers are valid during the calls,
        // and the array has as many places as the library asked for.
        let architectures = unsafe {
            let version: unsafe extern "C" fn(*mut c_int, *mut c_int) -> c_int = symbol(&library, "nvrtcVersion")?;
            check_status(&library, version(&mut major, &mut minor))?;
            let counted: unsafe extern "C" fn(*mut c_int) -> c_int = symbol(&library, "nvrtcGetNumSupportedArchs")?;
            check_status(&library, counted(&mut count))?;
            let mut architectures = vec![0 as c_int; usize::try_from(count).unwrap_or(0)];
            let list: unsafe extern "C" fn(*mut c_int) -> c_int = symbol(&library, "nvrtcGetSupportedArchs")?;
            check_status(&library, list(architectures.as_mut_ptr()))?;
            architectures
        };
        let architectures = architectures.into_iter().filter_map(|number| u32::try_from(number).ok()).collect();
        Ok(Nvrtc { loaded: library, version: (major, minor), architectures })
    }

    /// The name for people and keys, such as `NVRTC 12.9`.
    pub fn name(&self) -> String {
        format!("NVRTC {}.{}", self.version.0, self.version.1)
    }

    /// Compiles a source for an architecture: `sm_90`, or `compute_90` for PTX only.
    pub fn compile(&self, source: &str, architecture: &str, options: &[&str]) -> Result<Compiled, String> {
        let text = |text: &str| CString::new(text).map_err(|error| error.to_string());
        let (source, architecture) = (text(source)?, text(&format!("--gpu-architecture={architecture}"))?);
        let options = options.iter().map(|option| text(option)).collect::<Result<Vec<_>, _>>()?;
        let options: Vec<*const c_char> =
            [&architecture].into_iter().chain(&options).map(|option| option.as_ptr()).collect();
        let mut program: Program = std::ptr::null_mut();
        type Create = unsafe extern "C" fn(
            *mut Program,
            *const c_char,
            *const c_char,
            c_int,
            *const *const c_char,
            *const *const c_char,
        ) -> c_int;
        // SAFETY: the functions have these types (nvrtc.h), and all texts live until the end.
        unsafe {
            let create: Create = symbol(&self.loaded, "nvrtcCreateProgram")?;
            let none = std::ptr::null();
            check_status(&self.loaded, create(&mut program, source.as_ptr(), c"kernels.cu".as_ptr(), 0, none, none))?;
            let compile: unsafe extern "C" fn(Program, c_int, *const *const c_char) -> c_int =
                symbol(&self.loaded, "nvrtcCompileProgram")?;
            let compiled = check_status(&self.loaded, compile(program, options.len() as c_int, options.as_ptr()));
            let result = self.output(program, compiled);
            if let Ok(destroy) =
                symbol::<unsafe extern "C" fn(*mut Program) -> c_int>(&self.loaded, "nvrtcDestroyProgram")
            {
                destroy(&mut program);
            }
            result
        }
    }

    /// # Safety
    ///
    /// The program is of this library.
    unsafe fn output(&self, program: Program, compiled: Result<(), String>) -> Result<Compiled, String> {
        let read = |size: &str, copy: &str| -> Result<Vec<u8>, String> {
            // SAFETY: the functions have these types (nvrtc.h), and the buffer has the size that
            // the library asked for.
            unsafe {
                let (size, copy): (SizeOf, CopyOf) = (symbol(&self.loaded, size)?, symbol(&self.loaded, copy)?);
                let mut bytes = 0;
                check_status(&self.loaded, size(program, &mut bytes))?;
                let mut buffer = vec![0u8; bytes];
                if bytes > 0 {
                    check_status(&self.loaded, copy(program, buffer.as_mut_ptr().cast()))?;
                }
                Ok(buffer)
            }
        };
        let log = read("nvrtcGetProgramLogSize", "nvrtcGetProgramLog")?;
        let log = String::from_utf8_lossy(&log).trim_end_matches('\0').trim_end().to_owned();
        // The first errors are enough for people.
        compiled.map_err(|reason| format!("{reason}: {}", log.lines().take(5).collect::<Vec<_>>().join("; ")))?;
        Ok(Compiled {
            machine_code: read("nvrtcGetCUBINSize", "nvrtcGetCUBIN")?,
            ptx: read("nvrtcGetPTXSize", "nvrtcGetPTX")?,
            log,
        })
    }
}

/// # Safety
///
/// The symbol is a function of type `F`.
unsafe fn symbol<F: Copy>(library: &Library, name: &str) -> Result<F, String> {
    // SAFETY: the caller knows the type.
    unsafe { library.get::<F>(name.as_bytes()) }.map(|found| *found).map_err(|_| format!("it lacks {name}"))
}

/// An error for every code but success.
fn check_status(library: &Library, code: c_int) -> Result<(), String> {
    if code == 0 {
        return Ok(());
    }
    // SAFETY: the function has this type (nvrtc.h), and returns a constant text.
    let text = unsafe {
        symbol::<unsafe extern "C" fn(c_int) -> *const c_char>(library, "nvrtcGetErrorString")
            .ok()
            .map(|text| text(code))
            .filter(|text| !text.is_null())
            .map(|text| CStr::from_ptr(text).to_string_lossy().into_owned())
    };
    Err(text.unwrap_or_else(|| format!("error {code}")))
}
