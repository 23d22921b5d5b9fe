//! Tests of the selection: the jobs in a pass when there are more jobs than its start points can
//! serve.

use super::{pass, seeded};
use crate::job::{JobId, JobSpec, Priority};
use crate::key::{Offset, Rotation, Tweak};
use crate::pattern::{ALPHABET, Pattern, PatternId};
use crate::scheduler::plan::device_plan::PlannedLaunch;
use crate::scheduler::plan::profile::KeyPart;
use crate::scheduler::run::pool::{Pool, PoolDevice};
use crate::scheduler::{Lane, Pass};
use crate::search::{ClaimedHit, LaunchReport};
use crate::vault::StartId;
use rand::Rng;
use rand::rngs::StdRng;
use secp256k1::Scalar;
use std::collections::BTreeSet;
use std::sync::Arc;

/// Candidates per start point. A pattern of four characters has one expected hit.
const STRETCH: u64 = 1 << 20;
const STARTS: usize = 2;

struct Device {
    pool: Pool,
    held: PoolDevice,
    /// Start points so far.
    starts: u64,
}

impl Device {
    /// A device after its first launch, so that its stretch is known.
    fn new() -> Device {
        Device::with_early_stop(false)
    }

    fn with_early_stop(early_stop: bool) -> Device {
        let pool = Pool::default();
        let mut held = pool.add_device(Lane::All);
        held.set_device(STARTS, early_stop);
        held.settle(&warm_up(), &report(0), STARTS);
        Device { pool, held, starts: 0 }
    }

    /// Records a launch of this pass.
    fn settle(&mut self, pass: &Arc<Pass>, report: &LaunchReport) {
        self.held.settle(&PlannedLaunch::warm_up(Arc::clone(pass)), report, STARTS);
    }

    fn open(&self, job: i64, texts: &[&str]) {
        self.pool.insert(JobId(job), JobSpec::for_tests(texts, None));
    }

    fn pass(&mut self) -> Arc<Pass> {
        pass(&self.pool, &mut self.held)
    }

    /// The jobs of the next pass, each once per pattern.
    fn jobs(&mut self) -> Vec<i64> {
        jobs(&self.pass())
    }
}

fn warm_up() -> PlannedLaunch {
    PlannedLaunch::warm_up(Arc::new(Pass::canary_alone(KeyPart::Top32, None)))
}

/// The jobs of a pass, each once per pattern.
fn jobs(pass: &Pass) -> Vec<i64> {
    pass.jobs().into_iter().map(|job| job.0).collect()
}

fn report(hits: usize) -> LaunchReport {
    let tweak = Tweak { offset: Offset::from_scalar(Scalar::ZERO), rotation: Rotation::ALL[0] };
    let hits = vec![ClaimedHit { start: 0, tweak }; hits];
    LaunchReport { candidates: STRETCH * STARTS as u64, hits, ..LaunchReport::default() }
}

#[test]
fn a_pass_has_every_rare_pattern_and_the_oldest_plentiful_ones() {
    let mut device = Device::new();
    for job in 1..=1000 {
        device.open(job, &["qqqq"]);
    }
    device.open(500, &["pppp", "pppppp", "zzzzzzzz"]);
    device.open(2000, &["rrrrrr"]);
    device.open(1001, &["yyyyy", "xxxx"]);
    // Beside a rare pattern, eight hits per start point are worth verifying.
    assert_eq!(device.jobs(), [&[500, 500, 2000][..], &[1, 2, 3, 4, 5, 6, 7, 8]].concat());
    for job in 1..=1000 {
        device.pool.remove(JobId(job));
    }
    assert_eq!(device.jobs(), [2000, 1001, 1001], "a job is taken with all its plentiful patterns");
}

/// The more patterns there are, the sooner the early stop comes. The rest of the time is spent on
/// rare patterns.
#[test]
fn a_device_with_an_early_stop_takes_enough_to_find_some_soon() {
    let mut device = Device::with_early_stop(true);
    for job in 1..=1000 {
        device.open(job, &["qqqq"]);
    }
    let remaining = |device: &mut Device| device.pass().remaining().map(|left| (left.patterns.len(), left.is_wanted));
    assert_eq!(device.jobs(), (1..=100).collect::<Vec<_>>(), "a hundred hits per start point");
    assert_eq!(remaining(&mut device), Some((1, false)), "one hit is enough, and there are no rare patterns");
    device.open(2000, &["zzzzzzzz"]);
    let pass = device.pass();
    assert_eq!(jobs(&pass), [&[2000][..], &(1..=100).collect::<Vec<_>>()].concat());
    assert_eq!(remaining(&mut device), Some((2, true)), "the canary and the rare one");
    // Half of the jobs are enough to keep the pass, and their hits are not rationed.
    for job in 1..=50 {
        device.settle(&pass, &report(STARTS * 20));
        device.pool.remove(JobId(job));
        assert!(Arc::ptr_eq(&pass, &device.pass()));
    }
    device.pool.remove(JobId(51));
    assert_eq!(device.jobs().len(), 101);
    for job in 1..=1000 {
        device.pool.remove(JobId(job));
    }
    assert_eq!(remaining(&mut device), None, "rare ones alone are searched for to the end");
}

