//! Captures the log of a bot that runs within the test.

use super::until;
use std::io::{Result, Write};
use std::sync::{Arc, Mutex};

/// Everything logged in this process since the last [`Log::clear`].
#[derive(Clone, Default)]
pub struct Log(Arc<Mutex<Vec<u8>>>);

impl Log {
    /// Captures warnings and errors from now on. May be called once per process.
    pub fn of_warnings() -> Log {
        let log = Log::default();
        let writer = log.clone();
        let subscriber = tracing_subscriber::fmt().with_writer(move || writer.clone()).with_ansi(false);
        subscriber.with_max_level(tracing::Level::WARN).init();
        log
    }

    pub fn text(&self) -> String {
        String::from_utf8_lossy(&self.0.lock().unwrap()).into_owned()
    }

    pub fn clear(&self) {
        self.0.lock().unwrap().clear();
    }

    /// Waits until the log contains `what`, then clears it.
    pub async fn wait_for(&self, what: &str) {
        until(what, || async { self.text().contains(what).then_some(()) }).await;
        self.clear();
    }
}

impl Write for Log {
    fn write(&mut self, bytes: &[u8]) -> Result<usize> {
        self.0.lock().unwrap().extend_from_slice(bytes);
        Ok(bytes.len())
    }
    fn flush(&mut self) -> Result<()> {
        Ok(())
    }
}
