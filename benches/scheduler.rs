//! Measures how the scheduler's costs grow with the number of open split jobs:
//! `cargo bench --bench scheduler`.
//!
//! A change must cost `O(log jobs)`, so from 1,000 to 100,000 jobs the time must less than double.

use criterion::{BenchmarkId, Criterion, criterion_group, criterion_main};
use npubbot::job::{Asker, JobId, JobSpec};
use npubbot::key::HalfPoint;
use npubbot::pattern::{Pattern, Rate};
use npubbot::scheduler::{Lane, NextStep, Pool, PoolDevice};
use npubbot::search::LaunchReport;
use std::hint::black_box;
use std::time::Duration;

const POINT: &str = "0279be667ef9dcbbac55a06295ce870b07029bfcdb2dce28d959f2815b16f81798";
const JOBS: [usize; 3] = [1_000, 10_000, 100_000];

/// A pool, and one simulated device that only counts candidates.
struct Planning {
    pool: Pool,
    device: PoolDevice,
    half: HalfPoint,
}

impl Planning {
    /// A pool with one open job and `split_jobs` split jobs. All split jobs search at `half`; each
    /// belongs to a different asker.
    fn new(pattern: &Pattern, half: HalfPoint, split_jobs: usize) -> Planning {
        let pool = Pool::default();
        let mut device = pool.add_device(Lane::All);
        device.set_device(2, false);
        let planning = Planning { pool, device, half };
        planning.pool.insert(JobId(0), JobSpec::local(vec![pattern.clone()]));
        (1..=split_jobs).for_each(|job| planning.add(job, pattern));
        planning
    }

    /// Adds a split job of a new asker.
    fn add(&self, job: usize, pattern: &Pattern) {
        let mut asker = [0; 32];
        asker[..8].copy_from_slice(&(job as u64).to_be_bytes());
        let spec = JobSpec { asker: Asker(asker), half: Some(self.half), ..JobSpec::local(vec![pattern.clone()]) };
        self.pool.insert(JobId(job as i64), spec);
    }

    /// Removes a job.
    fn remove(&self, job: usize) {
        self.pool.remove(JobId(job as i64));
    }

    /// Plans a launch and records it as collected.
    fn launch(&mut self) {
        if let NextStep::Search(planned) = self.pool.next(&mut self.device, Some(Rate(80e6))) {
            let report = LaunchReport { candidates: 4_000_000, ..LaunchReport::default() };
            self.device.settle(&planned, &report, 2);
        }
    }

    /// Computes the share and the place in line that a new asker would be told.
    fn tell(&self) -> (f64, usize) {
        let asker = Asker([0xff; 32]);
        (self.pool.shares(asker).part_of_one_more, self.pool.shares(asker).split_jobs)
    }
}

/// Measures adding and removing a job, each together with the next launch; a launch without a
/// change; and computing the facts for an answer to an asker.
fn split_jobs(criterion: &mut Criterion) {
    let half: HalfPoint = POINT.parse().expect("the generator is a point");
    let pattern = Pattern::parse("qqqqqqqqqqqq").expect("letters of the alphabet");
    let mut group = criterion.benchmark_group("scheduler/split_jobs");
    for jobs in JOBS {
        let mut planning = Planning::new(&pattern, half, jobs);
        planning.launch();
        group.bench_function(BenchmarkId::new("come_and_go_and_launch", jobs), |bencher| {
            bencher.iter(|| {
                planning.add(jobs + 1, &pattern);
                planning.launch();
                planning.remove(jobs + 1);
                planning.launch();
            });
        });
        group.bench_function(BenchmarkId::new("oldest_goes_and_returns", jobs), |bencher| {
            bencher.iter(|| {
                planning.remove(1);
                planning.launch();
                planning.add(1, &pattern);
                planning.launch();
            });
        });
        group.bench_function(BenchmarkId::new("launch", jobs), |bencher| bencher.iter(|| planning.launch()));
        group.bench_function(BenchmarkId::new("tell_an_asker", jobs), |bencher| {
            bencher.iter(|| black_box(planning.tell()));
        });
    }
    group.finish();
}

criterion_group! {
    name = benches;
    config = Criterion::default()
        .warm_up_time(Duration::from_millis(300))
        .measurement_time(Duration::from_secs(2))
        .sample_size(10);
    targets = split_jobs
}
criterion_main!(benches);