/// The measured rate counts candidates that were tested against all patterns.
#[test]
fn a_measurement_tests_every_candidate_against_every_pattern() {
    let pool = Pool::exhaustive();
    let mut held = pool.add_device(Lane::All);
    held.set_device(STARTS, true);
    held.settle(&warm_up(), &report(0), STARTS);
    (1..=1000).for_each(|job| pool.insert(JobId(job), JobSpec::for_tests(&["qqqq"], None)));
    let pass = pass(&pool, &mut held);
    assert_eq!(jobs(&pass).len(), 1000);
    assert!(pass.remaining().is_none());
}

/// A launch that ended early does not tell how long the stretch is.
#[test]
fn a_launch_that_ended_early_does_not_change_the_stretch() {
    let mut device = Device::with_early_stop(true);
    let pass = Arc::new(Pass::canary_alone(KeyPart::Top32, None));
    let short = LaunchReport { candidates: 1000, ..LaunchReport::default() };
    let known = device.held.plan.candidates_per_start();
    device.settle(&pass, &LaunchReport { is_cut_short: true, ..short.clone() });
    assert_eq!(device.held.plan.candidates_per_start(), known);
    device.settle(&pass, &short);
    assert_ne!(device.held.plan.candidates_per_start(), known);
}

#[test]
fn a_job_outside_the_pass_does_not_change_it() {
    let mut device = Device::new();
    for job in 1..=100 {
        device.open(job, &["qqqq"]);
    }
    // Two start points use up at most four jobs before the pass is remade. The other five jobs
    // still have five hits per start point.
    assert_eq!(device.jobs(), [1, 2, 3, 4, 5, 6, 7, 8, 9]);
    let pass = device.pass();
    let is_kept = |device: &mut Device| Arc::ptr_eq(&pass, &device.pass());
    device.open(200, &["ppp"]);
    device.pool.remove(JobId(50));
    assert!(is_kept(&mut device));
    // Seven of nine are enough for the two start points in flight, six are not.
    device.pool.remove(JobId(1));
    device.pool.remove(JobId(2));
    assert!(is_kept(&mut device));
    device.pool.remove(JobId(3));
    assert_eq!(device.jobs(), [4, 5, 6, 7, 8, 9, 10, 11, 12]);
    device.open(300, &["zzzzzzzz"]);
    assert_eq!(device.jobs()[0], 300, "a rare pattern is searched from the next launch on");
}

/// Each job has twenty hits per start point, more than is worth verifying beside a rare job.
#[test]
fn the_hits_of_easy_jobs_are_rationed_beside_a_rare_one() {
    let mut device = Device::new();
    for job in 1..=10 {
        device.open(job, &["qqqq", "pppp", "zzzz", "rrrr", "yyyy"].repeat(4));
    }
    let mut launches = |with_hits: usize| {
        let mut easy = 0;
        for _ in 0..1000 {
            let pass = device.pass();
            let has_easy = jobs(&pass).contains(&1);
            easy += usize::from(has_easy);
            device.settle(&pass, &report(if has_easy { STARTS * with_hits } else { 0 }));
        }
        device.open(11, &["zzzzzzzz"]);
        easy
    };
    assert_eq!(launches(20), 1000, "there are no rare patterns");
    let easy = launches(20);
    assert!((390..=410).contains(&easy), "eight of twenty: {easy}");
    assert!(launches(8) > 990, "eight hits are worth verifying");
    let seldom = launches(1600);
    assert!((4..=7).contains(&seldom), "easy jobs still have a turn: {seldom}");
}

