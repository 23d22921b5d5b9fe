//! Words read as prefixes.

use super::meaning::Meaning;
use super::vocabulary::Speech;
use super::words::has_wildcard;
use crate::pattern::{Pattern, PatternError};

/// Reads words as prefixes. `speech`: the languages of a text around them; `None` if the asker said
/// that all are prefixes.
pub(super) fn prefixes(words: &[&str], speech: Option<&Speech>) -> Meaning {
    let mut patterns: Vec<Pattern> = Vec::new();
    let mut bad: Vec<(String, PatternError)> = Vec::new();
    for word in words {
        match Pattern::parse(word) {
            Ok(pattern) if !patterns.contains(&pattern) => patterns.push(pattern),
            Ok(_) => {}
            Err(_) if has_wildcard(word) => return Meaning::Unsupported(nearest_prefix(word)),
            Err(error) => bad.push(((*word).to_owned(), error)),
        }
    }
    let is_filler = |word: &str| speech.is_some_and(|speech| speech.is_filler(word));
    let fillers = words.iter().filter(|word| is_filler(word)).count();
    let is_prose = words.len() > 1 && fillers > 0;
    if is_prose {
        patterns.retain(|pattern| !is_filler(pattern.as_str()));
        bad.retain(|(word, _)| !is_filler(word));
    }
    if is_prose && (bad.is_empty() || (fillers > 1 && !patterns.is_empty())) {
        return Meaning::Sentence(patterns);
    }
    if !bad.is_empty() {
        bad.truncate(3);
        return Meaning::BadWords(bad);
    }
    Meaning::Find(patterns)
}

/// The prefix nearest to a pattern with wildcards: its first run of two characters or more.
fn nearest_prefix(word: &str) -> Option<Pattern> {
    let word = word.trim_start_matches("nostr:").trim_start_matches("npub1");
    let runs = word.split(|c: char| !c.is_alphanumeric()).filter(|run| run.len() > 1);
    runs.filter_map(|run| Pattern::parse(run).ok()).next()
}
