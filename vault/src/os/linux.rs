//! The running program, on Linux.

use std::ffi::OsStr;
use std::io;
use std::os::unix::ffi::OsStrExt;
use std::path::PathBuf;

/// Path of the running program. It works even after the program's file was replaced.
const THIS_PROGRAM: &str = "/proc/self/exe";

/// The path by which this program can be started again.
///
/// Errors: none on Linux.
pub fn this_program() -> io::Result<PathBuf> {
    // In a root folder without `/proc`, the path that this program was started by.
    let started_by = || PathBuf::from(OsStr::from_bytes(rustix::param::linux_execfn().to_bytes()));
    Ok(Some(PathBuf::from(THIS_PROGRAM)).filter(|link| link.exists()).unwrap_or_else(started_by))
}

/// Names the vault process in lists of processes. It is executed as `/proc/self/exe`, so it would
/// otherwise be listed as `exe`.
pub fn name_vault() {
    let _ = rustix::thread::set_name(c"npubbot-vault");
}

/// Names the network process in lists of processes, and ends it with its parent.
///
/// Errors: the system refuses.
pub fn follow_supervisor() -> io::Result<()> {
    let _ = rustix::thread::set_name(c"npubbot-network");
    rustix::process::set_parent_process_death_signal(Some(rustix::process::Signal::KILL))?;
    Ok(())
}

/// Closes all file descriptors except standard input, output and error. Those that npubbot opened
/// were closed by `exec`; those of a GPU driver or of the parent process may still be open. Only
/// for a process that has opened nothing yet.
pub fn close_inherited_files() {
    // SAFETY: this process has opened nothing yet, so nothing owns a file above standard error. An
    // old kernel without this call closes none.
    unsafe {
        libc::syscall(libc::SYS_close_range, 3u32, u32::MAX, 0u32);
    }
}
