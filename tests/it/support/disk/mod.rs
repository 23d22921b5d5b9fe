//! A simulated disk that loses power or fails at a chosen change. It keeps unsynced changes apart.
//!
//! SQLite writes through our VFS ([`vfs`]). [`sync`] receives `fsync` and `fdatasync` of the other
//! files in the folder. A *change* is a write, a truncation, a deletion or a sync. A process has
//! one disk, which is enough because every test has its own process.
//!
//! After a power loss a file has its synced content, and any or none of the unsynced sectors of 512
//! bytes. A file whose name was not synced (`fsync` of its folder) may be missing.

mod sync;
mod vfs;

use rand::rngs::StdRng;
use rand::{Rng, SeedableRng};
use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Mutex, MutexGuard, PoisonError};

/// Bytes of a sector, which a disk writes as a whole or not at all.
const SECTOR: usize = 512;
/// The file that is written without SQLite.
const PLAIN: &str = "used-halves";

/// The faults of the disk during a watch. Changes are counted from 0.
#[derive(Clone, Copy, Debug, Default)]
pub struct Trouble {
    /// Changes that fail: the first, how many, and how.
    pub fails: Option<(usize, usize, Failure)>,
    /// The change at which the power goes, and how much survives of all that was not synced.
    pub power: Option<(usize, Survives)>,
}

/// An error of the operating system.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Failure {
    /// `EIO`.
    Io,
    /// `ENOSPC`.
    Full,
    /// `EROFS`.
    ReadOnly,
}

/// The part of unsynced changes that a power loss leaves.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Survives {
    /// Nothing that was not synced.
    Nothing,
    /// All unsynced changes, as after a kill.
    Everything,
    /// Each sector at random, with this seed.
    Some(u64),
}

/// Outcome of a change.
enum Verdict {
    Done,
    Fails(Failure),
    Dead,
}

enum Change {
    Write(usize, Vec<u8>),
    Length(usize),
}

/// A file on the disk, and its unsynced changes.
#[derive(Default)]
struct Content {
    synced: Vec<u8>,
    pending: Vec<Change>,
    /// Whether its name in the folder is synced.
    is_named: bool,
    /// Whether it has an unsynced deletion.
    is_deleted: bool,
}

#[derive(Default)]
struct Disk {
    folder: PathBuf,
    files: BTreeMap<String, Content>,
    trouble: Trouble,
    /// The changes so far, for messages: file and operation.
    changes: Vec<String>,
    /// The files after the power loss.
    left: Option<BTreeMap<String, Vec<u8>>>,
}

static DISK: Mutex<Option<Disk>> = Mutex::new(None);
/// Whether a disk is watched. All tests call `fsync`, and most of them have no such disk.
static IS_ON: AtomicBool = AtomicBool::new(false);

fn disk() -> MutexGuard<'static, Option<Disk>> {
    DISK.lock().unwrap_or_else(PoisonError::into_inner)
}

/// Follows the files of this folder from now on. Their present content counts as synced.
pub fn watch(folder: &Path, trouble: Trouble) {
    vfs::install();
    let mut files = BTreeMap::new();
    for entry in std::fs::read_dir(folder).unwrap() {
        let path = entry.unwrap().path();
        let synced = std::fs::read(&path).unwrap();
        files.insert(name_of(&path), Content { synced, is_named: true, ..Content::default() });
    }
    *disk() = Some(Disk { folder: folder.to_owned(), files, trouble, ..Disk::default() });
    IS_ON.store(true, Ordering::Release);
}

/// The outcome of a watch.
pub struct Seen {
    /// The changes: file and operation.
    pub changes: Vec<String>,
    /// The files that the power loss left, if there was one.
    pub left: Option<BTreeMap<String, Vec<u8>>>,
}

/// Ends the watch and returns what was seen.
pub fn unwatch() -> Seen {
    IS_ON.store(false, Ordering::Release);
    let disk = disk().take().unwrap();
    Seen { changes: disk.changes, left: disk.left }
}

fn name_of(path: &Path) -> String {
    path.file_name().unwrap().to_string_lossy().into_owned()
}

impl Disk {
    /// Whether this file is in the folder.
    fn has(&self, path: &Path) -> bool {
        path.parent() == Some(&self.folder)
    }

    /// Counts a change and decides whether it succeeds.
    fn change(&mut self, what: String) -> Verdict {
        if self.left.is_some() {
            return Verdict::Dead;
        }
        let number = self.changes.len();
        self.changes.push(what);
        if let Some((_, survives)) = self.trouble.power.filter(|(at, _)| *at == number) {
            self.lose_power(survives);
            return Verdict::Dead;
        }
        match self.trouble.fails {
            Some((from, count, failure)) if (from..from + count).contains(&number) => Verdict::Fails(failure),
            _ => Verdict::Done,
        }
    }

    fn lose_power(&mut self, survives: Survives) {
        self.read_plain();
        let mut rng = StdRng::seed_from_u64(if let Survives::Some(seed) = survives { seed } else { 0 });
        let likely = [0.1, 0.5, 0.9][rng.random_range(0..3)];
        let mut lot = || match survives {
            Survives::Nothing => false,
            Survives::Everything => true,
            Survives::Some(_) => rng.random_bool(likely),
        };
        let mut left = BTreeMap::new();
        for (name, file) in &self.files {
            let is_missing = (!file.is_named && !lot()) || (file.is_deleted && lot());
            if !is_missing {
                left.insert(name.clone(), file.after(&mut lot));
            }
        }
        self.left = Some(left);
    }

    /// Reads [`PLAIN`], which SQLite does not write, and records what differs from its synced
    /// content as unsynced changes.
    fn read_plain(&mut self) {
        let Ok(now) = std::fs::read(self.folder.join(PLAIN)) else { return };
        let file = self.files.entry(PLAIN.to_owned()).or_default();
        let same = file.synced.iter().zip(&now).take_while(|(one, other)| one == other).count();
        file.pending.clear();
        if same < file.synced.len() {
            file.pending.push(Change::Length(same));
        }
        if same < now.len() {
            file.pending.push(Change::Write(same, now[same..].to_vec()));
        }
    }

    /// Records that a file was synced.
    fn sync(&mut self, name: &str) {
        let file = self.files.entry(name.to_owned()).or_default();
        for change in file.pending.drain(..) {
            change.apply(&mut file.synced, &mut || true);
        }
    }

    /// Records that the folder is synced, and with it the names of its files.
    fn sync_names(&mut self) {
        self.files.retain(|_, file| !file.is_deleted);
        for (name, file) in &mut self.files {
            file.is_named |= self.folder.join(name).exists();
        }
    }
}

impl Content {
    /// The content after a power loss. `lot` decides which unsynced sectors survive.
    fn after(&self, lot: &mut impl FnMut() -> bool) -> Vec<u8> {
        let mut bytes = self.synced.clone();
        for change in &self.pending {
            change.apply(&mut bytes, lot);
        }
        bytes
    }
}

impl Change {
    /// Applies the change, or the sectors of it that `lot` chooses.
    fn apply(&self, bytes: &mut Vec<u8>, lot: &mut impl FnMut() -> bool) {
        match self {
            Change::Length(length) => {
                if lot() {
                    bytes.resize(*length, 0);
                }
            }
            Change::Write(at, data) => {
                let mut from = *at;
                while from < at + data.len() {
                    let to = (from / SECTOR * SECTOR + SECTOR).min(at + data.len());
                    if lot() {
                        bytes.resize(bytes.len().max(to), 0);
                        bytes[from..to].copy_from_slice(&data[from - at..to - at]);
                    }
                    from = to;
                }
            }
        }
    }
}
