//! Which jobs a pass is for when there are more than its start points can serve.

use super::seeded;
use crate::job::{JobId, JobSpec};
use crate::key::{Offset, Rotation, Tweak};
use crate::pattern::{ALPHABET, Pattern, PatternId};
use crate::scheduler::plan::pool::{Next, Pool, Subscription};
use crate::scheduler::{Lane, Owner, Pass};
use crate::search::{ClaimedHit, LaunchReport};
use rand::Rng;
use rand::rngs::StdRng;
use secp256k1::Scalar;
use std::collections::BTreeSet;
use std::sync::Arc;
use std::time::{Duration, Instant};

/// One device that searches each start point over 2^20 candidates: of four characters a start point has one hit.
const STRETCH: u64 = 1 << 20;
const BASES: usize = 2;

struct Device {
    pool: Pool,
    held: Subscription,
}

impl Device {
    /// After a first launch, so that it is known how far it gets.
    fn new() -> Device {
        Device::that_stops_early(false)
    }

    fn that_stops_early(early_stop: bool) -> Device {
        let pool = Pool::default();
        let mut held = pool.subscribe(Lane::All);
        held.note_device(BASES, early_stop);
        held.settle(&Arc::new(Pass::of_canary_alone(None)), 0.0, &report(0), BASES);
        Device { pool, held }
    }

    fn open(&self, job: i64, texts: &[&str]) {
        self.pool.insert(JobId(job), JobSpec::for_tests(texts, None));
    }

    fn pass(&mut self) -> Arc<Pass> {
        match self.pool.next(&mut self.held, None) {
            Next::Search(pass, _) => pass,
            other => panic!("{other:?}"),
        }
    }

    /// The jobs of the next pass, once for each pattern.
    fn jobs(&mut self) -> Vec<i64> {
        jobs(&self.pass())
    }
}

fn jobs(pass: &Pass) -> Vec<i64> {
    let job = |owner: &Owner| match owner {
        Owner::Job(job) => Some(job.0),
        Owner::Canary => None,
    };
    pass.owners().iter().filter_map(job).collect()
}

fn report(hits: usize) -> LaunchReport {
    let tweak = Tweak { offset: Offset::from_scalar(Scalar::ZERO), rotation: Rotation::ALL[0] };
    let hits = vec![ClaimedHit { start: 0, tweak }; hits];
    LaunchReport { candidates: STRETCH * BASES as u64, hits, ..LaunchReport::default() }
}

#[test]
fn a_pass_has_every_rare_pattern_and_of_the_others_the_oldest() {
    let mut device = Device::new();
    for job in 1..=1000 {
        device.open(job, &["qqqq"]);
    }
    device.open(500, &["pppp", "pppppp", "zzzzzzzz"]);
    device.open(2000, &["rrrrrr"]);
    device.open(1001, &["yyyyy", "xxxx"]);
    // Eight hits a start point are worth it beside a rare pattern.
    assert_eq!(device.jobs(), [&[500, 500, 2000][..], &[1, 2, 3, 4, 5, 6, 7, 8]].concat());
    for job in 1..=1000 {
        device.pool.remove(JobId(job));
    }
    assert_eq!(device.jobs(), [2000, 1001, 1001], "a job is taken with all its plentiful patterns");
}

