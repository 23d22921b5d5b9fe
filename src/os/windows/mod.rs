//! Windows.

pub mod files;
pub mod local_socket;
pub mod process;

use npubbot_vault::os::windows::{acl, wide};

/// The service manager that started this process: none.
pub mod manager {
    pub use crate::os::BotState;
    use std::io;
    use std::time::Duration;

    /// Always `None`: no signs of life are wanted.
    pub fn watchdog() -> Option<Duration> {
        None
    }

    /// `false`: nothing dates the lines of the log.
    pub fn dates_log() -> bool {
        false
    }

    /// Does nothing.
    ///
    /// Errors: none.
    pub fn tell(_: BotState) -> io::Result<()> {
        Ok(())
    }
}

/// Ctrl-C, Ctrl-Break and the closed window. At log-off the system ends the process at once.
pub mod signals {
    use std::io;
    use tokio::signal::windows::{CtrlBreak, CtrlC, CtrlClose, ctrl_break, ctrl_c, ctrl_close};

    /// Requests to stop. After a closed window the system itself ends the process after five seconds.
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
            Ok(Stops { interrupt: ctrl_c()?, stop: ctrl_break()?, close: ctrl_close()? })
        }

        /// Waits for the next request to stop.
        pub async fn next(&mut self) {
            tokio::select! {
                _ = self.interrupt.recv() => {}
                _ = self.stop.recv() => {}
                _ = self.close.recv() => {}
            }
        }
    }
}

/// Hidden input at the terminal.
pub mod terminal {
    /// Shows `prompt` and reads a line that is not shown.
    ///
    /// Errors: there is no terminal; Ctrl-C, Ctrl-D.
    pub fn ask_hidden(prompt: &str, _: bool) -> std::io::Result<String> {
        rpassword::prompt_password(prompt)
    }
}

/// Stand-ins for services of Linux that Windows lacks or does not need.
pub mod kernel {
    use tokio::net::TcpStream;

    /// A second handle to a TCP connection, which does not exist here.
    pub struct Tcp;

    impl Tcp {
        /// Always `None`.
        pub fn of(_: &TcpStream) -> Option<Tcp> {
            None
        }

        /// Does nothing.
        pub fn acknowledge_at_once(&self) {}
    }

    /// Does nothing: only glibc's malloc needs it.
    pub fn tune_malloc() {}
}
