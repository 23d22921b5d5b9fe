//! The walls around the vault process. Windows has fewer than Linux: the bot keeps a handle to the
//! process, and the process keeps its access to files and the network.

use super::acl::Own;
use crate::os::MissingWall;
use std::io;
use windows_sys::Win32::Security::{DACL_SECURITY_INFORMATION, SetKernelObjectSecurity};
use windows_sys::Win32::System::Threading::{
    GetCurrentProcess, PROCESS_MITIGATION_POLICY, ProcessChildProcessPolicy, ProcessDynamicCodePolicy,
    ProcessExtensionPointDisablePolicy, SetProcessMitigationPolicy,
};

/// The missing walls.
pub type Missing = Vec<MissingWall>;

/// Policies of the process, each with the consequence if it cannot be set. Only the first flag of
/// each policy is set.
const POLICIES: [(PROCESS_MITIGATION_POLICY, &str); 3] = [
    (ProcessChildProcessPolicy, "it could start programs"),
    (ProcessDynamicCodePolicy, "code that is brought in could run in it"),
    (ProcessExtensionPointDisablePolicy, "libraries of other programs are loaded into it"),
];

/// Hides the memory of the process from other programs of the same user. Call it first, before
/// there is a secret.
pub fn hide() -> Missing {
    let mut missing = Missing::new();
    if let Err(error) = close_process() {
        missing.push(MissingWall::sandbox(format!("other programs of this user may read its memory ({error})")));
    }
    missing.push(MissingWall::precaution("its memory may be swapped to disk"));
    missing
}

fn close_process() -> io::Result<()> {
    let own = Own::process()?;
    // SAFETY: the descriptor is valid as long as `own`.
    match unsafe { SetKernelObjectSecurity(GetCurrentProcess(), DACL_SECURITY_INFORMATION, own.descriptor()) } {
        0 => Err(io::Error::last_os_error()),
        _ => Ok(()),
    }
}

/// Sets the policies, so that the process gains no new rights. Call it once the identity is open.
pub fn enclose() -> Missing {
    let mut missing = Missing::new();
    for (policy, loss) in POLICIES {
        let flags = 1u32;
        // SAFETY: each of these policies is a structure of one word of flags.
        if unsafe { SetProcessMitigationPolicy(policy, (&raw const flags).cast(), size_of::<u32>()) } == 0 {
            missing.push(MissingWall::sandbox(format!("{loss} ({})", io::Error::last_os_error())));
        }
    }
    missing
}

/// Does nothing. Returns that Windows has no walls.
pub fn enclose_device() -> Missing {
    vec![MissingWall::sandbox("this system has no wall around the processes of GPUs; Linux has")]
}

/// Returns the walls that Windows lacks.
pub fn forbid_system_calls() -> Missing {
    vec![MissingWall::sandbox("files and the network are open to it, and its memory to the bot; Linux closes them")]
}