/// The more there are the sooner something is found, and the rest of the start point's time is for the rare patterns.
#[test]
fn a_device_that_leaves_out_takes_enough_to_find_some_soon() {
    let mut device = Device::that_stops_early(true);
    for job in 1..=1000 {
        device.open(job, &["qqqq"]);
    }
    let remaining = |device: &mut Device| device.pass().remaining().map(|left| (left.patterns.len(), left.is_wanted));
    assert_eq!(device.jobs(), (1..=100).collect::<Vec<_>>(), "a hundred hits a start");
    assert_eq!(remaining(&mut device), Some((1, false)), "one is enough, and nobody else is there");
    device.open(2000, &["zzzzzzzz"]);
    let pass = device.pass();
    assert_eq!(jobs(&pass), [&[2000][..], &(1..=100).collect::<Vec<_>>()].concat());
    assert_eq!(remaining(&mut device), Some((2, true)), "the canary and the rare one");
    // Half of them are enough until the pass is made anew, and hits are no reason to leave them out of a launch.
    for job in 1..=50 {
        device.held.settle(&pass, 0.0, &report(BASES * 20), BASES);
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

/// A rate with so many patterns is one of candidates tested against all of them.
#[test]
fn a_measurement_tests_every_candidate_against_everything() {
    let pool = Pool::exhaustive();
    let mut held = pool.subscribe(Lane::All);
    held.note_device(BASES, true);
    held.settle(&Arc::new(Pass::of_canary_alone(None)), 0.0, &report(0), BASES);
    (1..=1000).for_each(|job| pool.insert(JobId(job), JobSpec::for_tests(&["qqqq"], None)));
    let Next::Search(pass, _) = pool.next(&mut held, None) else { panic!("jobs are open") };
    assert_eq!(jobs(&pass).len(), 1000);
    assert!(pass.remaining().is_none());
}

/// What ends early says nothing of how far a device gets.
#[test]
fn a_launch_that_was_cut_short_changes_no_stretch() {
    let mut device = Device::that_stops_early(true);
    let pass = Arc::new(Pass::of_canary_alone(None));
    let short = LaunchReport { candidates: 1000, ..LaunchReport::default() };
    let known = device.held.stretch();
    device.held.settle(&pass, 0.0, &LaunchReport { is_cut_short: true, ..short.clone() }, BASES);
    assert_eq!(device.held.stretch(), known);
    device.held.settle(&pass, 0.0, &short, BASES);
    assert_ne!(device.held.stretch(), known);
}

#[test]
fn before_a_device_is_known_everything_is_searched() {
    let pool = Pool::default();
    for job in 1..=1000 {
        pool.insert(JobId(job), JobSpec::for_tests(&["qqqq"], None));
    }
    let Next::Search(pass, _) = pool.next(&mut pool.subscribe(Lane::All), None) else { panic!("jobs are open") };
    assert_eq!(jobs(&pass).len(), 1000);
}

#[test]
fn who_is_not_in_the_pass_does_not_change_it() {
    let mut device = Device::new();
    for job in 1..=100 {
        device.open(job, &["qqqq"]);
    }
    // Two start points take four jobs at most until a pass is remade; the other five have five hits a start point.
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

#[test]
fn a_job_that_comes_while_the_pass_has_room_is_searched_at_once() {
    let mut device = Device::new();
    device.open(1, &["qqqq"]);
    assert_eq!(device.jobs(), [1]);
    device.open(2, &["pppp"]);
    assert_eq!(device.jobs(), [1, 2]);
}

/// Twenty hits a start point of each job: one is more than is worth verifying beside a rare job.
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
            device.held.settle(&pass, 0.0, &report(if has_easy { BASES * with_hits } else { 0 }), BASES);
        }
        device.open(11, &["zzzzzzzz"]);
        easy
    };
    assert_eq!(launches(20), 1000, "nobody else is there");
    let easy = launches(20);
    assert!((390..=410).contains(&easy), "eight of twenty: {easy}");
    assert!(launches(8) > 990, "so many are worth it");
    let seldom = launches(1600);
    assert!((4..=7).contains(&seldom), "the turn of the easy ones comes all the same: {seldom}");
}

