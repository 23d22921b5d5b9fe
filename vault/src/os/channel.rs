//! The channel between the bot and its vault process: a socket pair. The vault's end is its
//! standard input.

use std::ffi::OsString;
use std::io;
use std::net::Shutdown;
use std::os::fd::{AsFd, OwnedFd};
use std::os::unix::net::UnixStream;
use std::os::unix::process::CommandExt;
use std::path::Path;
use std::process::{Child, Command, Stdio};

/// The end of the channel that is read from.
pub type Reader = UnixStream;

/// The end of the channel that is written to.
pub type Writer = UnixStream;

/// Ends the process at the other end.
pub struct Closer(UnixStream);

/// The bot's side of the channel.
pub struct Ends {
    /// Reads what the vault sends.
    pub reader: Reader,
    /// Writes to the vault.
    pub writer: Writer,
    /// Ends the vault.
    pub closer: Closer,
}

impl Ends {
    /// Our side of a channel, from its socket.
    ///
    /// Errors: the system has no room for more open files.
    pub fn of(socket: OwnedFd) -> io::Result<Ends> {
        let ours = UnixStream::from(socket);
        Ok(Ends { reader: ours.try_clone()?, closer: Closer(ours.try_clone()?), writer: ours })
    }
}

impl From<Ends> for OwnedFd {
    fn from(ends: Ends) -> OwnedFd {
        ends.writer.into()
    }
}

impl Closer {
    /// Closes the stream. The vault reads to the end of the stream, and then exits.
    pub fn close(&self) {
        let _ = self.0.shutdown(Shutdown::Both);
    }
}

/// Starts a program with this environment, listed as `name`. It inherits only its end of the
/// channel. Its standard error, for the text of a panic, is a pipe to this process.
///
/// Errors: it cannot be started.
pub fn start(
    program: &Path,
    name: &str,
    argument: &str,
    environment: &[(OsString, OsString)],
) -> io::Result<(Child, Ends)> {
    let (ours, theirs) = UnixStream::pair()?;
    let ends = Ends::of(ours.into())?;
    let mut command = Command::new(program);
    command.arg0(name).arg(argument).env_clear().envs(environment.iter().cloned());
    command.stdin(Stdio::from(OwnedFd::from(theirs))).stdout(Stdio::null()).stderr(Stdio::piped());
    let child = command.spawn()?;
    // The command holds a copy of the other end. Once it is dropped, the end of the process closes
    // the socket.
    drop(command);
    Ok((child, ends))
}

/// The vault's side of the channel.
///
/// Errors: standard input is not such a channel.
pub fn own_end() -> io::Result<(Reader, Writer)> {
    let stream = UnixStream::from(io::stdin().as_fd().try_clone_to_owned()?);
    stream.peer_addr()?;
    Ok((stream.try_clone()?, stream))
}
