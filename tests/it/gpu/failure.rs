//! A GPU that really fails: a trap destroys its context in the middle of a search. The scheduler
//! takes the device out of use and retries it, and its work continues elsewhere. (After a launch
//! failure CUDA refuses every call until the process ends, so the GPU does not come back in this
//! test.)

use crate::support::asker::Asker;
use crate::support::bot::{Met, met};
use crate::support::harness::{Test, needs_gpu, test};
use crate::support::wait_for;
use cudarc::driver::{CudaContext, LaunchConfig};
use cudarc::nvrtc::Ptx;
use npubbot::job::{JobId, JobSpec};
use npubbot::pattern::{ALPHABET, Pattern};
use npubbot::scheduler::{DeviceStatus, FindOutcome, Health, Scheduler};
use npubbot::search::{DeviceChoice, DeviceId, SearchOptions};
use npubbot::vault::Vault;
use std::sync::mpsc;
use std::time::{Duration, Instant};

pub const TESTS: &[Test] = &[
    test!(a_gpu_that_fails_is_taken_out_and_its_work_goes_on),
    test!(gpus_fail_under_requests_and_after_a_restart_each_has_its_key),
];

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

/// After a trap, CUDA refuses every GPU of the process. The next process goes on.
async fn gpus_fail_under_requests_and_after_a_restart_each_has_its_key() {
    needs_gpu();
    let Met { relay, home, bot, asker } = met("[search]\ndevice = \"cuda\"\n").await;
    let mut askers = vec![asker];
    for _ in 1..32 {
        askers.push(Asker::connect(&relay.url(), bot.public_key).await);
    }
    // A match takes 10^12 candidates on average.
    let prefix = |number: usize| format!("m0ctan{}", char::from(ALPHABET[number % 32])) + "e";
    for (number, asker) in askers.iter().enumerate() {
        asker.send(&prefix(number)).await;
    }
    askers[0].next_key().await.assert_starts_with(&prefix(0));
    tokio::task::spawn_blocking(|| destroy_the_context(0)).await.unwrap();
    let is_out = |device: &DeviceStatus| match &device.health {
        Health::Out(reason) => reason.contains("until npubbot is started again"),
        _ => device.id == DeviceId::Cpu,
    };
    wait_for("every GPU is taken out, with what to do", || bot.service.devices().iter().all(is_out)).await;
    bot.service.stop().await;
    let _bot = home.spawn().await;
    for (number, asker) in askers.iter_mut().enumerate().skip(1) {
        asker.next_key().await.assert_starts_with(&prefix(number));
    }
    // Nothing comes twice: the ledger has one job per asker.
    home.has_delivered(askers.len() as i64).await;
    assert_eq!(home.count("SELECT count(*) FROM job"), Some(askers.len() as i64));
}
