//! Clean shutdown: one side asks the program to end, and every task and thread is notified.

use std::time::Duration;
use tokio::sync::watch;

/// Asks the program to end, also when it is dropped.
#[derive(Debug)]
pub struct Stopper(watch::Sender<bool>);

/// Held by every task and thread that must end. Cheap to clone.
#[derive(Clone, Debug)]
pub struct Shutdown(watch::Receiver<bool>);

/// A [`Stopper`], and the [`Shutdown`] that it notifies.
pub fn pair() -> (Stopper, Shutdown) {
    let (sender, receiver) = watch::channel(false);
    (Stopper(sender), Shutdown(receiver))
}

impl Stopper {
    /// Asks every holder of the [`Shutdown`] to end.
    pub fn stop(&self) {
        self.0.send_replace(true);
    }
}

impl Shutdown {
    /// Whether the program was asked to end. For threads, between two launches.
    pub fn is_stopping(&self) -> bool {
        *self.0.borrow() || self.0.has_changed().is_err()
    }

    /// Waits until the program is asked to end. For tasks, in `select!`.
    pub async fn stopped(&mut self) {
        // An error means that the stopper was dropped, which also means stop.
        let _ = self.0.wait_for(|stop| *stop).await;
    }

    /// Runs `round` now and once every `period`, until the program is asked to end. A round in
    /// progress is dropped then.
    pub async fn repeat<F: Future<Output = ()>>(&mut self, period: Duration, mut round: impl FnMut() -> F) {
        let mut ticks = tokio::time::interval(period);
        let rounds = async {
            loop {
                ticks.tick().await;
                round().await;
            }
        };
        tokio::select! {
            () = self.stopped() => {}
            () = rounds => {}
        }
    }
}
