//! Files and folders of one user.

use super::{acl, wide};
use std::fs::{File, OpenOptions};
use std::io;
use std::os::windows::fs::OpenOptionsExt;
use std::os::windows::io::FromRawHandle;
use std::path::Path;
use std::ptr::null_mut;
use windows_sys::Win32::Foundation::{GENERIC_WRITE, INVALID_HANDLE_VALUE};
use windows_sys::Win32::Storage::FileSystem::{
    CREATE_NEW, CreateDirectoryW, CreateFileW, FILE_ATTRIBUTE_NORMAL, FILE_CREATION_DISPOSITION,
    FILE_FLAG_BACKUP_SEMANTICS, FILE_SHARE_DELETE, FILE_SHARE_READ, FILE_SHARE_WRITE, READ_CONTROL,
};

/// Makes a folder, and those above it, for this user only. An existing one is left as it is.
///
/// Errors: those of the file system.
pub fn create_folder(folder: &Path) -> io::Result<()> {
    if folder.is_dir() || folder.as_os_str().is_empty() {
        return Ok(());
    }
    if let Some(above) = folder.parent() {
        create_folder(above)?;
    }
    let (path, own) = (wide::path(folder)?, acl::Own::folder()?);
    let attributes = own.attributes();
    // SAFETY: the path ends with 0; the attributes are valid as long as `own`.
    if unsafe { CreateDirectoryW(path.as_ptr(), &attributes) } != 0 {
        return Ok(());
    }
    let error = io::Error::last_os_error();
    // Another process may have made it meanwhile.
    if folder.is_dir() { Ok(()) } else { Err(error) }
}

/// Makes a file for this user only, and opens it for writing.
///
/// Errors: it exists; those of the file system.
pub fn create_new(file: &Path) -> io::Result<File> {
    open_as(file, GENERIC_WRITE, CREATE_NEW)
}

/// Opens a file. A missing one is made for this user only, if `disposition` says so.
///
/// Errors: those of the file system.
pub fn open_as(file: &Path, access: u32, disposition: FILE_CREATION_DISPOSITION) -> io::Result<File> {
    let (path, own) = (wide::path(file)?, acl::Own::file()?);
    let attributes = own.attributes();
    // SAFETY: the path ends with 0; the attributes are valid as long as `own`; the handle is ours
    // if the call succeeds.
    unsafe {
        let handle = CreateFileW(
            path.as_ptr(),
            // So that the access control list can be read.
            access | READ_CONTROL,
            FILE_SHARE_READ | FILE_SHARE_WRITE | FILE_SHARE_DELETE,
            &attributes,
            disposition,
            FILE_ATTRIBUTE_NORMAL,
            null_mut(),
        );
        match handle {
            INVALID_HANDLE_VALUE => Err(io::Error::last_os_error()),
            handle => Ok(File::from_raw_handle(handle)),
        }
    }
}

/// Does nothing. NTFS logs new names, and syncing a file writes that log.
///
/// Errors: none on Windows.
pub fn sync_folder(_: &Path) -> io::Result<()> {
    Ok(())
}

/// Gives what an administrator has made to the owner of its folder. Files inherit rights here.
pub fn give_to_folders_owner(_: &Path) {}

/// Whether anybody but its owner, this user and the administrators has rights to a file or folder.
///
/// Errors: those of the file system.
pub fn is_open_to_others(path: &Path) -> io::Result<bool> {
    acl::permits_others(&open_to_look(path)?)
}

/// Like [`is_open_to_others`], for an open file.
///
/// Errors: those of the file system.
pub fn is_file_open_to_others(file: &File) -> io::Result<bool> {
    acl::permits_others(file)
}

/// A handle to a file or folder that can only read its access control list.
///
/// Errors: those of the file system.
pub fn open_to_look(path: &Path) -> io::Result<File> {
    OpenOptions::new().access_mode(READ_CONTROL).custom_flags(FILE_FLAG_BACKUP_SEMANTICS).open(path)
}

/// Makes a symbolic link to a file, for tests.
#[cfg(any(test, feature = "test-util"))]
pub fn make_link(to: &Path, link: &Path) -> io::Result<()> {
    std::os::windows::fs::symlink_file(to, link)
}
