//! The test harness. Every test runs in its own process, and may report at run time that something
//! it needs is missing.
//!
//! Each file lists its tests in a `TESTS` table; a test that no table lists is an error (dead
//! code). `cargo test` arguments work as usual: a filter, `--exact`, `--ignored`,
//! `--include-ignored`, `--list`, `--nocapture`, `--test-threads`.

use libtest_mimic::{Arguments, Completion, Failed, Trial};
use rustix::process::{Pid, WaitId, WaitIdOptions, waitid};
use std::fmt::Debug;
use std::future::Future;
use std::io::{Read, Seek};
use std::process::{Command, ExitCode, Stdio};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Mutex, PoisonError};
use std::time::{Duration, Instant};

/// Environment variable that names the test for a child process to run.
const CHILD: &str = "NPUBBOT_TEST_CHILD";
/// Environment variable. If it is set, the wall time and the processor time of each test are
/// printed, the slowest test first. The processor time includes the programs that the test started.
const TIMES: &str = "NPUBBOT_TEST_TIMES";
/// Environment variable that names a benchmark: `load`, `economy` or `latency`. Only its tests run,
/// one after the other, and a figure that misses its bar fails.
const BENCH: &str = "NPUBBOT_BENCH";
/// Time after which a test is killed, unless it is marked as long.
const LONGEST: Duration = Duration::from_secs(900);
/// Exit status of a child whose test was skipped.
const SKIPPED: u8 = 77;
/// Precedes the reason in the last line of a skipped test's output.
const REASON: &str = "SKIPPED: ";

/// One test, or a part of a test that runs in its own process.
#[derive(Clone, Copy)]
pub struct Test {
    name: &'static str,
    run: fn(),
    long: Option<&'static str>,
    is_slow: bool,
    is_part: bool,
    holds: Option<&'static str>,
    bench: Option<&'static str>,
}

impl Test {
    /// A test with its full path. [`test!`] calls this.
    pub const fn new(name: &'static str, run: fn()) -> Test {
        Test { name, run, long: None, is_slow: false, is_part: false, holds: None, bench: None }
    }

    /// Marks a test that runs only with `--ignored`, for this reason.
    pub const fn long(self, reason: &'static str) -> Test {
        Test { long: Some(reason), ..self }
    }

    /// Marks a test of ten seconds or more. It is started before the others.
    pub const fn slow(self) -> Test {
        Test { is_slow: true, ..self }
    }

    /// Marks a part of another test, which starts it with [`child`].
    pub const fn part(self) -> Test {
        Test { is_part: true, ..self }
    }

    /// Makes every bot of this test wait at a step (`src/fault.rs`) while the [`gate`] is closed.
    /// The test is skipped in builds without faults.
    pub const fn holding(self, place: &'static str) -> Test {
        Test { holds: Some(place), ..self }
    }

    /// Marks a test with a [`figure`] of this benchmark.
    pub const fn measures(self, bench: &'static str) -> Test {
        Test { bench: Some(bench), ..self }
    }

    /// The path within this binary, such as
    /// `conversation::requests::a_replayed_wrap_starts_no_second_job`.
    fn path(&self) -> &'static str {
        self.name.trim_start_matches("it::")
    }
}

/// A [`Test`] of a function in this file: `fn()` or `async fn()`.
macro_rules! test {
    ($name:ident) => {
        $crate::support::harness::Test::new(concat!(module_path!(), "::", stringify!($name)), || {
            $crate::support::harness::Run::run(&$name)
        })
    };
}
pub(crate) use test;

/// A function that can be a test. `Marker` tells the implementation for `fn()` from the one for
/// `async fn()`.
pub trait Run<Marker> {
    fn run(&self);
}

pub struct Plain;
pub struct Asynchronous;

impl<F: Fn()> Run<Plain> for F {
    fn run(&self) {
        self();
    }
}

impl<F: Fn() -> Fut, Fut: Future<Output = ()>> Run<(Asynchronous, Fut)> for F {
    fn run(&self) {
        tokio::runtime::Runtime::new().unwrap().block_on(self());
    }
}

/// The panic payload with which a skipped test unwinds.
struct Skip;

