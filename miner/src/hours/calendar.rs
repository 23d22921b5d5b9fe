//! Expected times of a search that runs only within the hours.

use super::Hours;
use std::time::Duration;

/// Number of days whose hours are computed one by one. Later days are taken to be like their
/// average.
const DAYS: u32 = 14;
/// The longest time that is reported, in seconds: more than anybody waits.
const LONGEST: f64 = 1e15;

/// The hours of the search from one moment on.
#[derive(Clone, PartialEq, Debug)]
pub struct Calendar {
    /// Time until the hours begin; zero within them.
    wait: Duration,
    /// The turns after the wait: seconds within the hours, then seconds until they begin again.
    turns: Vec<(f64, f64)>,
}

impl Hours {
    /// The hours from this time on, in Unix seconds.
    pub fn calendar(&self, unix_seconds: u64) -> Calendar {
        let changes = self.changes(unix_seconds, DAYS);
        let (wait, begin, rest) = match (self.contain(unix_seconds), changes.as_slice()) {
            (true, changes) => (0, unix_seconds, changes),
            (false, [begin, rest @ ..]) => (begin - unix_seconds, *begin, rest),
            // Every day has spans, so the hours always begin again.
            (false, []) => (u64::from(DAYS) * 86_400, unix_seconds, [].as_slice()),
        };
        let mut turns = Vec::new();
        let mut begin = begin;
        // A last turn without an end is left out.
        for turn in rest.chunks_exact(2) {
            turns.push(((turn[0] - begin) as f64, (turn[1] - turn[0]) as f64));
            begin = turn[1];
        }
        Calendar { wait: Duration::from_secs(wait), turns }
    }

    /// Seconds within the hours between two times in Unix seconds. Beyond 60 days they are
    /// estimated from the first 60.
    pub fn between(&self, from: u64, until: u64) -> u64 {
        const MOST_DAYS: u64 = 60;
        let whole = until.saturating_sub(from);
        let looked_at = whole.min(MOST_DAYS * 86_400);
        let (mut is_open, mut last, mut open) = (self.contain(from), from, 0);
        let end = from.saturating_add(looked_at);
        let changes = self.changes(from, MOST_DAYS as u32).into_iter().take_while(|&change| change < end);
        for change in changes.chain([end]) {
            open += if is_open { change - last } else { 0 };
            (is_open, last) = (!is_open, change);
        }
        if whole == looked_at { open } else { (open as f64 / looked_at as f64 * whole as f64) as u64 }
    }
}

impl Calendar {
    /// Time until the hours begin; zero within them.
    pub fn wait(&self) -> Duration {
        self.wait
    }

    /// The mean time of a search, pauses included, from the beginning of the hours on. `mean` is
    /// its mean time without pauses. The search has no memory, so it is still running at the k-th
    /// pause with the chance `exp(-sₖ / mean)`, where `sₖ` is the time searched before that pause.
    /// Each pause counts with its chance.
    pub fn mean(&self, mean: Duration) -> Duration {
        let mean = mean.as_secs_f64();
        let (mut searched, mut pauses) = (0.0, 0.0);
        for (open, closed) in &self.turns {
            searched += open;
            pauses += closed * chance(searched, mean);
        }
        seconds(mean + pauses + mean * chance(searched, mean) * self.pause_per_search())
    }

    /// The time from the beginning of the hours until the search has run for `search`, pauses
    /// included.
    pub fn within(&self, search: Duration) -> Duration {
        let (mut left, mut passed) = (search.as_secs_f64(), 0.0);
        for (open, closed) in &self.turns {
            if left <= *open {
                return seconds(passed + left);
            }
            left -= open;
            passed += open + closed;
        }
        seconds(passed + left * (1.0 + self.pause_per_search()))
    }

    /// Seconds outside the hours for each second within them, on average.
    fn pause_per_search(&self) -> f64 {
        let (open, closed) = self.turns.iter().fold((0.0, 0.0), |sum, turn| (sum.0 + turn.0, sum.1 + turn.1));
        if open > 0.0 { closed / open } else { 0.0 }
    }
}

/// The chance that a search with this mean time is still running after `searched` seconds.
fn chance(searched: f64, mean: f64) -> f64 {
    if mean > 0.0 { (-searched / mean).exp() } else { 0.0 }
}

fn seconds(seconds: f64) -> Duration {
    Duration::from_secs_f64(if seconds.is_finite() { seconds.clamp(0.0, LONGEST) } else { LONGEST })
}
