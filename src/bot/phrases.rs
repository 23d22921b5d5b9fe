//! The tables of texts, one Fluent file a language, and parts of sentences: lists, reasons,
//! meanings of patterns, numbers and times.

use super::policy::Takes;
use crate::duration::RoundedTime;
use crate::job::JobId;
use crate::key::HalfPointError;
use crate::language::Language;
use crate::pattern::{
    ALPHABET, Best, Difficulty, Family, HEX_DIGITS, MAX_CHARACTERS, MAX_CHOSEN, Pattern, PatternError, PatternKind,
    Rate,
};
use fluent_bundle::concurrent::FluentBundle;
use fluent_bundle::{FluentArgs, FluentResource, FluentValue};
use std::sync::LazyLock;
use std::time::Duration;

/// The texts of each language and the words that are understood, in the order of [`Language::ALL`].
pub(super) const FILES: [(Language, &str, &str); 6] = [
    (Language::English, include_str!("texts/en.ftl"), include_str!("words/en.txt")),
    (Language::Japanese, include_str!("texts/ja.ftl"), include_str!("words/ja.txt")),
    (Language::Spanish, include_str!("texts/es.ftl"), include_str!("words/es.txt")),
    (Language::Portuguese, include_str!("texts/pt.ftl"), include_str!("words/pt.txt")),
    (Language::German, include_str!("texts/de.ftl"), include_str!("words/de.txt")),
    (Language::French, include_str!("texts/fr.ftl"), include_str!("words/fr.txt")),
];

static TABLES: LazyLock<Vec<TextTable>> =
    LazyLock::new(|| FILES.into_iter().map(|(language, texts, _)| TextTable::read(language, texts)).collect());

/// The texts of one language.
pub(super) struct TextTable {
    language: Language,
    bundle: FluentBundle<FluentResource>,
}

/// A value of a text, by its name.
pub(super) type Value<'a> = (&'a str, FluentValue<'a>);

impl TextTable {
    pub fn language(&self) -> Language {
        self.language
    }