/// Ends this test as skipped. `reason` says what is missing on this machine. The stack is unwound,
/// so programs that the test has started end too. Only the thread of the test may call it.
pub fn skip(reason: &str) -> ! {
    println!("\n{REASON}{}", reason.replace('\n', " "));
    std::panic::resume_unwind(Box::new(Skip))
}

static IS_MISSED: AtomicBool = AtomicBool::new(false);

/// Prints a figure, which should be below its bar. A benchmark fails if it is not; a test does not.
pub fn figure<T: PartialOrd + Debug>(what: &str, figure: T, bar: T) {
    let is_missed = figure >= bar;
    println!("{what}: {figure:.3?}, bar {bar:?}{}", if is_missed { ": MISSED" } else { "" });
    IS_MISSED.fetch_or(is_missed && std::env::var_os(BENCH).is_some(), Ordering::Relaxed);
}

/// Makes the bots of a test wait at the step that [`Test::holding`] names.
pub mod gate {
    use std::fs;
    use std::path::PathBuf;

    /// The environment variable of `src/fault.rs` that names the gate's file.
    pub(super) const FILE: &str = "NPUBBOT_TEST_GATE";

    fn file() -> PathBuf {
        std::env::var_os(FILE).expect("the test is listed with `.holding(…)`").into()
    }

    /// Closes the gate: no bot gets past the step. The gate is closed when a test begins.
    pub fn close() {
        fs::remove_file(file()).unwrap();
    }

    /// Opens the gate: all bots may pass the step.
    pub fn open() {
        fs::write(file(), "").unwrap();
    }
}

/// Skips the test if there is no GPU that CUDA can use.
pub fn needs_gpu() {
    if let Err(reason) = npubbot::search::cuda::device_count() {
        skip(&reason.to_string());
    }
}

/// A command that runs one test or part of this binary, given by its path.
pub fn child(path: &str) -> Command {
    let mut command = Command::new(std::env::current_exe().unwrap());
    command.env(CHILD, path);
    command
}

static SKIPS: Mutex<Vec<(&str, String)>> = Mutex::new(Vec::new());
static DURATIONS: Mutex<Vec<(Duration, Duration, &str)>> = Mutex::new(Vec::new());

/// Runs the tests that the command line selects; in a child process, a single test.
pub fn main(rooms: &[&[&[Test]]]) -> ExitCode {
    let tests = || rooms.iter().flat_map(|tables| tables.iter()).flat_map(|table| table.iter().copied());
    // SAFETY: no other thread runs yet.
    unsafe { std::env::set_var("NPUBBOT_TEST_PROGRAM", env!("CARGO_BIN_EXE_npubbot")) };
    if let Ok(path) = std::env::var(CHILD) {
        // SAFETY: no other thread runs yet. The variable is removed so that programs started by the
        // test do not inherit it.
        unsafe { std::env::remove_var(CHILD) };
        let test = tests().find(|test| test.path() == path).unwrap_or_else(|| panic!("no test is named {path}"));
        return match std::panic::catch_unwind(test.run) {
            Ok(()) => ExitCode::from(u8::from(IS_MISSED.load(Ordering::Relaxed))),
            Err(payload) if payload.is::<Skip>() => ExitCode::from(SKIPPED),
            Err(payload) => std::panic::resume_unwind(payload),
        };
    }
    let mut arguments = Arguments::from_args();
    // Tests mostly wait for relays and timers, so run more of them than there are cores.
    let cores = std::thread::available_parallelism().map_or(1, usize::from);
    arguments.test_threads = arguments.test_threads.or(Some(6 * cores));
    let bench = std::env::var(BENCH).ok();
    if bench.is_some() {
        (arguments.test_threads, arguments.include_ignored, arguments.nocapture) = (Some(1), true, true);
    }
    let capture = !arguments.nocapture;
    if !arguments.list {
        // One seed serves all random tests of this run.
        println!("NPUBBOT_TEST_SEED={}", super::seed_of_environment());
    }
    let mut all: Vec<Test> = tests().filter(|test| !test.is_part).collect();
    all.retain(|test| bench.is_none() || test.bench == bench.as_deref());
    // Slow tests come first, so that in the end nobody waits for one.
    all.sort_by_key(|test| !test.is_slow);
    let trial = |test: Test| {
        Trial::ignorable_test(test.path(), move || run_in_child(test, capture)).with_ignored_flag(test.long.is_some())
    };
    let conclusion = libtest_mimic::run(&arguments, all.into_iter().map(trial).collect());
    if !arguments.list {
        report();
    }
    conclusion.exit_code()
}

