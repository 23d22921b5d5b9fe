//! The last lines of the log, for `npubbot top`.

use std::collections::VecDeque;
use std::fmt::{Debug, Write};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::SystemTime;
use tracing::field::{Field, Visit};
use tracing::{Event, Subscriber};
use tracing_subscriber::Layer;
use tracing_subscriber::layer::Context;

/// The most lines that are kept.
const KEPT: usize = 100;
/// The most characters of a line.
const LONGEST: usize = 300;

/// The last lines of the log. Cheap to clone; clones share the lines.
#[derive(Clone, Debug, Default)]
pub(super) struct Recent(Arc<Mutex<VecDeque<String>>>);

impl Recent {
    /// The lines kept, oldest first.
    pub fn lines(&self) -> Vec<String> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).iter().cloned().collect()
    }

    fn push(&self, line: String) {
        let mut lines = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        if lines.len() == KEPT {
            lines.pop_front();
        }
        lines.push_back(line);
    }
}

impl<S: Subscriber> Layer<S> for Recent {
    fn on_event(&self, event: &Event<'_>, _: Context<'_, S>) {
        let now = humantime::format_rfc3339_seconds(SystemTime::now()).to_string();
        // The time of day, in UTC.
        let time = now.get(11..19).unwrap_or_default();
        let mut text = Text { message: String::new(), fields: String::new() };
        event.record(&mut text);
        let level = event.metadata().level();
        let line = format!("{time} {level:<5} {}{}", text.message, text.fields);
        self.push(line.chars().filter(|c| !c.is_control()).take(LONGEST).collect());
    }
}

/// The message of an event, and its fields as ` name=value`.
struct Text {
    message: String,
    fields: String,
}

impl Visit for Text {
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
    use tracing_subscriber::layer::SubscriberExt;

    #[test]
    fn the_newest_lines_are_kept_and_a_long_one_is_cut() {
        let recent = Recent::default();
        let subscriber = tracing_subscriber::registry().with(recent.clone());
        tracing::subscriber::with_default(subscriber, || {
            for number in 0..150 {
                tracing::info!(number, name = "x", "a\u{1b}[31m line");
            }
            tracing::warn!("{}", "y".repeat(1000));
        });
        let lines = recent.lines();
        assert_eq!(lines.len(), KEPT);
        assert!(lines[0].ends_with(" INFO  a[31m line number=51 name=x"), "{}", lines[0]);
        assert_eq!(lines[99].chars().count(), LONGEST);
    }
}
