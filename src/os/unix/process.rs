//! Rights, crashes, other processes, the terminal.

use rustix::process::{Pid, Resource, Rlimit, Signal, geteuid, getpid, kill_process, setpgid, setrlimit};
use std::io;
use std::os::unix::process::ExitStatusExt;
use std::process::ExitStatus;

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

/// Whether a system call filter ended a process.
pub fn is_forbidden_call(status: ExitStatus) -> bool {
    status.signal() == Some(Signal::SYS.as_raw())
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

/// Keeps the signals of Ctrl-C and of a closed terminal from the vault, because the bot needs the
/// vault to stop cleanly. The vault stays in the bot's session: Linux shares processors among
/// sessions first (`sched_autogroup`), so in its own session it would wait behind the bot's search.
pub fn leave_terminal() {
    // It fails only for the leader of a session, which is in a group of its own already.
    let _ = setpgid(None, None);
}
