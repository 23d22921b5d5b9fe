//! Hours of the day, such as `22:00-07:00`, in a time zone with its changes to summer time, and the
//! expected times of a search that runs only within them.

#[cfg(test)]
mod tests;

use jiff::Timestamp;
use jiff::civil::Time;
use jiff::tz::{TimeZone, TimeZoneDatabase};
use std::time::Duration;

/// The spelling that [`Hours::parse`] reads, for error texts.
pub const ALLOWED: &str = "spans like \"22:00-07:00\" or \"07:00-09:30, 22:00-24:00\"";

/// The most spans in one text.
const MAX_SPANS: usize = 24;
const MINUTES_A_DAY: u16 = 24 * 60;

/// Spans of the day in local time. Cheap to clone.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Hours {
    spans: Vec<DaySpan>,
    zone: TimeZone,
}

/// A span of the day, in minutes since midnight: from `from` to just before `to`. It passes
/// midnight if `to` is less than `from`.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
struct DaySpan {
    from: u16,
    to: u16,
}

impl DaySpan {
    fn has(self, minute: u16) -> bool {
        match self.from < self.to {
            true => (self.from..self.to).contains(&minute),
            false => minute >= self.from || minute < self.to,
        }
    }

    fn parse(text: &str) -> Option<DaySpan> {
        let (from, to) = text.split_once('-')?;
        let (from, to) = (minute(from.trim())?, minute(to.trim())?);
        // Two equal times are refused: they could mean nothing or the whole day.
        (from != to && from < MINUTES_A_DAY).then_some(DaySpan { from, to })
    }
}

/// Parses a time of day, `00:00` to `24:00`, to minutes since midnight. The hour may have one
/// digit.
fn minute(text: &str) -> Option<u16> {
    let (hours, minutes) = text.split_once(':')?;
    let number = |digits: &str| {
        let is_number = (1..=2).contains(&digits.len()) && digits.bytes().all(|byte| byte.is_ascii_digit());
        if is_number { digits.parse::<u16>().ok() } else { None }
    };
    let (hours, minutes) = (number(hours)?, number(minutes).filter(|_| minutes.len() == 2)?);
    (minutes < 60).then_some(60 * hours + minutes).filter(|&minute| minute <= MINUTES_A_DAY)
}

impl Hours {
    /// Reads spans of the day: `22:00-07:00`, several with commas between them.
    ///
    /// `zone`: a name of the tz database like `Europe/Berlin`; empty for the system's (the variable
    /// `TZ`, else `/etc/localtime`, else UTC). Errors: a text that says which spans are allowed
    /// ([`ALLOWED`]), or that the zone is unknown.
    pub fn parse(spans: &str, zone: &str) -> Result<Hours, String> {
        let spans: Option<Vec<DaySpan>> = spans.split(',').map(|span| DaySpan::parse(span.trim())).collect();
        let spans = spans.filter(|spans| spans.len() <= MAX_SPANS).ok_or_else(|| format!("allowed are {ALLOWED}"))?;
        Ok(Hours { spans, zone: time_zone(zone)? })
    }

    /// Whether a time in Unix seconds is within the hours.
    pub fn contain(&self, unix_seconds: u64) -> bool {
        let Some(at) = timestamp(unix_seconds) else { return true };
        let local = self.zone.to_datetime(at);
        let minute = 60 * u16::from(local.hour().unsigned_abs()) + u16::from(local.minute().unsigned_abs());
        self.spans.iter().any(|span| span.has(minute))
    }

    /// The next time, in Unix seconds, at which the hours begin or end; `None` if they do neither
    /// within two days.
    pub fn next_change(&self, unix_seconds: u64) -> Option<u64> {
        self.changes(unix_seconds, 2).first().copied()
    }

    /// The times, in Unix seconds, at which the hours begin or end within `days` days from a time
    /// on.
    fn changes(&self, unix_seconds: u64, days: u32) -> Vec<u64> {
        let until = unix_seconds.saturating_add(u64::from(days) * 86_400);
        let (mut at, mut is_open, mut changes) = (unix_seconds, self.contain(unix_seconds), Vec::new());
        while let Some(edge) = self.next_edge(at).filter(|&edge| edge <= until) {
            at = edge;
            if self.contain(at) != is_open {
                is_open = !is_open;
                changes.push(at);
            }
        }
        changes
    }

