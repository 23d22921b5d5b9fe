//! The VFS: SQLite's own for Unix, which first asks the simulated disk before every write,
//! truncation, deletion and sync. Once installed, it is the default VFS of this process.
//!
//! Contract of all `unsafe` code here (<https://www.sqlite.org/vfs.html>): SQLite calls a method
//! with a file that `open` has filled in and `close` has not ended, and with one file from one
//! thread at a time. The memory of a file has `szOsFile` bytes: a [`Wrapped`], and behind it the
//! file of the inner VFS.

#![allow(non_snake_case, reason = "the names are SQLite's")]

use super::{Change, Content, Disk, Failure, Verdict, disk, name_of};
use rusqlite::ffi::{self, sqlite3_file, sqlite3_int64, sqlite3_vfs};
use std::ffi::{CStr, c_char, c_int, c_void};
use std::path::PathBuf;
use std::ptr;
use std::sync::OnceLock;

/// Start of the memory of an open file.
#[repr(C)]
struct Wrapped {
    base: sqlite3_file,
    /// The path of the file, from `Box::into_raw`; null for a file without a name.
    path: *mut PathBuf,
}

/// The VFS that was the default one. It lives as long as the process.
struct Inner(*mut sqlite3_vfs);

// SAFETY: the pointer is set before it is shared, and SQLite's VFS for Unix locks all its state.
unsafe impl Send for Inner {}
// SAFETY: as above.
unsafe impl Sync for Inner {}

static INNER: OnceLock<Inner> = OnceLock::new();

/// Makes this VFS the default one.
pub(super) fn install() {
    INNER.get_or_init(|| {
        // SAFETY: SQLite has a default VFS once it is initialised. The copy has the same private
        // data, which the inner methods read through the pointer they get.
        unsafe {
            assert_eq!(ffi::sqlite3_initialize(), ffi::SQLITE_OK);
            let inner = ffi::sqlite3_vfs_find(ptr::null());
            let mut ours = *inner;
            ours.zName = c"npubbot-test-disk".as_ptr();
            ours.szOsFile += size_of::<Wrapped>() as c_int;
            ours.xOpen = Some(open);
            ours.xDelete = Some(delete);
            let ours = Box::into_raw(Box::new(ours));
            assert_eq!(ffi::sqlite3_vfs_register(ours, 1), ffi::SQLITE_OK);
            Inner(inner)
        }
    });
}

fn inner_vfs() -> *mut sqlite3_vfs {
    INNER.get().expect("SQLite calls a VFS that is installed").0
}

/// SQLite's error code for a change that fails. `code_of_io` is the code for `EIO`.
fn code(failure: Failure, code_of_io: c_int) -> c_int {
    match failure {
        Failure::Io => code_of_io,
        Failure::Full => ffi::SQLITE_FULL,
        Failure::ReadOnly => ffi::SQLITE_READONLY,
    }
}

/// The file of the inner VFS.
unsafe fn inner(file: *mut sqlite3_file) -> *mut sqlite3_file {
    // SAFETY: see the contract above.
    unsafe { file.cast::<Wrapped>().add(1).cast() }
}

/// Runs `work` with the disk and the file's name, if the disk follows the file.
unsafe fn with<T>(file: *mut sqlite3_file, work: impl FnOnce(&mut Disk, &str) -> T) -> Option<T> {
    // SAFETY: see the contract above; the path is null or from `open`.
    let path = unsafe { (*file.cast::<Wrapped>()).path.as_ref() }?;
    let mut disk = disk();
    let disk = disk.as_mut().filter(|disk| disk.has(path))?;
    Some(work(disk, &name_of(path)))
}

