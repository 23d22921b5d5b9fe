//! Rights, crashes, other processes, the console.

use std::io;
use windows_sys::Win32::System::Console::{
    ENABLE_VIRTUAL_TERMINAL_PROCESSING, GetConsoleMode, GetStdHandle, STD_ERROR_HANDLE, SetConsoleMode,
};
use windows_sys::Win32::System::Diagnostics::Debug::{SEM_FAILCRITICALERRORS, SEM_NOGPFAULTERRORBOX, SetErrorMode};
use windows_sys::Win32::System::ErrorReporting::{WER_FAULT_REPORTING_FLAG_NOHEAP, WerSetFlags};
use windows_sys::Win32::System::Threading::{GetCurrentProcess, TerminateProcess};

/// `false`: an administrator's bot is as any other.
pub fn is_root() -> bool {
    false
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

/// Ends this process at once, without the exit handlers of libraries.
pub fn end_now(code: i32) -> ! {
    // SAFETY: it ends this process.
    unsafe { TerminateProcess(GetCurrentProcess(), code.cast_unsigned()) };
    std::process::abort()
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
