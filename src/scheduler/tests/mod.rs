//! Tests from a device's claim to a key, with devices that lie and with ten thousand jobs.

mod best;
mod chosen_points;
mod fairness;
mod forged;
mod selection;
mod starving;
mod sybils;
mod whole_keys;

use rand::SeedableRng;
use rand::rngs::StdRng;

/// A generator with a printed seed, which `NPUBBOT_TEST_SEED` sets.
pub(in crate::scheduler) fn seeded() -> StdRng {
    let seed = std::env::var("NPUBBOT_TEST_SEED").ok().and_then(|text| text.parse().ok()).unwrap_or_else(rand::random);
    println!("NPUBBOT_TEST_SEED={seed}");
    StdRng::seed_from_u64(seed)
}
