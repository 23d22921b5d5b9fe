//! What commands write: results on standard output, and text for people on standard error.
//!
//! The print macros panic where a pipe's reader is gone or a disk is full, so clippy forbids them
//! (`print_stdout`, `print_stderr`).

use crate::log_writer;
use serde::Serialize;
use std::fmt;
use std::io::{self, Write};
use std::time::Duration;
use thiserror::Error;

/// Longest wait for log lines that come before a text for people.
const LOG_FLUSH_TIMEOUT: Duration = Duration::from_millis(100);

/// A failed write to standard output. It is the inner error of the [`io::Error`].
#[derive(Debug, Error)]
#[error("standard output cannot be written: {0}")]
struct OutputError(io::Error);

/// Standard output, for results. Its errors lead to the exit code of [`super::exit::end`].
pub(super) struct Stdout(io::StdoutLock<'static>);

/// Locks standard output.
pub(super) fn stdout() -> Stdout {
    Stdout(io::stdout().lock())
}

impl Write for Stdout {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.0.write(bytes).map_err(output_error)
    }

    fn flush(&mut self) -> io::Result<()> {
        self.0.flush().map_err(output_error)
    }
}

fn output_error(error: io::Error) -> io::Error {
    io::Error::new(error.kind(), OutputError(error))
}

/// Prints a value as one line of JSON.
pub(super) fn print_json(value: &impl Serialize) -> anyhow::Result<()> {
    Ok(writeln!(stdout(), "{}", serde_json::to_string(value)?)?)
}

/// Whether a command failed only because the reader of its standard output is gone, as in
/// `npubbot mine … | head -1`. Such a command has done its work.
pub(super) fn is_reader_gone(error: &anyhow::Error) -> bool {
    let of_output = |error: &io::Error| error.get_ref().is_some_and(|inner| inner.is::<OutputError>());
    let mut causes = error.chain().filter_map(|cause| cause.downcast_ref::<io::Error>());
    causes.any(|error| error.kind() == io::ErrorKind::BrokenPipe && of_output(error))
}

/// Writes a text for people to standard error, after the log lines before it. If that fails, nobody
/// reads it.
pub(super) fn write_note(text: fmt::Arguments<'_>) {
    log_writer::flush(LOG_FLUSH_TIMEOUT);
    let _ = io::stderr().lock().write_fmt(text);
}

/// Writes a line for people to standard error. If that fails, nobody reads it.
macro_rules! note {
    ($($text:tt)*) => { $crate::cli::output::write_note(format_args!("{}\n", format_args!($($text)*))) };
}
pub(super) use note;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_a_broken_pipe_of_standard_output_is_the_end() {
        let error = |kind| anyhow::Error::from(output_error(kind));
        let broken = || io::Error::from(io::ErrorKind::BrokenPipe);
        assert!(is_reader_gone(&error(broken())));
        assert!(is_reader_gone(&error(broken()).context("while the keys were written")));
        assert!(!is_reader_gone(&broken().into()), "a relay or a bot is gone");
        let full = error(io::ErrorKind::StorageFull.into());
        assert!(!is_reader_gone(&full));
        assert!(full.to_string().starts_with("standard output cannot be written: "), "{full}");
    }
}
