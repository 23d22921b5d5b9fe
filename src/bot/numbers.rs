//! Numbers as people say them, for the bot's texts.

use crate::duration::humanize;
use crate::pattern::{Difficulty, NINETY_FIVE_PERCENT, Rate};
use std::time::Duration;

/// Names and sizes of the units, in steps of a thousand.
const UNITS: [(f64, &str); 6] = [
    (1e18, " quintillion"),
    (1e15, " quadrillion"),
    (1e12, " trillion"),
    (1e9, " billion"),
    (1e6, " million"),
    (1e3, " thousand"),
];

/// Two significant digits: `970`, `1 thousand`, `1.1 billion`, `34 billion`, `10^25`.
pub(super) fn count(value: f64) -> String {
    // 995 million would be written as 1000 million, so it gets the next unit.
    let Some((size, unit)) = UNITS.into_iter().find(|(size, _)| value >= 0.995 * size) else {
        return format!("{value:.0}");
    };
    let scaled = value / size;
    match scaled {
        ..9.95 => format!("{}{unit}", format!("{scaled:.1}").trim_end_matches(".0")),
        ..1e3 => {
            let step = if scaled < 99.5 { 1.0 } else { 10.0 };
            format!("{:.0}{unit}", (scaled / step).round() * step)
        }
        _ => format!("10^{:.0}", value.log10()),
    }
}

/// `About 1 key in 1.1 billion fits.`
pub(super) fn odds(difficulty: Difficulty) -> String {
    format!("About 1 key in {} fits.", count(difficulty.candidates()))
}

/// `80 million keys a second`
pub(super) fn speed(rate: Rate) -> String {
    format!("{} keys a second", count(rate.0))
}

/// `about 7 min, rarely more than 21`: the mean, and the time within which 95 of 100 searches end.
pub(super) fn expected(mean: Duration) -> String {
    let most = mean.mul_f64(NINETY_FIVE_PERCENT);
    let (mean, most) = (humanize(mean), humanize(most));
    let unit = |text: &str| text.rsplit(' ').next().unwrap_or_default().trim_end_matches('s').to_owned();
    match most.split_once(' ') {
        _ if most == mean => mean,
        _ if mean.starts_with("less") => format!("{mean}, rarely more than {most}"),
        // If both have the same unit, it is named once; `3 h 20 min` has two.
        Some((number, rest)) if !rest.contains(' ') && unit(&mean) == unit(&most) && !mean.contains(" h ") => {
            format!("about {mean}, rarely more than {number}")
        }
        _ => format!("about {mean}, rarely more than {most}"),
    }
}

/// A time in Unix seconds as `14:05 UTC`.
pub(super) fn time_of_day(unix_seconds: u64) -> String {
    format!("{:02}:{:02} UTC", unix_seconds / 3600 % 24, unix_seconds / 60 % 60)
}

/// `1 job`, `3 jobs`.
pub(super) fn plural(count: usize, noun: &str) -> String {
    format!("{count} {noun}{}", if count == 1 { "" } else { "s" })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_are_said_as_people_say_them() {
        let cases = [
            (1.0, "1"),
            (970.0, "970"),
            (999.0, "1 thousand"),
            (32_768.0, "33 thousand"),
            (1_048_576.0, "1 million"),
            (1.1e9, "1.1 billion"),
            (34.4e9, "34 billion"),
            (345e9, "350 billion"),
            (9.96e11, "1 trillion"),
            (1.2e20, "120 quintillion"),
            (1e25, "10^25"),
        ];
        for (value, said) in cases {
            assert_eq!(count(value), said, "{value}");
        }
        assert_eq!(time_of_day(1_800_000_300), "08:05 UTC");
    }

    #[test]
    fn the_expected_time_names_a_unit_once() {
        let cases = [
            (0.05, "less than a second"),
            (0.3, "less than a second, rarely more than 1 second"),
            (2.0, "about 2 seconds, rarely more than 6"),
            (1.0, "about 1 second, rarely more than 3"),
            (430.0, "about 7 min, rarely more than 21"),
            (60.0, "about 60 seconds, rarely more than 3 min"),
            (12_000.0, "about 3 h 20 min, rarely more than 9 h 59 min"),
            (7200.0, "about 2 h, rarely more than 5 h 59 min"),
            (777_600.0, "about 9 days, rarely more than 27"),
        ];
        for (seconds, said) in cases {
            assert_eq!(expected(Duration::from_secs_f64(seconds)), said, "{seconds}");
        }
    }
}
