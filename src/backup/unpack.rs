//! Restoring a backup.

use super::archive::{BackupError, CONFIG, FORMAT, HALVES, IDENTITY, LEDGER, MANIFEST, Manifest, at};
use crate::ledger;
use crate::os::files;
use crate::vault::{self, Unlock};
use std::fs::{self, File};
use std::io::{self, BufReader, Read, Write};
use std::path::{Path, PathBuf};
use tar::{Archive, EntryType};

/// The largest entry besides ledger and used halves, in bytes.
const SMALL: u64 = 1 << 20;

/// The folders and files that a bot is restored to.
pub struct Places<'a> {
    /// The data folder. It may exist, without a bot in it.
    pub data: &'a Path,
    /// The configuration. An existing one is kept.
    pub config: &'a Path,
    /// The file for the backup's configuration, if another one is kept.
    pub restored_config: &'a Path,
}

/// A restored bot.
pub struct Restored {
    /// Description of the backup.
    pub manifest: Manifest,
    /// Whether another configuration is kept, and the backup's is beside it.
    pub is_config_beside: bool,
}

/// The files that a restore has made so far. Deletes them on drop.
struct Made(Vec<PathBuf>);

impl Drop for Made {
    fn drop(&mut self) {
        self.0.iter().for_each(|file| drop(fs::remove_file(file)));
    }
}

/// Restores a backup. `newer_halves` is the file of used halves from the old machine, if it still
/// exists: it knows the halves that served after the backup was made.
///
/// The whole backup is read and checked before anything is written to its place. At its first start
/// the bot gives open split jobs up and refuses older requests ([`ledger::restore`]).
///
/// Errors: [`BackupError`]. After an error no file is left.
pub fn unpack(
    from: &Path,
    unlock: &Unlock,
    places: &Places<'_>,
    newer_halves: Option<&Path>,
) -> Result<Restored, BackupError> {
    let identity = places.data.join(IDENTITY);
    if identity.exists() || ledger::is_present(places.data) {
        return Err(BackupError::Occupied { path: places.data.display().to_string() });
    }
    files::create_folder(places.data).map_err(at(places.data))?;
    let unpacked = tempfile::Builder::new().prefix(".restore-").tempdir_in(places.data).map_err(at(places.data))?;
    files::give_to_folders_owner(unpacked.path());
    let manifest = extract(from, unlock, unpacked.path())?;
    let entry = |name: &str| unpacked.path().join(name);
    if !entry(IDENTITY).exists() {
        return Err(BackupError::Damaged { reason: "it has no identity".to_owned() });
    }
    let mut made = Made(Vec::new());
    let is_config_beside = restore_config(&entry(CONFIG), places, &mut made)?;
    if entry(LEDGER).exists() {
        let mut halves = vec![fs::read(entry(HALVES)).unwrap_or_default()];
        if let Some(file) = newer_halves {
            halves.push(fs::read(file).map_err(at(file))?);
        }
        ledger::restore(places.data, &entry(LEDGER), &halves)?;
        made.0.extend([LEDGER, HALVES].map(|name| places.data.join(name)));
    }
    // The identity comes last: without it nothing starts.
    fs::rename(entry(IDENTITY), &identity).map_err(at(&identity))?;
    made.0.clear();
    Ok(Restored { manifest, is_config_beside })
}

/// Writes the backup's configuration to its place, or beside another one. Returns whether it is
/// beside another one.
fn restore_config(from: &Path, places: &Places<'_>, made: &mut Made) -> Result<bool, BackupError> {
    if !from.exists() {
        return Ok(false);
    }
    let text = fs::read(from).map_err(at(from))?;
    let is_beside = places.config.exists();
    let to = if is_beside { places.restored_config } else { places.config };
    if is_beside && fs::read(places.config).map_err(at(places.config))? == text {
        return Ok(false);
    }
    if let Some(folder) = to.parent() {
        fs::create_dir_all(folder).map_err(at(folder))?;
    }
    // With the permissions of any new file: the service's user reads what root restores.
    let mut file = match File::create_new(to) {
        Err(error) if error.kind() == io::ErrorKind::AlreadyExists => {
            return Err(BackupError::Occupied { path: to.display().to_string() });
        }
        created => created.map_err(at(to))?,
    };
    made.0.push(to.to_owned());
    file.write_all(&text).and_then(|()| file.sync_all()).map_err(at(to))?;
    Ok(is_beside)
}

/// Writes the entries of a backup to an empty folder, and reads the backup to its end.
fn extract(from: &Path, unlock: &Unlock, folder: &Path) -> Result<Manifest, BackupError> {
    let damaged = |error: io::Error| BackupError::Damaged { reason: error.to_string() };
    let file = File::open(from).map_err(at(from))?;
    let mut archive = Archive::new(vault::decrypt(from, unlock, BufReader::new(file))?);
    let mut manifest: Option<Manifest> = None;
    for entry in archive.entries().map_err(damaged)? {
        let mut entry = entry.map_err(damaged)?;
        let name = String::from_utf8_lossy(&entry.path_bytes()).into_owned();
        let size = entry.size();
        let is_known = [MANIFEST, IDENTITY, CONFIG, LEDGER, HALVES].contains(&name.as_str());
        let is_large = [LEDGER, HALVES].contains(&name.as_str());
        if !is_known || entry.header().entry_type() != EntryType::Regular || (size > SMALL && !is_large) {
            return Err(BackupError::Damaged { reason: format!("an entry {name:?} of {size} bytes is not expected") });
        }
        if name == MANIFEST {
            let mut text = Vec::new();
            entry.read_to_end(&mut text).map_err(damaged)?;
            let read: Manifest = serde_json::from_slice(&text).map_err(|error| damaged(error.into()))?;
            if read.format > FORMAT {
                return Err(BackupError::TooNew { version: read.version, format: read.format });
            }
            manifest = Some(read);
            continue;
        }
        if manifest.is_none() {
            return Err(BackupError::Damaged { reason: "it does not begin with its manifest".to_owned() });
        }
        let path = folder.join(&name);
        let mut out = files::create_new(&path).map_err(at(&path))?;
        io::copy(&mut entry, &mut out).map_err(damaged)?;
        out.flush().and_then(|()| out.sync_all()).map_err(at(&path))?;
    }
    // An age file proves only at its end that nothing was cut off.
    io::copy(&mut archive.into_inner(), &mut io::sink()).map_err(damaged)?;
    manifest.ok_or_else(|| BackupError::Damaged { reason: "it is empty".to_owned() })
}
