//! Backups. A backup is one encrypted file with all that a bot is. It can be made while the bot
//! runs.
//!
//! The file is a tar archive in an age file, so `age -d FILE | tar x` opens it without npubbot:
//!
//! | entry | content |
//! | --- | --- |
//! | `manifest.json` | version of this format, of the program, the time |
//! | `identity.age` | the identity, still locked with its own passphrase |
//! | `relays.toml` | the configuration, if there is one |
//! | `ledger.sqlite` | a snapshot by SQLite's own backup |
//! | `used-halves` | read after the snapshot, so it has every half that the snapshot has |

use crate::ledger;
use crate::os::files;
use crate::vault::{self, BackupKey, Unlock, VaultError};
use anyhow::{Context, anyhow, bail};
use serde::{Deserialize, Serialize};
use std::fmt::Display;
use std::fs::{self, File};
use std::io::{self, BufReader, BufWriter, Read, Write};
use std::path::{Path, PathBuf};
use tar::{Archive, Builder, EntryType, Header};

/// The version of this format. A later one is refused.
const FORMAT: u32 = 1;

/// Names of the entries.
const MANIFEST: &str = "manifest.json";
const IDENTITY: &str = "identity.age";
const CONFIG: &str = "relays.toml";
const LEDGER: &str = "ledger.sqlite";
const HALVES: &str = "used-halves";

/// The first entry, which describes the others.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub struct Manifest {
    /// Version of this format.
    pub format: u32,
    /// Version of the program that made the backup.
    pub version: String,
    /// When the backup was made, Unix seconds.
    pub made_at: u64,
}

/// The largest entry besides ledger and used halves, in bytes.
const MAX_SMALL_ENTRY: u64 = 1 << 20;

/// The path of a file, as the context of an error of the system.
fn at(path: &Path) -> impl Fn() -> String + '_ {
    move || path.display().to_string()
}

/// The file is a cut or damaged backup, or not a backup.
fn damaged(reason: impl Display) -> anyhow::Error {
    anyhow!("the backup is damaged or cut ({reason}); nothing was restored, take another copy")
}

/// A file is in the way of a restore.
fn occupied(path: &Path) -> anyhow::Error {
    anyhow!(
        "there is {} already; a bot is restored to an empty place only, so that no half serves twice",
        path.display()
    )
}

/// The folders and files that a bot is restored to.
pub struct RestorePlaces<'a> {
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
        // The ledger's folder was made before its files.
        self.0.iter().rev().for_each(|made| drop(fs::remove_file(made).or_else(|_| fs::remove_dir(made))));
    }
}

