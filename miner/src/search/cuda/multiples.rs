//! The multiples of G from which the tables of every GPU are computed.

use super::abi::Point;
use super::geometry::{MOST_THREADS_PER_START, STRIDE, TABLE, multiple_of_generator};
use crate::key::StartPoint;
use std::sync::OnceLock;

/// Multiples of G, computed by libsecp256k1.
pub struct Multiples {
    /// The points i·G for i from 1 to [`TABLE`].
    pub table: Vec<Point>,
    /// The multiple of G at which each thread of a start point begins, relative to the start point.
    pub stretches: Vec<Point>,
}

/// The multiples of this process. The first call takes some tens of milliseconds.
pub fn multiples() -> &'static Multiples {
    static MULTIPLES: OnceLock<Multiples> = OnceLock::new();
    MULTIPLES.get_or_init(|| Multiples {
        table: multiples_of(1, TABLE),
        stretches: multiples_of(STRIDE, MOST_THREADS_PER_START),
    })
}

/// The first `count` multiples of `k·G`, by additions, which take a fifth of the time.
fn multiples_of(k: u64, count: u32) -> Vec<Point> {
    let step = multiple_of_generator(k);
    let next = |sum: &StartPoint| sum.public_key().combine(step.public_key()).ok().map(StartPoint::new);
    std::iter::successors(Some(step), next).take(count as usize).map(|point| Point::of(&point)).collect()
}

#[cfg(test)]
mod tests {
    use super::super::geometry::{multiple, stretch_start};
    use super::*;

    #[test]
    fn multiples_by_additions_are_those_by_multiplication() {
        let Multiples { table, stretches } = multiples();
        let words = |point: Point| (point.x, point.y);
        for at in [0, 1, 2, 1000, TABLE - 1] {
            assert_eq!(words(table[at as usize]), words(multiple(u64::from(at) + 1)), "entry {at}");
        }
        for thread in [0, 1, 2, 1000, MOST_THREADS_PER_START - 1] {
            assert_eq!(words(stretches[thread as usize]), words(multiple(stretch_start(thread))), "thread {thread}");
        }
        assert_eq!([table.len(), stretches.len()], [TABLE as usize, MOST_THREADS_PER_START as usize]);
    }
}
