//! The load of the machine from other programs, for tests that measure time.

use super::harness;
use std::fs;
use std::time::Duration;

/// How long the machine is watched.
const WATCHED: Duration = Duration::from_millis(300);
/// The largest share of the processors in use by others at which times can be judged.
const QUIET: f64 = 0.25;

/// The share of the processors that others used just before a test, from 0 to 1.
#[derive(Clone, Copy)]
pub struct OthersWork(f64);

impl OthersWork {
    /// Measures the share for a moment. Call it at the beginning of a test that runs alone, while
    /// the test runs nothing itself. The share is 0 if the system does not tell.
    pub fn watch() -> OthersWork {
        let before = ticks();
        std::thread::sleep(WATCHED);
        let share = before.zip(ticks()).map(|(before, after)| {
            let all: u64 = after.iter().zip(&before).map(|(after, before)| after.saturating_sub(*before)).sum();
            let busy: u64 = [0, 1, 2].into_iter().map(|at: usize| after[at].saturating_sub(before[at])).sum();
            busy as f64 / all.max(1) as f64
        });
        OthersWork(share.unwrap_or(0.0))
    }

    /// Whether times cannot be judged.
    pub fn are_busy(self) -> bool {
        self.0 > QUIET
    }

    /// Like [`harness::judge`]. On a machine that is busy with other programs, it skips a test that
    /// runs alone instead of failing it, because they may have caused the delay.
    pub fn judge(self, what: &str, took: Duration, allowed: Duration) {
        if took >= allowed && self.are_busy() && !harness::is_beside_others() {
            let others = self.0 * 100.0;
            harness::skip(&format!("{what} took {took:?}, {allowed:?} are allowed, but others use {others:.0} %"));
        }
        harness::judge(what, took, allowed);
    }
}

/// Times since the start of the system, of all processors together, in hundredths of a second. One
/// time for each use: user, user at a lower priority, system, idle and more (`proc_stat(5)`).
fn ticks() -> Option<[u64; 8]> {
    let stat = fs::read_to_string("/proc/stat").ok()?;
    let numbers = stat.lines().next()?.strip_prefix("cpu ")?.split_whitespace().take(8);
    numbers.map(|number| number.parse().ok()).collect::<Option<Vec<u64>>>()?.try_into().ok()
}
