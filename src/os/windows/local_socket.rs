//! The socket between a running bot and its operator: a named pipe. Every user sees the names of
//! all pipes and can make pipes, so our pipe has a random name. The name is in a file in the data
//! folder, which others cannot read.

use super::acl::Own;
use super::{files, wide};
use std::fs::{File, OpenOptions};
use std::io::{self, Read, Write};
use std::os::windows::fs::OpenOptionsExt;
use std::os::windows::io::AsRawHandle;
use std::path::{Path, PathBuf};
use std::ptr::null_mut;
use std::sync::mpsc::{Receiver, RecvTimeoutError, channel};
use std::time::{Duration, Instant};
use tokio::io::AsyncReadExt;
use tokio::net::windows::named_pipe::{NamedPipeServer, ServerOptions};
use windows_sys::Win32::Foundation::ERROR_PIPE_BUSY;
use windows_sys::Win32::Storage::FileSystem::SECURITY_IDENTIFICATION;
use windows_sys::Win32::System::Pipes::{PeekNamedPipe, WaitNamedPipeW};

/// The beginning of every pipe's name.
const PIPES: &str = r"\\.\pipe\";
/// The longest name that is read, in bytes.
const LONGEST_NAME: u64 = 100;
/// Bytes that are read at once.
const CHUNK: usize = 64 << 10;

/// The bot's open socket. Its file is deleted when this value is dropped.
pub struct LocalListener {
    file: PathBuf,
    name: String,
    own: Own,
    /// The instance for the next connection.
    next: NamedPipeServer,
}

// SAFETY: the descriptor in `Own` is only read.
unsafe impl Send for LocalListener {}

/// A connection from an operator.
pub type Connection = NamedPipeServer;

impl LocalListener {
    /// Opens a pipe, and writes its name to the file at a path. The caller holds the folder's lock,
    /// so an existing file is left over from a crash and is replaced.
    ///
    /// Errors: the pipe or the file cannot be made.
    pub fn open(path: &Path) -> io::Result<LocalListener> {
        let mut random = [0; 16];
        getrandom::fill(&mut random).map_err(io::Error::other)?;
        let name = format!("{PIPES}npubbot-{:032x}", u128::from_le_bytes(random));
        let own = Own::pipe()?;
        let next = instance(&name, &own, true)?;
        match std::fs::remove_file(path) {
            Err(error) if error.kind() != io::ErrorKind::NotFound => return Err(error),
            _ => {}
        }
        files::create_new(path)?.write_all(name.as_bytes())?;
        Ok(LocalListener { file: path.to_owned(), name, own, next })
    }

    /// Waits for the next connection.
    ///
    /// Errors: those of the system.
    pub async fn accept(&mut self) -> io::Result<Connection> {
        self.next.connect().await?;
        let following = instance(&self.name, &self.own, false)?;
        Ok(std::mem::replace(&mut self.next, following))
    }
}

impl Drop for LocalListener {
    fn drop(&mut self) {
        let _ = std::fs::remove_file(&self.file);
    }
}

fn instance(name: &str, own: &Own, is_first: bool) -> io::Result<NamedPipeServer> {
    let mut attributes = own.attributes();
    let mut options = ServerOptions::new();
    options.first_pipe_instance(is_first).reject_remote_clients(true);
    // SAFETY: the attributes are valid as long as `own`.
    unsafe { options.create_with_security_attributes_raw(name, (&raw mut attributes).cast()) }
}

/// Whether the operator has left, so that nobody waits for the answer. Sends nothing.
pub fn is_closed(connection: &Connection) -> bool {
    // SAFETY: the handle is open; nothing is asked for but the state.
    let peeked =
        unsafe { PeekNamedPipe(connection.as_raw_handle(), null_mut(), 0, null_mut(), null_mut(), null_mut()) };
    peeked == 0
}

/// Ends a connection whose answer is written. Waits until the operator has read it and left,
/// because closing the pipe discards unread data.
///
/// Errors: the operator sends more than a request.
pub async fn finish(mut connection: Connection) -> io::Result<()> {
    match connection.read(&mut [0]).await {
        Ok(1..) => Err(io::ErrorKind::InvalidData.into()),
        // The other end is closed.
        Ok(0) | Err(_) => Ok(()),
    }
}

