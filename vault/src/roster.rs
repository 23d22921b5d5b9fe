//! The long-lived parts of a bot, tasks and threads. One that ends without being asked to is
//! started again. Until then health, readiness and the watchdog know that it is gone. The program
//! has the part of this that needs a runtime.

use std::collections::BTreeMap;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

/// Pause before a new start. It doubles with each run that was short.
const FIRST_PAUSE: Duration = Duration::from_secs(1);
/// Longest pause before a new start.
const LAST_PAUSE: Duration = Duration::from_secs(30);
/// A run that took longer than this is followed by [`FIRST_PAUSE`].
const SHORT_RUN: Duration = Duration::from_secs(60);
/// Longest sleep of a thread before it looks whether the bot stops.
pub const LOOK_FOR_END: Duration = Duration::from_millis(50);

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
    #[cfg(any(test, feature = "test-util"))]
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
        let mut pauses = Pauses::default();
        loop {
            self.note(name, false);
            // The panic itself is in the log.
            let _ = catch_unwind(AssertUnwindSafe(&mut run));
            if is_over() {
                return;
            }
            let until = Instant::now() + self.bury(name, &mut pauses);
            while Instant::now() < until {
                if is_over() {
                    return;
                }
                std::thread::sleep(LOOK_FOR_END);
            }
        }
    }

    /// Panics if a test has asked for the end of this thread. Threads call it wherever they take up
    /// work; in other builds it does nothing.
    #[inline]
    pub fn check(&self, name: &str) {
        assert!(!self.is_condemned(name), "a test ends {name}");
    }

    /// Whether a test has asked for the end of this thread, once.
    #[cfg(any(test, feature = "test-util"))]
    pub fn is_condemned(&self, name: &str) -> bool {
        self.lock().get_mut(name).is_some_and(|part| std::mem::take(&mut part.is_condemned))
    }

    /// Always `false`: only tests ask for it.
    #[cfg(not(any(test, feature = "test-util")))]
    #[inline]
    pub fn is_condemned(&self, _: &str) -> bool {
        false
    }

    /// Ends a task or thread by a panic, at once or when it takes up work. Returns whether there is
    /// one of this name.
    #[cfg(any(test, feature = "test-util"))]
    pub fn kill(&self, name: &str) -> bool {
        self.lock().get_mut(name).map(|part| part.is_condemned = true).is_some()
    }

    /// Notes that a part is gone. Returns the pause before its new start.
    pub fn bury(&self, name: &str, pauses: &mut Pauses) -> Duration {
        let pause = pauses.next_pause();
        self.note(name, true);
        tracing::error!(part = name, retry_in = ?pause, "a part of the bot is gone; it is started again");
        pause
    }

    /// Records whether a part is gone.
    pub fn note(&self, name: &str, is_gone: bool) {
        let mut parts = self.lock();
        let part = parts.entry(name.to_owned()).or_default();
        part.restarts += u64::from(part.is_gone && !is_gone);
        part.is_gone = is_gone;
    }

    fn lock(&self) -> MutexGuard<'_, BTreeMap<String, Part>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// The pauses before the new starts of one part.
#[derive(Debug)]
pub struct Pauses {
    next: Duration,
    began: Instant,
}

impl Default for Pauses {
    fn default() -> Pauses {
        Pauses { next: FIRST_PAUSE, began: Instant::now() }
    }
}

impl Pauses {
    /// The next pause.
    pub fn next_pause(&mut self) -> Duration {
        if self.began.elapsed() > SHORT_RUN {
            self.next = FIRST_PAUSE;
        }
        let pause = self.next;
        self.next = (pause * 2).min(LAST_PAUSE);
        self.began = Instant::now() + pause;
        pause
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::sync::atomic::{AtomicU32, Ordering};

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

    #[test]
    fn a_part_that_dies_again_and_again_is_gone_most_of_the_time() {
        let mut pauses = Pauses::default();
        let first: Vec<u64> = (0..7).map(|_| pauses.next_pause().as_secs()).collect();
        assert_eq!(first, [1, 2, 4, 8, 16, 30, 30]);
        pauses.began = Instant::now().checked_sub(2 * SHORT_RUN).unwrap();
        assert_eq!(pauses.next_pause(), FIRST_PAUSE);
    }
}
