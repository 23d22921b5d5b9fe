//! The long-lived tasks of a bot. One that ends without being asked to is started again, as the
//! vault's [`Roster`] does with threads.

pub use npubbot_vault::roster::Roster;

use crate::shutdown::Shutdown;
#[cfg(any(test, feature = "test-util"))]
use npubbot_vault::roster::LOOK_FOR_END;
use npubbot_vault::roster::Pauses;
use std::future::Future;
use std::pin::Pin;
use tokio::task::JoinSet;

/// One run of a task.
type Run = Pin<Box<dyn Future<Output = ()> + Send>>;

/// Makes a run of a task, each time it is started.
pub type Task = Box<dyn FnMut() -> Run + Send>;

/// A task: `run` gets a shutdown handle for each run.
pub fn task<F>(stop: &Shutdown, mut run: impl FnMut(Shutdown) -> F + Send + 'static) -> Task
where
    F: Future<Output = ()> + Send + 'static,
{
    let stop = stop.clone();
    Box::new(move || Box::pin(run(stop.clone())))
}

/// Tasks in a [`Roster`].
pub trait KeepTasks {
    /// Runs a task until the shutdown. A run that ends before, by a panic or not, is followed by
    /// another.
    fn keep_task(&self, name: &str, task: Task, stop: Shutdown) -> impl Future<Output = ()> + Send;

    /// Returns once a test has asked for the end of this task; in other builds never.
    fn condemned(&self, name: &str) -> impl Future<Output = ()> + Send;
}

impl KeepTasks for Roster {
    async fn keep_task(&self, name: &str, mut task: Task, mut stop: Shutdown) {
        let mut pauses = Pauses::default();
        loop {
            self.note(name, false);
            // A `JoinSet` ends the run when this future is dropped.
            let mut running = JoinSet::new();
            running.spawn(task());
            tokio::select! {
                _ = running.join_next() => {}
                () = self.condemned(name) => {}
            }
            if stop.is_stopping() {
                return;
            }
            let pause = self.bury(name, &mut pauses);
            tokio::select! {
                () = tokio::time::sleep(pause) => {}
                () = stop.stopped() => return,
            }
        }
    }

    #[cfg(any(test, feature = "test-util"))]
    async fn condemned(&self, name: &str) {
        while !self.is_condemned(name) {
            tokio::time::sleep(LOOK_FOR_END).await;
        }
    }

    #[cfg(not(any(test, feature = "test-util")))]
    async fn condemned(&self, _: &str) {
        std::future::pending().await
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::shutdown;
    use std::sync::Arc;
    use std::sync::atomic::{AtomicU32, Ordering};
    use std::time::Duration;

    #[tokio::test(start_paused = true)]
    async fn a_task_that_panics_or_ends_is_started_again_and_gone_until_then() {
        let (roster, runs) = (Roster::default(), Arc::new(AtomicU32::new(0)));
        let (stopper, shutdown) = shutdown::pair();
        let (counted, watched) = (Arc::clone(&runs), roster.clone());
        let task = task(&shutdown, move |mut stop| {
            let (run, roster) = (counted.fetch_add(1, Ordering::SeqCst), watched.clone());
            async move {
                assert!(roster.gone().is_empty());
                match run {
                    0 => panic!("a panic of the test"),
                    1 => {}
                    _ => stop.stopped().await,
                }
            }
        });
        let kept = tokio::spawn({
            let (roster, shutdown) = (roster.clone(), shutdown.clone());
            async move { roster.keep_task("test", task, shutdown).await }
        });
        let until = async |wanted: u32, is_gone: bool| {
            while (runs.load(Ordering::SeqCst), !roster.gone().is_empty()) != (wanted, is_gone) {
                tokio::time::sleep(Duration::from_millis(10)).await;
            }
        };
        for (run, is_gone) in [(1, true), (2, true), (3, false)] {
            until(run, is_gone).await;
        }
        assert!(roster.kill("test") && !roster.kill("another"));
        until(3, true).await;
        until(4, false).await;
        assert_eq!(roster.restarts(), [("test".to_owned(), 3)]);
        stopper.stop();
        kept.await.unwrap();
        assert!(roster.gone().is_empty());
    }
}
