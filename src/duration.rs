//! Durations in the words people use.

use std::time::Duration;

/// Formats a duration for people: `less than a second`, `4 seconds`, `3 min`, `3 h 20 min`, `9
/// days`, `2 years`.
pub fn humanize(time: Duration) -> String {
    const MINUTE: u64 = 60;
    const HOUR: u64 = 60 * MINUTE;
    const DAY: u64 = 24 * HOUR;
    const YEAR: u64 = 365 * DAY;
    let seconds = time.as_secs_f64().round() as u64;
    let plural = |count: u64, unit: &str| format!("{count} {unit}{}", if count == 1 { "" } else { "s" });
    match seconds {
        0 => "less than a second".to_owned(),
        1..120 => plural(seconds, "second"),
        120..7200 => format!("{} min", (seconds + MINUTE / 2) / MINUTE),
        7200..172_800 => {
            let minutes = (seconds + MINUTE / 2) / MINUTE;
            if minutes.is_multiple_of(60) {
                format!("{} h", minutes / 60)
            } else {
                format!("{} h {} min", minutes / 60, minutes % 60)
            }
        }
        172_800..63_072_000 => plural((seconds + DAY / 2) / DAY, "day"),
        _ => plural((seconds + YEAR / 2) / YEAR, "year"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

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
