//! Files and folders of one user, room on a disk, and the usual places.

use super::{acl, wide};
use etcetera::BaseStrategy;
use etcetera::base_strategy::Windows;
#[cfg(any(test, feature = "test-util"))]
pub use npubbot_vault::os::files::make_link;
pub use npubbot_vault::os::files::{
    create_folder, create_new, give_to_folders_owner, is_file_open_to_others, is_open_to_others, sync_folder,
};
use npubbot_vault::os::files::{open_as, open_to_look};
use std::fs::File;
use std::io;
use std::path::{Path, PathBuf};
use std::ptr::null_mut;
use windows_sys::Win32::Foundation::{GENERIC_READ, GENERIC_WRITE};
use windows_sys::Win32::Storage::FileSystem::{
    FILE_APPEND_DATA, FILE_GENERIC_WRITE, FILE_WRITE_DATA, GetDiskFreeSpaceExW, OPEN_ALWAYS,
};

/// The user's configuration, for help texts.
pub const USER_CONFIG: &str = r"%APPDATA%\npubbot\relays.toml";
/// The user's data folder, for help texts. It stays on this machine; the configuration may follow
/// the user to others.
pub const USER_DATA: &str = r"%LOCALAPPDATA%\npubbot";

/// The command that makes the bot of this machine's service, which there is none of.
pub const SERVICE_INIT: &str = "npubbot init";
/// The commands that check and start it.
pub const SERVICE_NEXT: Option<&str> = None;
/// The command that gives the passphrase to this machine's service, if it is a single one.
pub const SERVICE_CREDENTIAL: Option<&str> = None;

/// Opens a file for reading and writing, from the beginning. A missing one is made for this user only;
/// an existing one keeps its content and access control list.
///
/// Errors: those of the file system.
pub fn open(file: &Path) -> io::Result<File> {
    open_as(file, GENERIC_READ | GENERIC_WRITE, OPEN_ALWAYS)
}

/// Like [`open`], but writes at the end.
///
/// Errors: those of the file system.
pub fn open_to_append(file: &Path) -> io::Result<File> {
    open_as(file, GENERIC_READ | (FILE_GENERIC_WRITE & !FILE_WRITE_DATA) | FILE_APPEND_DATA, OPEN_ALWAYS)
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

/// Whether a file or folder exists and belongs to this user.
pub fn is_own(path: &Path) -> bool {
    open_to_look(path).is_ok_and(|file| acl::is_own(&file).unwrap_or(false))
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
