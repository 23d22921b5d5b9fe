//! Files and folders of one user, room on a disk, and the usual places.

use super::{acl, wide};
use crate::os::Access;
use etcetera::BaseStrategy;
use etcetera::base_strategy::Windows;
use std::fs::{File, OpenOptions};
use std::io;
use std::os::windows::fs::OpenOptionsExt;
use std::os::windows::io::FromRawHandle;
use std::path::{Path, PathBuf};
use std::ptr::null_mut;
use windows_sys::Win32::Foundation::{GENERIC_READ, GENERIC_WRITE, INVALID_HANDLE_VALUE};
use windows_sys::Win32::Storage::FileSystem::{
    CREATE_NEW, CreateDirectoryW, CreateFileW, FILE_APPEND_DATA, FILE_ATTRIBUTE_NORMAL, FILE_CREATION_DISPOSITION,
    FILE_FLAG_BACKUP_SEMANTICS, FILE_GENERIC_WRITE, FILE_SHARE_DELETE, FILE_SHARE_READ, FILE_SHARE_WRITE,
    FILE_WRITE_DATA, GetDiskFreeSpaceExW, OPEN_ALWAYS, READ_CONTROL,
};

/// The user's configuration, for help texts.
pub const USER_CONFIG: &str = r"%APPDATA%\npubbot\relays.toml";
/// The user's data folder, for help texts. It stays on this machine; the configuration may follow
/// the user to others.
pub const USER_DATA: &str = r"%LOCALAPPDATA%\npubbot";

/// The command that makes the bot of this machine's service.
pub const SERVICE_INIT: &str =
    r"npubbot init --config %ProgramData%\npubbot\relays.toml --data %ProgramData%\npubbot\data";
/// The commands that check and start it: those of any bot.
pub const SERVICE_NEXT: Option<&str> = None;

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

/// Gives what an administrator has made to the owner of its folder. Files inherit rights here.
pub fn give_to_folders_owner(_: &Path) {}

/// Opens a file. A missing one is made for this user only; an existing one keeps its access control
/// list.
///
/// Errors: those of the file system.
pub fn open(file: &Path, access: Access) -> io::Result<File> {
    let read = if access.reads() { GENERIC_READ } else { 0 };
    let write = match access.appends() {
        true => (FILE_GENERIC_WRITE & !FILE_WRITE_DATA) | FILE_APPEND_DATA,
        false => GENERIC_WRITE,
    };
    open_as(file, read | write, OPEN_ALWAYS)
}

fn open_as(file: &Path, access: u32, disposition: FILE_CREATION_DISPOSITION) -> io::Result<File> {
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
fn open_to_look(path: &Path) -> io::Result<File> {
    OpenOptions::new().access_mode(READ_CONTROL).custom_flags(FILE_FLAG_BACKUP_SEMANTICS).open(path)
}

/// The command that closes a file or folder to others.
pub fn closing_command(path: &Path) -> String {
    let heirs = if path.is_dir() { "(OI)(CI)" } else { "" };
    format!("icacls \"{}\" /inheritance:r /grant:r \"%USERNAME%:{heirs}F\"", path.display())
}

/// Gives everybody all rights to a file or folder, for tests.
#[cfg(any(test, feature = "test-util"))]
pub fn open_to_others(path: &Path) -> io::Result<()> {
    acl::permit_everybody(path)
}

/// Makes a symbolic link to a file, for tests.
#[cfg(any(test, feature = "test-util"))]
pub fn make_link(to: &Path, link: &Path) -> io::Result<()> {
    std::os::windows::fs::symlink_file(to, link)
}

/// Whether a file or folder exists and belongs to this user.
pub fn is_own(path: &Path) -> bool {
    open_to_look(path).is_ok_and(|file| acl::is_own(&file).unwrap_or(false))
}

/// Whether only this user and the administrators can replace the content of a folder.
pub(super) fn is_trusted(folder: &Path) -> bool {
    let Ok(file) = open_to_look(folder) else { return false };
    let is_theirs = acl::is_own(&file).unwrap_or(false) || acl::is_of_administrators(&file).unwrap_or(false);
    is_theirs && !acl::permits_others(&file).unwrap_or(true)
}

/// Bytes that this user can still write on the disk of a folder. `None` if the system does not say.
pub fn free_bytes(folder: &Path) -> Option<u64> {
    let (path, mut free) = (wide::path(folder).ok()?, 0);
    // SAFETY: the path ends with 0, and `free` is a place for a number.
    let told = unsafe { GetDiskFreeSpaceExW(path.as_ptr(), &mut free, null_mut(), null_mut()) };
    (told != 0).then_some(free)
}

/// The folders of this user for configuration and data; `None` without a home folder.
pub fn user_folders() -> Option<(PathBuf, PathBuf)> {
    let places = Windows::new().ok()?;
    Some((places.config_dir().join("npubbot"), places.cache_dir().join("npubbot")))
}

/// The folder of this user for caches; `None` without a home folder.
pub fn cache_folder() -> Option<PathBuf> {
    Windows::new().ok().map(|places| places.cache_dir().join("npubbot").join("cache"))
}

/// The folders of this machine's service for configuration and data.
pub fn service_folders() -> (PathBuf, PathBuf) {
    let shared = std::env::var_os("ProgramData").map_or_else(|| PathBuf::from(r"C:\ProgramData"), PathBuf::from);
    (shared.join("npubbot"), shared.join("npubbot").join("data"))
}

/// A path quoted for `cmd.exe` and PowerShell.
pub fn quoted(path: &Path) -> String {
    let text = path.display().to_string();
    let is_plain = text.chars().all(|c| c.is_ascii_alphanumeric() || r"/\._-~+:".contains(c));
    // A path has no quotation mark on Windows.
    if is_plain { text } else { format!("\"{text}\"") }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_path_is_quoted_where_a_shell_would_split_it() {
        assert_eq!(quoted(Path::new(r"C:\npubbot\data")), r"C:\npubbot\data");
        assert_eq!(quoted(Path::new(r"C:\my bots")), "\"C:\\my bots\"");
    }
}
