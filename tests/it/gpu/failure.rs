//! A GPU that really fails: a trap destroys its context in the middle of a search. The scheduler
//! takes the device out of use and retries it, and its work continues elsewhere. (After a launch
//! failure CUDA refuses every call until the process ends, so the GPU does not come back in this
//! test.)

use crate::support::harness::{Test, needs_gpu, test};
use cudarc::driver::{CudaContext, LaunchConfig};
use cudarc::nvrtc::Ptx;
use npubbot::job::{JobId, JobSpec};
use npubbot::pattern::Pattern;
use npubbot::scheduler::{FindOutcome, Health, Scheduler};
use npubbot::search::{DeviceChoice, SearchOptions};
use npubbot::vault::Vault;
use std::sync::mpsc;
use std::time::{Duration, Instant};

pub const TESTS: &[Test] = &[test!(a_gpu_that_fails_is_taken_out_and_its_work_goes_on)];

const TRAP: &str = ".version 7.0\n.target sm_70\n.address_size 64\n.visible .entry boom() { trap; }\n";

/// Launches a kernel that traps, in the CUDA context that the search uses too. Every later call on
/// this GPU fails.
fn destroy_the_context(ordinal: usize) {
    let context = CudaContext::new(ordinal).unwrap();
    let module = context.load_module(Ptx::from_src(TRAP)).unwrap();
    let boom = module.load_function("boom").unwrap();
    let stream = context.new_stream().unwrap();
    // SAFETY: the kernel takes no arguments and touches no memory.
    unsafe { stream.launch_builder(&boom).launch(LaunchConfig::for_num_elems(1)) }.unwrap();
    assert!(stream.synchronize().is_err(), "the trap is an error");
    // Freeing anything in this context fails too, as on a GPU that fails in practice.
}

/// Waits until `condition` holds and returns the time it took. Fails after `limit`.
fn until(what: &str, limit: Duration, condition: impl Fn() -> bool) -> Duration {
    let began = Instant::now();
    while !condition() {
        assert!(began.elapsed() < limit, "waited in vain: {what}");
        std::thread::sleep(Duration::from_millis(5));
    }
    began.elapsed()
}

fn a_gpu_that_fails_is_taken_out_and_its_work_goes_on() {
    let _ = tracing_subscriber::fmt().with_max_level(tracing::Level::WARN).try_init();
    needs_gpu();
    let options = SearchOptions { devices: DeviceChoice::CudaOrdinal(0), ..SearchOptions::default() };
    let (found, finds) = mpsc::channel();
    let on_find = move |find: npubbot::scheduler::Find| {
        let _ = found.send(find.job);
        FindOutcome::Done
    };
    let scheduler = Scheduler::start(&options, Vault::without_identity().unwrap(), on_find).unwrap();
    // Too hard to be found, so the device searches whenever it can.
    scheduler.add(JobId(1), JobSpec::local(vec![Pattern::parse("qqqqqqqqqqqqqqqq").unwrap()]));
    let searched = scheduler.candidates();
    until("it searches", Duration::from_secs(30), || scheduler.candidates() > searched && scheduler.rate().is_some());
    destroy_the_context(0);
    let must_restart = |reason: &str| reason.contains("until npubbot is started again");
    let is_out = || {
        scheduler.devices().iter().any(|device| matches!(&device.health, Health::Out(reason) if must_restart(reason)))
    };
    let out_after = until("it is taken out", Duration::from_secs(5), is_out);
    // The work continues elsewhere: the processor finds a request that is hard enough for a GPU.
    scheduler.add(JobId(2), JobSpec::local(vec![Pattern::parse("m0ct").unwrap()]));
    assert_eq!(finds.recv_timeout(Duration::from_secs(30)).unwrap(), JobId(2));
    assert!(scheduler.rate().is_some(), "the rate is that of the processor now");
    println!("taken out after {out_after:?}");
}
