//! A simulated disk that loses power or fails at a chosen change. It keeps unsynced changes apart.
//!
//! SQLite writes by our functions in place of four system calls ([`install`]). The linker takes this
//! binary's `fsync` and `fdatasync` before those of the C library, for SQLite and for the standard
//! library. A *change* is a write, a truncation, a deletion or a sync. A process has one disk, which
//! is enough because every test has its own process.
//!
//! After a power loss a file has its synced content, and any or none of the unsynced sectors of 512
//! bytes. A file whose name was not synced (`fsync` of its folder) may be missing.

use rand::rngs::StdRng;
use rand::{Rng, SeedableRng};
use rusqlite::ffi;
use rustix::io::Errno;
use std::collections::BTreeMap;
use std::ffi::{CStr, OsStr, c_char, c_int, c_void};
use std::os::fd::BorrowedFd;
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Mutex, MutexGuard, Once, PoisonError};

/// Bytes of a sector, which a disk writes as a whole or not at all.
const SECTOR: usize = 512;
/// The file that is written without SQLite.
const PLAIN: &str = "used-halves";
/// The end of the name of SQLite's shared memory, which the next start makes again.
const SHARED_MEMORY: &str = "-shm";

/// The faults of the disk during a watch. Changes are counted from 0.
#[derive(Clone, Copy, Debug, Default)]
pub struct Trouble {
    /// Changes that fail: the first, how many, and the error.
    pub fails: Option<(usize, usize, Errno)>,
    /// The change at which the power goes, and how much survives of all that was not synced.
    pub power: Option<(usize, Survives)>,
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
    install();
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
    /// Counts a change. Errors: the disk lets it fail, or the power is gone.
    fn change(&mut self, what: String) -> Result<(), Errno> {
        if self.left.is_some() {
            return Err(Errno::IO);
        }
        let number = self.changes.len();
        self.changes.push(what);
        if let Some((_, survives)) = self.trouble.power.filter(|(at, _)| *at == number) {
            self.lose_power(survives);
            return Err(Errno::IO);
        }
        match self.trouble.fails {
            Some((from, count, error)) if (from..from + count).contains(&number) => Err(error),
            _ => Ok(()),
        }
    }

    /// Records an unsynced change of a file. The change is recorded first: it is under way when the
    /// power goes, so a part of it may survive.
    fn write(&mut self, name: &str, what: &str, change: Change) -> Result<(), Errno> {
        let file = self.files.entry(name.to_owned()).or_default();
        if file.is_deleted {
            *file = Content::default();
        }
        file.pending.push(change);
        let outcome = self.change(format!("{name} {what}"));
        if outcome.is_err() && self.left.is_none() {
            self.files.entry(name.to_owned()).or_default().pending.pop();
        }
        outcome
    }

    fn delete(&mut self, name: &str) -> Result<(), Errno> {
        self.change(format!("{name} delete"))?;
        if let Some(file) = self.files.get_mut(name) {
            file.is_deleted = true;
        }
        Ok(())
    }

    fn sync(&mut self, name: &str) -> Result<(), Errno> {
        self.change(format!("{name} sync"))?;
        self.read_plain();
        let file = self.files.entry(name.to_owned()).or_default();
        for change in file.pending.drain(..) {
            change.apply(&mut file.synced, &mut || true);
        }
        Ok(())
    }