/// Runs one test in a child process and reads its outcome.
fn run_in_child(test: Test, capture: bool) -> Result<Completion, Failed> {
    let began = Instant::now();
    // A file, not a pipe: programs left over by the test would keep a pipe open.
    let mut output = tempfile::tempfile()?;
    let mut command = child(test.path());
    command.stdin(Stdio::null()).env(super::SEED, super::seed_of_environment().to_string());
    let folder = tempfile::tempdir()?;
    if let Some(place) = test.holds {
        command.env("NPUBBOT_TEST_FAULT", format!("hold:{place}")).env(gate::FILE, folder.path().join("gate"));
    }
    if capture {
        command.stdout(output.try_clone()?).stderr(output.try_clone()?);
    }
    let mut process = command.spawn()?;
    let ended = WaitIdOptions::EXITED | WaitIdOptions::NOHANG | WaitIdOptions::NOWAIT;
    let id = WaitId::Pid(Pid::from_child(&process));
    while waitid(id.clone(), ended)?.is_none() {
        if test.long.is_none() && began.elapsed() > LONGEST {
            process.kill()?;
            break;
        }
        std::thread::sleep(Duration::from_millis(20));
    }
    let used = processor_time(process.id()).unwrap_or_default();
    let status = process.wait()?;
    DURATIONS.lock().unwrap_or_else(PoisonError::into_inner).push((began.elapsed(), used, test.path()));
    let mut said = Vec::new();
    output.rewind()?;
    output.read_to_end(&mut said)?;
    let said = String::from_utf8_lossy(&said);
    if status.success() {
        return Ok(Completion::Completed);
    }
    if status.code() == Some(SKIPPED.into()) {
        let reason = said.lines().rev().find_map(|line| line.strip_prefix(REASON)).unwrap_or("the output says why");
        SKIPS.lock().unwrap_or_else(PoisonError::into_inner).push((test.path(), reason.to_owned()));
        return Ok(Completion::ignored_with(reason));
    }
    Err(Failed::from(format!("{said}\n{status}")))
}

/// The processor time of an ended process and of the children that it has waited for. `None` if the
/// system does not say.
fn processor_time(process: u32) -> Option<Duration> {
    let stat = std::fs::read_to_string(format!("/proc/{process}/stat")).ok()?;
    // Fields 14 to 17: user and system time, and those of the children. They are counted from the
    // field after the name, because the name may have spaces.
    let (_, fields) = stat.rsplit_once(") ")?;
    let ticks: u64 = fields.split(' ').skip(11).take(4).filter_map(|field| field.parse::<u64>().ok()).sum();
    Some(Duration::from_secs_f64(ticks as f64 / rustix::param::clock_ticks_per_second() as f64))
}

/// Prints the skipped tests with their reasons at the very end, and the times if they are asked
/// for.
fn report() {
    let mut skips = SKIPS.lock().unwrap_or_else(PoisonError::into_inner);
    skips.sort_unstable();
    if !skips.is_empty() {
        println!("skipped, because something they need is not on this machine: {}", skips.len());
        for (path, reason) in skips.iter() {
            println!("    {path}: {reason}");
        }
        println!();
    }
    if std::env::var_os(TIMES).is_some() {
        let mut durations = DURATIONS.lock().unwrap_or_else(PoisonError::into_inner);
        durations.sort_unstable_by(|one, other| other.cmp(one));
        for (took, used, path) in durations.iter() {
            println!("{:8.2} s {:8.2} s processor  {path}", took.as_secs_f64(), used.as_secs_f64());
        }
        let all: Duration = durations.iter().map(|(_, used, _)| used).sum();
        println!("{:.0} s of processor time", all.as_secs_f64());
    }
}
