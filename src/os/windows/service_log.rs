//! Standard output and error of a service, which Windows would discard: a bounded file.

use crate::os::bounded_file::BoundedFile;
use std::io::{self, PipeReader, Read, Write};
use std::os::windows::io::IntoRawHandle;
use std::path::Path;
use std::sync::Mutex;
use std::sync::mpsc::{Receiver, Sender, channel};
use std::time::Duration;
use windows_sys::Win32::System::Console::{STD_ERROR_HANDLE, STD_OUTPUT_HANDLE, SetStdHandle};

/// Largest size of the file, and of the one before it, in bytes.
const MAX_LOG_BYTES: u64 = 1 << 20;
/// Bytes that are read at once.
const CHUNK: usize = 8 << 10;
/// The byte that marks the end of the log. Lines normally do not contain it.
const FLUSH_MARK: u8 = 0;
/// Longest wait for the last lines to be written to the file.
const FLUSH_TIMEOUT: Duration = Duration::from_millis(100);

/// Receives a signal when everything before a [`FLUSH_MARK`] is in the file.
static WRITTEN: Mutex<Option<Receiver<()>>> = Mutex::new(None);

/// Redirects standard output and error of this process to a file.
///
/// Errors: the file cannot be made; no thread can be started.
pub(super) fn start(path: &Path) -> io::Result<()> {
    let file = BoundedFile::open(path, MAX_LOG_BYTES)?;
    let (reader, writer) = io::pipe()?;
    let (told, written) = channel();
    std::thread::Builder::new().name("log".to_owned()).spawn(move || copy(reader, file, &told))?;
    for (which, end) in [(STD_OUTPUT_HANDLE, writer.try_clone()?), (STD_ERROR_HANDLE, writer)] {
        // SAFETY: the handle is open, and stays so as long as the process.
        if unsafe { SetStdHandle(which, end.into_raw_handle()) } == 0 {
            return Err(io::Error::last_os_error());
        }
    }
    *WRITTEN.lock().unwrap_or_else(|broken| broken.into_inner()) = Some(written);
    Ok(())
}

/// Waits until all lines are in the file, for at most [`FLUSH_TIMEOUT`].
pub(super) fn flush() {
    if let Some(written) = WRITTEN.lock().unwrap_or_else(|broken| broken.into_inner()).as_ref() {
        // A line may have contained the mark; such earlier signals do not count.
        while written.try_recv().is_ok() {}
        if io::stderr().write_all(&[FLUSH_MARK]).is_ok() {
            let _ = written.recv_timeout(FLUSH_TIMEOUT);
        }
    }
}

/// Copies until the process ends. If the disk is full, lines are lost and nothing stops.
fn copy(mut from: PipeReader, mut file: BoundedFile, told: &Sender<()>) {
    let mut chunk = vec![0; CHUNK];
    while let Ok(length @ 1..) = from.read(&mut chunk) {
        for (number, part) in chunk[..length].split(|byte| *byte == FLUSH_MARK).enumerate() {
            if number > 0 {
                let _ = told.send(());
            }
            let _ = file.append(part);
        }
    }
}
