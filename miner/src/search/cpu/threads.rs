//! The search threads. They are started once, sleep between launches, and run at the lowest
//! priority.

use super::dispatch::Kernel;
use super::filter::Filter;
use super::walk::{Remaining, WalkResult, WalkTarget};
use crate::key::StartPoint;
use crate::pattern::PatternSet;
use crate::search::os::lower_priority;
use crate::search::searcher::Launch;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Arc;
use std::sync::mpsc::{Receiver, Sender, channel};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

/// A walk ends after this many hits, because only one of them becomes a key.
const MOST_HITS: usize = 1024;
/// The early stop comes after this many hits. One could be enough, because a start point yields one
/// key. But another start point may have found a key for the same job at the same time.
const EARLY_STOP_HITS: usize = 4;
/// The walk of one start point.
pub(super) struct Task {
    /// The start point.
    pub start: StartPoint,
    /// The length of the walk in rounds.
    pub rounds: u64,
    /// The goal of the walk: the patterns, and when to stop.
    pub target: WalkTarget,
}

/// A walk's result and duration. `None` if it panicked.
type Outcome = Option<(WalkResult, Duration)>;

struct Worker {
    /// The channel to the thread. It becomes `None` at the end, because closing it ends the thread.
    tasks: Option<Sender<Task>>,
    outcomes: Receiver<Outcome>,
    thread: Option<JoinHandle<()>>,
}

/// All search threads.
pub(super) struct Threads {
    workers: Vec<Worker>,
    kernel: Kernel,
    /// The filters of the last launch: of all its patterns, and of those remaining after the early
    /// stop.
    filters: [Kept; 2],
}

/// A pattern set and its filter, kept because most launches have the same set as the one before.
type Kept = Option<(Arc<PatternSet>, Arc<Filter>)>;

impl Threads {
    /// Starts `count` threads.
    pub fn start(count: usize, kernel: Kernel) -> Threads {
        let worker = |number: usize| {
            let (task, tasks) = channel::<Task>();
            let (outcome, outcomes) = channel();
            let run = move || {
                lower_priority();
                let mut walker = kernel.walker();
                for task in tasks {
                    let began = Instant::now();
                    let walked = catch_unwind(AssertUnwindSafe(|| walker(&task.start, task.rounds, &task.target)));
                    if outcome.send(walked.ok().map(|walked| (walked, began.elapsed()))).is_err() {
                        return;
                    }
                }
            };
            let thread = std::thread::Builder::new().name(format!("search {number}")).spawn(run);
            Worker { tasks: Some(task), outcomes, thread: Some(thread.expect("the system starts threads")) }
        };
        Threads { workers: (0..count).map(worker).collect(), kernel, filters: [None, None] }
    }

    /// The goal of the walks of a launch.
    pub fn target(&mut self, launch: &Launch) -> WalkTarget {
        let new = |patterns: &PatternSet| self.kernel.filter(patterns);
        let [all, remaining] = &mut self.filters;
        let remaining = launch.remaining.as_ref().map(|wanted| Remaining {
            filter: filter_for(new, &wanted.patterns, remaining),
            is_wanted: wanted.is_wanted,
            after: EARLY_STOP_HITS,
        });
        WalkTarget { filter: filter_for(new, &launch.patterns, all), most_hits: MOST_HITS, remaining }
    }

    /// Runs one task on each thread and waits for all outcomes. `tasks` has one task per thread.
    pub fn run(&mut self, tasks: Vec<Task>) -> Vec<Outcome> {
        for (worker, task) in self.workers.iter().zip(tasks) {
            if let Some(sender) = &worker.tasks {
                // This fails only if the thread has ended. Its outcome below is then `None`.
                let _ = sender.send(task);
            }
        }
        self.workers.iter().map(|worker| worker.outcomes.recv().unwrap_or_default()).collect()
    }
}

/// The filter of a pattern set. Builds a new one if the set has changed.
fn filter_for(new: impl Fn(&PatternSet) -> Filter, patterns: &Arc<PatternSet>, kept: &mut Kept) -> Arc<Filter> {
    match kept {
        Some((held, filter)) if Arc::ptr_eq(held, patterns) => Arc::clone(filter),
        _ => {
            let filter = Arc::new(new(patterns));
            *kept = Some((Arc::clone(patterns), Arc::clone(&filter)));
            filter
        }
    }
}

impl Drop for Threads {
    fn drop(&mut self) {
        for worker in &mut self.workers {
            drop(worker.tasks.take());
            if let Some(thread) = worker.thread.take() {
                // Panics are caught inside the thread.
                let _ = thread.join();
            }
        }
    }
}
