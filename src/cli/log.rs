//! Log lines on standard error.

use super::recent::Recent;
use crate::os::process;
use clap::{ArgAction, Args, ValueEnum};
use std::io::IsTerminal;
use tracing_subscriber::EnvFilter;
use tracing_subscriber::layer::SubscriberExt;
use tracing_subscriber::util::SubscriberInitExt;

/// Levels, from the quietest.
const LEVELS: [&str; 5] = ["error", "warn", "info", "debug", "trace"];

/// Form of the log lines.
#[derive(ValueEnum, Clone, Copy, PartialEq, Eq, Debug, Default)]
enum Form {
    /// For people.
    #[default]
    Text,
    /// One JSON object a line, for a log collector.
    Json,
}

/// Flags that set how much is logged, and how.
#[derive(Args, Clone, Copy, Debug, Default)]
pub(super) struct LogFlags {
    /// Log more; twice for everything.
    #[arg(short, long, global = true, action = ArgAction::Count)]
    verbose: u8,
    /// Log errors only.
    #[arg(short, long, global = true, conflicts_with = "verbose")]
    quiet: bool,
    /// Form of the log lines: `text`, or `json` for a log collector.
    #[arg(long = "log", global = true, value_name = "FORM", value_enum, default_value_t = Form::Text)]
    #[arg(hide_possible_values = true, hide_default_value = true)]
    form: Form,
}

impl LogFlags {
    /// The level for a command that logs at `usual` without flags.
    fn level(self, usual: &str) -> &'static str {
        let usual = LEVELS.iter().position(|level| *level == usual).unwrap_or(1);
        let wanted = if self.quiet { 0 } else { usual + usize::from(self.verbose) };
        LEVELS[wanted.min(LEVELS.len() - 1)]
    }

    /// Starts the log of npubbot at the level `usual`, or as the flags say. Libraries are silent.
    /// `RUST_LOG` overrides all of it. Colours need a terminal and no `NO_COLOR`.
    pub fn start(self, usual: &str) -> LogLevel {
        let level = self.level(usual);
        let filter =
            EnvFilter::try_from_default_env().unwrap_or_else(|_| EnvFilter::new(format!("off,npubbot={level}")));
        let no_color = std::env::var_os("NO_COLOR").is_some_and(|value| !value.is_empty());
        let log = tracing_subscriber::fmt().with_env_filter(filter).with_writer(std::io::stderr).with_target(false);
        let log = log.with_ansi(!no_color && std::io::stderr().is_terminal() && process::shows_colors());
        let recent = Recent::default();
        // A second call, in a test, has no effect.
        match self.form {
            Form::Text => {
                let log = log.with_filter_reloading();
                let handle = log.reload_handle();
                let _ = log.finish().with(recent.clone()).try_init();
                LogLevel::new(recent, move |filter| handle.reload(filter).map_err(|error| error.to_string()))
            }
            Form::Json => {
                let log = log.json().with_filter_reloading();
                let handle = log.reload_handle();
                let _ = log.finish().with(recent.clone()).try_init();
                LogLevel::new(recent, move |filter| handle.reload(filter).map_err(|error| error.to_string()))
            }
        }
    }
}

/// The running log: its level and its last lines.
pub(super) struct LogLevel {
    set: Box<dyn Fn(EnvFilter) -> Result<(), String> + Send + Sync>,
    recent: Recent,
}

impl LogLevel {
    fn new(recent: Recent, set: impl Fn(EnvFilter) -> Result<(), String> + Send + Sync + 'static) -> LogLevel {
        LogLevel { set: Box::new(set), recent }
    }

    /// The last lines, oldest first.
    pub fn recent(&self) -> Vec<String> {
        self.recent.lines()
    }

    /// Logs npubbot at another level from now on.
    ///
    /// Errors: an unknown level.
    pub fn set(&self, level: &str) -> Result<(), String> {
        if !LEVELS.contains(&level) {
            return Err(format!("`{level}` is no level; say {}", LEVELS.join(", ")));
        }
        (self.set)(EnvFilter::new(format!("off,npubbot={level}")))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_v_is_one_level_more_and_q_leaves_errors() {
        let level = |verbose, quiet, usual| LogFlags { verbose, quiet, form: Form::Text }.level(usual);
        assert_eq!((level(0, false, "info"), level(0, false, "warn")), ("info", "warn"));
        assert_eq!(
            (level(1, false, "info"), level(2, false, "info"), level(9, false, "warn")),
            ("debug", "trace", "trace")
        );
        assert_eq!(level(0, true, "info"), "error");
    }
}
