//! NVIDIA's management library (NVML), loaded at run time if it is installed.

use super::os;
use libloading::{Library, Symbol};
use std::ffi::{CStr, CString, c_char, c_int, c_uint, c_ulonglong, c_void};

type Handle = *mut c_void;
const SUCCESS: c_int = 0;
/// `NVML_TEMPERATURE_GPU` of nvml.h.
const TEMPERATURE_OF_GPU: c_int = 0;
/// `NVML_SYSTEM_DRIVER_VERSION_BUFFER_SIZE` of nvml.h.
const VERSION_SIZE: usize = 80;
/// `NVML_CLOCK_SM` of nvml.h.
const CLOCK_OF_PROCESSORS: c_int = 1;

/// A GPU in NVML. The library stays loaded as long as this value lives.
#[derive(Debug)]
pub(super) struct Gpu {
    nvml: Library,
    handle: Handle,
}

// SAFETY: NVML's functions may be called from any thread, and we never dereference the handle.
unsafe impl Send for Gpu {}
// SAFETY: as for `Send`.
unsafe impl Sync for Gpu {}

impl Gpu {
    /// Opens the GPU at this PCI address. `None` if the library is missing or does not know the
    /// GPU.
    pub fn open(bus_id: &str) -> Option<Gpu> {
        let bus_id = CString::new(bus_id).ok()?;
        // SAFETY: this is the driver's own library. Its initialisers may run in any process.
        let nvml = unsafe { os::load_nvml() }.ok()?;
        let mut handle: Handle = std::ptr::null_mut();
        // SAFETY: the functions have these types (nvml.h), and the pointers are valid during the
        // calls.
        unsafe {
            let init = nvml.get::<unsafe extern "C" fn() -> c_int>(b"nvmlInit_v2\0").ok()?;
            let by_bus_id = nvml
                .get::<unsafe extern "C" fn(*const c_char, *mut Handle) -> c_int>(b"nvmlDeviceGetHandleByPciBusId_v2\0")
                .ok()?;
            if init() != SUCCESS || by_bus_id(bus_id.as_ptr(), &mut handle) != SUCCESS {
                return None;
            }
        }
        Some(Gpu { nvml, handle })
    }

    /// The driver's version, such as `580.159.04`.
    pub fn driver(&self) -> Option<String> {
        let mut text: [c_char; VERSION_SIZE] = [0; VERSION_SIZE];
        type Read = unsafe extern "C" fn(*mut c_char, c_uint) -> c_int;
        // SAFETY: the function has this type (nvml.h), and writes no more than the given length.
        unsafe {
            self.call::<Read>(b"nvmlSystemGetDriverVersion\0", |read| read(text.as_mut_ptr(), VERSION_SIZE as c_uint))
        }?;
        Some(CStr::from_bytes_until_nul(&text.map(|byte| byte as u8)).ok()?.to_str().ok()?.to_owned())
    }

    /// Joules since the driver was loaded.
    pub fn joules(&self) -> Option<f64> {
        let millijoules = self.value::<c_ulonglong>(b"nvmlDeviceGetTotalEnergyConsumption\0")?;
        Some(millijoules as f64 / 1e3)
    }

    /// Watts now.
    pub fn watts(&self) -> Option<f64> {
        self.value::<c_uint>(b"nvmlDeviceGetPowerUsage\0").map(|milliwatts| f64::from(milliwatts) / 1e3)
    }

    /// Temperature of the chip, degrees Celsius.
    pub fn celsius(&self) -> Option<f64> {
        self.value_of_kind(b"nvmlDeviceGetTemperature\0", TEMPERATURE_OF_GPU)
    }

    /// Clock of the multiprocessors, megahertz.
    pub fn megahertz(&self) -> Option<f64> {
        self.value_of_kind(b"nvmlDeviceGetClockInfo\0", CLOCK_OF_PROCESSORS)
    }

    /// The power limit in force, watts.
    pub fn power_limit(&self) -> Option<f64> {
        self.value::<c_uint>(b"nvmlDeviceGetPowerManagementLimit\0").map(|milliwatts| f64::from(milliwatts) / 1e3)
    }

