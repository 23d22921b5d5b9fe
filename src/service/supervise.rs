//! A task that panicked is started anew: whatever it was at is in the ledger, or still on the relays.

use std::future::Future;
use std::time::Duration;
use tokio::task::JoinSet;

/// Between a panic and the new start.
const PAUSE: Duration = Duration::from_secs(1);

/// Runs what `task` makes until it ends by itself.
pub(super) async fn supervise<F>(what: &'static str, mut task: impl FnMut() -> F)
where
    F: Future<Output = ()> + Send + 'static,
{
    loop {
        // A set, so that the task ends with this one.
        let mut running = JoinSet::new();
        running.spawn(task());
        match running.join_next().await {
            Some(Err(error)) if error.is_panic() => {
                tracing::error!(what, "a task panicked; it is started anew");
                tokio::time::sleep(PAUSE).await;
            }
            _ => return,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::sync::Arc;
    use std::sync::atomic::{AtomicU32, Ordering};

    #[tokio::test]
    async fn a_task_that_panics_twice_runs_three_times() {
        let runs = Arc::new(AtomicU32::new(0));
        let task = || {
            let runs = Arc::clone(&runs);
            async move { assert!(runs.fetch_add(1, Ordering::SeqCst) >= 2, "a panic of the test") }
        };
        supervise("test", task).await;
        assert_eq!(runs.load(Ordering::SeqCst), 3);
    }
}
