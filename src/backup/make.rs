//! Making a backup.

use super::archive::{self, BackupError, CONFIG, FORMAT, HALVES, IDENTITY, LEDGER, MANIFEST, Manifest, at};
use crate::ledger;
use crate::os::files;
use crate::vault::{self, BackupKey};
use std::fs::{self, File};
use std::io::{self, BufWriter, Write};
use std::path::Path;
use tar::{Builder, Header};

/// Writes a backup of the bot in `data` with its configuration to the new file `to`. The bot may be
/// running.
///
/// Errors: there is no identity, the ledger cannot be copied, or `to` exists. After an error no
/// file is left.
pub fn make(data: &Path, config: &Path, to: &Path, key: &BackupKey, now: u64) -> Result<(), BackupError> {
    let identity = data.join(IDENTITY);
    if !identity.exists() {
        return Err(BackupError::NoBot { path: identity.display().to_string() });
    }
    if to.symlink_metadata().is_ok() {
        return Err(BackupError::Vault(vault::VaultError::FileExists { path: to.display().to_string() }));
    }
    let folder = match to.parent() {
        Some(folder) if !folder.as_os_str().is_empty() => folder,
        _ => Path::new("."),
    };
    // The whole file appears at once, or not at all. Only the owner can read the file and the
    // copies.
    let file = tempfile::Builder::new().prefix(".npubbot-backup-").make_in(folder, files::create_new);
    // The error names the temporary file, so only its kind is kept.
    let file = file.map_err(|error| at(to)(error.kind().into()))?;
    let copies = tempfile::Builder::new().prefix(".backup-").tempdir_in(data).map_err(at(data))?;
    let writer = vault::encrypt(to, key, BufWriter::new(file.as_file().try_clone().map_err(at(to))?))?;
    let mut tar = Builder::new(writer);
    let manifest = Manifest { format: FORMAT, version: env!("CARGO_PKG_VERSION").to_owned(), made_at: now };
    let manifest = serde_json::to_vec(&manifest).map_err(|error| at(to)(error.into()))?;
    append(&mut tar, MANIFEST, &manifest, now).map_err(at(to))?;
    append(&mut tar, IDENTITY, &fs::read(&identity).map_err(at(&identity))?, now).map_err(at(to))?;
    if config.exists() {
        append(&mut tar, CONFIG, &fs::read(config).map_err(at(config))?, now).map_err(at(to))?;
    }
    if ledger::is_present(data) {
        let copy = copies.path().join(LEDGER);
        ledger::copy(data, &copy)?;
        // Read after the snapshot, so this file has every half of the snapshot.
        let halves = ledger::used_halves(data)?;
        let mut copied = File::open(&copy).map_err(at(&copy))?;
        let size = copied.metadata().map_err(at(&copy))?.len();
        tar.append_data(&mut header(size, now), LEDGER, &mut copied).map_err(at(to))?;
        append(&mut tar, HALVES, &halves, now).map_err(at(to))?;
    }
    let finish = || {
        let mut buffer = tar.into_inner()?.finish()?;
        buffer.flush()?;
        drop(buffer);
        file.as_file().sync_all()?;
        file.persist_noclobber(to).map_err(|error| error.error)?;
        files::sync_folder(folder)
    };
    finish().map_err(archive::at(to))
}

fn header(size: u64, now: u64) -> Header {
    let mut header = Header::new_gnu();
    header.set_size(size);
    header.set_mode(0o600);
    header.set_mtime(now);
    header
}

fn append(tar: &mut Builder<impl Write>, name: &str, content: &[u8], now: u64) -> io::Result<()> {
    tar.append_data(&mut header(content.len() as u64, now), name, content)
}
