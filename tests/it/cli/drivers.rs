//! Commands on machines with the drivers of other versions, with broken drivers, and with a GPU that
//! computes nothing.

use crate::support::bot::{ChildGuard, Home, at_relay};
use crate::support::harness::{Test, test};
use crate::support::program::{command, stderr, stdout};
use crate::support::stub_driver::{StubDriver, VERSIONS};
use crate::support::until;
use npubbot::search::cuda::DRIVER_FUNCTIONS;
use std::fs;
use std::path::Path;
use std::process::{Output, Stdio};

pub const TESTS: &[Test] = &[
    test!(with_any_driver_from_525_on_a_gpu_that_finds_nothing_is_named_and_the_cpu_goes_on).slow(),
    test!(the_bot_serves_with_the_cpu_and_says_why_the_gpu_is_out),
    test!(errors_of_the_driver_are_sentences_with_a_remedy),
    test!(no_function_is_called_that_was_not_looked_for),
    test!(a_second_start_compiles_no_kernels_and_a_compiler_that_is_too_old_is_named),
];

/// A search that opens every GPU, which so easy a one does only if devices are named.
const MINE: [&str; 5] = ["mine", "m0", "--json", "--device", "all"];

/// What the program says of the GPU that finds nothing.
const OUT: &str = "it computes wrongly";

/// Runs a command with a driver. Its home is in the driver's folder.
fn run(driver: &StubDriver, arguments: &[&str], variables: &[(&str, &str)]) -> Output {
    let mut command = command();
    command.args(arguments).env("HOME", driver.folder()).envs(variables.iter().copied());
    let output = driver.apply(&mut command).output().unwrap();
    assert!(!all(&output).contains("panicked"), "{arguments:?}: {}", all(&output));
    output
}

/// All that a command said.
fn all(output: &Output) -> String {
    stdout(output) + &stderr(output)
}

/// The report of `doctor` without a bot.
fn doctor(driver: &StubDriver, variables: &[(&str, &str)]) -> String {
    let data = driver.folder().join("data").display().to_string();
    let output = run(driver, &["doctor", "--data", &data, "--config", "/nonexistent/relays.toml"], variables);
    stdout(&output)
}

fn with_any_driver_from_525_on_a_gpu_that_finds_nothing_is_named_and_the_cpu_goes_on() {
    for (version, cuda) in VERSIONS {
        let driver = StubDriver::of(cuda);
        let said = doctor(&driver, &[]);
        assert!(said.contains("a stub without a GPU") && said.contains(OUT), "{version}: {said}");
        // Any driver but the oldest and the newest differs in nothing that these commands use.
        if !["525", "580"].contains(&version) {
            continue;
        }
        let commands: [(&[&str], &str); 4] = [
            (&MINE, "nsec1"),
            (&["bench", "--seconds", "0.2", "--threads", "1"], "cpu"),
            (&["explain", "m0ctane", "--device", "all"], "m0ctane"),
            // This one opens no GPU.
            (&["explain", "m0ctane"], "m0ctane"),
        ];
        for (arguments, expected) in commands {
            let output = run(&driver, arguments, &[]);
            assert!(output.status.success() && stdout(&output).contains(expected), "{version}: {}", all(&output));
            assert_eq!(all(&output).contains(OUT), arguments != ["explain", "m0ctane"], "{version}: {}", all(&output));
        }
    }
}

/// `npubbot serve` with this driver.
fn serve(home: &Home, driver: &StubDriver, log: &Path) -> ChildGuard {
    let mut command = home.command();
    driver.apply(&mut command).env("RUST_LOG", "info").stdout(Stdio::null()).stderr(fs::File::create(log).unwrap());
    ChildGuard(command.spawn().unwrap())
}

