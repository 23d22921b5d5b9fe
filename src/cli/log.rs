//! Log lines: on standard error, and the last ones for `npubbot top`.

use crate::log_writer::{self, LogWriter};
use crate::os::walls::SANDBOX_LOG;
use crate::os::{manager, process};
use clap::{ArgAction, Args, ValueEnum};
use serde::{Deserialize, Serialize};
use std::collections::VecDeque;
use std::fmt::{Debug, Write};
use std::io::IsTerminal;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::SystemTime;
use tracing::field::{Field, Visit};
use tracing::{Event, Subscriber};
use tracing_subscriber::layer::{Context, SubscriberExt};
use tracing_subscriber::util::SubscriberInitExt;
use tracing_subscriber::{EnvFilter, Layer, Registry, fmt, reload};

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

    /// Starts the log of npubbot at the level `usual`, or as the flags say. Libraries are silent.
    /// `RUST_LOG` overrides all of it. Colours need a terminal and no `NO_COLOR`.
    pub fn start(self, usual: &str) -> LogLevel {
        let level = self.level(usual);
        let filter = EnvFilter::try_from_default_env().unwrap_or_else(|_| filter_of(level));
        let no_color = std::env::var_os("NO_COLOR").is_some_and(|value| !value.is_empty());
        let is_dated = manager::dates_log();
        log_writer::set_form(self.form == LogForm::Json, is_dated);
        let recent = RecentLines::default();
        let lines = fmt::layer().with_writer(LogWriter).with_target(false);
        let lines = lines.with_ansi(!no_color && std::io::stderr().is_terminal() && process::shows_colors());
        let lines = match self.form {
            LogForm::Json => lines.json().boxed(),
            LogForm::Text if is_dated => lines.without_time().boxed(),
            LogForm::Text => lines.boxed(),
        };
        let (filter, handle) = reload::Layer::new(filter);
        // A second call, in a test, has no effect.
        let _ = tracing_subscriber::registry().with(filter).with(lines).with(recent.clone()).try_init();
        LogLevel { handle, recent, flags: self }
    }
}

/// The filter of npubbot's log at a level. Libraries are silent. Missing sandboxes are always shown.
fn filter_of(level: &str) -> EnvFilter {
    EnvFilter::new(format!("off,npubbot={level},{SANDBOX_LOG}=warn"))
}

/// The running log: its level and its last lines.
pub(super) struct LogLevel {
    handle: reload::Handle<EnvFilter, Registry>,
    recent: RecentLines,
    flags: LogFlags,
}

impl LogLevel {
    /// The flags that the log was started with.
    pub fn flags(&self) -> LogFlags {
        self.flags
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
            return Err(format!("`{level}` is not a level; levels: {}", LEVELS.join(", ")));
        }
        let filter = filter_of(level);
        self.handle.reload(filter).map_err(|error| error.to_string())
    }
}

/// The most lines that are kept.
const MAX_RECENT_LINES: usize = 100;
/// The most characters of a line.
const MAX_LINE_CHARACTERS: usize = 300;

/// The last lines of the log. Cheap to clone; clones share the lines.
#[derive(Clone, Debug, Default)]
struct RecentLines(Arc<Mutex<VecDeque<String>>>);

impl RecentLines {
    /// The lines kept, oldest first.
    pub fn lines(&self) -> Vec<String> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).iter().cloned().collect()
    }

    fn push(&self, line: String) {
        let mut lines = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        if lines.len() == MAX_RECENT_LINES {
            lines.pop_front();
        }
        lines.push_back(line);
    }
}

impl<S: Subscriber> Layer<S> for RecentLines {
    fn on_event(&self, event: &Event<'_>, _: Context<'_, S>) {
        let now = humantime::format_rfc3339_seconds(SystemTime::now()).to_string();
        // The time of day, in UTC.
        let time = now.get(11..19).unwrap_or_default();
        let mut text = EventText { message: String::new(), fields: String::new() };
        event.record(&mut text);
        let level = event.metadata().level();
        let line = format!("{time} {level:<5} {}{}", text.message, text.fields);
        self.push(line.chars().filter(|c| !c.is_control()).take(MAX_LINE_CHARACTERS).collect());
    }
}

/// The message of an event, and its fields as ` name=value`.
struct EventText {
    message: String,
    fields: String,
}

impl Visit for EventText {
    fn record_debug(&mut self, field: &Field, value: &dyn Debug) {
        // Writing to a string cannot fail.
        let _ = match field.name() {
            "message" => write!(self.message, "{value:?}"),
            name => write!(self.fields, " {name}={value:?}"),
        };
    }

    fn record_str(&mut self, field: &Field, value: &str) {
        self.record_debug(field, &format_args!("{value}"));
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
        let subscriber = tracing_subscriber::registry().with(recent.clone());
        tracing::subscriber::with_default(subscriber, || {
            for number in 0..150 {
                tracing::info!(number, name = "x", "a\u{1b}[31m line");
            }
            tracing::warn!("{}", "y".repeat(1000));
        });
        let lines = recent.lines();
        assert_eq!(lines.len(), MAX_RECENT_LINES);
        assert!(lines[0].ends_with(" INFO  a[31m line number=51 name=x"), "{}", lines[0]);
        assert_eq!(lines[99].chars().count(), MAX_LINE_CHARACTERS);
    }
}
