//! The service manager that started this process: systemd, by `sd_notify(3)`. Without systemd,
//! nothing is sent.

pub use crate::os::state::BotState;
use sd_notify::NotifyState;
use std::io;
use std::time::Duration;

/// The longest time between two signs of life; `None` if none are wanted.
pub fn watchdog() -> Option<Duration> {
    sd_notify::watchdog_enabled()
}

/// Whether standard error goes to the journal of systemd (`JOURNAL_STREAM`), which dates each line.
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
        // systemd sees the process end.
        BotState::Stopped => return Ok(()),
    }])
}