/// A connection to a running bot.
pub struct Client {
    pipe: File,
    patience: Duration,
    /// The answer. A separate thread reads it, because a read of a pipe has no time limit.
    chunks: Option<Receiver<io::Result<Vec<u8>>>>,
    rest: Vec<u8>,
}

impl Client {
    /// Connects to the pipe that the file at a path names. The connection and each read may take at
    /// most `patience`. Do not write after the first read.
    ///
    /// Errors: `NotFound` if nothing listens; `PermissionDenied`; `NotConnected` if the bot takes
    /// no more connections.
    pub fn open(path: &Path, patience: Duration) -> io::Result<Client> {
        let mut name = String::new();
        File::open(path)?.take(LONGEST_NAME).read_to_string(&mut name)?;
        if !name.starts_with(PIPES) {
            return Err(io::ErrorKind::InvalidData.into());
        }
        let deadline = Instant::now() + patience;
        loop {
            let mut options = OpenOptions::new();
            // With this flag the bot can see who calls, but cannot act as the operator.
            match options.read(true).write(true).security_qos_flags(SECURITY_IDENTIFICATION).open(&name) {
                Ok(pipe) => return Ok(Client { pipe, patience, chunks: None, rest: Vec::new() }),
                Err(error) if error.raw_os_error() != Some(ERROR_PIPE_BUSY.cast_signed()) => return Err(error),
                Err(_) => wait(&name, deadline)?,
            }
        }
    }

    fn chunks(&mut self) -> io::Result<&Receiver<io::Result<Vec<u8>>>> {
        if self.chunks.is_none() {
            let (chunk, chunks) = channel();
            let mut pipe = self.pipe.try_clone()?;
            let read = move || {
                loop {
                    let mut bytes = vec![0; CHUNK];
                    let read = pipe.read(&mut bytes).map(|length| {
                        bytes.truncate(length);
                        bytes
                    });
                    let is_last = !matches!(&read, Ok(bytes) if !bytes.is_empty());
                    if chunk.send(read).is_err() || is_last {
                        return;
                    }
                }
            };
            std::thread::Builder::new().name("answer".to_owned()).spawn(read)?;
            self.chunks = Some(chunks);
        }
        self.chunks.as_ref().ok_or_else(|| io::ErrorKind::NotConnected.into())
    }
}

/// Waits until a pipe takes a connection.
///
/// Errors: `NotConnected` after the deadline.
fn wait(name: &str, deadline: Instant) -> io::Result<()> {
    let left = deadline.saturating_duration_since(Instant::now()).as_millis();
    let (name, left) = (wide::text(name), u32::try_from(left).unwrap_or(u32::MAX));
    // 0 would mean the pipe's own time limit. A failure means that the time ran out or the pipe is
    // gone; the next attempt to open it shows which. SAFETY: the name ends with 0.
    if left > 0 && (unsafe { WaitNamedPipeW(name.as_ptr(), left) } != 0 || Instant::now() < deadline) {
        return Ok(());
    }
    Err(io::ErrorKind::NotConnected.into())
}

impl Read for Client {
    fn read(&mut self, into: &mut [u8]) -> io::Result<usize> {
        if self.rest.is_empty() {
            let patience = self.patience;
            self.rest = match self.chunks()?.recv_timeout(patience) {
                Ok(chunk) => chunk?,
                Err(RecvTimeoutError::Timeout) => return Err(io::ErrorKind::TimedOut.into()),
                Err(RecvTimeoutError::Disconnected) => Vec::new(),
            };
        }
        let length = self.rest.len().min(into.len());
        into[..length].copy_from_slice(&self.rest[..length]);
        self.rest.drain(..length);
        Ok(length)
    }
}

impl Write for Client {
    fn write(&mut self, from: &[u8]) -> io::Result<usize> {
        self.pipe.write(from)
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}
