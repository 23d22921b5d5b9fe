//! The search threads: started once, asleep between launches, and last in line for the processor.

use super::filter::Filter;
use super::kernel::Kernel;
use super::walk::Walked;
use crate::key::BasePoint;
use crate::pattern::PatternSet;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Arc;
use std::sync::mpsc::{Receiver, Sender, channel};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

/// The lowest priority there is.
const NICENESS: i32 = 19;

/// One base's walk.
pub(super) struct Task {
    pub base: BasePoint,
    pub rounds: u64,
    pub filter: Arc<Filter>,
    pub hits_wanted: usize,
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
    /// The filter of the last pattern set: launches mostly repeat it.
    filter: Option<(Arc<PatternSet>, Arc<Filter>)>,
}

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
                    let walked = catch_unwind(AssertUnwindSafe(|| {
                        walker.walk(&task.base, task.rounds, &task.filter, task.hits_wanted)
                    }));
                    if outcome.send(walked.ok().map(|walked| (walked, began.elapsed()))).is_err() {
                        return;
                    }
                }
            };
            let thread = std::thread::Builder::new().name(format!("search {number}")).spawn(run);
            Worker { tasks: Some(task), outcomes, thread: Some(thread.expect("the system starts threads")) }
        };
        Threads { workers: (0..count).map(worker).collect(), kernel, filter: None }
    }

    /// The filter of a pattern set, remade when the set is another.
    pub fn filter_for(&mut self, patterns: &Arc<PatternSet>) -> Arc<Filter> {
        match &self.filter {
            Some((held, filter)) if Arc::ptr_eq(held, patterns) => Arc::clone(filter),
            _ => {
                let filter = Arc::new(self.kernel.filter(patterns));
                self.filter = Some((Arc::clone(patterns), Arc::clone(&filter)));
                filter
            }
        }
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