async fn the_bot_serves_with_the_cpu_and_says_why_the_gpu_is_out() {
    let driver = StubDriver::of(12000);
    let (relay, home) = at_relay("[search]\ndevice = \"all\"\nthreads = 1\n").await;
    let log = driver.folder().join("log");
    let bot = serve(&home, &driver, &log);
    home.answers().await;
    let mut asker = crate::support::asker::Asker::connect(&relay.url(), home.vault().public_key()).await;
    asker.ask("m0").await;
    until("the CPU has found the key", || async {
        home.count("SELECT count(*) FROM job WHERE state = 'delivered'").filter(|&count| count == 1)
    })
    .await;
    let status = stdout(&home.operate(&["status"]));
    let is_named = status.contains("cuda:0") && status.contains(OUT);
    assert!(is_named, "{status}{}", fs::read_to_string(&log).unwrap());
    drop(bot);
    let log = fs::read_to_string(&log).unwrap();
    assert!(log.contains("cuda:0") && log.contains(OUT) && !log.contains("panicked"), "{log}");
}

fn errors_of_the_driver_are_sentences_with_a_remedy() {
    let said = doctor(&StubDriver::of(11040), &[]);
    assert!(said.contains("CUDA 11.4") && said.contains("525"), "{said}");
    for missing in [DRIVER_FUNCTIONS[0], "cuLaunchKernel", "cuMemHostAlloc"] {
        let names = DRIVER_FUNCTIONS.iter().copied().filter(|&name| name != missing).collect();
        let said = doctor(&StubDriver::with(12000, &names), &[]);
        assert!(said.contains(missing) && said.contains("525"), "{said}");
    }
    let driver = StubDriver::of(12020);
    for (fault, remedy) in [
        ("cuInit=34", "LD_LIBRARY_PATH"),
        ("cuInit=100", "--gpus all"),
        ("cuInit=802", "nvidia-fabricmanager"),
        ("cuInit=803", "restart the machine"),
        ("cuInit=804", "cuda-compat"),
        ("cuInit=999", "nvidia-modprobe"),
        ("cuDeviceGetCount=100", "--gpus all"),
        ("cuDevicePrimaryCtxRetain=46", "compute mode"),
        ("cuMemAlloc_v2=2", "`gpu_memory`"),
        // An error that no header of ours has.
        ("cuLaunchKernel=998", "the stub's own text (CUDA error 998)"),
    ] {
        let said = doctor(&driver, &[("STUB_FAIL", fault)]);
        assert!(said.contains(remedy), "{fault}: {said}");
    }
    for fault in ["cuInit=999", "cuLaunchKernel=998"] {
        let mined = run(&driver, &MINE, &[("STUB_FAIL", fault)]);
        assert!(mined.status.success() && stdout(&mined).contains("nsec1"), "{fault}: {}", all(&mined));
    }
}

fn no_function_is_called_that_was_not_looked_for() {
    // `cudarc` would panic at any other. The GPU is used until its first launch was compared.
    let driver = StubDriver::with(12000, &DRIVER_FUNCTIONS.iter().copied().collect());
    for variables in [&[][..], &[("STUB_POOLS", "1")]] {
        let one = run(&driver, &["bench", "--seconds", "0.2", "--device", "cuda:0"], variables);
        assert!(!one.status.success() && stderr(&one).contains(OUT), "{}", all(&one));
    }
}

/// Whatever the build has in it, this driver takes only what its compiler makes.
fn a_second_start_compiles_no_kernels_and_a_compiler_that_is_too_old_is_named() {
    let driver = StubDriver::of(12020);
    let variables = |version| [("STUB_REFUSES", "1"), ("STUB_NVRTC", version)];
    for (version, name) in [("11080", "NVRTC 11.8"), ("12000", "NVRTC 12.0")] {
        let said = doctor(&driver, &variables(version));
        for part in [name, "too old", "8.9", "CUDA 12.2", "nvidia-cuda-nvrtc-cu12==12.9.86"] {
            assert!(said.contains(part), "{part}: {said}");
        }
    }
    assert!(driver.compiled().is_empty());
    for _ in 0..2 {
        let mined = run(&driver, &MINE, &variables("12020"));
        assert!(mined.status.success() && stderr(&mined).contains(OUT), "{}", all(&mined));
        assert_eq!(driver.compiled(), ["--gpu-architecture=sm_89"]);
    }
    // Another version of the compiler compiles anew.
    run(&driver, &MINE, &variables("12090"));
    assert_eq!(driver.compiled().len(), 2);
}
