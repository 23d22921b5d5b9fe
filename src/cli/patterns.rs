//! Patterns on the command line.

use crate::bot::{accepted_by_bot, nearest_accepted};
use crate::duration::humanize;
use crate::os::BYTE_ORDER_MARK;
use crate::pattern::{Best, Difficulty, NINETY_FIVE_PERCENT, Pattern, Rate, patterns_of_words};
use anyhow::{Context, anyhow, bail, ensure};
use clap::Args;
use std::path::{Path, PathBuf};

/// The parts of a text, which commas and spaces separate.
fn parts(text: &str) -> impl Iterator<Item = &str> {
    text.split(|letter: char| letter == ',' || letter.is_whitespace()).filter(|part| !part.is_empty())
}

/// The request of a command line.
#[derive(Clone, Debug)]
pub(super) enum SearchTarget {
    /// Any of these patterns.
    Patterns(Vec<Pattern>),
    /// A search without a target.
    Best(Best),
}

impl SearchTarget {
    /// Patterns of which every key of the search meets one.
    pub fn patterns(&self) -> Vec<Pattern> {
        match self {
            SearchTarget::Patterns(patterns) => patterns.clone(),
            SearchTarget::Best(best) => best.family.floor(),
        }
    }
}

/// Parses patterns, or `best` with a family and a time, or `surprise`.
pub(super) fn parse_target(words: &[String]) -> anyhow::Result<SearchTarget> {
    let all: Vec<&str> = words.iter().flat_map(|word| parts(word)).collect();
    if let Some(best) = Best::read(&all) {
        return Ok(SearchTarget::Best(best.with_context(|| format!("`{}` cannot be read", words.join(" ")))?));
    }
    ensure!(words.is_empty() || !all.is_empty(), "there is no pattern; name one, like m0ctane");
    let parsed = all.into_iter().map(|word| word.parse().with_context(|| format!("`{word}` is not a pattern")));
    Ok(SearchTarget::Patterns(parsed.collect::<anyhow::Result<_>>()?))
}

/// Files with patterns, besides those of the command line.
#[derive(Args, Debug)]
pub(super) struct PatternFiles {
    /// File with a word on each line, up to 100,000. In words, `b`, `i` and `o` stand for their
    /// look-alikes.
    #[arg(long, value_name = "FILE")]
    words: Option<PathBuf>,
    /// File with patterns on each line, divided by spaces or commas.
    #[arg(short = 'f', long = "file", value_name = "LIST")]
    list: Option<PathBuf>,
}

impl PatternFiles {
    /// Whether no file is named.
    pub fn is_empty(&self) -> bool {
        self.words.is_none() && self.list.is_none()
    }

    /// The patterns of the files.
    ///
    /// Errors: a file cannot be read, or has something that is no pattern.
    pub fn read(&self) -> anyhow::Result<Vec<Pattern>> {
        let mut patterns = self.list.as_deref().map(patterns_of_list).transpose()?.unwrap_or_default();
        if let Some(words) = &self.words {
            let named = || format!("{}", words.display());
            patterns.extend(patterns_of_words(&read_text(words)?).with_context(named)?);
        }
        Ok(patterns)
    }
}

/// Reads a file with patterns on each line, divided by spaces or commas. Empty lines and those that
/// begin with `#` are skipped.
///
/// Errors: the file cannot be read or has no pattern, a word is not a pattern, or a line asks for a
/// search without a target.
fn patterns_of_list(file: &Path) -> anyhow::Result<Vec<Pattern>> {
    let (text, name) = (read_text(file)?, file.display());
    let mut patterns = Vec::new();
    for (at, line) in (1..).zip(text.lines().map(str::trim)) {
        if line.starts_with('#') || parts(line).next().is_none() {
            continue;
        }
        match parse_target(&[line.to_owned()]).with_context(|| format!("{name}, line {at}"))? {
            SearchTarget::Patterns(found) => patterns.extend(found),
            SearchTarget::Best(_) => bail!(
                "{name}, line {at}: `{line}` searches without a target and stands alone; take it out of the list, and run \
                 `npubbot mine best 10m`"
            ),
        }
    }
    if patterns.is_empty() {
        bail!("{name} has no pattern; write one on each line");
    }
    Ok(patterns)
}

