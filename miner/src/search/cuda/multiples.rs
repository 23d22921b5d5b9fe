//! The multiples of G from which the tables of every GPU are computed.

use super::abi::Point;
use super::geometry::{TABLE, THREADS_PER_START, multiple, stretch_start};
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
        table: (1..=u64::from(TABLE)).map(multiple).collect(),
        stretches: (0..THREADS_PER_START).map(|thread| multiple(stretch_start(thread))).collect(),
    })
}
