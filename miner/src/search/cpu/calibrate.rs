//! The choice of how top words are looked up, by measuring.

use super::dispatch::Kernel;
use super::filter::Lookup;
use super::table::multiple_of_generator;
use super::walk::WalkTarget;
use crate::key::StartPoint;
use crate::pattern::{ALPHABET, Pattern, PatternSet};
use std::sync::Arc;
use std::time::{Duration, Instant};

/// Patterns that are searched for meanwhile. With ten thousand the same lookup was the faster one.
const PATTERNS: u64 = 1_000;
/// Measurements of each lookup, in turn; the shortest counts, since other programs may run meanwhile.
const TURNS: usize = 8;
/// Rounds of a measurement: some 3 ms.
const ROUNDS: u64 = 8;

/// The fastest lookup of a kernel, `None` if it has but one. Takes about a tenth of a second.
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

/// Six characters for a number, spread over all prefixes.
fn prefix(number: u64) -> Option<Pattern> {
    let bits = number.wrapping_mul(0x9e37_79b9_7f4a_7c15);
    let text: String = (0..6).map(|at| ALPHABET[(bits >> (59 - 5 * at)) as usize % 32] as char).collect();
    text.parse().ok()
}
