//! Words read as patterns.

use super::meaning::Meaning;
use super::vocabulary::Speech;
use super::words::{has_foreign_wildcard, has_pattern_mark};
use crate::pattern::{Best, Effort, GrammarError, Pattern};

/// Longest text of a pattern, in bytes; a whole key in hex has 69. Without a limit, classes could
/// make a pattern longer than a message.
const LONGEST: usize = 80;

/// Reads words as patterns. `speech`: the languages of the text around them; `None` if all words
/// are meant as patterns, as after `find`.
pub(super) fn patterns(words: &[&str], speech: Option<&Speech>, effort: &mut Effort) -> Meaning {
    if let Some(meaning) = best(words, speech) {
        return meaning;
    }
    let mut patterns: Vec<Pattern> = Vec::new();
    let mut bad: Vec<(String, GrammarError)> = Vec::new();
    for word in words {
        match read(word, effort) {
            Ok(pattern) if !patterns.contains(&pattern) => patterns.push(pattern),
            Ok(_) => {}
            Err(_) if has_foreign_wildcard(word) => return Meaning::Unsupported(nearest_to_foreign(word)),
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

/// Reads `best` with a family and a time, or `surprise`. Skips the words of a sentence around it,
/// as in `surprise me, please`. `None` if the first word that is no filler is neither of the two.
fn best(words: &[&str], speech: Option<&Speech>) -> Option<Meaning> {
    let is_meant = |word: &&str| !speech.is_some_and(|speech| speech.is_filler(word));
    let meant: Vec<&str> = words.iter().copied().filter(is_meant).collect();
    Some(match Best::read(&meant)? {
        Ok(best) => Meaning::Best(best),
        Err(error) => Meaning::BadWords(vec![(meant.join(" "), error)]),
    })
}

/// Reads one word.
fn read(word: &str, effort: &mut Effort) -> Result<Pattern, GrammarError> {
    if word.len() > LONGEST && has_pattern_mark(word) {
        return Err(GrammarError::TooIntricate);
    }
    Pattern::read_within(word, effort)
}

/// Whether a word can only be meant as a pattern: it has a mark such as `~`, `?` or `=`, and can be
/// read.
pub(super) fn is_certain(word: &str, effort: &mut Effort) -> bool {
    has_pattern_mark(word) && read(word, effort).is_ok()
}

/// The pattern nearest to one in another notation: its first run of two characters or more, placed
/// at the end of the key if the word ends with `$`.
fn nearest_to_foreign(word: &str) -> Option<Pattern> {
    let prefix = nearest_prefix(word)?;
    if word.ends_with('$') { at_the_end(&prefix) } else { Some(prefix) }
}

/// The pattern with the characters of a prefix at the end of the key.
pub(super) fn at_the_end(prefix: &Pattern) -> Option<Pattern> {
    format!("*{prefix}").parse().ok()
}

/// The first run of two characters or more in a word, as a prefix. Runs that cannot be prefixes are
/// skipped.
pub(super) fn nearest_prefix(word: &str) -> Option<Pattern> {
    let word = word.trim_start_matches("nostr:").trim_start_matches("npub1");
    let runs = word.split(|c: char| !c.is_alphanumeric()).filter(|run| run.len() > 1);
    runs.filter_map(|run| Pattern::parse(run).ok()).next()
}
