//! The load of the machine from other programs, for tests that measure time.

use std::fs;
use std::time::Duration;

/// How long the machine is watched.
const WATCHED: Duration = Duration::from_millis(300);
/// The largest share of the processors in use by others at which times can be judged.
pub const QUIET: f64 = 0.25;

/// The share of the processors that other programs use, from 0 to 1, watched for a moment. Call it
/// while no test runs. 0 if the system does not tell.
pub fn others_share() -> f64 {
    let before = ticks();
    std::thread::sleep(WATCHED);
    let share = before.zip(ticks()).map(|(before, after)| {
        let all: u64 = after.iter().zip(&before).map(|(after, before)| after.saturating_sub(*before)).sum();
        let busy: u64 = [0, 1, 2].into_iter().map(|at: usize| after[at].saturating_sub(before[at])).sum();
        busy as f64 / all.max(1) as f64
    });
    share.unwrap_or(0.0)
}

/// Times since the start of the system, of all processors together, in hundredths of a second. One
/// time for each use: user, user at a lower priority, system, idle and more (`proc_stat(5)`).
fn ticks() -> Option<[u64; 8]> {
    let stat = fs::read_to_string("/proc/stat").ok()?;
    let numbers = stat.lines().next()?.strip_prefix("cpu ")?.split_whitespace().take(8);
    numbers.map(|number| number.parse().ok()).collect::<Option<Vec<u64>>>()?.try_into().ok()
}
