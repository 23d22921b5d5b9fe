//! Thousands of split jobs, each of a fresh key, beside honest requests.

use super::{planned, seeded};
use crate::job::{Asker, JobId, JobSpec};
use crate::pattern::{PatternId, Rate};
use crate::scheduler::Lane;
use crate::scheduler::plan::device_plan::PlannedLaunch;
use crate::scheduler::run::pool::{Pool, PoolDevice};
use crate::search::LaunchReport;
use rand::Rng;
use rand::rngs::StdRng;
use std::collections::HashSet;

const SYBILS: i64 = 2000;
/// Candidates a second of the device.
const RATE: f64 = 80e6;
/// A launch lasts 50 ms.
const LAUNCHES_A_SECOND: usize = 20;
const CANDIDATES: u64 = (RATE as u64) / LAUNCHES_A_SECOND as u64;
const HONEST: Asker = Asker([0xff; 32]);

fn fresh_key(number: i64) -> Asker {
    let mut bytes = [0; 32];
    bytes[..8].copy_from_slice(&number.to_be_bytes());
    Asker(bytes)
}

/// A device, and attackers who ask again, with a new key, as soon as they are served.
struct Attack {
    pool: Pool,
    device: PoolDevice,
    newest: i64,
    /// Open jobs that are found in every launch they get.
    easy: HashSet<JobId>,
}

impl Attack {
    fn new() -> Attack {
        let pool = Pool::default();
        let mut device = pool.add_device(Lane::All);
        device.set_device(1, false);
        let mut attack = Attack { pool, device, newest: 0, easy: HashSet::new() };
        (0..SYBILS).for_each(|_| attack.add_sybil());
        attack
    }

    /// Adds an attacker. Every second one asks for an easy key, the others for one that takes
    /// years.
    fn add_sybil(&mut self) {
        let text = if self.newest % 2 == 0 { "qqqq" } else { "qqqqqqqqqqqq" };
        let job = self.add(text, Some(fresh_key(self.newest + 1)));
        if text == "qqqq" {
            self.easy.insert(job);
        }
    }

    fn add(&mut self, text: &str, asker: Option<Asker>) -> JobId {
        self.newest += 1;
        self.pool.insert(JobId(self.newest), JobSpec::for_tests(&[text], asker));
        JobId(self.newest)
    }

    /// Runs one launch. Returns its split job; `None` if it was for the pool.
    fn launch(&mut self) -> Option<JobId> {
        let planned = planned(&self.pool, &mut self.device, Some(Rate(RATE)));
        let report = LaunchReport { candidates: CANDIDATES, ..LaunchReport::default() };
        self.device.settle(&planned, &report, 1);
        let job = split_job(&planned)?;
        // An easy job is found in its first launch, and its attacker comes back with another key.
        if self.easy.remove(&job) {
            self.pool.remove(job);
            self.add_sybil();
        }
        Some(job)
    }
}

fn split_job(planned: &PlannedLaunch) -> Option<JobId> {
    planned.pass.half.and_then(|_| planned.pass.owner(PatternId(1)))
}

/// The limit is relative to the launches that a request needs without attackers: one for easy
/// requests, a thousand for hard ones.
#[test]
fn a_pool_request_beside_two_thousand_split_jobs_takes_twice_its_time_and_a_second_at_most() {
    let mut rng: StdRng = seeded();
    let mut attack = Attack::new();
    let mut worst = [0; 2];
    for request in 0..200 {
        (0..rng.random_range(0..100)).for_each(|_| {
            attack.launch();
        });
        let calm = if request % 2 == 0 { 1 } else { 1000 };
        let job = attack.add("pppp", None);
        let (mut had, mut launches) = (0, 0);
        while had < calm {
            had += usize::from(attack.launch().is_none());
            launches += 1;
            assert!(launches <= 2 * calm + LAUNCHES_A_SECOND, "{launches} launches where {calm} are enough in calm");
        }
        attack.pool.remove(job);
        worst[request % 2] = worst[request % 2].max(launches - 2 * calm.min(launches / 2));
    }
    println!("launches beyond twice the calm time, at worst: easy {}, hard {}", worst[0], worst[1]);
}

