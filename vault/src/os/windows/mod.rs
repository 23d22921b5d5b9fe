//! Windows.

pub mod acl;
pub mod files;
pub mod walls;
pub mod wide;

use std::io::{self, PipeReader, PipeWriter};
use std::os::windows::io::AsHandle;
use std::os::windows::process::CommandExt;
use std::process::Command;
use windows_sys::Win32::System::Console::{CTRL_BREAK_EVENT, CTRL_C_EVENT, GetConsoleCP, SetConsoleCtrlHandler};
use windows_sys::Win32::System::Threading::CREATE_NO_WINDOW;

/// Variables that the system needs to find its libraries.
const KEPT_VARIABLES: [&str; 2] = ["SystemRoot", "SystemDrive"];

/// Keeps Ctrl-C and a closed window from ending the vault, because the bot needs the vault to stop
/// cleanly.
pub fn leave_terminal() {
    // SAFETY: the handler is a function of this program.
    unsafe { SetConsoleCtrlHandler(Some(ignored), 1) };
}

/// Ignores Ctrl-C. After any other event the process would end when the last handler returns, so
/// this one does not return. The bot ends its vault.
unsafe extern "system" fn ignored(event: u32) -> i32 {
    if event != CTRL_C_EVENT && event != CTRL_BREAK_EVENT {
        loop {
            std::thread::park();
        }
    }
    1
}

/// Keeps what the system needs of the environment. Without a console, as in a service, the process
/// gets no window.
pub fn prepare(command: &mut Command, _: &str) {
    command.envs(KEPT_VARIABLES.into_iter().filter_map(|name| Some((name, std::env::var_os(name)?))));
    // SAFETY: it reads a number.
    if unsafe { GetConsoleCP() } == 0 {
        command.creation_flags(CREATE_NO_WINDOW);
    }
}

/// Standard input and output.
pub fn own_pipes() -> io::Result<(PipeReader, PipeWriter)> {
    let input = io::stdin().as_handle().try_clone_to_owned()?;
    let output = io::stdout().as_handle().try_clone_to_owned()?;
    Ok((input.into(), output.into()))
}

/// Whether a system call filter ended a process: Windows has none.
pub fn is_forbidden_call(_: std::process::ExitStatus) -> bool {
    false
}

/// The path by which this program can be started again.
///
/// Errors: the system does not say.
pub fn this_program() -> io::Result<std::path::PathBuf> {
    std::env::current_exe()
}

/// Does nothing: the process has its program's name.
pub fn name_vault() {}

/// Does nothing: a process inherits what it is given.
pub fn close_inherited_files() {}
