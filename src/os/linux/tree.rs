//! The processes of `serve`: the supervisor starts the network process and hands it files.

use crate::frame;
use npubbot_vault::os::channel::Ends;
use npubbot_vault::os::program;
use npubbot_vault::os::walls::{self, NetworkFiles};
use npubbot_vault::{MAX_FRAME, MissingWall, Process, Spawned};
use rustix::net::{
    RecvAncillaryBuffer, RecvAncillaryMessage, RecvFlags, ReturnFlags, SendAncillaryBuffer, SendAncillaryMessage,
    SendFlags, recvmsg, sendmsg,
};
use serde::Serialize;
use serde::de::DeserializeOwned;
use std::ffi::OsStr;
use std::fs::{File, OpenOptions};
use std::io::{self, IoSlice, IoSliceMut, IsTerminal};
use std::mem::MaybeUninit;
use std::net::Shutdown;
use std::os::fd::{AsFd, OwnedFd};
use std::os::unix::net::UnixStream;
use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::sync::{Mutex, PoisonError};

#[cfg(any(test, feature = "test-util"))]
pub use super::attack::attack_if_asked;

/// The files of a started process: the pipes of its channel.
const FILES: usize = 3;
/// The byte that carries files.
const MARK: u8 = 0xf1;
/// Variables that name files of secrets, or speak to the service manager.
const HIDDEN_VARIABLES: [&str; 8] = [
    "NPUBBOT_PASSPHRASE_FILE",
    "NPUBBOT_AGE_IDENTITY",
    "NPUBBOT_CONFIG",
    "NPUBBOT_DATA",
    "CREDENTIALS_DIRECTORY",
    "NOTIFY_SOCKET",
    "WATCHDOG_USEC",
    "WATCHDOG_PID",
];
/// Files and folders that looking up names and the view of the machine read.
const SYSTEM_FILES: [&str; 9] = [
    "/usr/lib",
    "/usr/lib64",
    "/lib",
    "/lib64",
    "/run/systemd/resolve",
    "/run/NetworkManager",
    "/run/resolvconf",
    "/sys",
    "/proc/cpuinfo",
];
/// Files of `/etc` that looking up names reads. A program that replaces one of them hides it.
const NAME_FILES: [&str; 6] =
    ["/etc/resolv.conf", "/etc/hosts", "/etc/nsswitch.conf", "/etc/host.conf", "/etc/gai.conf", "/etc/ld.so.cache"];

/// What the kernel says about this process.
const THIS_PROCESS: &str = "/proc/self";

/// One end of the channel between supervisor and network process.
pub struct Channel {
    socket: UnixStream,
    writer: Mutex<UnixStream>,
}

impl Channel {
    fn of(socket: UnixStream) -> io::Result<Channel> {
        Ok(Channel { writer: Mutex::new(socket.try_clone()?), socket })
    }

    /// The network process's end.
    ///
    /// Errors: standard input is not such a channel.
    pub fn own_end() -> io::Result<Channel> {
        let socket = UnixStream::from(io::stdin().as_fd().try_clone_to_owned()?);
        socket.peer_addr()?;
        Channel::of(socket)
    }

    /// Sends an item.
    ///
    /// Errors: the other process has ended; the item is too large.
    pub fn send(&self, item: &impl Serialize) -> io::Result<()> {
        frame::write(&mut *self.writer.lock().unwrap_or_else(PoisonError::into_inner), item, MAX_FRAME)
    }

    /// Reads the next item; `None` if the other process has ended.
    ///
    /// Errors: what comes is not an item.
    pub fn receive<T: DeserializeOwned>(&self) -> io::Result<Option<T>> {
        frame::read(&mut &self.socket, MAX_FRAME)
    }

    /// Ends the channel for both processes.
    pub fn close(&self) {
        let _ = self.socket.shutdown(Shutdown::Both);
    }

    /// Sends an item, and right after it our side of the channel to a started process. Returns the
    /// process.
    ///
    /// Errors: the other process has ended.
    pub fn send_process(&self, item: &impl Serialize, spawned: Spawned) -> io::Result<Box<dyn Process>> {
        let Ends { reader, writer, errors } = spawned.ends;
        // No item of another thread comes between.
        let mut ours = self.writer.lock().unwrap_or_else(PoisonError::into_inner);
        frame::write(&mut *ours, item, MAX_FRAME)?;
        self.send_files([reader.into(), writer.into(), errors.into()])?;
        Ok(spawned.process)
    }

    /// Receives what [`Channel::send_process`] sent.
    ///
    /// Errors: none follows, or the other process has ended.
    pub fn receive_process(&self, process: Box<dyn Process>) -> io::Result<Spawned> {
        let [reader, writer, errors] = self.receive_files()?;
        let ends = Ends { reader: reader.into(), writer: writer.into(), errors: errors.into() };
        Ok(Spawned { ends, process })
    }

