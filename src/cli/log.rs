//! Log lines: on standard error, and the last ones for `npubbot top`.

use crate::log_writer::{self, LogWriter};
use crate::os::walls::SANDBOX_LOG;
use crate::os::{manager, process};
use clap::{ArgAction, Args, ValueEnum};
use serde::{Deserialize, Serialize};
use std::collections::VecDeque;
use std::io::{self, IsTerminal};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::SystemTime;
use tracing::Subscriber;
use tracing_subscriber::fmt::format::Writer;
use tracing_subscriber::fmt::time::FormatTime;
use tracing_subscriber::layer::SubscriberExt;
use tracing_subscriber::registry::LookupSpan;
use tracing_subscriber::util::SubscriberInitExt;
use tracing_subscriber::{EnvFilter, Layer, fmt};

/// Levels, from the quietest.
const LEVELS: [&str; 5] = ["error", "warn", "info", "debug", "trace"];

/// Form of the log lines.
#[derive(ValueEnum, Clone, Copy, PartialEq, Eq, Debug, Default, Serialize, Deserialize)]
enum LogForm {
    /// For people.
    #[default]
    Text,
    /// One JSON object a line, for a log collector.
    Json,
}

/// Flags that set how much is logged, and how.
#[derive(Args, Clone, Copy, Debug, Default, Serialize, Deserialize)]
pub(super) struct LogFlags {
    /// Log more; twice for everything.
    #[arg(short, long, global = true, action = ArgAction::Count)]
    verbose: u8,
    /// Log errors only.
    #[arg(short, long, global = true, conflicts_with = "verbose")]
    quiet: bool,
    /// Form of the log lines: `text`, or `json` for a log collector.
    #[arg(long = "log", global = true, value_name = "FORM", value_enum, default_value_t = LogForm::Text)]
    #[arg(hide_possible_values = true, hide_default_value = true)]
    form: LogForm,
}

impl LogFlags {
    /// The level for a command that logs at `usual` without flags.
    fn level(self, usual: &str) -> &'static str {
        let usual = LEVELS.iter().position(|level| *level == usual).unwrap_or(1);
        let wanted = if self.quiet { 0 } else { usual + usize::from(self.verbose) };
        LEVELS[wanted.min(LEVELS.len() - 1)]
    }

    /// Starts the log of npubbot at the level `usual`, or as the flags say. Libraries are silent, but
    /// for missing sandboxes. `RUST_LOG` overrides all of it. Colours need a terminal and no
    /// `NO_COLOR`.
    pub fn start(self, usual: &str) -> RunningLog {
        let level = self.level(usual);
        let filter = EnvFilter::try_from_default_env();
        let filter = filter.unwrap_or_else(|_| format!("off,npubbot={level},{SANDBOX_LOG}=warn").into());
        let is_dated = manager::dates_log();
        let recent = RecentLines::default();
        let lines = fmt::layer().with_writer(LogWriter).with_target(false);
        // The layer itself looks for `NO_COLOR`.
        let shows_colors = std::io::stderr().is_terminal() && process::shows_colors();
        let lines = if shows_colors { lines } else { lines.with_ansi(false) };
        let lines = match self.form {
            LogForm::Json => lines.json().boxed(),
            LogForm::Text if is_dated => lines.without_time().boxed(),
            LogForm::Text => lines.boxed(),
        };
        // A second call, in a test, has no effect.
        let _ = tracing_subscriber::registry().with(filter).with(lines).with(recent.layer()).try_init();
        log_writer::take_panics();
        RunningLog { recent, flags: self }
    }
}

/// The log of this process.
pub(super) struct RunningLog {
    /// The last lines.
    pub recent: RecentLines,
    /// The flags that it was started with.
    #[cfg_attr(not(supervised), expect(dead_code, reason = "only the supervisor hands them on"))]
    pub flags: LogFlags,
}

/// The most lines that are kept.
const MAX_RECENT_LINES: usize = 100;
/// The most characters of a line.
const MAX_LINE_CHARACTERS: usize = 300;

/// The last lines of the log. Cheap to clone; clones share the lines.
#[derive(Clone, Debug, Default)]
pub(super) struct RecentLines(Arc<Mutex<VecDeque<String>>>);

impl RecentLines {
    /// The lines kept, oldest first.
    pub fn lines(&self) -> Vec<String> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).iter().cloned().collect()
    }

    fn layer<S: Subscriber + for<'a> LookupSpan<'a>>(&self) -> impl Layer<S> + use<S> {
        let lines = self.clone();
        let layer = fmt::layer().with_writer(move || lines.clone()).with_timer(TimeOfDay);
        layer.with_ansi(false).with_target(false)
    }
}

impl io::Write for RecentLines {
    /// Takes a line. The log writes each by one call.
    fn write(&mut self, line: &[u8]) -> io::Result<usize> {
        let text = String::from_utf8_lossy(line);
        let mut lines = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        if lines.len() == MAX_RECENT_LINES {
            lines.pop_front();
        }
        lines.push_back(text.chars().filter(|c| !c.is_control()).take(MAX_LINE_CHARACTERS).collect());
        Ok(line.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

/// The time of day, in UTC.
struct TimeOfDay;

impl FormatTime for TimeOfDay {
    fn format_time(&self, to: &mut Writer<'_>) -> std::fmt::Result {
        let now = humantime::format_rfc3339_seconds(SystemTime::now()).to_string();
        to.write_str(now.get(11..19).unwrap_or_default())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_v_is_one_level_more_and_q_leaves_errors() {
        let level = |verbose, quiet, usual| LogFlags { verbose, quiet, form: LogForm::Text }.level(usual);
        assert_eq!((level(0, false, "info"), level(0, false, "warn")), ("info", "warn"));
        assert_eq!(
            (level(1, false, "info"), level(2, false, "info"), level(9, false, "warn")),
            ("debug", "trace", "trace")
        );
        assert_eq!(level(0, true, "info"), "error");
    }

    #[test]
    fn the_newest_lines_are_kept_and_a_long_one_is_cut() {
        let recent = RecentLines::default();
        let subscriber = tracing_subscriber::registry().with(recent.layer());
        tracing::subscriber::with_default(subscriber, || {
            for number in 0..150 {
                tracing::info!(number, name = "x", "a\u{1b}[31m line");
            }
            tracing::warn!("{}", "y".repeat(1000));
        });
        let lines = recent.lines();
        assert_eq!(lines.len(), MAX_RECENT_LINES);
        assert!(
            lines[0].get(8..).unwrap().starts_with("  INFO a") && lines[0].contains("number=51 name=\"x\""),
            "{}",
            lines[0]
        );
        assert!(!lines[0].contains('\u{1b}'));
        assert_eq!(lines[99].chars().count(), MAX_LINE_CHARACTERS);
    }
}
