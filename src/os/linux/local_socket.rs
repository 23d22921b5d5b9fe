//! The socket between a running bot and its operator: a Unix socket in the data folder.

use rustix::net::SendFlags;
use std::fs::{self, File, Permissions};
use std::io;
use std::os::fd::{AsFd, AsRawFd};
use std::os::unix::fs::PermissionsExt;
use std::os::unix::net::UnixListener as BoundListener;
use std::path::{Path, PathBuf};
use tokio::net::{UnixListener, UnixStream};

/// Permissions of the socket: only its owner and root connect.
const MODE: u32 = 0o600;

/// The most bytes of a path that Linux takes as the address of a socket.
const LONGEST_ADDRESS: usize = 107;

/// A path of any length as the address of a socket. The address of a long path goes through its
/// open folder, so keep the folder open.
fn address(path: &Path) -> io::Result<(PathBuf, Option<File>)> {
    match (path.parent(), path.file_name()) {
        (Some(folder), Some(name)) if path.as_os_str().len() > LONGEST_ADDRESS => {
            let folder = File::open(folder)?;
            let through = Path::new("/proc/self/fd").join(folder.as_raw_fd().to_string());
            Ok((through.join(name), Some(folder)))
        }
        _ => Ok((path.to_owned(), None)),
    }
}

/// The bot's open socket. Its file is deleted when this value is dropped.
pub struct LocalListener {
    path: PathBuf,
    /// Becomes one of tokio at its first use, because a bot opens it before it has threads.
    bound: Option<BoundListener>,
    in_use: Option<UnixListener>,
}

/// A connection from an operator.
pub type Connection = UnixStream;
/// The operator's side of a connection.
pub type ClientStream = UnixStream;

impl LocalListener {
    /// Opens the socket at a path. The caller holds the folder's lock, so an existing socket is
    /// left over from a crash and is replaced.
    ///
    /// Errors: the socket cannot be made.
    pub fn open(path: &Path) -> io::Result<LocalListener> {
        let (address, _folder) = address(path)?;
        match fs::remove_file(path) {
            Err(error) if error.kind() != io::ErrorKind::NotFound => return Err(error),
            _ => {}
        }
        let bound = BoundListener::bind(address)?;
        bound.set_nonblocking(true)?;
        fs::set_permissions(path, Permissions::from_mode(MODE))?;
        Ok(LocalListener { path: path.to_owned(), bound: Some(bound), in_use: None })
    }

    /// Waits for the next connection.
    ///
    /// Errors: those of the system, for example a lack of file descriptors.
    pub async fn accept(&mut self) -> io::Result<Connection> {
        if let Some(bound) = self.bound.take() {
            self.in_use = Some(UnixListener::from_std(bound)?);
        }
        let listener = self.in_use.as_ref().ok_or(io::ErrorKind::NotConnected)?;
        Ok(listener.accept().await?.0)
    }
}

impl Drop for LocalListener {
    fn drop(&mut self) {
        let _ = fs::remove_file(&self.path);
    }
}

/// Whether the operator has left, so that nobody waits for the answer. Sends nothing.
pub fn is_closed(connection: &Connection) -> bool {
    let sent = rustix::net::send(connection.as_fd(), &[], SendFlags::NOSIGNAL);
    matches!(sent, Err(rustix::io::Errno::PIPE | rustix::io::Errno::CONNRESET))
}

/// Ends a connection whose answer is written.
///
/// Errors: none. The operator can still read what was written.
pub async fn finish(_: Connection) -> io::Result<()> {
    Ok(())
}

/// Connects to the socket at a path.
///
/// Errors: `WouldBlock` if the bot takes no connection now; that nothing listens there.
pub async fn connect(path: &Path) -> io::Result<ClientStream> {
    let (address, _folder) = address(path)?;
    UnixStream::connect(address).await
}
