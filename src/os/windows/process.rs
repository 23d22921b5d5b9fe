//! Rights, crashes, other processes, the console.

use super::acl;
use std::io;
use std::os::windows::io::{AsRawHandle, FromRawHandle, OwnedHandle};
use windows_sys::Win32::System::Console::{
    CTRL_BREAK_EVENT, CTRL_C_EVENT, ENABLE_VIRTUAL_TERMINAL_PROCESSING, GetConsoleMode, GetStdHandle, STD_ERROR_HANDLE,
    SetConsoleCtrlHandler, SetConsoleMode,
};
use windows_sys::Win32::System::Diagnostics::Debug::{SEM_FAILCRITICALERRORS, SEM_NOGPFAULTERRORBOX, SetErrorMode};
use windows_sys::Win32::System::ErrorReporting::{WER_FAULT_REPORTING_FLAG_NOHEAP, WerSetFlags};
use windows_sys::Win32::System::Threading::{
    GetCurrentProcess, OpenProcess, PROCESS_TERMINATE, SetProcessShutdownParameters, TerminateProcess,
};

/// The place of the vault in the order in which programs end with a session; higher numbers end
/// first.
const ENDS_LATE: u32 = 0x200;

/// Whether this process has the rights of an administrator.
pub fn is_root() -> bool {
    acl::is_elevated()
}

/// Switches crash reports off, or at least their copy of the heap: a crash must not write secrets
/// to a file.
///
/// Errors: the system refuses.
pub fn no_core_dumps() -> io::Result<()> {
    // SAFETY: both set flags of this process. The children inherit the first.
    let set = unsafe {
        SetErrorMode(SEM_FAILCRITICALERRORS | SEM_NOGPFAULTERRORBOX);
        WerSetFlags(WER_FAULT_REPORTING_FLAG_NOHEAP)
    };
    if set < 0 { Err(io::Error::other(format!("error {set:#x}"))) } else { Ok(()) }
}

/// Whether a system call filter ended a process: Windows has none.
pub fn is_forbidden_call(_: std::process::ExitStatus) -> bool {
    false
}

/// Ends this process at once, without the exit handlers of libraries.
pub fn end_now(code: i32) {
    // SAFETY: it ends this process.
    unsafe { TerminateProcess(GetCurrentProcess(), code.cast_unsigned()) };
}

/// Ends another process at once.
///
/// Errors: there is none with this number, or it is another user's.
pub fn kill(process: u32) -> io::Result<()> {
    // SAFETY: the handle is ours if the call succeeds.
    let process = unsafe {
        let handle = OpenProcess(PROCESS_TERMINATE, 0, process);
        if handle.is_null() {
            return Err(io::Error::last_os_error());
        }
        OwnedHandle::from_raw_handle(handle)
    };
    // SAFETY: the handle is open.
    match unsafe { TerminateProcess(process.as_raw_handle(), 1) } {
        0 => Err(io::Error::last_os_error()),
        _ => Ok(()),
    }
}

/// `None`: Windows has no way to tell a server of another console to read its configuration again.
pub fn reload(_: u32, _: &str) -> Option<()> {
    None
}

/// Whether the terminal of standard error shows colours. The console of Windows 10 prints the codes
/// of colours as characters until a program asks it to interpret them. This function asks it.
pub fn shows_colors() -> bool {
    let mut mode = 0;
    // SAFETY: the handle is this process's own, and `mode` is a place for a number.
    unsafe {
        let console = GetStdHandle(STD_ERROR_HANDLE);
        // Terminals of programs from other systems are not consoles, and understand the codes.
        GetConsoleMode(console, &mut mode) == 0
            || SetConsoleMode(console, mode | ENABLE_VIRTUAL_TERMINAL_PROCESSING) != 0
    }
}

/// Keeps Ctrl-C and a closed window from ending the vault, because the bot needs the vault to stop
/// cleanly.
pub fn leave_terminal() {
    // SAFETY: the handler is a function of this program.
    unsafe {
        SetConsoleCtrlHandler(Some(ignored), 1);
        // At the end of a session other programs end first: they have 0x280 by default.
        SetProcessShutdownParameters(ENDS_LATE, 0);
    }
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
