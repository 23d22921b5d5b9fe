//! Tests from a device's claim to a key, with devices that lie and with ten thousand jobs.

mod best;
mod canaries;
mod chosen_points;
mod fairness;
mod forged;
mod selection;
mod starving;
mod sybils;
mod whole_keys;

use rand::rngs::StdRng;
use rand::{Rng, SeedableRng};

/// A generator with a printed seed, which `NPUBBOT_TEST_SEED` sets.
pub fn seeded() -> StdRng {
    let seed = std::env::var("NPUBBOT_TEST_SEED").ok().and_then(|text| text.parse().ok()).unwrap_or_else(rand::random);
    println!("NPUBBOT_TEST_SEED={seed}");
    StdRng::seed_from_u64(seed)
}

/// A Poisson number (Knuth's way, for a small mean).
pub fn poisson(mean: f64, random: &mut StdRng) -> u64 {
    let (least, mut product, mut count) = ((-mean).exp(), random.random::<f64>(), 0);
    while product > least {
        product *= random.random::<f64>();
        count += 1;
    }
    count
}