unsafe extern "C" fn open(
    _: *mut sqlite3_vfs,
    name: *const c_char,
    file: *mut sqlite3_file,
    flags: c_int,
    out: *mut c_int,
) -> c_int {
    // SAFETY: a name is null or ends with a zero byte. The memory behind `Wrapped` belongs to the
    // inner VFS, which gets itself as an argument.
    unsafe {
        let path = (!name.is_null()).then(|| PathBuf::from(CStr::from_ptr(name).to_str().expect("UTF-8")));
        let is_new = path.as_ref().is_some_and(|path| !path.exists());
        (*file).pMethods = ptr::null();
        let code = (*inner_vfs()).xOpen.expect("every VFS opens")(inner_vfs(), name, inner(file), flags, out);
        if code != ffi::SQLITE_OK {
            return code;
        }
        let path = path.map_or(ptr::null_mut(), |path| Box::into_raw(Box::new(path)));
        file.cast::<Wrapped>().write(Wrapped { base: sqlite3_file { pMethods: &METHODS }, path });
        with(file, |disk, name| {
            if is_new {
                disk.files.insert(name.to_owned(), Content::default());
            }
        });
    }
    ffi::SQLITE_OK
}

unsafe extern "C" fn delete(_: *mut sqlite3_vfs, name: *const c_char, sync: c_int) -> c_int {
    // SAFETY: a name ends with a zero byte.
    let path = PathBuf::from(unsafe { CStr::from_ptr(name) }.to_str().expect("UTF-8"));
    if let Some(disk) = disk().as_mut().filter(|disk| disk.has(&path)) {
        match disk.change(format!("{} delete", name_of(&path))) {
            Verdict::Done => {}
            Verdict::Fails(failure) => return code(failure, ffi::SQLITE_IOERR_DELETE),
            Verdict::Dead => return ffi::SQLITE_IOERR_DELETE,
        }
        if let Some(file) = disk.files.get_mut(&name_of(&path)) {
            file.is_deleted = true;
        }
    }
    // SAFETY: the inner VFS gets itself as an argument.
    unsafe { (*inner_vfs()).xDelete.expect("every VFS deletes")(inner_vfs(), name, sync) }
}

/// Methods that are passed to the inner VFS unchanged.
macro_rules! passed_on {
    ($($method:ident($($argument:ident: $kind:ty),*);)*) => { $(
        pub(super) unsafe extern "C" fn $method(file: *mut sqlite3_file $(, $argument: $kind)*) -> c_int {
            // SAFETY: see the contract above.
            unsafe {
                let inner = inner(file);
                (*(*inner).pMethods).$method.expect("the Unix VFS has it")(inner $(, $argument)*)
            }
        }
    )* };
}

passed_on! {
    xFileSize(size: *mut sqlite3_int64);
    xLock(level: c_int);
    xUnlock(level: c_int);
    xCheckReservedLock(out: *mut c_int);
    xFileControl(operation: c_int, argument: *mut c_void);
    xSectorSize();
    xDeviceCharacteristics();
    xShmMap(page: c_int, size: c_int, extend: c_int, out: *mut *mut c_void);
    xShmLock(offset: c_int, count: c_int, flags: c_int);
    xShmUnmap(delete: c_int);
}

/// The inner methods that are called after the disk was asked.
mod plain {
    use super::*;
    passed_on! {
        xClose();
        xRead(to: *mut c_void, bytes: c_int, at: sqlite3_int64);
        xWrite(from: *const c_void, bytes: c_int, at: sqlite3_int64);
        xTruncate(size: sqlite3_int64);
        xSync(flags: c_int);
    }
}

unsafe extern "C" fn barrier(file: *mut sqlite3_file) {
    // SAFETY: see the contract above.
    unsafe {
        let inner = inner(file);
        (*(*inner).pMethods).xShmBarrier.expect("the Unix VFS has it")(inner);
    }
}

unsafe extern "C" fn close(file: *mut sqlite3_file) -> c_int {
    // SAFETY: SQLite closes a file once, so the path is freed once.
    unsafe {
        let path = (*file.cast::<Wrapped>()).path;
        if !path.is_null() {
            drop(Box::from_raw(path));
        }
        plain::xClose(file)
    }
}

