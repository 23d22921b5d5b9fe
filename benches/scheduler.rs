//! Measures how the scheduler's costs grow with the number of open split jobs:
//! `cargo bench --bench scheduler`.
//!
//! A change must cost `O(log jobs)`, so from 1,000 to 100,000 jobs the time must less than double.

use criterion::{BenchmarkId, Criterion, criterion_group, criterion_main};
use npubbot::key::HalfPoint;
use npubbot::pattern::Pattern;
use npubbot::scheduler::bench_support::Planning;
use std::hint::black_box;
use std::time::Duration;

const POINT: &str = "0279be667ef9dcbbac55a06295ce870b07029bfcdb2dce28d959f2815b16f81798";
const JOBS: [usize; 3] = [1_000, 10_000, 100_000];

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
