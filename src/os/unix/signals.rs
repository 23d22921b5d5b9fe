//! SIGINT, SIGTERM and SIGHUP.

use std::io;
use std::io::IsTerminal;
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
    /// Listens from now on, within a tokio runtime. `None` if standard error is a terminal: then
    /// the signal means that the terminal is gone, and ends the program as usual.
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
