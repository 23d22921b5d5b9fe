//! Captures the log of a bot that runs within the test.

use std::fs;
use std::sync::Mutex;
use tempfile::NamedTempFile;

/// The log of this process from [`Log::of_warnings`] on.
pub struct Log(NamedTempFile);

impl Log {
    /// Captures warnings and errors from now on. May be called once per process.
    pub fn of_warnings() -> Log {
        let file = NamedTempFile::new().unwrap();
        let subscriber = tracing_subscriber::fmt().with_writer(Mutex::new(file.reopen().unwrap())).with_ansi(false);
        subscriber.with_max_level(tracing::Level::WARN).init();
        Log(file)
    }

    pub fn text(&self) -> String {
        fs::read_to_string(self.0.path()).unwrap()
    }
}