/// Serves one launch as the verifier would: each start point goes to the first by precedence of what was found under it.
fn serve(device: &mut Device, rng: &mut StdRng) -> Vec<i64> {
    let pass = device.pass();
    let (mut done, mut expected) = (Vec::new(), 0.0);
    let hits: Vec<f64> =
        pass.patterns.iter().map(|(_, pattern)| STRETCH as f64 / pattern.difficulty().candidates()).collect();
    for _ in 0..BASES {
        let found = |id: &usize| rng.random_bool(-(-hits[*id]).exp_m1());
        let mut found: Vec<PatternId> = (1..hits.len()).filter(found).map(PatternId).collect();
        expected += hits.iter().skip(1).sum::<f64>();
        found.sort_by_key(|&id| pass.precedence(id));
        let is_open = |id: &PatternId| matches!(pass.owner(*id), Owner::Job(job) if device.pool.contains(job));
        let hardest = found.iter().filter(|id| is_open(id)).map(|&id| hits[id.0]).fold(f64::INFINITY, f64::min);
        let Some(first) = found.into_iter().find(is_open) else { continue };
        // Once in fifty start points, or less often.
        assert!(hardest >= 0.02 || hits[first.0] == hardest, "a rare hit was lost to an easier one");
        let Owner::Job(job) = pass.owner(first) else { panic!("the canary has no start") };
        device.pool.remove(job);
        done.push(job.0);
    }
    // Early in a crowd of very easy jobs the device stops before it has them all.
    device.held.settle(&pass, 0.0, &report(expected.min(2048.0) as usize), BASES);
    done
}

fn random_request(rng: &mut StdRng, lengths: std::ops::RangeInclusive<usize>) -> String {
    let length = rng.random_range(lengths);
    (0..length).map(|_| char::from(ALPHABET[rng.random_range(0..32)])).collect()
}

#[test]
fn nobody_starves_and_the_plentiful_are_served_by_age() {
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
            // Of those that are found under nearly every start point, the oldest comes first but for a few.
            if ages.remove(&job) {
                overtaken = overtaken.max(ages.range(..job).count());
            }
        }
        launches += 1;
        assert!(launches < 200_000, "{} are left", device.pool.len());
    }
    println!("400 jobs in {launches} launches of {BASES} starts; at most {overtaken} older ones were overtaken");
    assert!(overtaken <= 40, "{overtaken}");
}

/// The oldest has eight hits a start point. Harder ones come as fast as they are served, and most start points have a hit of one.
#[test]
fn a_stream_of_harder_jobs_does_not_starve_the_oldest() {
    let mut rng = seeded();
    let mut device = Device::new();
    device.open(1, &["qqqq", "pppp", "zzzz", "rrrr", "yyyy", "9999", "xxxx", "8888"]);
    let (mut newest, mut launches) = (1, 0);
    while device.pool.contains(JobId(1)) {
        while device.pool.len() < 400 {
            newest += 1;
            device.open(newest, &[&random_request(&mut rng, 5..=5)]);
        }
        serve(&mut device, &mut rng);
        launches += 1;
        assert!(launches < 3, "the oldest job waits for younger ones");
    }
}

/// Before, each of these cost a look at ten thousand jobs, their patterns copied, and a filter of them all.
#[test]
fn a_change_among_ten_thousand_costs_a_look_at_few() {
    let mut device = Device::new();
    for job in 1..=10_000 {
        device.open(job, &["qqqq"]);
    }
    device.open(20_000, &["zzzzzzzz"]);
    device.pass();
    let mut time = |job: &dyn Fn(i64) -> i64| {
        let (began, changes) = (Instant::now(), 1000);
        for change in 0..changes {
            device.pool.remove(JobId(job(change)));
            device.pass();
        }
        began.elapsed() / changes as u32
    };
    let (young, old) = (time(&|change| 10_000 - change), time(&|change| 1 + change));
    println!("a job that is done: {young:?} if it waits, {old:?} if it is in the pass");
    assert!(young < Duration::from_millis(1) && old < Duration::from_millis(1), "{young:?}, {old:?}");
}

/// Each has a hit in a thousand start points, and a start point ten of one or another: most of these would be thrown away.
#[test]
fn ten_thousand_that_are_rare_one_by_one_are_plentiful_together() {
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
    assert_eq!(device.jobs().len(), 1001, "a thousand are not too many");
}