    /// Records that the folder is synced, and with it the names of its files.
    fn sync_names(&mut self) {
        self.files.retain(|_, file| !file.is_deleted);
        for (name, file) in &mut self.files {
            file.is_named |= self.folder.join(name).exists();
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
                let mut bytes = file.synced.clone();
                file.pending.iter().for_each(|change| change.apply(&mut bytes, &mut lot));
                left.insert(name.clone(), bytes);
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

/// Makes SQLite's VFS for Unix call our functions below.
fn install() {
    /// A function for SQLite to call in place of a system call.
    macro_rules! replaces {
        ($call:literal, $function:ident as $type:ty) => {
            // SAFETY: SQLite calls it with the arguments of the system call, which are its own.
            ($call, unsafe { std::mem::transmute::<$type, unsafe extern "C" fn()>($function) })
        };
    }
    type Write = unsafe extern "C" fn(c_int, *const c_void, usize, i64) -> isize;
    type Read = unsafe extern "C" fn(c_int, *mut c_void, usize, i64) -> isize;
    static ONCE: Once = Once::new();
    ONCE.call_once(|| {
        let calls = [
            replaces!(c"pwrite", pwrite as Write),
            replaces!(c"pwrite64", pwrite as Write),
            replaces!(c"pread", pread as Read),
            replaces!(c"pread64", pread as Read),
            replaces!(c"ftruncate", ftruncate as unsafe extern "C" fn(c_int, i64) -> c_int),
            replaces!(c"unlink", unlink as unsafe extern "C" fn(*const c_char) -> c_int),
        ];
        // SAFETY: SQLite has a default VFS once it is initialised, and lets tests replace its calls
        // (<https://www.sqlite.org/c3ref/vfs.html>).
        unsafe {
            assert_eq!(ffi::sqlite3_initialize(), ffi::SQLITE_OK);
            let vfs = ffi::sqlite3_vfs_find(std::ptr::null());
            for (name, function) in calls {
                let set = (*vfs).xSetSystemCall.expect("the VFS for Unix has it");
                assert_eq!(set(vfs, name.as_ptr(), Some(function)), ffi::SQLITE_OK, "{name:?}");
            }
        }
    });
}

/// Tells the disk of a change, if it follows the file.
fn tell(path: &Path, change: impl FnOnce(&mut Disk, &str) -> Result<(), Errno>) -> Result<(), Errno> {
    match disk().as_mut() {
        Some(disk) if path.parent() == Some(&disk.folder) => {
            let name = name_of(path);
            if name.ends_with(SHARED_MEMORY) { Ok(()) } else { change(disk, &name) }
        }
        _ => Ok(()),
    }
}

fn path_of(fd: c_int) -> PathBuf {
    std::fs::read_link(format!("/proc/self/fd/{fd}")).unwrap_or_default()
}

/// Sets the C library's `errno`. Returns -1.
fn fail(error: Errno) -> c_int {
    // SAFETY: it is the `errno` of this thread.
    unsafe { *libc::__errno_location() = error.raw_os_error() };
    -1
}

/// `pwrite(2)` of SQLite.
unsafe extern "C" fn pwrite(fd: c_int, from: *const c_void, bytes: usize, at: i64) -> isize {
    // SAFETY: the caller lends a buffer of `bytes` bytes.
    let data = unsafe { std::slice::from_raw_parts(from.cast::<u8>(), bytes) }.to_vec();
    match tell(&path_of(fd), |disk, name| disk.write(name, "write", Change::Write(at as usize, data))) {
        // SAFETY: the arguments are the caller's.
        Ok(()) => unsafe { libc::pwrite(fd, from, bytes, at) },
        Err(error) => fail(error) as isize,
    }
}

/// `pread(2)` of SQLite.
unsafe extern "C" fn pread(fd: c_int, to: *mut c_void, bytes: usize, at: i64) -> isize {
    let is_dead = disk().as_ref().is_some_and(|disk| disk.left.is_some());
    // SQLite would take EIO for damage.
    if is_dead && tell(&path_of(fd), |_, _| Err(Errno::STALE)).is_err() {
        return fail(Errno::STALE) as isize;
    }
    // SAFETY: the arguments are the caller's.
    unsafe { libc::pread(fd, to, bytes, at) }
}

/// `ftruncate(2)` of SQLite.
unsafe extern "C" fn ftruncate(fd: c_int, length: i64) -> c_int {
    match tell(&path_of(fd), |disk, name| disk.write(name, "truncate", Change::Length(length as usize))) {
        // SAFETY: the arguments are the caller's.
        Ok(()) => unsafe { libc::ftruncate(fd, length) },
        Err(error) => fail(error),
    }
}

/// `unlink(2)` of SQLite.
unsafe extern "C" fn unlink(path: *const c_char) -> c_int {
    // SAFETY: a path ends with a zero byte.
    let name = unsafe { CStr::from_ptr(path) };
    match tell(Path::new(OsStr::from_bytes(name.to_bytes())), Disk::delete) {
        // SAFETY: the argument is the caller's.
        Ok(()) => unsafe { libc::unlink(path) },
        Err(error) => fail(error),
    }
}

/// Takes the place of `fsync(2)`.
// SAFETY: the name and the types are those of POSIX, and it does what POSIX says.
#[unsafe(no_mangle)]
extern "C" fn fsync(fd: c_int) -> c_int {
    sync(fd, |fd| rustix::fs::fsync(fd))
}

/// Takes the place of `fdatasync(2)`.
// SAFETY: the name and the types are those of POSIX, and it does what POSIX says.
#[unsafe(no_mangle)]
extern "C" fn fdatasync(fd: c_int) -> c_int {
    sync(fd, |fd| rustix::fs::fdatasync(fd))
}

/// Tells the disk of a sync, and syncs the file with `really`.
fn sync(fd: c_int, really: fn(BorrowedFd<'_>) -> rustix::io::Result<()>) -> c_int {
    if fd < 0 {
        return fail(Errno::BADF);
    }
    if IS_ON.load(Ordering::Acquire) {
        let path = path_of(fd);
        if let Some(disk) = disk().as_mut().filter(|disk| path == disk.folder) {
            disk.sync_names();
        }
        if let Err(error) = tell(&path, Disk::sync) {
            return fail(error);
        }
    }
    // SAFETY: either the caller has a file open under this number, or the kernel returns EBADF.
    really(unsafe { BorrowedFd::borrow_raw(fd) }).map_or_else(fail, |()| 0)
}
