//! The measured number of multiply instructions per second.
//!
//! The contract of every `unsafe` is that of the module `ifma`.

use super::vector::{all, low};
use std::hint::black_box;
use std::time::Instant;

/// Number of independent chains: more than the latency of an instruction in cycles, times the
/// instructions started per cycle.
const CHAINS: usize = 12;

/// Measures the `vpmadd52` instructions per second, with `times` of them in each chain.
#[target_feature(
    enable = "avx512f,avx512dq,avx512bw,avx512ifma,avx512vbmi,avx512vbmi2,avx512vpopcntdq,gfni,popcnt,bmi1,bmi2,lzcnt"
)]
pub fn multiplies_a_second(times: u64) -> f64 {
    let mut sums = [all(1); CHAINS];
    let (a, b) = (black_box(all(3)), black_box(all(5)));
    let began = Instant::now();
    for _ in 0..times {
        for sum in &mut sums {
            *sum = low(*sum, a, b);
        }
    }
    black_box(sums);
    (CHAINS as u64 * times) as f64 / began.elapsed().as_secs_f64()
}
