//! Tasks that are started again after a panic. Their unfinished work is in the ledger or still on
//! the relays.

use crate::shutdown::Shutdown;
use std::future::Future;
use std::pin::Pin;
use std::time::Duration;
use tokio::task::JoinSet;

/// Pause between a panic and the new start.
const PAUSE: Duration = Duration::from_secs(1);

/// One run of a task.
type Run = Pin<Box<dyn Future<Output = ()> + Send>>;

/// Creates a run of a task, each time it is started.
pub(super) type Task = Box<dyn FnMut() -> Run + Send>;

/// A task for a table of tasks: `run` gets a new shutdown handle for each run.
pub(super) fn task<F>(
    stop: &(impl Fn() -> Shutdown + Clone + Send + 'static),
    mut run: impl FnMut(Shutdown) -> F + Send + 'static,
) -> Task
where
    F: Future<Output = ()> + Send + 'static,
{
    let stop = stop.clone();
    Box::new(move || Box::pin(run(stop())))
}

/// Runs `task` until it returns, and again after each panic. `name` is for the log.
pub(super) async fn supervise(name: &'static str, mut task: Task) {
    loop {
        // A `JoinSet` ends the run when this future is dropped.
        let mut running = JoinSet::new();
        running.spawn(task());
        match running.join_next().await {
            Some(Err(error)) if error.is_panic() => {
                tracing::error!(task = name, "a task panicked; it is started again");
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

    #[tokio::test(start_paused = true)]
    async fn a_task_that_panics_twice_runs_three_times() {
        let runs = Arc::new(AtomicU32::new(0));
        let (_stopper, shutdown) = crate::shutdown::pair();
        let counted = Arc::clone(&runs);
        let run = move |_| {
            let runs = Arc::clone(&counted);
            async move { assert!(runs.fetch_add(1, Ordering::SeqCst) >= 2, "a panic of the test") }
        };
        supervise("test", task(&move || shutdown.clone(), run)).await;
        assert_eq!(runs.load(Ordering::SeqCst), 3);
    }
}
