//! The channel between the bot and its vault process: two pipes, which are the vault's standard
//! input and output.

use std::ffi::OsString;
use std::io::{self, PipeReader, PipeWriter};
use std::os::windows::io::{AsHandle, AsRawHandle, OwnedHandle};
use std::os::windows::process::CommandExt;
use std::path::Path;
use std::process::{Child, Command, Stdio};
use windows_sys::Win32::Storage::FileSystem::{FILE_TYPE_PIPE, GetFileType};
use windows_sys::Win32::System::Console::GetConsoleCP;
use windows_sys::Win32::System::Threading::{CREATE_NO_WINDOW, TerminateProcess};

/// Variables that the system needs to find its libraries.
const KEPT_VARIABLES: [&str; 2] = ["SystemRoot", "SystemDrive"];

/// The end of the channel that is read from.
pub type Reader = PipeReader;

/// The end of the channel that is written to.
pub type Writer = PipeWriter;

/// Ends the process at the other end.
pub struct Closer(OwnedHandle);

/// The bot's side of the channel.
pub struct Ends {
    /// Reads what the vault sends.
    pub reader: Reader,
    /// Writes to the vault.
    pub writer: Writer,
    /// Ends the vault.
    pub closer: Closer,
}

impl Closer {
    /// Ends the vault at once. It has nothing to finish, because it writes nothing to the disk.
    pub fn close(&self) {
        // SAFETY: the handle is open.
        unsafe { TerminateProcess(self.0.as_raw_handle(), 0) };
    }
}

/// Starts a program with an almost empty environment. It inherits only its ends of the channel, and
/// standard error for the text of a panic.
///
/// Errors: it cannot be started.
pub fn start(
    program: &Path,
    _: &str,
    argument: &str,
    environment: &[(OsString, OsString)],
) -> io::Result<(Child, Ends)> {
    let ((theirs_in, ours_out), (ours_in, theirs_out)) = (io::pipe()?, io::pipe()?);
    let mut command = Command::new(program);
    command.arg(argument).env_clear();
    command.envs(KEPT_VARIABLES.into_iter().filter_map(|name| Some((name, std::env::var_os(name)?))));
    command.envs(environment.iter().cloned());
    command.stdin(theirs_in).stdout(theirs_out).stderr(Stdio::inherit());
    // SAFETY: it reads a number. Without a console, as in a service, the vault would get a window.
    if unsafe { GetConsoleCP() } == 0 {
        command.creation_flags(CREATE_NO_WINDOW);
    }
    let child = command.spawn()?;
    // The command holds copies of the other ends. Once they are dropped, the end of the process
    // closes the pipes.
    drop(command);
    let closer = Closer(child.as_handle().try_clone_to_owned()?);
    Ok((child, Ends { reader: ours_in, writer: ours_out, closer }))
}

/// The vault's side of the channel.
///
/// Errors: standard input and output are not pipes.
pub fn own_end() -> io::Result<(Reader, Writer)> {
    let input = pipe(io::stdin().as_handle().try_clone_to_owned()?)?;
    let output = pipe(io::stdout().as_handle().try_clone_to_owned()?)?;
    Ok((input.into(), output.into()))
}

fn pipe(handle: OwnedHandle) -> io::Result<OwnedHandle> {
    // SAFETY: the handle is open.
    match unsafe { GetFileType(handle.as_raw_handle()) } {
        FILE_TYPE_PIPE => Ok(handle),
        _ => Err(io::Error::new(io::ErrorKind::InvalidInput, "no pipe of a bot")),
    }
}
