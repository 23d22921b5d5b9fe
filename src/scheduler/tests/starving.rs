//! Promise S9 (`docs/developers/promises`): ten thousand easy jobs cost a rare one neither
//! candidates nor hits.

use super::{pass, seeded, verify_all};
use crate::job::{JobId, JobSpec};
use crate::key::{Offset, Rotation, Tweak, VerifiedHit};
use crate::pattern::{ALPHABET, Pattern};
use crate::scheduler::run::pool::Pool;
use crate::scheduler::run::verify::FindOutcome;
use crate::scheduler::{CollectedLaunch, Find, Lane};
use crate::search::{ClaimedHit, LaunchReport};
use crate::vault::Vault;
use rand::Rng;
use std::collections::HashSet;
use std::sync::{Arc, mpsc};

/// Open easy jobs at the start.
const EASY_JOBS: usize = 10_000;
/// Start points per launch, and candidates per start point.
const STARTS: usize = 128;
const CANDIDATES: usize = 4;
/// The pattern of the rare job: much harder than the easy ones. A launch finds it with probability
/// 0.63, so about fifty times in this test, with a standard deviation of 4.3.
const RARE: &str = "q[qp]";

/// Verifies each launch for all jobs, as `Scheduler` does. It also counts how many candidates a
/// rare job would need alone. Rare jobs follow one another while the easy ones are served.
#[test]
fn ten_thousand_easy_jobs_cost_a_rare_one_no_candidate_and_no_hit() {
    let mut rng = seeded();
    let (pool, vault) = (Arc::new(Pool::default()), Vault::without_identity().unwrap());
    for number in 1..=EASY_JOBS {
        let easy = char::from(ALPHABET[rng.random_range(0..32)]).to_string();
        pool.insert(JobId(number as i64), JobSpec::local(vec![Pattern::parse(&easy).unwrap()]));
    }
    let rare: Pattern = RARE.parse().unwrap();
    let mut rare_job = JobId(EASY_JOBS as i64 + 1);
    pool.insert(rare_job, JobSpec::local(vec![rare.clone()]));
    let mut held = pool.add_device(Lane::All);
    let (mut alone, mut beside_easy_jobs, mut finds, mut launches) = (0, 0, 0, 0);
    let mut spent = HashSet::new();
    while pool.len() > 1 {
        let pass = pass(&pool, &mut held);
        let starts: Vec<_> = (0..STARTS).map(|_| vault.open_start().unwrap()).collect();
        let mut hits = Vec::new();
        let mut has_rare = false;
        for (start, &(_, point)) in starts.iter().enumerate() {
            for _ in 0..CANDIDATES {
                let offset = Offset::of_point(0, rng.random_range(1..1 << 40), Rotation::ALL[0]);
                let tweak = Tweak { offset, rotation: Rotation::ALL[rng.random_range(0..3)] };
                let npub = VerifiedHit::recompute(point, tweak).unwrap().npub();
                has_rare |= rare.matches(&npub);
                if !pass.patterns.matches(&npub).is_empty() {
                    hits.push(ClaimedHit { start, tweak });
                }
            }
        }
        let candidates = (STARTS * CANDIDATES) as u64;
        let report = LaunchReport { candidates, hits, ..LaunchReport::default() };
        let found = settle(&pool, &vault, CollectedLaunch { pass, starts, report });
        assert!(found.iter().all(|find| spent.insert(find.start)), "a start point gave two keys");
        launches += 1;
        // If the rare job were alone, the launch with its first match would end it.
        alone += if has_rare { 0 } else { candidates };
        let is_found = found.iter().any(|find| find.job == rare_job);
        beside_easy_jobs += if is_found { 0 } else { candidates };
        finds += u32::from(is_found);
        assert_eq!(has_rare, is_found, "a rare hit was lost to an easier one");
        if is_found {
            rare_job.0 += 1;
            pool.insert(rare_job, JobSpec::local(vec![rare.clone()]));
        }
    }
    let growth = (beside_easy_jobs - alone) as f64 / alone as f64;
    println!(
        "{EASY_JOBS} easy jobs in {launches} launches: {finds} rare ones, {:.1} % more candidates",
        100.0 * growth
    );
    // Twenty is seven standard deviations below the mean.
    assert!(finds > 20 && growth < 0.02, "{finds}, {growth}");
}

/// Verifies one launch, and ends every job that is found.
fn settle(pool: &Arc<Pool>, vault: &Vault, launch: CollectedLaunch) -> Vec<Find> {
    let (found, finds) = mpsc::channel();
    verify_all(pool, vault, [launch], move |find: Find| {
        found.send(find).unwrap();
        FindOutcome::Done
    });
    finds.iter().collect()
}
