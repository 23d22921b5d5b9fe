//! Durations as people write and read them: `90 s`, `15 min`, `12 h`, `30 days`.

use std::time::Duration;

/// The spelling that [`parse`] reads, for error texts.
pub const ALLOWED: &str = "a whole number and s, min, h or days, like \"12 h\"";

/// Shortest and longest accepted duration. Anything beyond is a typing mistake.
const SHORTEST: Duration = Duration::from_secs(1);
const LONGEST: Duration = Duration::from_secs(3650 * 86_400);

/// Reads a duration from 1 second to 10 years: `90 s`, `15min`, `2h`, `1 h 30 min`. The
/// configuration and all flags take this spelling.
///
/// Errors: a text that says what is allowed ([`ALLOWED`]).
pub fn parse(text: &str) -> Result<Duration, String> {
    let time = humantime::parse_duration(text.trim()).ok().filter(|time| (SHORTEST..=LONGEST).contains(time));
    time.ok_or_else(|| format!("allowed is {ALLOWED}"))
}

/// A span of time, rounded to the units people say.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum RoundedTime {
    /// Less than half a second.
    Instant,
    /// 1 to 119 seconds.
    Seconds(u64),
    /// 2 to 119 minutes.
    Minutes(u64),
    /// 2 to 47 hours, and the minutes beyond them.
    Hours(u64, u64),
    /// 2 to 729 days.
    Days(u64),
    /// 2 years or more.
    Years(u64),
}

impl From<Duration> for RoundedTime {
    fn from(time: Duration) -> RoundedTime {
        const MINUTE: u64 = 60;
        const HOUR: u64 = 60 * MINUTE;
        const DAY: u64 = 24 * HOUR;
        const YEAR: u64 = 365 * DAY;
        let seconds = time.as_secs_f64().round() as u64;
        match seconds {
            0 => RoundedTime::Instant,
            1..120 => RoundedTime::Seconds(seconds),
            120..7200 => RoundedTime::Minutes((seconds + MINUTE / 2) / MINUTE),
            7200..172_800 => {
                let minutes = (seconds + MINUTE / 2) / MINUTE;
                RoundedTime::Hours(minutes / 60, minutes % 60)
            }
            172_800..63_072_000 => RoundedTime::Days((seconds + DAY / 2) / DAY),
            _ => RoundedTime::Years(seconds.saturating_add(YEAR / 2) / YEAR),
        }
    }
}

/// Formats a duration for people: `less than a second`, `4 seconds`, `3 min`, `3 h 20 min`, `9
/// days`, `2 years`.
pub fn humanize(time: Duration) -> String {
    let plural = |count: u64, unit: &str| format!("{count} {unit}{}", if count == 1 { "" } else { "s" });
    match RoundedTime::from(time) {
        RoundedTime::Instant => "less than a second".to_owned(),
        RoundedTime::Seconds(count) => plural(count, "second"),
        RoundedTime::Minutes(count) => format!("{count} min"),
        RoundedTime::Hours(count, 0) => format!("{count} h"),
        RoundedTime::Hours(count, minutes) => format!("{count} h {minutes} min"),
        RoundedTime::Days(count) => plural(count, "day"),
        RoundedTime::Years(count) => plural(count, "year"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn durations_are_read_as_operators_write_them() {
        let cases = [("90 s", 90), ("15 min", 900), ("12 h", 43_200), ("1 day", 86_400), (" 30 days ", 30 * 86_400)];
        for (text, seconds) in cases {
            assert_eq!(parse(text), Ok(Duration::from_secs(seconds)), "{text}");
        }
        assert_eq!(parse("1h 30min"), Ok(Duration::from_secs(5400)));
        for text in ["", "12", "h", "-1 h", "0 s", "999 ms", "1 fortnight", "3651 days", "99999999999999999999 h"] {
            assert!(parse(text).is_err(), "{text}");
        }
    }

    #[test]
    fn durations_are_written_as_people_say_them() {
        let cases = [
            (0.4, "less than a second"),
            (1.0, "1 second"),
            (4.4, "4 seconds"),
            (119.4, "119 seconds"),
            (180.0, "3 min"),
            (7200.0, "2 h"),
            (12_000.0, "3 h 20 min"),
            (777_600.0, "9 days"),
            (63_072_000.0, "2 years"),
            (3.15e10, "999 years"),
        ];
        for (seconds, expected) in cases {
            assert_eq!(humanize(Duration::from_secs_f64(seconds)), expected);
        }
    }
}
