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
//! `tests/it/reliability/steps.rs` lists the steps. The text of a fault names the step and nothing else, so it reveals no request.

/// Marks the point just before `step`: injects the fault that a test has set there.
#[inline]
pub(crate) fn before(step: &str) {
    reach(step, "before");
}

/// Marks the point just after `step`: injects the fault that a test has set there.
#[inline]
pub(crate) fn after(step: &str) {
    reach(step, "after");
}

#[cfg(not(any(test, feature = "test-util")))]
fn reach(_: &str, _: &str) {}

#[cfg(any(test, feature = "test-util"))]
fn reach(step: &str, side: &str) {
    use std::io::Write;
    use std::sync::LazyLock;
    use std::sync::atomic::{AtomicBool, Ordering};

    static WANTED: LazyLock<Option<String>> = LazyLock::new(|| std::env::var("NPUBBOT_TEST_FAULT").ok());
    static DONE: AtomicBool = AtomicBool::new(false);

    let Some((how, place)) = WANTED.as_ref().and_then(|wanted| wanted.split_once(':')) else { return };
    if place != format!("{}:{side}", step) {
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
