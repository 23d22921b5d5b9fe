//! Files and folders of one user, room on a disk, and the usual places.

use etcetera::{BaseStrategy, choose_base_strategy};
#[cfg(any(test, feature = "test-util"))]
pub use npubbot_vault::os::files::make_link;
use npubbot_vault::os::files::{FILE, FOLDER};
pub use npubbot_vault::os::files::{
    create_folder, create_new, give_to_folders_owner, is_file_open_to_others, is_open_to_others, sync_folder,
};
use std::fs::{File, OpenOptions};
use std::io;
use std::os::unix::fs::{MetadataExt, OpenOptionsExt};
use std::path::{Path, PathBuf};

/// The user's configuration file, for help texts.
pub const USER_CONFIG: &str = "~/.config/npubbot/relays.toml";
/// The user's data folder, for help texts.
pub const USER_DATA: &str = "~/.local/share/npubbot";

/// The command that makes the bot of this machine's service.
pub const SERVICE_INIT: &str = "sudo -u npubbot npubbot init";
/// The command that gives the passphrase to this machine's service, as in `docs/operators/debian.md`.
pub const SERVICE_CREDENTIAL: Option<&str> = Some(
    "systemd-ask-password -n \"Passphrase of npubbot:\" | sudo systemd-creds encrypt --name=passphrase - /etc/npubbot/passphrase.cred",
);
/// The commands that check and start it.
pub const SERVICE_NEXT: Option<&str> = Some("  sudo npubbot doctor\n  sudo systemctl enable --now npubbot");

/// Opens a file for reading and writing, from the beginning. A missing one is made for its owner only;
/// an existing one keeps its content and permissions.
///
/// Errors: those of the file system.
pub fn open(file: &Path) -> io::Result<File> {
    open_as(file, OpenOptions::new().write(true))
}

/// Like [`open`], but writes at the end.
///
/// Errors: those of the file system.
pub fn open_to_append(file: &Path) -> io::Result<File> {
    open_as(file, OpenOptions::new().append(true))
}

fn open_as(file: &Path, options: &mut OpenOptions) -> io::Result<File> {
    options.read(true).mode(FILE);
    match options.clone().create_new(true).open(file) {
        Err(error) if error.kind() == io::ErrorKind::AlreadyExists => options.create(true).open(file),
        Err(error) => Err(error),
        Ok(made) => {
            give_to_folders_owner(file);
            Ok(made)
        }
    }
}

/// The command that closes a file or folder to others.
pub fn closing_command(path: &Path) -> String {
    let mode = if path.is_dir() { FOLDER } else { FILE };
    format!("chmod {mode:o} {}", path.display())
}

/// Gives everybody the right to read a file or folder, for tests.
#[cfg(any(test, feature = "test-util"))]
pub fn open_to_others(path: &Path) -> io::Result<()> {
    use std::os::unix::fs::PermissionsExt;
    std::fs::set_permissions(path, std::fs::Permissions::from_mode(if path.is_dir() { 0o755 } else { 0o644 }))
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
    let places = choose_base_strategy().ok()?;
    Some((places.config_dir().join("npubbot"), places.data_dir().join("npubbot")))
}

/// The folder of this user for caches; `None` without a home folder.
pub fn cache_folder() -> Option<PathBuf> {
    choose_base_strategy().ok().map(|places| places.cache_dir().join("npubbot"))
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