unsafe extern "C" fn read(file: *mut sqlite3_file, to: *mut c_void, bytes: c_int, at: sqlite3_int64) -> c_int {
    // SAFETY: see the contract above.
    unsafe {
        match with(file, |disk, _| disk.left.is_some()) {
            Some(true) => ffi::SQLITE_IOERR_READ,
            _ => plain::xRead(file, to, bytes, at),
        }
    }
}

/// Records an unsynced change and asks the disk. The change is recorded first: it is under way when
/// the power goes, so a part of it may survive. Errors: the failure, or `None` if the power is
/// gone.
unsafe fn unsynced(file: *mut sqlite3_file, what: &str, change: Change) -> Result<(), Option<Failure>> {
    // SAFETY: see the contract above.
    let verdict = unsafe {
        with(file, |disk, name| {
            if disk.left.is_none() {
                disk.files.entry(name.to_owned()).or_default().pending.push(change);
            }
            let verdict = disk.change(format!("{name} {what}"));
            if let (Verdict::Fails(_), Some(file)) = (&verdict, disk.files.get_mut(name)) {
                file.pending.pop();
            }
            verdict
        })
    };
    match verdict {
        None | Some(Verdict::Done) => Ok(()),
        Some(Verdict::Fails(failure)) => Err(Some(failure)),
        Some(Verdict::Dead) => Err(None),
    }
}

unsafe extern "C" fn write(file: *mut sqlite3_file, from: *const c_void, bytes: c_int, at: sqlite3_int64) -> c_int {
    // SAFETY: SQLite lends a buffer of `bytes` bytes.
    unsafe {
        let data = std::slice::from_raw_parts(from.cast::<u8>(), bytes as usize).to_vec();
        match unsynced(file, "write", Change::Write(at as usize, data)) {
            Ok(()) => plain::xWrite(file, from, bytes, at),
            Err(failure) => failure.map_or(ffi::SQLITE_IOERR_WRITE, |one| code(one, ffi::SQLITE_IOERR_WRITE)),
        }
    }
}

unsafe extern "C" fn truncate(file: *mut sqlite3_file, size: sqlite3_int64) -> c_int {
    // SAFETY: see the contract above.
    unsafe {
        match unsynced(file, "truncate", Change::Length(size as usize)) {
            Ok(()) => plain::xTruncate(file, size),
            Err(failure) => failure.map_or(ffi::SQLITE_IOERR_TRUNCATE, |one| code(one, ffi::SQLITE_IOERR_TRUNCATE)),
        }
    }
}

unsafe extern "C" fn sync(file: *mut sqlite3_file, flags: c_int) -> c_int {
    // SAFETY: see the contract above. The inner sync calls `fsync`, so the disk is not locked then.
    unsafe {
        match with(file, |disk, name| disk.change(format!("{name} sync"))) {
            None | Some(Verdict::Done) => {}
            Some(Verdict::Fails(failure)) => return code(failure, ffi::SQLITE_IOERR_FSYNC),
            Some(Verdict::Dead) => return ffi::SQLITE_IOERR_FSYNC,
        }
        let done = plain::xSync(file, flags);
        with(file, |disk, name| disk.sync(name));
        done
    }
}

/// The methods, version 2: they include shared memory for the write-ahead log, but no mapped reads.
static METHODS: ffi::sqlite3_io_methods = ffi::sqlite3_io_methods {
    iVersion: 2,
    xClose: Some(close),
    xRead: Some(read),
    xWrite: Some(write),
    xTruncate: Some(truncate),
    xSync: Some(sync),
    xFileSize: Some(xFileSize),
    xLock: Some(xLock),
    xUnlock: Some(xUnlock),
    xCheckReservedLock: Some(xCheckReservedLock),
    xFileControl: Some(xFileControl),
    xSectorSize: Some(xSectorSize),
    xDeviceCharacteristics: Some(xDeviceCharacteristics),
    xShmMap: Some(xShmMap),
    xShmLock: Some(xShmLock),
    xShmBarrier: Some(barrier),
    xShmUnmap: Some(xShmUnmap),
    xFetch: None,
    xUnfetch: None,
};
