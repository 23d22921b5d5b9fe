//! Measures which method of looking up top words is the fastest.

use super::dispatch::Kernel;
use super::filter::Lookup;
use super::table::multiple_of_generator;
use super::walk::WalkTarget;
use crate::key::StartPoint;
use crate::pattern::{ALPHABET, Pattern, PatternSet};
use std::sync::Arc;
use std::time::{Duration, Instant};

/// Number of patterns in a measurement. With ten thousand patterns the same lookup was the faster
/// one.
const PATTERNS: u64 = 1_000;
/// Number of measurements of each lookup; the lookups alternate. The shortest time counts, because
/// other programs may run at the same time.
const TURNS: usize = 8;
/// Rounds of a measurement. They take some 3 ms.
const ROUNDS: u64 = 8;

/// Measures the fastest lookup of a kernel, in about a tenth of a second. `None` if the kernel has
/// only one lookup.
pub fn fastest_lookup(kernel: Kernel) -> Option<Lookup> {
    if !kernel.has_lookups() {
        return None;
    }
    let patterns = PatternSet::new((0..PATTERNS).filter_map(prefix).collect());
    let targets = Lookup::ALL.map(|lookup| WalkTarget {
        filter: Arc::new(kernel.filter(&patterns).with_lookup(lookup)),
        most_hits: usize::MAX,
        remaining: None,
    });
    let mut walker = kernel.walker();
    let mut shortest = [Duration::MAX; Lookup::ALL.len()];
    for turn in 0..TURNS as u64 {
        let start = StartPoint::new(multiple_of_generator(1 << 40 | turn));
        for (shortest, target) in shortest.iter_mut().zip(&targets) {
            let began = Instant::now();
            walker.walk(&start, ROUNDS, target);
            *shortest = (*shortest).min(began.elapsed());
        }
    }
    tracing::debug!(?shortest, lookups = ?Lookup::ALL, "measured the lookups of the CPU");
    Lookup::ALL.into_iter().zip(shortest).min_by_key(|&(_, time)| time).map(|(lookup, _)| lookup)
}

/// A prefix of six characters for a number. Successive numbers are spread over all prefixes.
fn prefix(number: u64) -> Option<Pattern> {
    let bits = number.wrapping_mul(0x9e37_79b9_7f4a_7c15);
    let text: String = (0..6).map(|at| ALPHABET[(bits >> (59 - 5 * at)) as usize % 32] as char).collect();
    text.parse().ok()
}