/// The text of a file.
fn read_text(file: &Path) -> anyhow::Result<String> {
    let name = file.display();
    let bytes = std::fs::read(file).with_context(|| format!("{name} cannot be read"))?;
    let text = String::from_utf8(bytes).map_err(|_| anyhow!("{name} is not UTF-8 text; save the file as UTF-8"))?;
    Ok(text.trim_start_matches(BYTE_ORDER_MARK).to_owned())
}

/// Refuses patterns that no kernel can search for, and names the nearest that one can.
pub(super) fn check_searchable(patterns: &[Pattern]) -> anyhow::Result<()> {
    match patterns.iter().find(|pattern| !pattern.is_searchable()) {
        Some(pattern) => bail!("{}", not_searchable(pattern)),
        None => Ok(()),
    }
}

/// The reason why a pattern is not searched for, and the nearest one that works.
pub(super) fn not_searchable(pattern: &Pattern) -> String {
    let reason =
        format!("`{pattern}` cannot be searched for: it has too many alternatives that say little about the start");
    match pattern.nearest_searchable() {
        Some(nearest) => format!("{reason}; the nearest that works is {nearest}"),
        None => reason,
    }
}

/// The reason why bots do not accept a pattern, and the nearest one that they accept. `None` if
/// they accept it.
pub(super) fn not_accepted_by_bots(pattern: &Pattern) -> Option<String> {
    if accepted_by_bot(pattern) {
        return None;
    }
    let nearest = nearest_accepted(pattern).map_or_else(String::new, |nearest| format!("; they take {nearest}"));
    Some(format!("bots do not search for `{pattern}`: too little of it is at the start of a key{nearest}"))
}

/// The expected time of a search in words: `4 seconds, 95 % within 12 seconds`.
pub(super) fn time_text(pattern: &Pattern, rate: Rate) -> String {
    match pattern.difficulty().expected_time(rate) {
        Some(Difficulty::LONGEST_TIME) => "more than 1,000 years".to_owned(),
        Some(mean) => format!("{}, 95 % within {}", humanize(mean), humanize(mean.mul_f64(NINETY_FIVE_PERCENT))),
        None => "unknown".to_owned(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_line_of_a_list_has_patterns_as_a_message_has() {
        let file = tempfile::NamedTempFile::new().unwrap();
        let read = |text: &str| {
            std::fs::write(file.path(), text).unwrap();
            patterns_of_list(file.path())
        };
        let found = read("m0c, ~ann,=7\n # two\n*cafe\tcat ,, dad\n,\n").unwrap();
        assert_eq!(found.iter().map(Pattern::as_str).collect::<Vec<_>>(), ["m0c", "~ann", "=7", "*cafe", "cat", "dad"]);
        for (text, expected) in [
            ("cat\nbest 10m", "line 2: `best 10m` searches without a target and stands alone; take it out"),
            ("surprise, cat", "line 1: `surprise, cat` cannot be read"),
            ("cat best 10m", "line 1: `best` is not a pattern"),
            ("cat, b0b", "line 1: `b0b` is not a pattern"),
            ("# m0c\n", "has no pattern; write"),
        ] {
            let error = format!("{:#}", read(text).unwrap_err());
            assert!(error.contains(expected), "{text}: {error}");
        }
    }

    #[test]
    fn a_list_of_patterns_may_come_from_an_editor_of_windows() {
        let file = tempfile::NamedTempFile::new().unwrap();
        for text in ["m0c\n~ann\n", "\u{feff}m0c\r\n\r\n# two\r\n~ann\r\n", "\u{feff}# two\r\nm0c\r\n~ann"] {
            std::fs::write(file.path(), text).unwrap();
            let found: Vec<_> = patterns_of_list(file.path()).unwrap().iter().map(|p| p.as_str().to_owned()).collect();
            assert_eq!(found, ["m0c", "~ann"], "{text:?}");
        }
        // Lists of words are read by the same function.
        std::fs::write(file.path(), "\u{feff}sushi\r\n").unwrap();
        assert_eq!(read_text(file.path()).unwrap().lines().next(), Some("sushi"));
    }
}