    /// The table of a language.
    pub fn of(language: Language) -> &'static TextTable {
        TABLES.iter().find(|table| table.language == language).unwrap_or(&TABLES[0])
    }

    /// Reads a file. Texts that cannot be read are left out; a test checks that there are none.
    fn read(language: Language, source: &str) -> TextTable {
        let resource = FluentResource::try_new(source.to_owned()).unwrap_or_else(|(readable, _)| readable);
        // The plural rules are those of this language.
        let mut bundle = FluentBundle::new_concurrent(language.code().parse().into_iter().collect());
        // Without this, invisible marks of the writing direction surround each value.
        bundle.set_use_isolating(false);
        bundle.add_resource_overriding(resource);
        TextTable { language, bundle }
    }

    /// The text `id` with its values; the English one if this table lacks it. A test checks that no
    /// table lacks any.
    pub fn say(&self, id: &str, values: &[Value<'_>]) -> String {
        match self.lookup(id, values) {
            Some(text) => text,
            None if self.language == Language::default() => {
                debug_assert!(false, "there is no text {id}");
                String::new()
            }
            None => TextTable::of(Language::default()).say(id, values),
        }
    }

    /// The words of a list such as `fillers`; none if this table has no such list.
    pub fn words(&self, id: &str) -> Vec<String> {
        let list = self.lookup(id, &[]).unwrap_or_default();
        list.split_whitespace().map(str::to_owned).collect()
    }

    fn lookup(&self, id: &str, values: &[Value<'_>]) -> Option<String> {
        let pattern = self.bundle.get_message(id)?.value()?;
        let values: FluentArgs<'_> = values.iter().cloned().collect();
        let mut errors = Vec::new();
        let text = self.bundle.format_pattern(pattern, Some(&values), &mut errors);
        debug_assert!(errors.is_empty(), "{} in {}: {errors:?}", id, self.language.code());
        Some(text.into_owned())
    }
}

/// The text of an id with its values: `say!(table, "late", job = job.to_string())`.
macro_rules! say {
    ($table:expr, $id:literal $(, $name:ident = $value:expr)* $(,)?) => {
        $table.say($id, &[$((stringify!($name), fluent_bundle::FluentValue::from($value))),*])
    };
}
pub(super) use say;

/// An answer that begins with a text: `reply!(t, "accepted", job = …, patterns = …)`.
macro_rules! reply {
    ($table:expr, $id:literal $($values:tt)*) => {
        $crate::bot::BotReply { topic: $id, text: $crate::bot::phrases::say!($table, $id $($values)*) }
    };
}
pub(super) use reply;

/// The most jobs named in a list. Further ones are only counted.
const JOBS_LISTED: usize = 8;
/// The most characters shown of a word that the asker wrote.
const WORD_SHOWN: usize = 24;

/// A job's number as commands name it: `12`.
pub(super) fn number(job: JobId) -> String {
    job.0.to_string()
}

/// The patterns as text: `npub1cat`, or `npub1cat or ~dad, whichever is found first`. Shows as many
/// as fit into `room` characters, but at least one.
pub(super) fn any_of(t: &TextTable, patterns: &[Pattern], room: usize) -> String {
    let mut named: Vec<String> = Vec::new();
    let mut length = 0;
    for (number, pattern) in patterns.iter().enumerate() {
        let name = name(pattern);
        length += name.len() + ", ".len();
        if number > 0 && length > room {
            named.push(say!(t, "more", count = patterns.len() - number));
            break;
        }
        named.push(name);
    }
    match named.as_slice() {
        [] => String::new(),
        [only] => only.clone(),
        [many @ .., last] => {
            say!(t, "any-of", list = many.join(&say!(t, "comma")), last = last.clone())
        }
    }
}

/// Sentences that say how busy the bot is: `3 jobs are open. I try 80 million keys a second.`
pub(super) fn at_work(t: &TextTable, jobs: usize, rate: Option<Rate>) -> String {
    match rate {
        Some(rate) => say!(t, "at-work", jobs = jobs, speed = speed(t, rate)),
        None => say!(t, "at-work-unmeasured", jobs = jobs),
    }
}

/// Job numbers as text: `#1, #2 and 3 more`
pub(super) fn list(t: &TextTable, jobs: &[JobId]) -> String {
    let names: Vec<String> = jobs.iter().take(JOBS_LISTED).map(ToString::to_string).collect();
    let names = names.join(&say!(t, "comma"));
    match jobs.len().saturating_sub(JOBS_LISTED) {
        0 => names,
        more => say!(t, "list-and-more", list = names, count = more),
    }
}

/// A word that the asker wrote, shortened.
pub(super) fn shown(word: &str) -> String {
    let mut start: String = word.chars().take(WORD_SHOWN).collect();
    if word.chars().nth(WORD_SHOWN).is_some() {
        start.push('…');
    }
    start
}

/// The reason why a word is not a pattern, and a remedy.
pub(super) fn pattern_error(t: &TextTable, error: &PatternError) -> String {
    let alphabet = std::str::from_utf8(ALPHABET).unwrap_or_default();
    match error {
        PatternError::Empty => say!(t, "pattern-empty", most = MAX_CHARACTERS, alphabet = alphabet),
        PatternError::TooLong(characters) => {
            say!(t, "pattern-too-long", characters = *characters, most = MAX_CHARACTERS)
        }
        PatternError::Impossible(count) => say!(t, "pattern-impossible", count = *count),
        PatternError::Forbidden { character, nearest, look_alike } => {
            let character = character.to_string();
            let reason = match nearest.as_slice() {
                [] => say!(t, "pattern-forbidden", character = character, alphabet = alphabet),
                [only] => say!(t, "pattern-forbidden-one", character = character, first = only.clone()),
                [first, second, ..] => {
                    let (first, second) = (first.clone(), second.clone());
                    say!(t, "pattern-forbidden-two", character = character, first = first, second = second)
                }
            };
            match look_alike.clone() {
                Some(pattern) => say!(t, "pattern-look-alike", reason = reason, pattern = pattern),
                None => reason,
            }
        }
        PatternError::Anything => say!(t, "pattern-anything"),
        PatternError::Class => say!(t, "pattern-class"),
        PatternError::Number { keyword, least, most, nearest: None, example } => {
            let example = example.clone();
            say!(t, "pattern-number", keyword = *keyword, least = *least, most = *most, example = example)
        }
        PatternError::Number { keyword, least, most, nearest: Some(nearest), .. } => {
            let nearest = nearest.clone();
            say!(t, "pattern-number-nearest", keyword = *keyword, least = *least, most = *most, nearest = nearest)
        }
        PatternError::Hex(None) => say!(t, "pattern-hex"),
        PatternError::Hex(Some(first)) => say!(t, "pattern-hex-one", first = first.clone()),
        PatternError::HexTooLong(digits) => {
            let more = digits.saturating_sub(HEX_DIGITS);
            say!(t, "pattern-hex-too-long", most = HEX_DIGITS, digits = *digits, more = more)
        }
        PatternError::Within(None) => say!(t, "pattern-within"),
        PatternError::Within(Some(first)) => say!(t, "pattern-within-one", first = first.clone()),
        PatternError::TooMany(characters) => {
            say!(t, "pattern-too-many", characters = *characters, most = MAX_CHOSEN)
        }
        PatternError::Ending(None) => say!(t, "pattern-ending"),
        PatternError::Ending(Some(first)) => say!(t, "pattern-ending-one", first = first.clone()),
        PatternError::TooIntricate => say!(t, "pattern-too-intricate"),
        PatternError::Best => say!(t, "pattern-best"),
    }
}

/// The reason why a text is not a point, and a remedy.
pub(super) fn point_error(t: &TextTable, error: HalfPointError) -> String {
    match error {
        HalfPointError::NotAPoint => say!(t, "point-not-a-point"),
        HalfPointError::NotOnCurve => say!(t, "point-not-on-curve"),
        HalfPointError::Damaged => say!(t, "point-damaged"),
        HalfPointError::Secret => say!(t, "secret-key"),
    }
}

/// The name of a pattern in a sentence: `npub1m0?tane`, `~alice`.
pub(super) fn name(pattern: &Pattern) -> String {
    match pattern.kind() {
        PatternKind::Prefix | PatternKind::Open => format!("npub1{pattern}"),
        _ => pattern.to_string(),
    }
}

/// The meaning of a pattern: `starts with npub1 and any spelling that looks like “alice”`.
pub(super) fn meaning(t: &TextTable, pattern: &Pattern) -> String {
    let mut said = match pattern.kind() {
        PatternKind::Prefix | PatternKind::Open => vec![say!(t, "meaning-start", text = pattern.to_string())],
        PatternKind::LookAlike => vec![alike(t, pattern.as_str())],
        PatternKind::Parts { start, middle, within, end } => parts(t, start, middle, *within, end),
        PatternKind::Equal(count) => vec![say!(t, "meaning-equal", count = *count)],
        PatternKind::EqualAnywhere(count) => vec![say!(t, "meaning-equal-anywhere", count = *count)],
        PatternKind::HexStart(digits) => vec![say!(t, "meaning-hex-start", text = digits.clone())],
        PatternKind::HexEnd(digits) => vec![say!(t, "meaning-hex-end", text = digits.clone())],
        PatternKind::Zeros(count) => vec![say!(t, "meaning-zeros", count = *count)],
        PatternKind::Words(letters) => vec![say!(t, "meaning-words", count = *letters)],
    };
    if pattern.as_str().contains('?') {
        said.push(say!(t, "open-place"));
    }
    if pattern.as_str().contains('[') {
        said.push(say!(t, "one-of"));
    }
    said.join(&say!(t, "comma"))
}

/// A line with a pattern and its meaning: `~alice: starts with npub1 and any spelling that looks
/// like “alice”.`
pub(super) fn means(t: &TextTable, pattern: &Pattern) -> String {
    say!(t, "means", pattern = name(pattern), meaning = meaning(t, pattern))
}

/// A line with a search without a target and its meaning: `best words 10m: the rarest key seen in
/// 10 min of search, by the word of the built-in list at its start.`
pub(super) fn best_means(t: &TextTable, best: &Best) -> String {
    say!(t, "means", pattern = best.to_string(), meaning = best_meaning(t, best))
}

fn best_meaning(t: &TextTable, best: &Best) -> String {
    let family = match best.family {
        Family::Any => "any",
        Family::Zeros => "zeros",
        Family::Words => "words",
    };
    say!(t, "meaning-best", span = span(t, best.time), family = family)
}

/// The meaning of a pattern in English, for the command line.
pub fn english_meaning(pattern: &Pattern) -> String {
    meaning(TextTable::of(Language::English), pattern)
}

/// The meaning of a search without a target in English, for the command line.
pub fn english_meaning_of_best(best: &Best) -> String {
    best_meaning(TextTable::of(Language::English), best)
}

/// Lines with the meanings of those patterns that are more than a prefix: as many as fit into
/// `room` characters, and at most [`MEANINGS`].
pub(super) fn all_meanings(t: &TextTable, patterns: &[Pattern], mut room: usize) -> Vec<String> {
    let lines = patterns.iter().filter(|pattern| pattern.prefix().is_none()).map(|pattern| means(t, pattern));
    lines
        .take_while(|line| {
            let length = line.chars().count();
            let fits = length <= room;
            room = room.saturating_sub(length);
            fits
        })
        .take(MEANINGS)
        .collect()
}

/// The most meanings in one message.
const MEANINGS: usize = 5;

fn alike(t: &TextTable, word: &str) -> String {
    say!(t, "meaning-alike", text = word.trim_start_matches('~').to_owned())
}

/// A part of a pattern in words: the part itself, or for `~alice` a phrase such as `any spelling
/// that looks like “alice”`.
fn part(t: &TextTable, text: &str) -> String {
    match text.strip_prefix('~') {
        Some(word) => say!(t, "spelling", text = word.to_owned()),
        None => text.to_owned(),
    }
}

fn parts(t: &TextTable, start: &str, middle: &[String], within: Option<usize>, end: &str) -> Vec<String> {
    let mut said = Vec::new();
    if start.starts_with('~') {
        said.push(alike(t, start));
    } else if !start.is_empty() {
        said.push(say!(t, "meaning-start", text = start.to_owned()));
    }
    for text in middle {
        let from = if said.is_empty() { "npub" } else { "start" };
        said.push(match within {
            Some(count) => say!(t, "meaning-within", text = part(t, text), count = count),
            None => say!(t, "meaning-middle", text = part(t, text), from = from),
        });
    }
    if !end.is_empty() {
        said.push(say!(t, "meaning-end", text = part(t, end)));
    }
    said
}

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
fn amount(table: &TextTable, value: f64) -> Amount {
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
pub(super) fn one_in(table: &TextTable, difficulty: Difficulty) -> String {
    amount(table, difficulty.candidates()).text
}

/// A sentence about a difficulty: `About 1 key in 1.1 billion fits.`
pub(super) fn odds(table: &TextTable, difficulty: Difficulty) -> String {
    say!(table, "odds", amount = one_in(table, difficulty))
}

/// A rate in words: `80 million keys a second`.
pub(super) fn speed(table: &TextTable, rate: Rate) -> String {
    let Amount { text, unit } = amount(table, rate.0);
    say!(table, "speed", unit = unit, amount = text)
}

/// A duration in words: `less than a second`, `4 seconds`, `3 min`, `3 h 20 min`, `9 days`, `2
/// years`.
pub(super) fn span(table: &TextTable, time: Duration) -> String {
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
pub(super) fn expected(table: &TextTable, Takes { mean, most }: Takes) -> String {
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
        amount(TextTable::of(language), value).text
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
            (Japanese, "3.3万/110万/11億/340億/1.1兆/1100兆/120京"),
            (
                Spanish,
                "33 mil/1,1 millones/1,1 mil millones/34 mil millones/1,1 billones/1,1 mil billones/1,2 trillones",
            ),
            (Portuguese, "33 mil/1,1 milhão/1,1 bilhão/34 bilhões/1,1 trilhão/1,1 quatrilhão/1,2 quintilhão"),
            (
                German,
                "33 Tausend/1,1 Millionen/1,1 Milliarden/34 Milliarden/1,1 Billionen/1,1 Billiarden/1,2 Trillionen",
            ),
            (French, "33 mille/1,1 million/1,1 milliard/34 milliards/1,1 billion/1,1 billiard/1,2 trillion"),
        ];
        for (language, said) in cases {
            let values = [32_768.0, 1.1e6, 1.1e9, 34.4e9, 1.1e12, 1.1e15, 1.2e18];
            for (value, said) in values.into_iter().zip(said.split('/')) {
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
            assert_eq!(span(TextTable::of(English), time), humanize(time));
        }
        assert_eq!(span(TextTable::of(English), Duration::from_secs(1)), "1 second");
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
            let text = expected(TextTable::of(English), Takes::without_pause(Duration::from_secs_f64(seconds)));
            assert_eq!(text, format!("That takes {said}."), "{seconds}");
        }
        assert!(
            expected(TextTable::of(English), Takes::without_pause(Duration::MAX)).contains("years"),
            "no length overflows"
        );
    }

    /// The command line shows the texts of the error types, and must say the same as the bot.
    #[test]
    fn english_reasons_are_those_of_the_types() {
        let t = TextTable::of(Language::English);
        for text in ["", "b0b", "smörgas", &"q".repeat(53), &format!("{}p", "q".repeat(51))] {
            let error = Pattern::parse(text).unwrap_err();
            assert_eq!(pattern_error(t, &error), error.to_string());
        }
    }
}
