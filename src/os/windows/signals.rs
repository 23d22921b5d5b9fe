//! Ctrl-C, Ctrl-Break, the closed window, log-off and shutdown, and the stop of a service.

use super::{manager, session};
use std::convert::Infallible;
use std::io;
use tokio::signal::windows::{CtrlBreak, CtrlC, CtrlClose, ctrl_break, ctrl_c, ctrl_close};

/// Requests to stop. After a closed window and at the end of a session, the system itself ends the
/// process after five seconds.
pub struct Stops {
    interrupt: CtrlC,
    stop: CtrlBreak,
    close: CtrlClose,
}

impl Stops {
    /// Listens from now on, within a tokio runtime. The events no longer end the process.
    ///
    /// Errors: the system refuses.
    pub fn listen() -> io::Result<Stops> {
        // A service does not end with a session. Its manager ends it.
        if !manager::is_service() {
            session::watch()?;
        }
        Ok(Stops { interrupt: ctrl_c()?, stop: ctrl_break()?, close: ctrl_close()? })
    }

    /// Waits for the next request to stop.
    pub async fn next(&mut self) {
        tokio::select! {
            _ = self.interrupt.recv() => {}
            _ = self.stop.recv() => {}
            _ = self.close.recv() => {}
            () = session::ended() => {}
        }
    }
}

/// Requests to read the configuration again. Windows has no signal for that, only `npubbot reload`.
pub struct Hangups(Infallible);

impl Hangups {
    /// Always `None`.
    ///
    /// Errors: none on Windows.
    pub fn listen() -> io::Result<Option<Hangups>> {
        Ok(None)
    }

    /// Waits for the next request.
    pub async fn next(&mut self) -> Option<()> {
        match self.0 {}
    }
}
