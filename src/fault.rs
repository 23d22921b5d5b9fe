//! Named steps of the flow at which tests make the program die, panic or wait. Only builds with the
//! feature `test-util` can: in others the steps are empty, so neither an attacker nor a forgotten
//! variable can stop an operator's bot.
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
//! The text of a fault names the step and nothing else, so it reveals no request.

/// Declares the steps, and the list of all of them.
macro_rules! steps {
    ($($(#[$about:meta])* $step:ident,)*) => {
        /// The steps of a request from the relay to the key, in order; then all other steps.
        #[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
        pub enum Step { $($(#[$about])* $step,)* }

        impl Step {
            /// All steps.
            pub const ALL: &[Step] = &[$(Step::$step),*];
        }
    };
}

steps! {
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
    /// The result is sent. After: a relay said OK to both of its events.
    Send,
    /// The second event of a result is sent, to a relay that has the first.
    SendKey,
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

#[cfg(not(any(test, feature = "test-util")))]
fn reach(_: Step, _: &str) {}

#[cfg(any(test, feature = "test-util"))]
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
    if how.starts_with("panic") {
        panic!("test fault: {place}");
    }
    if is_first {
        // If standard error cannot be written, the test sees the outcome alone.
        let _ = writeln!(std::io::stderr(), "test fault: {place}");
    }
    match how {
        "hold" => {
            let gate = std::env::var_os("NPUBBOT_TEST_GATE").map(std::path::PathBuf::from).unwrap_or_default();
            while !gate.exists() {
                std::thread::sleep(std::time::Duration::from_millis(5));
            }
        }
        "hang" => loop {
            std::thread::park();
        },
        _ => std::process::abort(),
    }
}
