//! Linux. Other Unix systems are not supported.

#[cfg(any(test, feature = "test-util"))]
#[path = "../../../tests/attack.rs"]
mod attack;
pub mod files;
pub mod local_socket;
pub mod terminal;
pub mod tree;

use std::os::fd::{AsFd, OwnedFd};
use tokio::net::TcpStream;

/// A second handle to a TCP connection.
pub struct Tcp(OwnedFd);

impl Tcp {
    /// A handle to this connection; `None` if the system gives none.
    pub fn of(stream: &TcpStream) -> Option<Tcp> {
        stream.as_fd().try_clone_to_owned().ok().map(Tcp)
    }

    /// Makes Linux acknowledge received data now. Otherwise it may wait 40 ms, to send the
    /// acknowledgement along with data. It goes back to waiting after each acknowledgement, so this
    /// must be called each time.
    pub fn acknowledge_at_once(&self) {
        // Without it the connection still works, only slower.
        let _ = rustix::net::sockopt::set_tcp_quickack(&self.0, true);
    }
}

/// Makes glibc's malloc return memory early: one arena per two cores, and `mmap` for blocks of 128
/// KiB and more. Must be called first in `main`. Has no effect with other C libraries.
///
/// By default glibc creates up to eight arenas per core, and memory freed in one is not reused by
/// the others. Also, freeing large blocks raises its `mmap` threshold up to 32 MiB, and it keeps
/// twice that much. One arena for 16 cores is too few: a flood of messages then took 15 s instead
/// of 2 s.
pub fn tune_malloc() {
    #[cfg(target_env = "gnu")]
    {
        use std::ffi::c_int;
        // From glibc's malloc.h.
        const M_ARENA_MAX: c_int = -8;
        const M_MMAP_THRESHOLD: c_int = -3;
        unsafe extern "C" {
            fn mallopt(parameter: c_int, value: c_int) -> c_int;
        }
        // SAFETY: the signature is glibc's. It sets a parameter; unknown parameters are ignored.
        unsafe {
            let arenas = std::thread::available_parallelism().map_or(1, |cores| cores.get().div_ceil(2));
            mallopt(M_ARENA_MAX, c_int::try_from(arenas).unwrap_or(c_int::MAX));
            mallopt(M_MMAP_THRESHOLD, 128 << 10);
        }
    }
}

/// The service manager that started this process: systemd, by `sd_notify(3)`. Without systemd,
/// nothing is sent.
pub mod manager {
    pub use crate::os::BotState;
    use sd_notify::NotifyState;
    use std::io;
    use std::time::Duration;

    /// The longest time between two signs of life; `None` if none are wanted.
    pub fn watchdog() -> Option<Duration> {
        sd_notify::watchdog_enabled()
    }

    /// Whether standard error goes to the journal of systemd (`JOURNAL_STREAM`), which dates each
    /// line.
    pub fn dates_log() -> bool {
        let journal = std::env::var("JOURNAL_STREAM").unwrap_or_default();
        rustix::fs::fstat(io::stderr()).is_ok_and(|stat| journal == format!("{}:{}", stat.st_dev, stat.st_ino))
    }

    /// Tells the service manager a state (`NOTIFY_SOCKET`).
    ///
    /// Errors: its socket cannot be written to.
    pub fn tell(state: BotState) -> io::Result<()> {
        sd_notify::notify(&[match state {
            BotState::Ready => NotifyState::Ready,
            BotState::Alive => NotifyState::Watchdog,
            BotState::Stopping => NotifyState::Stopping,
        }])
    }
}

/// Rights, crashes, other processes, the terminal.
pub mod process {
    use rustix::process::{Resource, Rlimit, geteuid, setrlimit};
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
    pub fn end_now(code: i32) -> ! {
        // SAFETY: it may be called at any time, and does not return.
        unsafe { libc::_exit(code) }
    }

    /// Whether the terminal of standard error shows colours: always.
    pub fn shows_colors() -> bool {
        true
    }
}

/// SIGINT, SIGTERM and SIGHUP.
pub mod signals {
    use std::io::{self, IsTerminal};
    use tokio::signal::unix::{Signal, SignalKind, signal};

    /// Requests to stop: SIGINT and SIGTERM.
    pub struct Stops {
        interrupt: Signal,
        terminate: Signal,
    }

    impl Stops {
        /// Listens from now on, within a tokio runtime. The signals no longer end the process.
        ///
        /// Errors: the system refuses.
        pub fn listen() -> io::Result<Stops> {
            Ok(Stops { interrupt: signal(SignalKind::interrupt())?, terminate: signal(SignalKind::terminate())? })
        }

        /// Waits for the next request to stop.
        pub async fn next(&mut self) {
            tokio::select! {
                _ = self.interrupt.recv() => {}
                _ = self.terminate.recv() => {}
            }
        }
    }

    /// Requests to read the configuration again: SIGHUP.
    pub struct Hangups(Signal);

    impl Hangups {
        /// Listens from now on, within a tokio runtime. `None` if standard error is a terminal:
        /// then the signal means that the terminal is gone, and ends the program as usual.
        ///
        /// Errors: the system refuses.
        pub fn listen() -> io::Result<Option<Hangups>> {
            if io::stderr().is_terminal() {
                return Ok(None);
            }
            signal(SignalKind::hangup()).map(|hangups| Some(Hangups(hangups)))
        }

        /// Waits for the next request; `None` if there will be none.
        pub async fn next(&mut self) -> Option<()> {
            self.0.recv().await
        }
    }
}
