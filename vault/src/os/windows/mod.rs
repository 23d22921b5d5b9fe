//! Windows.

pub mod acl;
pub mod channel;
pub mod files;
pub mod walls;
pub mod wide;

use windows_sys::Win32::System::Console::{CTRL_BREAK_EVENT, CTRL_C_EVENT, SetConsoleCtrlHandler};

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

/// Whether a system call filter ended a process: Windows has none.
pub fn is_forbidden_call(_: std::process::ExitStatus) -> bool {
    false
}
