//! Numbers and spans of time as people say them, for the bot's texts.

use super::tables::{Table, say};
use super::takes::Takes;
use crate::duration::RoundedTime;
use crate::pattern::{Difficulty, Rate};
use std::time::Duration;

/// Sizes with their names, in steps of a thousand as in most languages. The table of a language
/// translates the names: `billion` is „Milliarde“ and “mil millones”.
const THOUSANDS: [(f64, &str); 7] = [
    (1e18, "quintillion"),
    (1e15, "quadrillion"),
    (1e12, "trillion"),
    (1e9, "billion"),
    (1e6, "million"),
    (1e3, "thousand"),
    (1.0, "none"),
];
/// The words for large numbers in languages that count in ten thousands.
const MYRIADS: [(f64, &str); 6] =
    [(1e20, "gai"), (1e16, "kei"), (1e12, "cho"), (1e8, "oku"), (1e4, "man"), (1.0, "none")];

/// A number in words, and the name it has in [`THOUSANDS`] or [`MYRIADS`].
struct Amount {
    text: String,
    unit: &'static str,
}

/// Puts a number into words, with two significant digits from a thousand up: `970`, `1 thousand`,
/// `1.1 billion`, `34 billion`, `10^25`.
fn amount(table: &Table, value: f64) -> Amount {
    let is_myriads = table.say("number-names", &[]) == "myriads";
    let (names, step): (&[_], f64) = if is_myriads { (&MYRIADS, 1e4) } else { (&THOUSANDS, 1e3) };
    // 995 million would be rounded to 1000 million, so it takes the next name.
    let (size, unit) = names.iter().copied().find(|(size, _)| value >= 0.995 * size).unwrap_or((1.0, "none"));
    let scaled = value / size;
    if scaled >= step {
        return Amount { text: format!("10^{:.0}", value.log10()), unit: "none" };
    }
    let said = match scaled {
        _ if unit == "none" && scaled < 1e3 => scaled.round(),
        ..9.95 => (scaled * 10.0).round() / 10.0,
        _ => {
            let digits = 10f64.powf(scaled.log10().floor() - 1.0).max(1.0);
            (scaled / digits).round() * digits
        }
    };
    let number = said.to_string().replace('.', &table.say("decimal", &[]));
    Amount { text: say!(table, "amount", unit = unit, number = number, quantity = said), unit }
}

/// The number of keys of which one fits, in words: `1.1 billion`.
pub(super) fn one_in(table: &Table, difficulty: Difficulty) -> String {
    amount(table, difficulty.candidates()).text
}

/// A sentence about a difficulty: `About 1 key in 1.1 billion fits.`
pub(super) fn odds(table: &Table, difficulty: Difficulty) -> String {
    say!(table, "odds", amount = one_in(table, difficulty))
}

/// A rate in words: `80 million keys a second`.
pub(super) fn speed(table: &Table, rate: Rate) -> String {
    let Amount { text, unit } = amount(table, rate.0);
    say!(table, "speed", unit = unit, amount = text)
}

/// A duration in words: `less than a second`, `4 seconds`, `3 min`, `3 h 20 min`, `9 days`, `2
/// years`.
pub(super) fn span(table: &Table, time: Duration) -> String {
    match RoundedTime::from(time) {
        RoundedTime::Hours(hours, minutes) if minutes > 0 => {
            say!(table, "span-hours-minutes", hours = hours, minutes = minutes)
        }
        span => {
            let (unit, count) = unit_of(span);
            say!(table, "span", unit = unit, count = count)
        }
    }
}

/// The unit of a span, as the tables name it, and the number of units.
fn unit_of(span: RoundedTime) -> (&'static str, u64) {
    match span {
        RoundedTime::Instant => ("instant", 0),
        RoundedTime::Seconds(count) => ("seconds", count),
        RoundedTime::Minutes(count) => ("minutes", count),
        RoundedTime::Hours(count, _) => ("hours", count),
        RoundedTime::Days(count) => ("days", count),
        RoundedTime::Years(count) => ("years", count),
    }
}

