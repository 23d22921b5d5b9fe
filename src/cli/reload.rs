//! Changes to a running bot: another configuration, another log level.

use super::log::LogLevel;
use super::search_flags::SearchFlags;
use crate::config::Config;
use crate::os::signals::Hangups;
use crate::service::ProcessControls;
use std::path::PathBuf;
use std::sync::{Arc, Mutex, PoisonError};
use tokio::sync::Notify;

/// Reads the configuration again on request, and hands it to the loop of `serve`.
pub(super) struct Reload {
    file: PathBuf,
    flags: SearchFlags,
    level: LogLevel,
    /// A checked configuration that `serve` has not taken yet.
    next: Mutex<Option<Box<Config>>>,
    changed: Notify,
}

impl Reload {
    /// A reader of this configuration file. `flags` replace values of each configuration that is
    /// read.
    pub fn new(file: PathBuf, flags: SearchFlags, level: LogLevel) -> Reload {
        Reload { file, flags, level, next: Mutex::default(), changed: Notify::new() }
    }

    /// Reads the configuration at each SIGHUP, from now on. A program with a terminal does not:
    /// there the signal means that the terminal is gone, and ends the program as usual.
    pub fn listen_for_hangup(self: &Arc<Reload>) -> std::io::Result<()> {
        let Some(mut hangups) = Hangups::listen()? else { return Ok(()) };
        let reload = Arc::clone(self);
        tokio::spawn(async move {
            while hangups.next().await.is_some() {
                let reload = Arc::clone(&reload);
                // The log has the outcome. A panic ends this one attempt.
                let _ = tokio::task::spawn_blocking(move || reload.reload()).await;
            }
        });
        Ok(())
    }

    /// Waits for a checked configuration.
    pub async fn wanted(&self) -> Box<Config> {
        loop {
            if let Some(config) = self.next.lock().unwrap_or_else(PoisonError::into_inner).take() {
                return config;
            }
            self.changed.notified().await;
        }
    }
}

impl Reload {
    /// The operator's changes to this process.
    pub fn controls(self: &Arc<Reload>) -> ProcessControls {
        let (read, level, recent) = (Arc::clone(self), Arc::clone(self), Arc::clone(self));
        let set = move |wanted: &str| {
            level.level.set(wanted)?;
            Ok(format!("the log has the level {wanted} until the next start"))
        };
        ProcessControls {
            reload: Box::new(move || read.reload()),
            set_log_level: Box::new(set),
            recent_log: Box::new(move || recent.level.recent()),
        }
    }

    fn reload(&self) -> Result<String, String> {
        match Config::load(&self.file) {
            Ok(config) => {
                tracing::info!("the configuration is read again");
                *self.next.lock().unwrap_or_else(PoisonError::into_inner) =
                    Some(Box::new(self.flags.in_config(config)));
                self.changed.notify_one();
                let file = self.file.display();
                Ok(format!("{file} is right; the bot takes it up within seconds (`[web]` at the next start)"))
            }
            Err(error) => {
                tracing::warn!(%error, "the configuration is wrong, so the old one stays");
                Err(format!("{error}; the old configuration stays"))
            }
        }
    }
}
