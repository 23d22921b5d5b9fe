//! Files and folders of one user, room on a disk, and the usual places.

use crate::os::Access;
use etcetera::{AppStrategy, AppStrategyArgs, choose_app_strategy};
use std::fs::{DirBuilder, File, Metadata, OpenOptions};
use std::io;
use std::os::unix::fs::{DirBuilderExt, MetadataExt, OpenOptionsExt, PermissionsExt};
use std::path::{Path, PathBuf};

/// Permissions of a file and of a folder that only their owner may use.
const FILE: u32 = 0o600;
const FOLDER: u32 = 0o700;
/// Mask of the permissions of everybody but the owner.
const OTHERS: u32 = 0o077;

/// The user's configuration file, for help texts.
pub const USER_CONFIG: &str = "~/.config/npubbot/relays.toml";
/// The user's data folder, for help texts.
pub const USER_DATA: &str = "~/.local/share/npubbot";

/// The command that makes the bot of this machine's service.
pub const SERVICE_INIT: &str = "sudo -u npubbot npubbot init";
/// The commands that check and start it.
pub const SERVICE_NEXT: Option<&str> = Some("  sudo npubbot doctor\n  sudo systemctl enable --now npubbot");

/// Makes a folder, and those above it, for its owner only. An existing one is left as it is.
///
/// Errors: those of the file system.
pub fn create_folder(folder: &Path) -> io::Result<()> {
    if folder.is_dir() || folder.as_os_str().is_empty() {
        return Ok(());
    }
    if let Some(above) = folder.parent() {
        create_folder(above)?;
    }
    match DirBuilder::new().mode(FOLDER).create(folder) {
        // Another process may have made it meanwhile.
        Err(error) if error.kind() == io::ErrorKind::AlreadyExists && folder.is_dir() => Ok(()),
        Err(error) => Err(error),
        Ok(()) => {
            give_to_folders_owner(folder);
            Ok(())
        }
    }
}

/// Makes a file for its owner only, and opens it for writing.
///
/// Errors: it exists; those of the file system.
pub fn create_new(file: &Path) -> io::Result<File> {
    let made = OpenOptions::new().create_new(true).write(true).mode(FILE).open(file)?;
    give_to_folders_owner(file);
    Ok(made)
}

/// Gives what root has just made to the owner of the folder that it is in. Otherwise a service's
/// user could not read what root makes in the service's data folder.
pub fn give_to_folders_owner(made: &Path) {
    if !rustix::process::geteuid().is_root() {
        return;
    }
    let folder = made.parent().filter(|folder| !folder.as_os_str().is_empty()).unwrap_or(Path::new("."));
    if let Ok(meta) = std::fs::metadata(folder)
        && meta.uid() != 0
    {
        // If this fails it stays root's, and who cannot read it says so.
        let _ = std::os::unix::fs::lchown(made, Some(meta.uid()), Some(meta.gid()));
    }
}

/// Opens a file. A missing one is made for its owner only; an existing one keeps its permissions.
///
/// Errors: those of the file system.
pub fn open(file: &Path, access: Access) -> io::Result<File> {
    let mut options = OpenOptions::new();
    options.read(access.reads()).mode(FILE);
    match access.appends() {
        true => options.append(true),
        false => options.write(true).truncate(false),
    };
    match options.clone().create_new(true).open(file) {
        Err(error) if error.kind() == io::ErrorKind::AlreadyExists => options.create(true).open(file),
        Err(error) => Err(error),
        Ok(made) => {
            give_to_folders_owner(file);
            Ok(made)
        }
    }
}

/// Makes sure that a new name in a folder outlives a power loss.
///
/// Errors: those of the file system.
pub fn sync_folder(folder: &Path) -> io::Result<()> {
    File::open(folder)?.sync_all()
}

/// Whether anybody but its owner has rights to a file or folder.
///
/// Errors: those of the file system.
pub fn is_open_to_others(path: &Path) -> io::Result<bool> {
    std::fs::metadata(path).map(|meta| permits_others(&meta))
}

/// Like [`is_open_to_others`], for an open file.
///
/// Errors: those of the file system.
pub fn is_file_open_to_others(file: &File) -> io::Result<bool> {
    file.metadata().map(|meta| permits_others(&meta))
}

fn permits_others(meta: &Metadata) -> bool {
    meta.permissions().mode() & OTHERS != 0
}

/// The command that closes a file or folder to others.
pub fn closing_command(path: &Path) -> String {
    let mode = if path.is_dir() { FOLDER } else { FILE };
    format!("chmod {mode:o} {}", path.display())
}

/// Gives everybody the right to read a file or folder, for tests.
#[cfg(any(test, feature = "test-util"))]
pub fn open_to_others(path: &Path) -> io::Result<()> {
    std::fs::set_permissions(path, std::fs::Permissions::from_mode(if path.is_dir() { 0o755 } else { 0o644 }))
}

/// Makes a symbolic link to a file, for tests.
#[cfg(any(test, feature = "test-util"))]
pub fn make_link(to: &Path, link: &Path) -> io::Result<()> {
    std::os::unix::fs::symlink(to, link)
}

/// Whether a file or folder exists and belongs to this user.
pub fn is_own(path: &Path) -> bool {
    std::fs::metadata(path).is_ok_and(|meta| meta.uid() == rustix::process::geteuid().as_raw())
}

/// Bytes that an ordinary user can still write on the disk of a folder. `None` if the system does
/// not say.
pub fn free_bytes(folder: &Path) -> Option<u64> {
    let disk = rustix::fs::statvfs(folder).ok()?;
    Some(disk.f_bavail.saturating_mul(disk.f_frsize))
}

/// The folders of this user for configuration and data; `None` without a home folder.
pub fn user_folders() -> Option<(PathBuf, PathBuf)> {
    places().map(|places| (places.config_dir(), places.data_dir()))
}

/// The folder of this user for caches; `None` without a home folder.
pub fn cache_folder() -> Option<PathBuf> {
    places().map(|places| places.cache_dir())
}

fn places() -> Option<impl AppStrategy> {
    let app = AppStrategyArgs {
        top_level_domain: "org".to_owned(),
        author: "npubbot".to_owned(),
        app_name: "npubbot".to_owned(),
    };
    choose_app_strategy(app).ok()
}

/// The folders of this machine's service for configuration and data.
pub fn service_folders() -> (PathBuf, PathBuf) {
    (PathBuf::from("/etc/npubbot"), PathBuf::from("/var/lib/npubbot"))
}

/// A path quoted for a shell.
pub fn quoted(path: &Path) -> String {
    let text = path.display().to_string();
    let is_plain = text.chars().all(|c| c.is_ascii_alphanumeric() || "/._-~+@%:".contains(c));
    if is_plain { text } else { format!("'{}'", text.replace('\'', r"'\''")) }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_path_is_quoted_where_a_shell_would_split_it() {
        assert_eq!(quoted(Path::new("/var/lib/npubbot")), "/var/lib/npubbot");
        assert_eq!(quoted(Path::new("my bot's")), r"'my bot'\''s'");
    }
}
