//! Rights, crashes, other processes, the terminal.

use rustix::process::{Pid, Resource, Rlimit, Signal, geteuid, getpid, kill_process, setrlimit};
use std::io;

/// Whether this user administers the machine.
pub fn is_root() -> bool {
    geteuid().is_root()
}

/// Switches core dumps off: a crash must not write secrets to a file.
///
/// Errors: the system refuses.
pub fn no_core_dumps() -> io::Result<()> {
    Ok(setrlimit(Resource::Core, Rlimit { current: Some(0), maximum: Some(0) })?)
}

/// Ends this process at once, without the exit handlers of libraries.
pub fn end_now(_: i32) {
    let _ = kill_process(getpid(), Signal::KILL);
}

/// Ends another process at once.
///
/// Errors: there is none with this number, or it is another user's.
pub fn kill(process: u32) -> io::Result<()> {
    let process = i32::try_from(process).ok().and_then(Pid::from_raw).ok_or(io::ErrorKind::NotFound)?;
    Ok(kill_process(process, Signal::KILL)?)
}

/// Makes a server read its configuration again (SIGHUP). `None` if the process does not run, or is
/// another program by now.
pub fn reload(process: u32, program: &str) -> Option<()> {
    let running = std::fs::read_to_string(format!("/proc/{process}/comm")).ok()?;
    let process = i32::try_from(process).ok().and_then(Pid::from_raw).filter(|_| running.trim() == program)?;
    kill_process(process, Signal::HUP).ok()
}

/// Whether the terminal of standard error shows colours: always.
pub fn shows_colors() -> bool {
    true
}