    fn send_files(&self, files: [OwnedFd; FILES]) -> io::Result<()> {
        let files: Vec<_> = files.iter().map(AsFd::as_fd).collect();
        let mut room = [MaybeUninit::uninit(); rustix::cmsg_space!(ScmRights(FILES))];
        let mut message = SendAncillaryBuffer::new(&mut room);
        message.push(SendAncillaryMessage::ScmRights(&files));
        sendmsg(&self.socket, &[IoSlice::new(&[MARK])], &mut message, SendFlags::NOSIGNAL)?;
        Ok(())
    }

    fn receive_files(&self) -> io::Result<[OwnedFd; FILES]> {
        let mut room = [MaybeUninit::uninit(); rustix::cmsg_space!(ScmRights(FILES))];
        let (mut message, mut mark) = (RecvAncillaryBuffer::new(&mut room), [0]);
        let got = recvmsg(&self.socket, &mut [IoSliceMut::new(&mut mark)], &mut message, RecvFlags::CMSG_CLOEXEC)?;
        if got.bytes != 1 || mark != [MARK] || got.flags.contains(ReturnFlags::CTRUNC) {
            return Err(io::ErrorKind::InvalidData.into());
        }
        let files = message.drain().filter_map(|message| match message {
            RecvAncillaryMessage::ScmRights(files) => Some(files),
            _ => None,
        });
        let files: Vec<OwnedFd> = files.flatten().collect();
        files.try_into().map_err(|_| io::ErrorKind::InvalidData.into())
    }
}

/// Starts the network process of this program: `argument` is its hidden command, `scratch` the
/// folder for its temporary files. It inherits the environment without [`HIDDEN_VARIABLES`], its
/// end of the channel, and standard output and error, from which it cannot read.
///
/// Errors: it cannot be started.
pub fn start(argument: &OsStr, scratch: &Path) -> io::Result<(Child, Channel)> {
    let (ours, theirs) = UnixStream::pair()?;
    let mut command = Command::new(program::this_program()?);
    command.arg0("npubbot").arg(argument);
    for name in HIDDEN_VARIABLES {
        command.env_remove(name);
    }
    // SQLite makes large temporary files there.
    command.env("SQLITE_TMPDIR", scratch).env("TMPDIR", scratch);
    command.stdin(Stdio::from(OwnedFd::from(theirs)));
    command.stdout(write_only(io::stdout(), "/proc/self/fd/1")).stderr(write_only(io::stderr(), "/proc/self/fd/2"));
    let child = command.spawn()?;
    drop(command);
    Ok((child, Channel::of(ours)?))
}

/// A terminal opened for writing alone: who can read from it reads what a person types.
fn write_only(stream: impl IsTerminal, path: &str) -> Stdio {
    let terminal = stream.is_terminal().then(|| OpenOptions::new().write(true).open(path));
    terminal.and_then(Result::ok).map_or_else(Stdio::inherit, Stdio::from)
}

/// Makes this process the network process: it ends with the supervisor, and leaves signals from the
/// terminal to it.
///
/// Errors: the system refuses.
pub fn follow_supervisor() -> io::Result<()> {
    program::follow_supervisor()?;
    program::close_inherited_files();
    for signal in [libc::SIGINT, libc::SIGTERM] {
        // SAFETY: no handler is installed, so no code of ours runs in a signal.
        unsafe { libc::signal(signal, libc::SIG_IGN) };
    }
    if !io::stderr().is_terminal() {
        // SAFETY: as above. At a terminal the signal means that the terminal is gone.
        unsafe { libc::signal(libc::SIGHUP, libc::SIG_IGN) };
    }
    Ok(())
}

/// Raises the walls of the network process. `own` are its folders, `read` further files that it
/// reads. `secrets` are files that it must not read. Call it while this is the only thread.
pub fn enclose_network(own: Vec<PathBuf>, read: Vec<PathBuf>, secrets: &[PathBuf]) -> Vec<MissingWall> {
    #[cfg(any(test, feature = "test-util"))]
    if std::env::var_os("NPUBBOT_TEST_NO_WALLS").is_some() {
        return Vec::new();
    }
    let of_etc = secrets.iter().any(|secret| secret.canonicalize().is_ok_and(|secret| secret.starts_with("/etc")));
    // Programs replace the files of name servers, and a rule for a file ends with the file.
    let names: &[&str] = if of_etc { &NAME_FILES } else { &["/etc"] };
    let system = SYSTEM_FILES.iter().chain(names).map(PathBuf::from);
    // Its own folder there, which stays open, because the rule ends when the kernel forgets it.
    std::mem::forget(File::open(THIS_PROCESS));
    // With its own file, a panic can name the lines that led to it.
    let own_program = std::env::current_exe().ok();
    let read = read.into_iter().chain(system).chain([THIS_PROCESS.into()]).chain(own_program).collect();
    walls::enclose_network(&NetworkFiles { write: own, read })
}
