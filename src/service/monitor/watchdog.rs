//! Signs of life for a service manager (systemd, or that of Windows): readiness, and a watchdog
//! that is fed only while the bot answers. Without a service manager nothing is sent.

use super::Monitors;
use crate::os::manager::{self, State};
use std::convert::Infallible;
use std::future::pending;
use std::time::Duration;

/// Number of signs of life in each period of the watchdog. The bot may take the time between two
/// signs to answer a check.
const SIGNS: u32 = 3;
/// The longest time for which a start gives signs of life. It is long because NVRTC may compile all
/// kernels.
const LONGEST_START: Duration = Duration::from_secs(600);

/// The service manager that started this process, if any.
#[derive(Clone, Copy, Debug)]
pub struct ServiceManager {
    /// Time between two signs of life; `None` if none are wanted.
    every: Option<Duration>,
}

impl ServiceManager {
    /// Reads the settings from the environment (`NOTIFY_SOCKET`, `WATCHDOG_USEC`).
    pub fn from_environment() -> ServiceManager {
        ServiceManager { every: manager::watchdog().map(|period| period / SIGNS) }
    }

    /// Says that the bot serves.
    pub fn ready(self) {
        send(State::Ready);
    }

    /// Says that the bot stops.
    pub fn stopping(self) {
        send(State::Stopping);
    }

    /// Gives signs of life while the bot lives. Run it in the main loop, so that a loop that hangs
    /// gives none.
    pub async fn watch(self, monitors: &Monitors) -> Infallible {
        let Some(every) = self.every else { return pending().await };
        loop {
            match monitors.health(every).await {
                Ok(()) => send(State::Alive),
                Err(reason) => tracing::error!(reason, "the bot hangs; the service manager gets no sign of life"),
            }
            tokio::time::sleep(every).await;
        }
    }

    /// Gives signs of life during a start, for ten minutes at most.
    pub async fn watch_start(self) -> Infallible {
        let Some(every) = self.every else { return pending().await };
        let begun = tokio::time::Instant::now();
        while begun.elapsed() < LONGEST_START {
            send(State::Alive);
            tokio::time::sleep(every).await;
        }
        pending().await
    }
}

fn send(state: State) {
    if let Err(error) = manager::tell(state) {
        tracing::debug!(%error, "the service manager cannot be told");
    }
}
