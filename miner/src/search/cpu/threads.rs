//! The search threads: one a walk, at the lowest priority. Their kernels' working memory is kept from
//! one launch to the next.

use super::dispatch::{Kernel, Walker};
use super::filter::Filter;
use super::walk::{Remaining, WalkResult, WalkTarget};
use crate::key::StartPoint;
use crate::pattern::PatternSet;
use crate::search::os::lower_priority;
use crate::search::searcher::Launch;
use std::sync::Arc;
use std::thread::{self, Builder};
use std::time::{Duration, Instant};

/// A walk ends after this many hits, because only one of them becomes a key.
const MOST_HITS: usize = 1024;
/// The early stop comes after this many hits. One could be enough, because a start point yields one
/// key. But another start point may have found a key for the same job at the same time.
const EARLY_STOP_HITS: usize = 4;

/// All search threads.
pub(super) struct Threads {
    kernel: Kernel,
    walkers: Vec<Walker>,
    /// The filters of the last launch: of all its patterns, and of those remaining after the early
    /// stop.
    filters: [CachedFilter; 2],
}

/// A pattern set and its filter, kept because most launches have the same set as the one before.
type CachedFilter = Option<(Arc<PatternSet>, Arc<Filter>)>;

impl Threads {
    /// Memory for `count` threads.
    pub fn new(count: usize, kernel: Kernel) -> Threads {
        Threads { kernel, walkers: (0..count).map(|_| kernel.walker()).collect(), filters: [None, None] }
    }

    /// The goal of the walks of a launch.
    pub fn target(&mut self, launch: &Launch) -> WalkTarget {
        let [all, remaining] = &mut self.filters;
        let remaining = launch.remaining.as_ref().map(|wanted| Remaining {
            filter: filter_for(self.kernel, &wanted.patterns, remaining),
            is_wanted: wanted.is_wanted,
            after: EARLY_STOP_HITS,
        });
        WalkTarget { filter: filter_for(self.kernel, &launch.patterns, all), most_hits: MOST_HITS, remaining }
    }

    /// Walks `rounds` rounds from each start point, as many as there are threads. Returns the result
    /// and the duration of each walk; `None` if it panicked.
    pub fn walk(
        &mut self,
        starts: &[StartPoint],
        rounds: u64,
        target: &WalkTarget,
    ) -> Vec<Option<(WalkResult, Duration)>> {
        thread::scope(|scope| {
            let walks = self.walkers.iter_mut().zip(starts).enumerate().map(|(number, (walker, start))| {
                let walk = move || {
                    lower_priority();
                    let began = Instant::now();
                    (walker(start, rounds, target), began.elapsed())
                };
                Builder::new().name(format!("search {number}")).spawn_scoped(scope, walk)
            });
            let walks: Vec<_> = walks.collect();
            walks.into_iter().map(|walk| walk.ok()?.join().ok()).collect()
        })
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
