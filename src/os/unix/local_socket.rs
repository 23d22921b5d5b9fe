//! The socket between a running bot and its operator: a Unix socket in the data folder.

use interprocess::ConnectWaitMode;
use interprocess::local_socket::tokio::{Listener, Stream, prelude::*};
use interprocess::local_socket::traits::Stream as _;
use interprocess::local_socket::{ConnectOptions, GenericFilePath, ListenerOptions};
use interprocess::os::unix::local_socket::ListenerOptionsExt;
use interprocess::os::unix::uds_local_socket::Listener as SyncListener;
use rustix::net::SendFlags;
use std::fs::File;
use std::io::{self, Read, Write};
use std::os::fd::AsFd;
use std::path::{Path, PathBuf};
use std::time::Duration;

/// Permissions of the socket: only its owner and root connect.
const MODE: u32 = 0o600;

/// Flags that avoid the signal SIGPIPE, on systems with such a flag. Rust's runtime ignores the
/// signal anyway.
#[cfg(target_vendor = "apple")]
const QUIETLY: SendFlags = SendFlags::empty();
#[cfg(not(target_vendor = "apple"))]
const QUIETLY: SendFlags = SendFlags::NOSIGNAL;

/// The most bytes of a path that Linux takes as the address of a socket.
#[cfg(target_os = "linux")]
const LONGEST_ADDRESS: usize = 107;

/// A path of any length as the address of a socket. The address of a long path goes through its
/// open folder, so keep the folder open.
#[cfg(target_os = "linux")]
fn address(path: &Path) -> io::Result<(PathBuf, Option<File>)> {
    use std::os::fd::AsRawFd;
    match (path.parent(), path.file_name()) {
        (Some(folder), Some(name)) if path.as_os_str().len() > LONGEST_ADDRESS => {
            let folder = File::open(folder)?;
            let through = Path::new("/proc/self/fd").join(folder.as_raw_fd().to_string());
            Ok((through.join(name), Some(folder)))
        }
        _ => Ok((path.to_owned(), None)),
    }
}

/// Other systems have no such address; they refuse a long path.
#[cfg(not(target_os = "linux"))]
fn address(path: &Path) -> io::Result<(PathBuf, Option<File>)> {
    Ok((path.to_owned(), None))
}

/// The bot's open socket. Its file is deleted when this value is dropped, before its folder is
/// closed.
pub struct LocalListener {
    listener: BoundListener,
    _folder: Option<File>,
}

/// A listener becomes one of tokio at its first use, because a bot opens it before it has threads.
enum BoundListener {
    Open(Option<SyncListener>),
    InUse(Listener),
}

/// A connection from an operator.
pub type Connection = Stream;

impl LocalListener {
    /// Opens the socket at a path. The caller holds the folder's lock, so an existing socket is
    /// left over from a crash and is replaced.
    ///
    /// Errors: the socket cannot be made.
    pub fn open(path: &Path) -> io::Result<LocalListener> {
        let (address, folder) = address(path)?;
        let name = address.to_fs_name::<GenericFilePath>()?;
        let options = ListenerOptions::new().name(name).mode(MODE as _).try_overwrite(true);
        let interprocess::local_socket::Listener::UdSocket(listener) = options.create_sync()?;
        Ok(LocalListener { listener: BoundListener::Open(Some(listener)), _folder: folder })
    }

    /// Waits for the next connection.
    ///
    /// Errors: those of the system, for example a lack of file descriptors.
    pub async fn accept(&mut self) -> io::Result<Connection> {
        if let BoundListener::Open(listener) = &mut self.listener {
            let listener = listener.take().ok_or(io::ErrorKind::NotConnected)?;
            self.listener = BoundListener::InUse(Listener::UdSocket(listener.try_into()?));
        }
        match &self.listener {
            BoundListener::InUse(listener) => listener.accept().await,
            BoundListener::Open(_) => Err(io::ErrorKind::NotConnected.into()),
        }
    }
}

/// Whether the operator has left, so that nobody waits for the answer. Sends nothing.
pub fn is_closed(connection: &Connection) -> bool {
    let Stream::UdSocket(socket) = connection;
    let sent = rustix::net::send(socket.as_fd(), &[], QUIETLY);
    matches!(sent, Err(rustix::io::Errno::PIPE | rustix::io::Errno::CONNRESET))
}

/// Ends a connection whose answer is written.
///
/// Errors: none. The operator can still read what was written.
pub async fn finish(_: Connection) -> io::Result<()> {
    Ok(())
}

/// A connection to a running bot.
pub struct Client(interprocess::local_socket::Stream);

impl Client {
    /// Connects to the socket at a path. The connection, each read and each write may take at most
    /// `patience`.
    ///
    /// Errors: `NotFound`, `ConnectionRefused` or `NotADirectory` if nothing listens;
    /// `PermissionDenied`; `NotConnected` if the bot takes no more connections.
    pub fn open(path: &Path, patience: Duration) -> io::Result<Client> {
        let (address, _folder) = address(path)?;
        let name = address.to_fs_name::<GenericFilePath>()?;
        let options = ConnectOptions::new().name(name).wait_mode(ConnectWaitMode::Timeout(patience));
        let stream = options.connect_sync()?;
        stream.set_recv_timeout(Some(patience))?;
        stream.set_send_timeout(Some(patience))?;
        Ok(Client(stream))
    }
}

impl Read for Client {
    fn read(&mut self, into: &mut [u8]) -> io::Result<usize> {
        (&self.0).read(into)
    }
}

impl Write for Client {
    fn write(&mut self, from: &[u8]) -> io::Result<usize> {
        (&self.0).write(from)
    }

    fn flush(&mut self) -> io::Result<()> {
        (&self.0).flush()
    }
}
