//! The long-lived parts of a bot, tasks and threads. One that ends without being asked to is
//! started again. Until then health, readiness and the watchdog know that it is gone.

use crate::backoff::Backoff;
use crate::shutdown::Shutdown;
use std::collections::BTreeMap;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::pin::Pin;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};
use tokio::task::JoinSet;

/// Pause before a new start. It doubles with each run that was short.
const FIRST_PAUSE: Duration = Duration::from_secs(1);
/// Longest pause before a new start.
const LAST_PAUSE: Duration = Duration::from_secs(30);
/// A run that took longer than this is followed by [`FIRST_PAUSE`].
const SHORT_RUN: Duration = Duration::from_secs(60);
/// Longest sleep of a thread before it looks whether the bot stops.
const LOOK_FOR_END: Duration = Duration::from_millis(50);

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

/// Tasks and threads by name. Cheap to clone; clones share them.
#[derive(Clone, Debug, Default)]
pub struct Roster(Arc<Mutex<BTreeMap<String, Part>>>);

/// A task or thread.
#[derive(Clone, Debug, Default)]
struct Part {
    is_gone: bool,
    /// Times it was started again.
    restarts: u64,
    /// Whether a test has asked it to panic.
    is_condemned: bool,
}

impl Roster {
    /// The names of the parts that are gone now.
    pub fn gone(&self) -> Vec<String> {
        self.lock().iter().filter(|(_, part)| part.is_gone).map(|(name, _)| name.clone()).collect()
    }

    /// Each part with the number of times it was started again.
    pub fn restarts(&self) -> Vec<(String, u64)> {
        self.lock().iter().map(|(name, part)| (name.clone(), part.restarts)).collect()
    }

    /// Runs the body of a thread until `is_over`. A run that ends before, by a panic or not, is
    /// followed by another.
    pub fn keep_thread(&self, name: &str, is_over: impl Fn() -> bool, mut run: impl FnMut()) {
        let mut pauses = Backoff::new(FIRST_PAUSE, LAST_PAUSE);
        loop {
            let began = Instant::now();
            self.note(name, false);
            // The panic itself is in the log.
            let _ = catch_unwind(AssertUnwindSafe(&mut run));
            if is_over() {
                return;
            }
            let until = Instant::now() + self.bury(name, began, &mut pauses);
            while Instant::now() < until {
                if is_over() {
                    return;
                }
                std::thread::sleep(LOOK_FOR_END);
            }
        }
    }

    /// Runs a task until the shutdown. A run that ends before, by a panic or not, is followed by
    /// another.
    pub async fn keep_task(&self, name: &str, mut task: Task, mut stop: Shutdown) {
        let mut pauses = Backoff::new(FIRST_PAUSE, LAST_PAUSE);
        loop {
            let began = Instant::now();
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
            let pause = self.bury(name, began, &mut pauses);
            tokio::select! {
                () = tokio::time::sleep(pause) => {}
                () = stop.stopped() => return,
            }
        }
    }

    /// Returns once a test has asked for the end of this task; in other builds never.
    pub async fn condemned(&self, name: &str) {
        if !cfg!(any(test, feature = "test-util")) {
            std::future::pending::<()>().await;
        }
        while !self.is_condemned(name) {
            tokio::time::sleep(LOOK_FOR_END).await;
        }
    }

    /// Panics if a test has asked for the end of this thread. Threads call it wherever they take up
    /// work; in other builds it does nothing.
    #[inline]
    pub fn check(&self, name: &str) {
        assert!(!self.is_condemned(name), "a test ends {name}");
    }

    /// Whether a test has asked for the end of this thread, once; in other builds `false`.
    #[inline]
    pub fn is_condemned(&self, name: &str) -> bool {
        cfg!(any(test, feature = "test-util"))
            && self.lock().get_mut(name).is_some_and(|part| std::mem::take(&mut part.is_condemned))
    }

    /// Ends a task or thread by a panic, at once or when it takes up work. Returns whether there is
    /// one of this name.
    #[cfg(any(test, feature = "test-util"))]
    pub fn kill(&self, name: &str) -> bool {
        self.lock().get_mut(name).map(|part| part.is_condemned = true).is_some()
    }

    /// Notes that a part is gone. Returns the pause before its new start.
    fn bury(&self, name: &str, began: Instant, pauses: &mut Backoff) -> Duration {
        if began.elapsed() > SHORT_RUN {
            pauses.reset();
        }
        let pause = pauses.next_pause();
        self.note(name, true);
        tracing::error!(part = name, retry_in = ?pause, "a part of the bot is gone; it is started again");
        pause
    }

    /// Records whether a part is gone.
    fn note(&self, name: &str, is_gone: bool) {
        let mut parts = self.lock();
        let part = parts.entry(name.to_owned()).or_default();
        part.restarts += u64::from(part.is_gone && !is_gone);
        part.is_gone = is_gone;
    }

    fn lock(&self) -> MutexGuard<'_, BTreeMap<String, Part>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
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

    #[test]
    fn a_thread_that_panics_or_ends_runs_again_until_all_is_over() {
        let (roster, runs) = (Roster::default(), AtomicU32::new(0));
        let is_over = || runs.load(Ordering::SeqCst) == 3;
        roster.keep_thread("test", is_over, || {
            assert!(roster.gone().is_empty());
            assert!(runs.fetch_add(1, Ordering::SeqCst) > 0, "a panic of the test");
        });
        assert_eq!((roster.restarts(), roster.gone()), (vec![("test".to_owned(), 2)], Vec::new()));
        roster.keep_thread("other", || true, || panic!("a panic of the test"));
        assert!(roster.gone().is_empty(), "at the end nobody is missed");
    }
}