/// Serves one launch as the verifier does: each start point serves the first of its finds in the
/// order of precedence.
fn serve(device: &mut Device, rng: &mut StdRng) -> Vec<i64> {
    let pass = device.pass();
    let (mut done, mut expected) = (Vec::new(), 0.0);
    let hits: Vec<f64> =
        pass.patterns.iter().map(|(_, pattern)| STRETCH as f64 / pattern.difficulty().candidates()).collect();
    for _ in 0..STARTS {
        device.starts += 1;
        let found = |id: &usize| rng.random_bool(-(-hits[*id]).exp_m1());
        let mut found: Vec<PatternId> = (1..hits.len()).filter(found).map(PatternId).collect();
        expected += hits.iter().skip(1).sum::<f64>();
        found.sort_by_key(|&id| pass.precedence(id, StartId(device.starts)));
        let is_open = |id: &PatternId| pass.owner(*id).is_some_and(|job| device.pool.contains(job));
        let hardest = found.iter().filter(|id| is_open(id)).map(|&id| hits[id.0]).fold(f64::INFINITY, f64::min);
        let Some(first) = found.into_iter().find(is_open) else { continue };
        // Patterns with fewer than 0.02 hits per start point (one in fifty) are rare. A hit of one
        // must win.
        assert!(hardest >= 0.02 || hits[first.0] == hardest, "a rare hit was lost to an easier one");
        let job = pass.owner(first).expect("the canary has no start");
        device.pool.remove(job);
        done.push(job.0);
    }
    // With very many easy jobs, a device stops before it has all hits.
    device.settle(&pass, &report(expected.min(2048.0) as usize));
    done
}

fn random_request(rng: &mut StdRng, lengths: std::ops::RangeInclusive<usize>) -> String {
    let length = rng.random_range(lengths);
    (0..length).map(|_| char::from(ALPHABET[rng.random_range(0..32)])).collect()
}

#[test]
fn nobody_starves_and_plentiful_jobs_are_served_by_age() {
    let mut rng = seeded();
    let mut device = Device::new();
    let mut ages = BTreeSet::new();
    for job in 1..=400 {
        let requests: Vec<String> = (0..rng.random_range(1..4))
            .map(|_| random_request(&mut rng, if job % 10 == 0 { 5..=6 } else { 2..=5 }))
            .collect();
        device.pool.insert(
            JobId(job),
            JobSpec::local(requests.iter().map(|request| Pattern::parse(request).unwrap()).collect()),
        );
        if requests.iter().any(|request| request.len() <= 4) {
            ages.insert(job);
        }
    }
    let (mut launches, mut overtaken) = (0, 0);
    while !device.pool.is_empty() {
        for job in serve(&mut device, &mut rng) {
            // Jobs with patterns found at nearly every start point are served almost in order of
            // age.
            if ages.remove(&job) {
                overtaken = overtaken.max(ages.range(..job).count());
            }
        }
        launches += 1;
        assert!(launches < 200_000, "{} are left", device.pool.len());
    }
    println!("400 jobs in {launches} launches of {STARTS} starts; at most {overtaken} older ones were overtaken");
    assert!(overtaken <= 40, "{overtaken}");
}

/// A stream of friends' jobs, each with hits at every start point, leaves one in sixteen to the
/// others, also to those without a target.
#[test]
fn a_stream_of_jobs_that_come_first_leaves_the_others_a_share() {
    let mut rng = seeded();
    for early_stop in [false, true] {
        let mut device = Device::with_early_stop(early_stop);
        device.pool.insert(JobId(1), JobSpec::local_best("best zeros 10m".parse().unwrap()));
        device.open(2, &["qqq"]);
        let (mut newest, mut waited) = (2, Vec::new());
        while device.pool.contains(JobId(1)) || device.pool.contains(JobId(2)) {
            while device.pool.len() < 400 {
                newest += 1;
                let spec = JobSpec::for_tests(&[&random_request(&mut rng, 3..=3)], None);
                device.pool.insert(JobId(newest), JobSpec { priority: Priority::Friend, ..spec });
            }
            let done = serve(&mut device, &mut rng);
            waited.extend(done.into_iter().filter(|job| *job <= 2).map(|_| device.starts));
            assert!(device.starts < 16 * 40, "a job waits for ever");
        }
        assert!(waited[0] >= 15, "those before it come first: {waited:?}");
    }
}

/// Each job has a hit at one start point in a thousand. Together they have ten hits per start
/// point, most of which would be dropped.
#[test]
fn ten_thousand_jobs_rare_one_by_one_are_plentiful_together() {
    let mut device = Device::new();
    for job in 1..=10_000 {
        device.open(job, &["qqqqqq"]);
    }
    device.open(20_000, &["zzzzzzzz"]);
    let jobs = device.jobs();
    assert_eq!((jobs[0], jobs[1], jobs.len()), (20_000, 1, 1 + 4 + 5 * 1024));
    for job in 1001..=10_000 {
        device.pool.remove(JobId(job));
    }
    assert_eq!(device.jobs().len(), 1001, "a thousand jobs fit into the pass");
}