/// Writes a backup of the bot in `data` with its configuration to the new file `to`. The bot may be
/// running.
///
/// Errors: there is no identity, the ledger cannot be copied, or `to` exists. After an error no
/// file is left.
pub fn make(data: &Path, config: &Path, to: &Path, key: &BackupKey, now: u64) -> anyhow::Result<()> {
    let identity = data.join(IDENTITY);
    if !identity.exists() {
        bail!("there is no {}; name the bot's folder with --data", identity.display());
    }
    if to.symlink_metadata().is_ok() {
        return Err(VaultError::FileExists { path: to.display().to_string() }.into());
    }
    let folder = match to.parent() {
        Some(folder) if !folder.as_os_str().is_empty() => folder,
        _ => Path::new("."),
    };
    // The whole file appears at once, or not at all. Only the owner can read the file and the
    // copies.
    let file = tempfile::Builder::new().prefix(".npubbot-backup-").make_in(folder, files::create_new);
    // The error names the temporary file, so only its kind is kept.
    let file = file.map_err(|error| io::Error::from(error.kind())).with_context(at(to))?;
    let copies = tempfile::Builder::new().prefix(".backup-").tempdir_in(data).with_context(at(data))?;
    let writer = vault::encrypt(to, key, BufWriter::new(file.as_file().try_clone().with_context(at(to))?))?;
    let mut tar = Builder::new(writer);
    let manifest = Manifest { format: FORMAT, version: env!("CARGO_PKG_VERSION").to_owned(), made_at: now };
    let manifest = serde_json::to_vec(&manifest).with_context(at(to))?;
    append(&mut tar, MANIFEST, &manifest, now).with_context(at(to))?;
    append(&mut tar, IDENTITY, &fs::read(&identity).with_context(at(&identity))?, now).with_context(at(to))?;
    if config.exists() {
        append(&mut tar, CONFIG, &fs::read(config).with_context(at(config))?, now).with_context(at(to))?;
    }
    let ledger = ledger::folder(data);
    if ledger::is_present(&ledger) {
        let copy = copies.path().join(LEDGER);
        ledger::copy(&ledger, &copy)?;
        // Read after the snapshot, so this file has every half of the snapshot.
        let halves = ledger::used_halves(&ledger)?;
        let mut copied = File::open(&copy).with_context(at(&copy))?;
        let size = copied.metadata().with_context(at(&copy))?.len();
        tar.append_data(&mut header(size, now), LEDGER, &mut copied).with_context(at(to))?;
        append(&mut tar, HALVES, &halves, now).with_context(at(to))?;
    }
    let finish = || {
        let mut buffer = tar.into_inner()?.finish()?;
        buffer.flush()?;
        drop(buffer);
        file.as_file().sync_all()?;
        file.persist_noclobber(to).map_err(|error| error.error)?;
        files::sync_folder(folder)
    };
    finish().with_context(at(to))
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

/// Restores a backup. `newer_halves` is the file of used halves from the old machine, if it still
/// exists: it knows the halves that served after the backup was made.
///
/// The whole backup is read and checked before anything is written to its place. At its first start
/// the bot gives open split jobs up and refuses older requests ([`ledger::restore`]).
///
/// Errors: the backup is damaged, of a later format or not opened; a file is in the way. After an error no file is left.
pub fn unpack(
    from: &Path,
    unlock: &Unlock,
    places: &RestorePlaces<'_>,
    newer_halves: Option<&Path>,
) -> anyhow::Result<Restored> {
    let identity = places.data.join(IDENTITY);
    let ledger = ledger::folder(places.data);
    if identity.exists() || ledger::is_present(&ledger) {
        return Err(occupied(places.data));
    }
    files::create_folder(places.data).with_context(at(places.data))?;
    let unpacked =
        tempfile::Builder::new().prefix(".restore-").tempdir_in(places.data).with_context(at(places.data))?;
    files::give_to_folders_owner(unpacked.path());
    let manifest = extract(from, unlock, unpacked.path())?;
    let entry = |name: &str| unpacked.path().join(name);
    if !entry(IDENTITY).exists() {
        return Err(damaged("it has no identity"));
    }
    let mut made = Made(Vec::new());
    let is_config_beside = restore_config(&entry(CONFIG), places, &mut made)?;
    if entry(LEDGER).exists() {
        let mut halves = vec![fs::read(entry(HALVES)).unwrap_or_default()];
        if let Some(file) = newer_halves {
            halves.push(fs::read(file).with_context(at(file))?);
        }
        files::create_folder(&ledger).with_context(at(&ledger))?;
        made.0.push(ledger.clone());
        ledger::restore(&ledger, &entry(LEDGER), &halves)?;
        made.0.extend([LEDGER, HALVES].map(|name| ledger.join(name)));
    }
    // The identity comes last: without it nothing starts.
    fs::rename(entry(IDENTITY), &identity).with_context(at(&identity))?;
    made.0.clear();
    Ok(Restored { manifest, is_config_beside })
}

/// Writes the backup's configuration to its place, or beside another one. Returns whether it is
/// beside another one.
fn restore_config(from: &Path, places: &RestorePlaces<'_>, made: &mut Made) -> anyhow::Result<bool> {
    if !from.exists() {
        return Ok(false);
    }
    let text = fs::read(from).with_context(at(from))?;
    let is_beside = places.config.exists();
    let to = if is_beside { places.restored_config } else { places.config };
    if is_beside && fs::read(places.config).with_context(at(places.config))? == text {
        return Ok(false);
    }
    if let Some(folder) = to.parent() {
        fs::create_dir_all(folder).with_context(at(folder))?;
    }
    // With the permissions of any new file: the service's user reads what root restores.
    let mut file = match File::create_new(to) {
        Err(error) if error.kind() == io::ErrorKind::AlreadyExists => {
            return Err(occupied(to));
        }
        created => created.with_context(at(to))?,
    };
    made.0.push(to.to_owned());
    file.write_all(&text).and_then(|()| file.sync_all()).with_context(at(to))?;
    Ok(is_beside)
}

/// Writes the entries of a backup to an empty folder, and reads the backup to its end.
fn extract(from: &Path, unlock: &Unlock, folder: &Path) -> anyhow::Result<Manifest> {
    let file = File::open(from).with_context(at(from))?;
    let mut archive = Archive::new(vault::decrypt(from, unlock, BufReader::new(file))?);
    let mut manifest: Option<Manifest> = None;
    for entry in archive.entries().map_err(damaged)? {
        let mut entry = entry.map_err(damaged)?;
        let name = String::from_utf8_lossy(&entry.path_bytes()).into_owned();
        let size = entry.size();
        let is_known = [MANIFEST, IDENTITY, CONFIG, LEDGER, HALVES].contains(&name.as_str());
        let is_large = [LEDGER, HALVES].contains(&name.as_str());
        if !is_known || entry.header().entry_type() != EntryType::Regular || (size > MAX_SMALL_ENTRY && !is_large) {
            return Err(damaged(format!("an entry {name:?} of {size} bytes is not expected")));
        }
        if name == MANIFEST {
            let mut text = Vec::new();
            entry.read_to_end(&mut text).map_err(damaged)?;
            let read: Manifest = serde_json::from_slice(&text).map_err(damaged)?;
            if read.format > FORMAT {
                bail!(
                    "the backup is of npubbot {} and has format {}; this program reads up to {FORMAT}: use a newer one",
                    read.version,
                    read.format
                );
            }
            manifest = Some(read);
            continue;
        }
        if manifest.is_none() {
            return Err(damaged("it does not begin with its manifest"));
        }
        let path = folder.join(&name);
        let mut out = files::create_new(&path).with_context(at(&path))?;
        io::copy(&mut entry, &mut out).map_err(damaged)?;
        out.flush().and_then(|()| out.sync_all()).with_context(at(&path))?;
    }
    // An age file proves only at its end that nothing was cut off.
    io::copy(&mut archive.into_inner(), &mut io::sink()).map_err(damaged)?;
    manifest.ok_or_else(|| damaged("it is empty"))
}
