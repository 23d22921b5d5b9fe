//! `fsync` and `fdatasync` of this binary. The standard library and SQLite call them in place of
//! those of the C library, because the linker takes a program's own symbol first.

use super::{Failure, IS_ON, PLAIN, Verdict, disk, name_of};
use rustix::io::Errno;
use std::ffi::c_int;
use std::os::fd::BorrowedFd;
use std::path::PathBuf;
use std::sync::atomic::Ordering;

/// Takes the place of `fsync(2)`.
// SAFETY: the name and the types are those of POSIX, and it does what POSIX says.
#[unsafe(no_mangle)]
extern "C" fn fsync(fd: c_int) -> c_int {
    synced(fd, |fd| rustix::fs::fsync(fd))
}

/// Takes the place of `fdatasync(2)`.
// SAFETY: the name and the types are those of POSIX, and it does what POSIX says.
#[unsafe(no_mangle)]
extern "C" fn fdatasync(fd: c_int) -> c_int {
    synced(fd, |fd| rustix::fs::fdatasync(fd))
}

/// Syncs a file with `really`, and tells the simulated disk of it if there is one.
fn synced(fd: c_int, really: fn(BorrowedFd<'_>) -> rustix::io::Result<()>) -> c_int {
    if fd < 0 {
        return fail(Errno::BADF);
    }
    if IS_ON.load(Ordering::Acquire)
        && let Err(error) = note(fd)
    {
        return fail(error);
    }
    // SAFETY: either the caller has a file open under this number, or the kernel returns EBADF.
    match really(unsafe { BorrowedFd::borrow_raw(fd) }) {
        Ok(()) => 0,
        Err(error) => fail(error),
    }
}

fn fail(error: Errno) -> c_int {
    // SAFETY: the C library's `errno` of this thread.
    unsafe { *errno() = error.raw_os_error() };
    -1
}

unsafe extern "C" {
    #[link_name = "__errno_location"]
    fn errno() -> *mut c_int;
}

/// Tells the simulated disk that the folder, or the file that SQLite does not write, is synced.
/// Errors: the disk lets this sync fail.
fn note(fd: c_int) -> Result<(), Errno> {
    let Ok(path) = std::fs::read_link(PathBuf::from(format!("/proc/self/fd/{fd}"))) else { return Ok(()) };
    let mut disk = disk();
    let Some(disk) = disk.as_mut() else { return Ok(()) };
    if path == disk.folder {
        disk.sync_names();
    } else if disk.has(&path) && name_of(&path) == PLAIN {
        match disk.change(format!("{PLAIN} sync")) {
            Verdict::Done => {
                disk.read_plain();
                disk.sync(PLAIN);
            }
            Verdict::Dead | Verdict::Fails(Failure::Io) => return Err(Errno::IO),
            Verdict::Fails(Failure::Full) => return Err(Errno::NOSPC),
            Verdict::Fails(Failure::ReadOnly) => return Err(Errno::ROFS),
        }
    }
    Ok(())
}
