//! Named steps of the flow, where a test makes the program die or panic.
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
//! Only a build with `debug_assertions` reads the variable: in a release build [`before`] and
//! [`after`] are empty, so neither an attacker nor a forgotten variable makes an operator's bot
//! die. A cargo feature would have done the same, but `cargo test` would have left the tests of it
//! out.
//!
//! The text of a fault names the step and nothing else.

/// Steps of one request from the relay to the key, in order, then steps beside it.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub enum Step {
    /// The jobs that were open are handed to the scheduler at the start.
    TakeUp,
    /// An event of the stream is let in.
    Listen,
    /// A wrap from the stream or from a backfill is checked.
    Receive,
    /// A wrap is decrypted.
    Unwrap,
    /// A message is decided.
    Decide,
    /// The answer is sealed.
    SealAnswer,
    /// T1. Before: everything is written and not committed.
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
    /// T2. Before: everything is written and not committed.
    Found,
    /// The result is sent. After: a relay said OK.
    Send,
    /// T3 of a result. Before: everything is written and not committed.
    Deliver,
    /// The inbox's cursor is moved after a backfill.
    MoveCursor,
    /// The outbox sends its due messages.
    Round,
    /// The service ends.
    Stop,
}

impl Step {
    /// Every step.
    pub const ALL: [Step; 19] = [
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
        Step::Found,
        Step::Send,
        Step::Deliver,
        Step::MoveCursor,
        Step::Round,
        Step::Stop,
    ];

    /// Its name in `NPUBBOT_TEST_FAULT`.
    pub fn word(self) -> String {
        format!("{self:?}").to_lowercase()
    }
}

/// Reaches the place before `step`.
#[inline]
pub(crate) fn before(step: Step) {
    reach(step, "before");
}

/// Reaches the place after `step`.
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
    if place != format!("{}:{side}", step.word())
        || (DONE.swap(true, Ordering::SeqCst) && !matches!(how, "panics" | "hold"))
    {
        return;
    }
    match how {
        "panic" | "panics" => panic!("test fault: {place}"),
        "hold" => {
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
            // Where that cannot be written the signal says enough.
            let _ = writeln!(std::io::stderr(), "test fault: {place}");
            std::process::abort();
        }
    }
}
