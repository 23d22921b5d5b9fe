//! Promise S10 (`docs/developers/promises`) at the level of the scheduler: at start points chosen
//! by an attacker, a device has as many hits as at others and is not taken out of use.

use super::seeded;
use crate::job::{JobId, JobSpec};
use crate::key::{Rotation, StartPoint};
use crate::pattern::{Pattern, Rate};
use crate::scheduler::plan::device_plan::PlannedLaunch;
use crate::scheduler::run::health::Record;
use crate::scheduler::run::pool::{NextStep, Pool};
use crate::scheduler::{CollectedLaunch, Health, Lane, verify};
use crate::search::cpu::{CpuSearcher, KernelChoice};
use crate::search::{Launch, SearchError, Searcher};
use crate::vault::Vault;
use rand::Rng;
use rand::rngs::StdRng;
use secp256k1::{PublicKey, SECP256K1, SecretKey};
use std::sync::Arc;
use std::time::Duration;

const LAUNCHES: usize = 15;
/// Intended duration of a launch.
const LAUNCH: Duration = Duration::from_millis(10);

/// A start point `±λ^k·i·G` with a small i. It is close to points of the searcher's table, or to
/// the table's end.
fn chosen(rng: &mut StdRng) -> StartPoint {
    let mut bytes = [0; 32];
    let i = [rng.random_range(1..=512u64), rng.random_range(500..1100), 1025 * rng.random_range(1..64)];
    bytes[24..].copy_from_slice(&i[rng.random_range(0..3)].to_be_bytes());
    let secret = SecretKey::from_slice(&bytes).unwrap();
    let secret = secret.mul_tweak(&Rotation::ALL[rng.random_range(0..3)].scalar()).unwrap();
    let secret = if rng.random() { secret.negate() } else { secret };
    StartPoint::new(PublicKey::from_secret_key(SECP256K1, &secret))
}

#[test]
fn a_device_at_chosen_start_points_is_not_blamed() {
    let mut rng = seeded();
    for kernel in [KernelChoice::Portable, KernelChoice::Avx2, KernelChoice::Ifma] {
        let mut searcher = match CpuSearcher::open(Some(1), kernel) {
            Err(SearchError::UnsupportedCpuKernel { asked }) => {
                use std::io::Write;
                let _ = writeln!(std::io::stderr(), "SKIPPED: this processor has no {asked}");
                continue;
            }
            opened => opened.unwrap().with_launches_of(LAUNCH),
        };
        let (pool, vault, record) = (Pool::default(), Vault::without_identity().unwrap(), Record::new(searcher.info()));
        pool.insert(JobId(1), JobSpec::local(vec![Pattern::parse("qqq").unwrap()]));
        // A device this slow gets a canary of one character, so it is judged very often.
        let NextStep::Search(PlannedLaunch { pass, .. }) =
            pool.next(&mut pool.add_device(Lane::All), Some(Rate(10_000.0)))
        else {
            panic!("a job is open")
        };
        let (mut right, mut wrong, mut expected, mut canary) = (0, 0, 0.0, 0);
        for _ in 0..LAUNCHES {
            let point = chosen(&mut rng);
            let patterns = Arc::clone(&pass.patterns);
            searcher.submit(Launch { starts: vec![point], patterns, remaining: None }).unwrap();
            let report = searcher.collect().unwrap();
            let in_this = report.candidates as f64 * pass.canary_chance;
            let starts = vec![(vault.open_start().unwrap().0, point)];
            let verified = verify(&CollectedLaunch { device: 0, pass: Arc::clone(&pass), starts, report });
            record.judge(verified.hits_wrong, in_this, verified.canary_found);
            expected += in_this;
            (right, wrong) = (right + verified.hits_right, wrong + verified.hits_wrong);
            canary += verified.canary_found;
        }
        println!("{}: {right} right, canary {canary} of {expected:.0}", searcher.info().kernel);
        assert_eq!((wrong, record.view().health), (0, Health::Working));
        // These start points are neighbours and share candidates, so the count varies more than
        // usual.
        assert!((canary as f64 / expected - 1.0).abs() < 0.2, "{canary} of {expected}");
    }
}
