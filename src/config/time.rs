//! Durations as operators write them: `90 s`, `15 min`, `12 h`, `30 days`.

use std::time::Duration;

/// The allowed spelling, for error texts.
pub(super) const ALLOWED: &str = "a whole number and s, min, h or days, like \"12 h\"";

/// Shortest and longest accepted duration. Anything beyond is a typing mistake.
const SHORTEST: Duration = Duration::from_secs(1);
const LONGEST: Duration = Duration::from_secs(3650 * 86_400);

/// Reads a duration from 1 second to 10 years; `None` for anything else.
pub(super) fn parse(text: &str) -> Option<Duration> {
    humantime::parse_duration(text.trim()).ok().filter(|time| (SHORTEST..=LONGEST).contains(time))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn durations_are_read_as_operators_write_them() {
        let cases = [("90 s", 90), ("15 min", 900), ("12 h", 43_200), ("1 day", 86_400), (" 30 days ", 30 * 86_400)];
        for (text, seconds) in cases {
            assert_eq!(parse(text), Some(Duration::from_secs(seconds)), "{text}");
        }
        assert_eq!(parse("1h 30min"), Some(Duration::from_secs(5400)));
        for text in ["", "12", "h", "-1 h", "0 s", "999 ms", "1 fortnight", "3651 days", "99999999999999999999 h"] {
            assert_eq!(parse(text), None, "{text}");
        }
    }
}
