//! Parts of sentences: lists of jobs and prefixes, the work going on, reasons of a refusal.

use super::meanings::name;
use super::numbers::speed;
use super::tables::{Table, say};
use crate::job::JobId;
use crate::key::HalfPointError;
use crate::pattern::{ALPHABET, HEX_DIGITS, MAX_CHARACTERS, MOST_CHOSEN, Pattern, PatternError, Rate};

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
pub(super) fn any_of(t: &Table, patterns: &[Pattern], room: usize) -> String {
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
pub(super) fn at_work(t: &Table, jobs: usize, rate: Option<Rate>) -> String {
    match rate {
        Some(rate) => say!(t, "at-work", jobs = jobs, speed = speed(t, rate)),
        None => say!(t, "at-work-unmeasured", jobs = jobs),
    }
}

/// Job numbers as text: `#1, #2 and 3 more`
pub(super) fn list(t: &Table, jobs: &[JobId]) -> String {
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
pub(super) fn pattern_error(t: &Table, error: &PatternError) -> String {
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
            say!(t, "pattern-too-many", characters = *characters, most = MOST_CHOSEN)
        }
        PatternError::Ending(None) => say!(t, "pattern-ending"),
        PatternError::Ending(Some(first)) => say!(t, "pattern-ending-one", first = first.clone()),
        PatternError::TooIntricate => say!(t, "pattern-too-intricate"),
        PatternError::Best => say!(t, "pattern-best"),
    }
}

/// The reason why a text is not a point, and a remedy.
pub(super) fn point_error(t: &Table, error: HalfPointError) -> String {
    match error {
        HalfPointError::NotAPoint => say!(t, "point-not-a-point"),
        HalfPointError::NotOnCurve => say!(t, "point-not-on-curve"),
        HalfPointError::Damaged => say!(t, "point-damaged"),
        HalfPointError::Secret => say!(t, "secret-key"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::language::Language;

    /// The command line shows the texts of the error types, and must say the same as the bot.
    #[test]
    fn english_reasons_are_those_of_the_types() {
        let t = Table::of(Language::English);
        for text in ["", "b0b", "smörgas", &"q".repeat(53), &format!("{}p", "q".repeat(51))] {
            let error = Pattern::parse(text).unwrap_err();
            assert_eq!(pattern_error(t, &error), error.to_string());
        }
    }
}
