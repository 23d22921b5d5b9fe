//! Tests of jobs with patterns that the first 32 bits restrict too little, beside other jobs.

use super::planned;
use crate::job::{Asker, JobId, JobSpec};
use crate::pattern::Rate;
use crate::scheduler::plan::profile::{DeviceRates, KeyPart, WHOLE_KEYS_COST};
use crate::scheduler::run::pool::{Pool, PoolDevice};
use crate::scheduler::{Lane, Pass};
use crate::search::LaunchReport;
use std::collections::BTreeMap;
use std::sync::Arc;

/// Candidates of a launch that filters by top words.
const CANDIDATES: f64 = 1e8;

/// A job with patterns of any kind.
fn spec(texts: &[&str], asker: Option<Asker>) -> JobSpec {
    let patterns = texts.iter().map(|text| text.parse().unwrap()).collect();
    JobSpec { patterns, ..JobSpec::for_tests(&["q"], asker) }
}

/// Runs `count` launches. Returns their passes, each with its share of the time.
fn launches(pool: &Pool, held: &mut PoolDevice, (count, cost): (usize, f64)) -> BTreeMap<Vec<i64>, (f64, Arc<Pass>)> {
    let mut had: BTreeMap<Vec<i64>, (f64, Arc<Pass>)> = BTreeMap::new();
    for _ in 0..count {
        let planned = planned(pool, held, Some(Rate(1e9)));
        let pass = Arc::clone(&planned.pass);
        // All launches take the same time.
        let busy = std::time::Duration::from_millis(100);
        let candidates = if pass.compared() == KeyPart::Top32 { CANDIDATES } else { CANDIDATES / cost } as u64;
        held.settle(&planned, &LaunchReport { candidates, busy, ..LaunchReport::default() }, 1);
        let mut jobs: Vec<i64> = pass.jobs().into_iter().map(|job| job.0).collect();
        jobs.sort_unstable();
        had.entry(jobs).or_insert((0.0, pass)).0 += 1.0 / count as f64;
    }
    had
}

#[test]
fn the_two_kinds_take_turns_and_no_launch_has_both() {
    let pool = Pool::default();
    pool.insert(JobId(1), spec(&["m0ctane", "q0rtane"], None));
    pool.insert(JobId(2), spec(&["*cafe7x"], None));
    pool.insert(JobId(3), spec(&["=9*", "m0ctan*cafe"], None));
    let mut held = pool.add_device(Lane::All);
    held.set_device(1, false);
    launches(&pool, &mut held, (4, 6.0));
    let had = launches(&pool, &mut held, (1000, 6.0));
    let parts: Vec<_> = had.iter().map(|(jobs, (part, pass))| (jobs.as_slice(), pass.compared(), *part)).collect();
    let [(one, KeyPart::Top32, first), (other, KeyPart::Whole, second)] = parts[..] else { panic!("{parts:?}") };
    assert_eq!((one, other), (&[1, 1, 3][..], &[2, 3][..]));
    assert!((first - 0.5).abs() < 0.01 && (second - 0.5).abs() < 0.01, "{parts:?}");
    // The stretch is that of the fast kernel, whatever turns come between.
    assert!(
        (held.plan.candidates_per_start().unwrap().log2() - CANDIDATES.log2()).abs() <= 1.0,
        "{:?}",
        held.plan.candidates_per_start()
    );
    pool.remove(JobId(1));
    pool.remove(JobId(3));
    let had = launches(&pool, &mut held, (10, 6.0));
    assert_eq!(had.keys().collect::<Vec<_>>(), [&[2]], "alone it has the whole device");
}

#[test]
fn a_rate_is_estimated_until_it_is_measured() {
    use crate::scheduler::run::health::Record;
    use crate::search::DeviceId;
    let record = Record::new(&super::device(DeviceId::Cpu));
    let second = std::time::Duration::from_secs(1);
    assert_eq!(record.rate_of(KeyPart::Whole), None);
    record.add_measurement(KeyPart::Top32, 4000, second);
    assert_eq!(record.rate_of(KeyPart::Whole), Some(Rate(4000.0 / WHOLE_KEYS_COST)));
    record.add_measurement(KeyPart::Whole, 900, second);
    assert_eq!(record.rate_of(KeyPart::Whole), Some(Rate(900.0)));
    assert_eq!(record.rate(), Some(Rate(4000.0)), "one kind does not change the rate of the other");
    assert_eq!(record.rates().cost(KeyPart::Whole), 4000.0 / 900.0);
    assert_eq!(record.rates().cost(KeyPart::Top32), 1.0);
}

/// Canaries have a few hits a second at the rate of their own launches.
#[test]
fn the_canary_of_each_kind_follows_its_measured_rate() {
    let pool = Pool::default();
    pool.insert(JobId(1), spec(&["m0ctane"], None));
    pool.insert(JobId(2), spec(&["*cafe7x"], None));
    pool.insert(JobId(3), spec(&["*al7cet*"], Some(Asker([1; 32]))));
    let mut held = pool.add_device(Lane::All);
    held.set_device(1, false);
    let rates = DeviceRates { top_words: Some(Rate(150e9)), whole_keys: Some(Rate(150e6)) };
    for _ in 0..8 {
        let planned = planned(&pool, &mut held, rates);
        let rate = rates.of(planned.pass.compared()).unwrap();
        let a_second = rate.0 * planned.pass.canary_chance;
        assert!((5.0..321.0).contains(&a_second), "{a_second} of {:?}", planned.pass.patterns);
        held.settle(&planned, &LaunchReport { candidates: 1000, ..LaunchReport::default() }, 1);
    }
}
