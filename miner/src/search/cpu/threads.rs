//! The search threads. They are started once, sleep between launches, and run at the lowest
//! priority.

use super::dispatch::Kernel;
use super::filter::Filter;
use super::walk::{Remaining, WalkResult, WalkTarget};
use crate::key::StartPoint;
use crate::pattern::PatternSet;
use crate::search::os::lower_priority;
use crate::search::searcher::Launch;
use std::sync::Arc;
use std::sync::mpsc::{Receiver, Sender, channel};
use std::thread::Builder;
use std::time::{Duration, Instant};

/// A walk ends after this many hits, because only one of them becomes a key.
const MAX_HITS: usize = 1024;
/// The early stop comes after this many hits. One could be enough, because a start point yields one
/// key. But another start point may have found a key for the same job at the same time.
const EARLY_STOP_HITS: usize = 4;

/// The walk of one start point over a number of rounds.
type Task = (StartPoint, u64, WalkTarget);

/// A walk's result and duration.
type Outcome = (WalkResult, Duration);

/// All search threads. They end with this value.
pub(super) struct Threads {
    kernel: Kernel,
    threads: Vec<(Sender<Task>, Receiver<Outcome>)>,
    /// The filters of the last launch: of all its patterns, and of those remaining after the early
    /// stop.
    filters: [CachedFilter; 2],
}

/// A pattern set and its filter, kept because most launches have the same set as the one before.
type CachedFilter = Option<(Arc<PatternSet>, Arc<Filter>)>;

impl Threads {
    /// Starts `count` threads.
    pub fn start(count: usize, kernel: Kernel) -> Threads {
        let start = |number: usize| {
            let (task, tasks) = channel::<Task>();
            let (outcome, outcomes) = channel();
            let run = move || {
                lower_priority();
                let mut walker = kernel.walker();
                for (start, rounds, target) in tasks {
                    let began = Instant::now();
                    if outcome.send((walker(&start, rounds, &target), began.elapsed())).is_err() {
                        return;
                    }
                }
            };
            // Without the thread nobody answers, as if it had panicked.
            let _ = Builder::new().name(format!("search {number}")).spawn(run);
            (task, outcomes)
        };
        Threads { kernel, threads: (0..count).map(start).collect(), filters: [None, None] }
    }

    /// The goal of the walks of a launch.
    pub fn target(&mut self, launch: &Launch) -> WalkTarget {
        let [all, remaining] = &mut self.filters;
        let remaining = launch.remaining.as_ref().map(|wanted| Remaining {
            filter: filter_for(self.kernel, &wanted.patterns, remaining),
            is_wanted: wanted.is_wanted,
            after: EARLY_STOP_HITS,
        });
        WalkTarget { filter: filter_for(self.kernel, &launch.patterns, all), most_hits: MAX_HITS, remaining }
    }

    /// Walks `rounds` rounds from each start point, as many as there are threads. Returns the result
    /// and the duration of each walk; `None` if its thread has panicked.
    pub fn walk(&mut self, starts: &[StartPoint], rounds: u64, target: &WalkTarget) -> Vec<Option<Outcome>> {
        for ((tasks, _), start) in self.threads.iter().zip(starts) {
            // A thread that has panicked takes no task.
            let _ = tasks.send((*start, rounds, target.clone()));
        }
        self.threads.iter().map(|(_, outcomes)| outcomes.recv().ok()).collect()
    }
}

/// The filter of a pattern set. Builds a new one if the set has changed.
fn filter_for(kernel: Kernel, patterns: &Arc<PatternSet>, cached: &mut CachedFilter) -> Arc<Filter> {
    match cached {
        Some((held, filter)) if Arc::ptr_eq(held, patterns) => Arc::clone(filter),
        _ => {
            let filter = Arc::new(kernel.filter(patterns));
            *cached = Some((Arc::clone(patterns), Arc::clone(&filter)));
            filter
        }
    }
}
