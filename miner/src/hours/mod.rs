//! Hours of the day, such as `22:00-07:00`, in a time zone with its changes to summer time.

mod calendar;
#[cfg(test)]
mod tests;

pub use calendar::Calendar;

use jiff::civil::{Date, Time};
use jiff::tz::{TimeZone, TimeZoneDatabase};
use jiff::{Timestamp, ToSpan};

/// The spelling that [`Hours::parse`] reads, for error texts.
pub const ALLOWED: &str = "spans like \"22:00-07:00\" or \"07:00-09:30, 22:00-24:00\"";

/// The most spans in one text.
const MOST_SPANS: usize = 24;
const MINUTES_A_DAY: u16 = 24 * 60;

/// Spans of the day in local time. Cheap to clone.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Hours {
    spans: Vec<Span>,
    zone: TimeZone,
}

/// A span of the day, in minutes since midnight: from `from` to just before `to`. It passes
/// midnight if `to` is less than `from`.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
struct Span {
    from: u16,
    to: u16,
}

impl Span {
    fn has(self, minute: u16) -> bool {
        match self.from < self.to {
            true => (self.from..self.to).contains(&minute),
            false => minute >= self.from || minute < self.to,
        }
    }

    fn parse(text: &str) -> Option<Span> {
        let (from, to) = text.split_once('-')?;
        let (from, to) = (minute(from.trim())?, minute(to.trim())?);
        // Two equal times are refused: they could mean nothing or the whole day.
        (from != to && from < MINUTES_A_DAY).then_some(Span { from, to })
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
        let spans: Option<Vec<Span>> = spans.split(',').map(|span| Span::parse(span.trim())).collect();
        let spans = spans.filter(|spans| spans.len() <= MOST_SPANS).ok_or_else(|| format!("allowed are {ALLOWED}"))?;
        Ok(Hours { spans, zone: time_zone(zone)? })
    }

    /// Whether a time in Unix seconds is within the hours.
    pub fn contain(&self, unix_seconds: u64) -> bool {
        timestamp(unix_seconds).is_none_or(|at| self.contain_local(at))
    }

    fn contain_local(&self, at: Timestamp) -> bool {
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
        let (Some(from), Some(until)) =
            (timestamp(unix_seconds), timestamp(unix_seconds.saturating_add(u64::from(days) * 86_400)))
        else {
            return Vec::new();
        };
        let mut edges = self.edges(from, until);
        // If clocks jump over an edge, the hours change at the jump.
        let jumps = self.zone.following(from).map(|jump| jump.timestamp());
        edges.extend(jumps.take_while(|&jump| jump <= until));
        edges.retain(|&edge| edge > from && edge <= until);
        edges.sort_unstable();
        edges.dedup();
        let mut is_open = self.contain_local(from);
        edges.retain(|&edge| {
            let was_open = std::mem::replace(&mut is_open, self.contain_local(edge));
            was_open != is_open
        });
        edges.into_iter().filter_map(|edge| u64::try_from(edge.as_second()).ok()).collect()
    }

    /// The beginnings and ends of all spans, from the local day before `from` to the local day
    /// after `until`. When clocks are set back, some times of day occur twice, and both are
    /// returned.
    fn edges(&self, from: Timestamp, until: Timestamp) -> Vec<Timestamp> {
        let date = |at: Timestamp| self.zone.to_datetime(at).date();
        let first = date(from).yesterday().unwrap_or_else(|_| date(from));
        let last = date(until).tomorrow().unwrap_or_else(|_| date(until));
        let mut edges = Vec::new();
        for day in first.series(1.day()).take_while(|&day| day <= last) {
            for minute in self.spans.iter().flat_map(|span| [span.from, span.to]) {
                edges.extend(self.moments(day, minute));
            }
        }
        edges
    }

    fn moments(&self, day: Date, minute: u16) -> Vec<Timestamp> {
        let day = if minute == MINUTES_A_DAY { day.tomorrow().ok() } else { Some(day) };
        let minute = minute % MINUTES_A_DAY;
        let time = Time::new((minute / 60) as i8, (minute % 60) as i8, 0, 0).ok();
        let Some((day, time)) = day.zip(time) else { return Vec::new() };
        let local = self.zone.to_ambiguous_timestamp(day.to_datetime(time));
        [local.earlier(), local.later()].into_iter().flatten().collect()
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