    /// The smallest and the largest power limit that the GPU accepts, watts.
    pub fn power_limits(&self) -> Option<(f64, f64)> {
        let (mut least, mut most): (c_uint, c_uint) = (0, 0);
        type Limits = unsafe extern "C" fn(Handle, *mut c_uint, *mut c_uint) -> c_int;
        let name = b"nvmlDeviceGetPowerManagementLimitConstraints\0";
        // SAFETY: the function has this type (nvml.h), and the pointers are valid.
        unsafe { self.call::<Limits>(name, |limits| limits(self.handle, &mut least, &mut most)) }?;
        Some((f64::from(least) / 1e3, f64::from(most) / 1e3))
    }

    /// Sets the power limit, watts. `None` if the driver refuses; only root may.
    pub fn set_power_limit(&self, watts: f64) -> Option<()> {
        type Set = unsafe extern "C" fn(Handle, c_uint) -> c_int;
        let milliwatts = (watts * 1e3).round() as c_uint;
        // SAFETY: the function has this type (nvml.h).
        unsafe { self.call::<Set>(b"nvmlDeviceSetPowerManagementLimit\0", |set| set(self.handle, milliwatts)) }
    }

    /// What the function of this name writes: one number about the GPU.
    fn value<T: Default>(&self, name: &[u8]) -> Option<T> {
        let mut value = T::default();
        type Read<T> = unsafe extern "C" fn(Handle, *mut T) -> c_int;
        // SAFETY: the functions named above have this type (nvml.h) for their `T`; the pointer is valid.
        unsafe { self.call::<Read<T>>(name, |read| read(self.handle, &mut value)) }?;
        Some(value)
    }

    /// The same of a function that takes the kind of a sensor or clock.
    fn value_of_kind(&self, name: &[u8], kind: c_int) -> Option<f64> {
        let mut value: c_uint = 0;
        type Read = unsafe extern "C" fn(Handle, c_int, *mut c_uint) -> c_int;
        // SAFETY: both functions have this type (nvml.h), and the pointer is valid.
        unsafe { self.call::<Read>(name, |read| read(self.handle, kind, &mut value)) }?;
        Some(f64::from(value))
    }

    /// Calls a function of NVML. `None` if the library lacks it, or it fails.
    ///
    /// # Safety
    ///
    /// The function has the type `F`.
    unsafe fn call<F>(&self, name: &[u8], call: impl FnOnce(Symbol<F>) -> c_int) -> Option<()> {
        // SAFETY: the caller knows the type.
        let function = unsafe { self.nvml.get::<F>(name) }.ok()?;
        (call(function) == SUCCESS).then_some(())
    }
}

/// A capped GPU. Dropping this restores the earlier limit.
#[derive(Debug)]
pub(super) struct PowerCap {
    gpu: Gpu,
    former: f64,
}

impl PowerCap {
    /// Caps the power of a GPU, `None` if NVML does not know it, until the value is dropped.
    ///
    /// Errors: the reason why the power cannot be capped, in words for the operator.
    pub fn new(gpu: Option<Gpu>, ordinal: usize, watts: f64) -> Result<PowerCap, String> {
        let gpu = gpu.ok_or_else(|| "NVIDIA's management library (NVML) does not know it".to_owned())?;
        let former = gpu.power_limit().ok_or_else(|| "its power limit cannot be read".to_owned())?;
        let (least, most) = gpu.power_limits().ok_or_else(|| "its power limits cannot be read".to_owned())?;
        if !(least..=most).contains(&watts) {
            return Err(format!("it takes limits from {least:.0} to {most:.0} W"));
        }
        gpu.set_power_limit(watts).ok_or_else(|| {
            format!(
                "the driver does not let this user set its power limit; as root: nvidia-smi -i {ordinal} -pl {watts:.0}"
            )
        })?;
        Ok(PowerCap { gpu, former })
    }
}

impl Drop for PowerCap {
    fn drop(&mut self) {
        // If this fails, there is nobody left to tell. The next start caps the GPU again.
        self.gpu.set_power_limit(self.former);
    }
}

impl Drop for Gpu {
    fn drop(&mut self) {
        // SAFETY: the function has this type (nvml.h). `open` initialised the library once, and
        // this undoes it.
        unsafe {
            if let Ok(shutdown) = self.nvml.get::<unsafe extern "C" fn() -> c_int>(b"nvmlShutdown\0") {
                shutdown();
            }
        }
    }
}
