//! The socket between a running bot and its operator: a named pipe. Every user sees the names of
//! all pipes and can make pipes, so our pipe has a random name. The name is in a file in the data
//! folder, which others cannot read.

use super::acl::Own;
use super::files;
use std::fs::File;
use std::io::{self, Read, Write};
use std::os::windows::io::AsRawHandle;
use std::path::{Path, PathBuf};
use std::ptr::null_mut;
use tokio::io::AsyncReadExt;
use tokio::net::windows::named_pipe::{ClientOptions, NamedPipeClient, NamedPipeServer, ServerOptions};
use windows_sys::Win32::Foundation::ERROR_PIPE_BUSY;
use windows_sys::Win32::System::Pipes::PeekNamedPipe;

/// The beginning of every pipe's name.
const PIPES: &str = r"\\.\pipe\";
/// The longest name that is read, in bytes.
const LONGEST_NAME: u64 = 100;

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
/// The operator's side of a connection.
pub type ClientStream = NamedPipeClient;

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

/// Connects to the pipe that the file at a path names.
///
/// Errors: `WouldBlock` if the bot takes no connection now; that nothing listens there.
pub async fn connect(path: &Path) -> io::Result<ClientStream> {
    let mut name = String::new();
    File::open(path)?.take(LONGEST_NAME).read_to_string(&mut name)?;
    if !name.starts_with(PIPES) {
        return Err(io::ErrorKind::InvalidData.into());
    }
    // By default the bot can see who calls, but cannot act as the operator.
    ClientOptions::new().open(&name).map_err(|error| match error.raw_os_error() {
        Some(code) if code == ERROR_PIPE_BUSY.cast_signed() => io::ErrorKind::WouldBlock.into(),
        _ => error,
    })
}
