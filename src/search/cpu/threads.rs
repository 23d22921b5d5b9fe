//! The search threads: started once, asleep between launches, and last in line for the processor.

use super::dispatch::Kernel;
use super::filter::Filter;
use super::walk::{Remaining, Sought, Walked};
use super::{ENOUGH, HITS_A_START};
use crate::key::StartPoint;
use crate::pattern::PatternSet;
use crate::search::Launch;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Arc;
use std::sync::mpsc::{Receiver, Sender, channel};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

/// The lowest priority there is.
const NICENESS: i32 = 19;

/// One start point's walk.
pub(super) struct Task {
    pub start: StartPoint,
    pub rounds: u64,
    pub sought: Sought,
}

/// A walk and how long it took. `None` when it panicked.
type Outcome = Option<(Walked, Duration)>;

struct Worker {
    /// Taken at the end: a closed channel ends the thread.
    tasks: Option<Sender<Task>>,
    outcomes: Receiver<Outcome>,
    thread: Option<JoinHandle<()>>,
}

pub(super) struct Threads {
    workers: Vec<Worker>,
    kernel: Kernel,
    /// Of all patterns of the last launch, and of those that last: launches mostly repeat them.
    filters: [Kept; 2],
}

/// The filter of a pattern set, kept.
type Kept = Option<(Arc<PatternSet>, Arc<Filter>)>;

impl Threads {
    pub fn start(count: usize, kernel: Kernel) -> Threads {
        let worker = |number: usize| {
            let (task, tasks) = channel::<Task>();
            let (outcome, outcomes) = channel();
            let run = move || {
                be_nice();
                let mut walker = kernel.walker();
                for task in tasks {
                    let began = Instant::now();
                    let walked = catch_unwind(AssertUnwindSafe(|| walker.walk(&task.start, task.rounds, &task.sought)));
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

    /// What a launch's walks look for.
    pub fn sought(&mut self, launch: &Launch) -> Sought {
        let kernel = self.kernel;
        let [all, remaining] = &mut self.filters;
        let remaining = launch.remaining.as_ref().map(|wanted| Remaining {
            filter: filter_for(kernel, &wanted.patterns, remaining),
            is_wanted: wanted.is_wanted,
            after: ENOUGH,
        });
        Sought { filter: filter_for(kernel, &launch.patterns, all), hits_wanted: HITS_A_START, remaining }
    }

    /// Runs one task a thread and waits for all. As many tasks as threads.
    pub fn run(&mut self, tasks: Vec<Task>) -> Vec<Outcome> {
        for (worker, task) in self.workers.iter().zip(tasks) {
            if let Some(sender) = &worker.tasks {
                // A thread that is gone shows in its outcome.
                let _ = sender.send(task);
            }
        }
        self.workers.iter().map(|worker| worker.outcomes.recv().unwrap_or_default()).collect()
    }
}

/// The filter of a pattern set, remade when the set is another.
fn filter_for(kernel: Kernel, patterns: &Arc<PatternSet>, kept: &mut Kept) -> Arc<Filter> {
    match kept {
        Some((held, filter)) if Arc::ptr_eq(held, patterns) => Arc::clone(filter),
        _ => {
            let filter = Arc::new(kernel.filter(patterns));
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
                // Panics are caught inside.
                let _ = thread.join();
            }
        }
    }
}

/// On Linux niceness belongs to the thread; where it cannot be set the search is merely less polite.
fn be_nice() {
    if let Err(error) = rustix::process::nice(NICENESS) {
        tracing::debug!(%error, "the search runs at ordinary priority");
    }
}