    /// The next time, in Unix seconds, at which the clock shows the beginning or the end of a span, or
    /// jumps: the hours can change at a jump, too.
    fn next_edge(&self, unix_seconds: u64) -> Option<u64> {
        let now = timestamp(unix_seconds)?;
        let local = self.zone.to_datetime(now).time();
        let passed = Time::midnight().duration_until(local).as_secs();
        let ahead = |minute: u16| (60 * i64::from(minute) - passed - 1).rem_euclid(86_400) + 1;
        let edge = self.spans.iter().flat_map(|span| [span.from, span.to]).map(ahead).min()?;
        let jump = self.zone.following(now).next().map(|jump| jump.timestamp().as_second());
        let edge = unix_seconds.checked_add(edge.unsigned_abs())?;
        Some(jump.and_then(|jump| u64::try_from(jump).ok()).map_or(edge, |jump| jump.min(edge)))
    }

    /// The time of day in the zone, with the zone's abbreviation: `22:00 CET`.
    pub fn local_time(&self, unix_seconds: u64) -> String {
        let Some(at) = timestamp(unix_seconds) else { return String::new() };
        at.to_zoned(self.zone.clone()).strftime("%H:%M %Z").to_string()
    }
}

/// The day (UTC) of a time in Unix seconds: `2026-11-23`.
pub fn date(unix_seconds: u64) -> String {
    timestamp(unix_seconds).map_or_else(String::new, |at| at.strftime("%Y-%m-%d").to_string())
}

fn timestamp(unix_seconds: u64) -> Option<Timestamp> {
    Timestamp::from_second(i64::try_from(unix_seconds).ok()?).ok()
}

/// The zone of this name; the system's if the name is empty.
fn time_zone(name: &str) -> Result<TimeZone, String> {
    if name.is_empty() {
        return Ok(TimeZone::try_system().unwrap_or(TimeZone::UTC));
    }
    let unknown = || format!("\"{name}\" is no time zone; allowed is a name like \"Europe/Berlin\" or \"UTC\"");
    let known = jiff::tz::db().get(name).or_else(|_| TimeZoneDatabase::bundled().get(name));
    known.map_err(|_| unknown())
}

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
    /// The spans within the hours from this time on, in Unix seconds, for `days` days.
    fn open_spans(&self, from: u64, days: u32) -> Vec<(u64, u64)> {
        let mut edges = self.changes(from, days);
        if self.contain(from) {
            edges.insert(0, from);
        }
        let end = from.saturating_add(u64::from(days) * 86_400);
        edges.chunks(2).map(|span| (span[0], span.get(1).copied().unwrap_or(end))).collect()
    }

    /// The hours from this time on, in Unix seconds.
    pub fn calendar(&self, from: u64) -> Calendar {
        let spans = self.open_spans(from, DAYS);
        // Every day has spans, so the hours always begin again.
        let wait = spans.first().map_or(u64::from(DAYS) * 86_400, |(begin, _)| begin - from);
        // The last span, after which nothing is known, is left out.
        let turn = |pair: &[(u64, u64)]| ((pair[0].1 - pair[0].0) as f64, (pair[1].0 - pair[0].1) as f64);
        Calendar { wait: Duration::from_secs(wait), turns: spans.windows(2).map(turn).collect() }
    }

    /// Seconds within the hours between two times in Unix seconds. Beyond 60 days they are
    /// estimated from the first 60.
    pub fn between(&self, from: u64, until: u64) -> u64 {
        const MAX_DAYS: u32 = 60;
        let whole = until.saturating_sub(from);
        let looked_at = whole.min(u64::from(MAX_DAYS) * 86_400);
        let end = from.saturating_add(looked_at);
        let spans = self.open_spans(from, MAX_DAYS).into_iter();
        let open: u64 = spans.map(|(begin, close)| close.min(end).saturating_sub(begin)).sum();
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