/// A sentence about an expected time: `That takes about 7 min, rarely more than 21.` It names the
/// mean, and the time within which 95 of 100 searches end.
pub(super) fn expected(table: &Table, Takes { mean, most }: Takes) -> String {
    let (mean_span, most_span) = (RoundedTime::from(mean), RoundedTime::from(most));
    let mean = span(table, mean);
    if mean_span == most_span {
        return say!(table, "takes-exactly", mean = mean);
    }
    if mean_span == RoundedTime::Instant {
        return say!(table, "takes-little", mean = mean, most = span(table, most));
    }
    let ((unit, _), (most_unit, count)) = (unit_of(mean_span), unit_of(most_span));
    let has_two = |span| matches!(span, RoundedTime::Hours(_, minutes) if minutes > 0);
    // If both times have the same unit, it is said once. `3 h 20 min` has two units.
    let most = if unit == most_unit && !has_two(mean_span) && !has_two(most_span) {
        say!(table, "span-again", unit = unit, count = count)
    } else {
        span(table, most)
    };
    say!(table, "takes-about", mean = mean, most = most)
}

/// The time of day at a time in Unix seconds: `14:05 UTC`.
pub(super) fn time_of_day(unix_seconds: u64) -> String {
    format!("{:02}:{:02} UTC", unix_seconds / 3600 % 24, unix_seconds / 60 % 60)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::duration::humanize;
    use crate::language::Language::{self, English, French, German, Japanese, Portuguese, Spanish};

    fn count(language: Language, value: f64) -> String {
        amount(Table::of(language), value).text
    }

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
            assert_eq!(count(English, value), said, "{value}");
        }
        assert_eq!(time_of_day(1_800_000_300), "08:05 UTC");
    }

    /// A billion is 10^9 in English and in Brazil, and 10^12 in Spanish, German and French.
    #[test]
    fn short_and_long_scale_are_not_mixed_up() {
        let cases = [
            (Japanese, ["3.3万", "110万", "11億", "340億", "1.1兆", "1100兆", "120京"]),
            (
                Spanish,
                [
                    "33 mil",
                    "1,1 millones",
                    "1,1 mil millones",
                    "34 mil millones",
                    "1,1 billones",
                    "1,1 mil billones",
                    "1,2 trillones",
                ],
            ),
            (
                Portuguese,
                ["33 mil", "1,1 milhão", "1,1 bilhão", "34 bilhões", "1,1 trilhão", "1,1 quatrilhão", "1,2 quintilhão"],
            ),
            (
                German,
                [
                    "33 Tausend",
                    "1,1 Millionen",
                    "1,1 Milliarden",
                    "34 Milliarden",
                    "1,1 Billionen",
                    "1,1 Billiarden",
                    "1,2 Trillionen",
                ],
            ),
            (
                French,
                [
                    "33 mille",
                    "1,1 million",
                    "1,1 milliard",
                    "34 milliards",
                    "1,1 billion",
                    "1,1 billiard",
                    "1,2 trillion",
                ],
            ),
        ];
        for (language, said) in cases {
            let values = [32_768.0, 1.1e6, 1.1e9, 34.4e9, 1.1e12, 1.1e15, 1.2e18];
            for (value, said) in values.into_iter().zip(said) {
                assert_eq!(count(language, value), said, "{value}");
            }
            assert_eq!(count(language, 970.0), "970");
            assert_eq!(count(language, 1e25).chars().next(), Some('1'));
        }
        assert_eq!(count(German, 1e6), "1 Million");
        assert_eq!(count(Spanish, 1e6), "1 millón");
        assert_eq!(count(Japanese, 1e25), "10^25");
        assert_eq!(count(Japanese, 8e7), "8000万");
    }

    #[test]
    fn english_spans_are_those_of_the_command_line() {
        for power in 0..70 {
            let time = Duration::from_secs_f64(0.3 * 1.9f64.powi(power).min(1e19));
            assert_eq!(span(Table::of(English), time), humanize(time));
        }
        assert_eq!(span(Table::of(English), Duration::from_secs(1)), "1 second");
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
            let text = expected(Table::of(English), Takes::without_pause(Duration::from_secs_f64(seconds)));
            assert_eq!(text, format!("That takes {said}."), "{seconds}");
        }
        assert!(
            expected(Table::of(English), Takes::without_pause(Duration::MAX)).contains("years"),
            "no length overflows"
        );
    }
}
