//! Fault injection for tests: named steps of the flow at which a debug build can be made to die,
//! panic or wait.
//!
//! ```text
//! NPUBBOT_TEST_FAULT=abort:found:before npubbot serve …     dies (SIGABRT) before T2 is committed
//! NPUBBOT_TEST_FAULT=panic:decide:before npubbot serve …    panics there, once
//! NPUBBOT_TEST_FAULT=panics:decide:before npubbot serve …   panics there every time
//! NPUBBOT_TEST_FAULT=hang:collect:before npubbot serve …    one thread hangs there for ever
//! NPUBBOT_TEST_FAULT=hold:launch:before npubbot serve …     every thread waits there until the file exists
//!                                                           that NPUBBOT_TEST_GATE names
//! ```
//!
//! Only a build with `debug_assertions` reads the variable. In a release build `before` and
//! `after` are empty, so neither an attacker nor a forgotten variable can stop an operator's bot.
//! A cargo feature would do the same, but a plain `cargo test` would then skip the tests that need
//! it.
//!
//! The text of a fault names the step and nothing else, so it reveals no request.

/// The steps of a request from the relay to the key, in order; then all other steps.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub enum Step {
    /// The jobs still open from the last run are handed to the scheduler.
    TakeUp,
    /// An event from a relay's stream is accepted for processing.
    Listen,
    /// A wrap from the stream or from a backfill is checked.
    Receive,
    /// A wrap is decrypted.
    Unwrap,
    /// The bot decides on its answer to a message.
    Decide,
    /// The answer is sealed.
    SealAnswer,
    /// Transaction T1. Before: everything is written but not committed.
    Answer,
    /// The job is handed to the scheduler.
    Add,
    /// The start points of a launch are drawn.
    Draw,
    /// A launch is given to a device.
    Launch,
    /// The report of a launch is collected.
    Collect,
    /// The hits of a launch are recomputed.
    Verify,
    /// The start point is spent and the result sealed.
    Redeem,
    /// The best key so far of a job without a target is kept. Before: written but not committed.
    Keep,
    /// Transaction T2. Before: everything is written but not committed.
    Found,
    /// The result is sent. After: a relay said OK.
    Send,
    /// Transaction T3 of a result. Before: everything is written but not committed.
    Deliver,
    /// The inbox's cursor is moved after a backfill.
    MoveCursor,
    /// The outbox sends the messages that are due.
    Round,
    /// The service ends.
    Stop,
}

impl Step {
    /// All steps.
    pub const ALL: [Step; 20] = [
        Step::TakeUp,
        Step::Listen,
        Step::Receive,
        Step::Unwrap,
        Step::Decide,
        Step::SealAnswer,
        Step::Answer,
        Step::Add,
        Step::Draw,
        Step::Launch,
        Step::Collect,
        Step::Verify,
        Step::Redeem,
        Step::Keep,
        Step::Found,
        Step::Send,
        Step::Deliver,
        Step::MoveCursor,
        Step::Round,
        Step::Stop,
    ];

    /// The step's name in `NPUBBOT_TEST_FAULT`.
    pub fn word(self) -> String {
        format!("{self:?}").to_lowercase()
    }
}

/// Marks the point just before `step`: injects the fault that a test has set there.
#[inline]
pub(crate) fn before(step: Step) {
    reach(step, "before");
}

/// Marks the point just after `step`: injects the fault that a test has set there.
#[inline]
pub(crate) fn after(step: Step) {
    reach(step, "after");
}

#[cfg(not(debug_assertions))]
fn reach(_: Step, _: &str) {}

#[cfg(debug_assertions)]
fn reach(step: Step, side: &str) {
    use std::io::Write;
    use std::sync::LazyLock;
    use std::sync::atomic::{AtomicBool, Ordering};

    static WANTED: LazyLock<Option<String>> = LazyLock::new(|| std::env::var("NPUBBOT_TEST_FAULT").ok());
    static DONE: AtomicBool = AtomicBool::new(false);

    let Some((how, place)) = WANTED.as_ref().and_then(|wanted| wanted.split_once(':')) else { return };
    if place != format!("{}:{side}", step.word()) {
        return;
    }
    let is_first = !DONE.swap(true, Ordering::SeqCst);
    if !is_first && !matches!(how, "panics" | "hold") {
        return;
    }
    match how {
        "panic" | "panics" => panic!("test fault: {place}"),
        "hold" => {
            if is_first {
                let _ = writeln!(std::io::stderr(), "test fault: {place}");
            }
            let gate = std::env::var_os("NPUBBOT_TEST_GATE").map(std::path::PathBuf::from).unwrap_or_default();
            while !gate.exists() {
                std::thread::sleep(std::time::Duration::from_millis(5));
            }
        }
        "hang" => {
            let _ = writeln!(std::io::stderr(), "test fault: {place}");
            loop {
                std::thread::park();
            }
        }
        _ => {
            // If standard error cannot be written, the test sees the signal alone.
            let _ = writeln!(std::io::stderr(), "test fault: {place}");
            std::process::abort();
        }
    }
}
