//! The channel between the bot and a process that it starts: pipes, which are the standard input,
//! output and error of the process.

use super::{own_pipes, prepare};
use std::ffi::OsString;
use std::io::{self, IsTerminal, PipeReader, PipeWriter};
use std::path::Path;
use std::process::{Child, Command};

/// The bot's side of the channel.
pub struct Ends {
    /// Reads what the process sends.
    pub reader: PipeReader,
    /// Writes to the process, which ends once this is closed.
    pub writer: PipeWriter,
    /// Reads the text of a panic, or the log of the process.
    pub errors: PipeReader,
}

/// Starts a program with this environment, listed as `name` where the system allows it. It inherits
/// only its ends of the channel.
///
/// Errors: it cannot be started.
pub fn start(
    program: &Path,
    name: &str,
    argument: &str,
    environment: impl IntoIterator<Item = (OsString, OsString)>,
) -> io::Result<(Child, Ends)> {
    let ((input, writer), (reader, output), (errors, error)) = (io::pipe()?, io::pipe()?, io::pipe()?);
    let mut command = Command::new(program);
    command.arg(argument).env_clear();
    prepare(&mut command, name);
    // The command holds copies of the other ends until it is dropped.
    let child = command.envs(environment).stdin(input).stdout(output).stderr(error).spawn()?;
    Ok((child, Ends { reader, writer, errors }))
}

/// The process's side of the channel.
///
/// Errors: there is none, because a person has started the process.
pub fn own_end() -> io::Result<(PipeReader, PipeWriter)> {
    match io::stdin().is_terminal() || io::stdout().is_terminal() {
        true => Err(io::Error::new(io::ErrorKind::InvalidInput, "no pipe of a bot")),
        false => own_pipes(),
    }
}
