//! Devices in processes of their own: a fault ends one process, and nothing else.

use crate::support::asker::Asker;
use crate::support::bot::Home;
use crate::support::harness::{Test, needs_gpu, test};
use crate::support::relay::TestRelay;
use crate::support::vault::{about, children_of, kill};
use crate::support::{until, wait_for};
use npubbot::clock::Clock;
use npubbot::config::Walls;
use npubbot::device_process;
use npubbot::job::{JobId, JobSpec};
use npubbot::pattern::{ALPHABET, Pattern};
use npubbot::scheduler::{DeviceOpener, Find, FindOutcome, Health, Scheduler};
use npubbot::search::cpu::KernelChoice;
use npubbot::search::{DeviceChoice, DeviceId, SearchOptions, Surroundings};
use npubbot::vault::{DirectSpawner, Vault};
use std::sync::{Arc, Mutex};

pub const TESTS: &[Test] = &[
    test!(a_killed_device_process_costs_no_find_and_stops_no_other_device).slow(),
    test!(a_gpu_that_traps_under_requests_is_back_within_seconds_and_each_asker_has_one_key),
];

/// Jobs, and kills among their finds.
const JOBS: usize = 6;
const KILLS: usize = 3;

/// The device processes that this process has started.
fn processes() -> Vec<u32> {
    let is_device = |id: &u32| std::fs::read(about(*id, "cmdline")).unwrap_or_default().ends_with(b"\0device\0");
    children_of(std::process::id()).into_iter().filter(is_device).collect()
}

/// Two devices, each one thread of the processor in a process of its own.
fn two_processes() -> DeviceOpener {
    let spawner = DirectSpawner::of_devices(None).unwrap();
    let as_cpu = |id: DeviceId| Some(DeviceId::Cpu).filter(|_| id != DeviceId::Cpu);
    let opener = device_process::opener_of(spawner, Walls::Optional, as_cpu);
    DeviceOpener::new(|| Ok(2), move |id, options| opener.open(id, options))
}

async fn a_killed_device_process_costs_no_find_and_stops_no_other_device() {
    let options = SearchOptions {
        devices: DeviceChoice::Cuda,
        threads: Some(1),
        cpu_kernel: KernelChoice::Portable,
        ..SearchOptions::default()
    };
    let finds: Arc<Mutex<Vec<JobId>>> = Arc::default();
    let kept = Arc::clone(&finds);
    let on_find = move |find: Find| {
        kept.lock().unwrap().push(find.job);
        FindOutcome::Done
    };
    let (vault, here) = (Vault::without_identity().unwrap(), Surroundings::new(Clock::System));
    let scheduler = Scheduler::start_with(&options, two_processes(), here, vault, on_find).unwrap();
    // Four characters of five bits and one of two: hard enough for a GPU.
    let prefix = |job: usize| format!("m0c{}[qpzry9x8]", char::from(ALPHABET[job]));
    let add = |job: usize| {
        let patterns = vec![prefix(job).parse().unwrap()];
        scheduler.add(JobId(job as i64), JobSpec::local(patterns));
    };
    // Nobody finds this one, so there are always launches.
    scheduler.add(JobId(99), JobSpec::local(vec![Pattern::parse("qqqqqqqqqqqqqqqq").unwrap()]));
    let health = || scheduler.devices().into_iter().map(|device| device.health).collect::<Vec<_>>();
    let candidates = |device: usize| scheduler.devices()[device].candidates;
    for round in 0..KILLS {
        (round * JOBS / KILLS..(round + 1) * JOBS / KILLS).for_each(add);
        let before = [candidates(0), candidates(1)];
        wait_for("both search", || (0..2).all(|device| candidates(device) > before[device])).await;
        kill(processes()[round % 2]);
        let out = until("one is out", || async { health().iter().position(|health| *health != Health::Working) }).await;
        assert!(matches!(&health()[out], Health::Out(reason) if reason.contains("SIGKILL")), "{:?}", health());
        let other = candidates(1 - out);
        wait_for("the other goes on", || candidates(1 - out) > other).await;
        wait_for("it is back", || {
            assert_eq!(health()[1 - out], Health::Working);
            health()[out] == Health::Working
        })
        .await;
    }
    wait_for("all are found", || finds.lock().unwrap().len() >= JOBS).await;
    let mut finds = finds.lock().unwrap().clone();
    finds.sort();
    assert_eq!(finds, (0..JOBS).map(|job| JobId(job as i64)).collect::<Vec<_>>(), "each once");
    assert_eq!(processes().len(), 2);
    drop(scheduler);
    assert_eq!(processes(), Vec::<u32>::new(), "they end with the search");
}

/// Askers of the test, each with one request.
const ASKERS: usize = 1000;

/// GPU 0 traps before each 60th launch of a process. The first pauses are 1, 2 and 4 seconds.
async fn a_gpu_that_traps_under_requests_is_back_within_seconds_and_each_asker_has_one_key() {
    needs_gpu();
    // SAFETY: no other thread reads variables now.
    unsafe { std::env::set_var("NPUBBOT_TEST_TRAP", "0:60") };
    let relay = TestRelay::start().await;
    let extra = "[search]\ndevice = \"cuda\"\n";
    let home = Home::with(&[relay.url()], extra);
    let bot = home.spawn_at_level("info").await;
    let mut askers = Vec::new();
    for _ in 0..ASKERS {
        askers.push(Asker::connect(&relay.url(), bot.public_key).await);
    }
    // A match takes 10^9 candidates on average, all together some ten seconds of a large GPU.
    let letter = |number: usize| char::from(ALPHABET[number % 32]);
    let prefix = |number: usize| format!("m0c{}{}{}", letter(number), letter(number / 32), letter(number / 9));
    for (number, asker) in askers.iter().enumerate() {
        asker.send(&prefix(number)).await;
    }
    for (number, asker) in askers.iter_mut().enumerate() {
        // A flood of new askers, so the last ones are told a price.
        asker.key_at_any_price(&prefix(number)).await.assert_starts_with(&prefix(number));
    }
    home.has_delivered(ASKERS as i64).await;
    assert_eq!(home.count("SELECT count(*) FROM job"), Some(ASKERS as i64), "nothing comes twice");
    let log = home.log();
    let failures = log.lines().filter(|line| line.contains("a device failed")).collect::<Vec<_>>();
    println!("{}", failures.join("\n"));
    assert!(failures.iter().any(|line| line.contains("cuda:0") && line.contains("CUDA error")), "it has trapped");
    assert!(failures.iter().all(|line| line.contains("cuda:0")), "the others never stop");
}
