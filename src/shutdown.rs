//! Clean shutdown as a type: one side asks for the end, every task and thread sees it.

use tokio::sync::watch;

/// Held by whoever may end the program. Dropping it asks for the end too.
#[derive(Debug)]
pub struct Stopper(watch::Sender<bool>);

/// Held by every task and thread that must end. Cheap to clone.
#[derive(Clone, Debug)]
pub struct Shutdown(watch::Receiver<bool>);

/// A connected pair.
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
    /// True once the end was asked for: for threads, between two launches.
    pub fn is_stopping(&self) -> bool {
        *self.0.borrow() || self.0.has_changed().is_err()
    }

    /// Returns once the end was asked for: for tasks, in `select!`.
    pub async fn stopped(&mut self) {
        // An error means that the stopper is gone, which is a stop as well.
        let _ = self.0.wait_for(|stop| *stop).await;
    }
}
