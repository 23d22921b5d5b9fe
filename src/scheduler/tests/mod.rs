//! The way from a device to a key, tried with devices that lie and with a crowd of jobs.

mod chosen_points;
mod crowd;
mod fairness;
mod forged;
mod starving;

use rand::SeedableRng;
use rand::rngs::StdRng;

fn seeded() -> StdRng {
    let seed = std::env::var("NPUBBOT_TEST_SEED").ok().and_then(|text| text.parse().ok()).unwrap_or_else(rand::random);
    println!("NPUBBOT_TEST_SEED={seed}");
    StdRng::seed_from_u64(seed)
}
