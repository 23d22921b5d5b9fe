//! Meanings of patterns, in words.

use super::numbers::span;
use super::tables::{Table, say};
use crate::language::Language;
use crate::pattern::{Best, Family, Pattern, PatternKind};

/// The name of a pattern in a sentence: `npub1m0?tane`, `~alice`.
pub(super) fn name(pattern: &Pattern) -> String {
    match pattern.kind() {
        PatternKind::Prefix | PatternKind::Open => format!("npub1{pattern}"),
        _ => pattern.to_string(),
    }
}

/// The meaning of a pattern: `starts with npub1 and any spelling that looks like “alice”`.
pub(super) fn meaning(t: &Table, pattern: &Pattern) -> String {
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
pub(super) fn means(t: &Table, pattern: &Pattern) -> String {
    say!(t, "means", pattern = name(pattern), meaning = meaning(t, pattern))
}

/// A line with a search without a target and its meaning: `best words 10m: the rarest key seen in
/// 10 min of search, by the word of the built-in list at its start.`
pub(super) fn best_means(t: &Table, best: &Best) -> String {
    say!(t, "means", pattern = best.to_string(), meaning = best_meaning(t, best))
}

fn best_meaning(t: &Table, best: &Best) -> String {
    let family = match best.family {
        Family::Any => "any",
        Family::Zeros => "zeros",
        Family::Words => "words",
    };
    say!(t, "meaning-best", span = span(t, best.time), family = family)
}

/// The meaning of a pattern in English, for the command line.
pub fn english_meaning(pattern: &Pattern) -> String {
    meaning(Table::of(Language::English), pattern)
}

/// The meaning of a search without a target in English, for the command line.
pub fn english_meaning_of_best(best: &Best) -> String {
    best_meaning(Table::of(Language::English), best)
}

/// Lines with the meanings of those patterns that are more than a prefix: as many as fit into
/// `room` characters, and at most [`MEANINGS`].
pub(super) fn all_meanings(t: &Table, patterns: &[Pattern], mut room: usize) -> Vec<String> {
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

fn alike(t: &Table, word: &str) -> String {
    say!(t, "meaning-alike", text = word.trim_start_matches('~').to_owned())
}

/// A part of a pattern in words: the part itself, or for `~alice` a phrase such as `any spelling
/// that looks like “alice”`.
fn part(t: &Table, text: &str) -> String {
    match text.strip_prefix('~') {
        Some(word) => say!(t, "spelling", text = word.to_owned()),
        None => text.to_owned(),
    }
}

fn parts(t: &Table, start: &str, middle: &[String], within: Option<usize>, end: &str) -> Vec<String> {
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
