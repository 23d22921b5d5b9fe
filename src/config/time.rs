//! Spans of time as operators write them: `90 s`, `15 min`, `12 h`, `30 days`.

use std::time::Duration;

/// What an operator may write.
pub const ALLOWED: &str = "a whole number and s, min, h or days, like \"12 h\"";

/// Longest span that is accepted: what lies beyond is a slip of the pen.
const LONGEST_DAYS: u64 = 3650;

/// A span of at least a second. `None` for anything else.
pub fn parse(text: &str) -> Option<Duration> {
    let text = text.trim();
    let digits = text.find(|c: char| !c.is_ascii_digit())?;
    let number: u64 = text[..digits].parse().ok()?;
    let unit = match text[digits..].trim() {
        "s" | "second" | "seconds" => 1,
        "min" | "minute" | "minutes" => 60,
        "h" | "hour" | "hours" => 3600,
        "d" | "day" | "days" => 86_400,
        _ => return None,
    };
    let seconds = number.checked_mul(unit)?;
    (1..=LONGEST_DAYS * 86_400).contains(&seconds).then(|| Duration::from_secs(seconds))
}