/// The honest asker comes twice: just after all attackers have come at once, and when the attackers
/// have been there for a while.
#[test]
fn an_honest_split_job_beside_two_thousand_has_its_first_launch_within_the_bound() {
    let mut attack = Attack::new();
    let first_launch = |attack: &mut Attack| {
        let promised = attack.pool.shares(HONEST).place_of_one_more;
        assert!(promised.is_some_and(|place| place > 1000), "{promised:?}");
        // Of eight launches, one is for an asker who waits. Two are for those in flight and for rounding.
        let bound = 8 * (attack.pool.new_split_askers() + 1) + 2;
        let job = attack.add("zzzzzz", Some(HONEST));
        let launches = (1..).find(|_| attack.launch() == Some(job)).unwrap();
        attack.pool.remove(job);
        assert!(launches <= bound, "{launches} launches, at most {bound} were promised");
        launches
    };
    attack.add("yyyyyyyyyyyy", None);
    let in_the_rush = first_launch(&mut attack);
    // Attackers who come back count as new askers, and stand at the end of the line.
    for _ in 0..20 * SYBILS {
        attack.launch();
    }
    let later = first_launch(&mut attack);
    println!("first launch after {in_the_rush} launches in the rush, {later} later");
    assert!(later <= 40 * LAUNCHES_A_SECOND, "{later}");
}

/// An asker who came before the attackers keeps a seat, however many they are.
#[test]
fn an_honest_split_job_that_came_first_keeps_its_seat() {
    let mut attack = Attack::new();
    attack.pool.insert(JobId(0), JobSpec::for_tests(&["zzzzzzzzzz"], Some(HONEST)));
    attack.add("yyyyyyyyyyyy", None);
    let launches = 10_000;
    let own = (0..launches).filter(|_| attack.launch() == Some(JobId(0))).count();
    let told = attack.pool.shares(HONEST).own_split_part;
    println!("{own} of {launches} launches; told {told:.4}");
    assert!(own as f64 >= 0.9 * told * f64::from(launches), "{own} of {launches}, told {told}");
    assert!(told >= 0.5 * 0.75 / 32.0, "{told}");
}

#[test]
fn an_asker_is_told_the_shares_that_launches_have() {
    for (pool, split) in [(true, &[(1u8, 2)][..]), (true, &[(1, 1), (2, 3)]), (false, &[(1, 1), (2, 1)]), (true, &[])] {
        let jobs = Pool::default();
        let mut device = jobs.add_device(Lane::All);
        if pool {
            jobs.insert(JobId(1), JobSpec::for_tests(&["qqqqqqqqqqqq"], None));
        }
        let mut next = 1;
        for &(asker, own) in split {
            for _ in 0..own {
                next += 1;
                jobs.insert(JobId(next), JobSpec::for_tests(&["pppppppppppp"], Some(Asker([asker; 32]))));
            }
        }
        let told = jobs.shares(Asker([1; 32]));
        let (mut of_pool, mut of_second, launches) = (0, 0, 12_000);
        for _ in 0..launches {
            let planned = planned(&jobs, &mut device, None);
            device.settle(&planned, &LaunchReport { candidates: 1000, ..LaunchReport::default() }, 1);
            of_pool += usize::from(split_job(&planned).is_none());
            of_second += usize::from(split_job(&planned) == Some(JobId(2)));
        }
        let near = |count: usize, part: f64| (count as f64 / f64::from(launches) - part).abs() < 0.01;
        assert!(!pool || near(of_pool, told.pool_part), "{of_pool}, {told:?}");
        assert!(split.is_empty() || near(of_second, told.own_split_part), "{of_second}, {told:?}");
        assert_eq!((told.pool_jobs, told.split_jobs as i64), (usize::from(pool), next - 1));
    }
}

#[test]
fn one_more_split_job_is_told_the_part_it_has_then() {
    let shares = |split: &[u8], asker: u8| {
        let jobs = Pool::default();
        jobs.insert(JobId(1), JobSpec::for_tests(&["qqqqqqqqqqqq"], None));
        for (number, &of) in (2..).zip(split) {
            jobs.insert(JobId(number), JobSpec::for_tests(&["pppppppppppp"], Some(Asker([of; 32]))));
        }
        let before = jobs.shares(Asker([asker; 32]));
        jobs.insert(JobId(1000), JobSpec::for_tests(&["zzzzzzzzzzzz"], Some(Asker([asker; 32]))));
        (before.part_of_one_more, jobs.shares(Asker([asker; 32])).own_split_part)
    };
    for (split, asker) in [(&[][..], 1), (&[1, 2], 3), (&[1, 2], 1), (&[1; 7], 1)] {
        let (told, then) = shares(split, asker);
        assert!((told - then).abs() < 1e-9, "{split:?}, {asker}: {told}, {then}");
    }
}
