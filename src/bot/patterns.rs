//! Words read as patterns.

use super::intent::Intent;
use super::text::{Token, plain};
use crate::pattern::{Best, Effort, Pattern, PatternError};

/// Longest text of a pattern, in bytes; a whole key in hex has 69. Without a limit, classes could
/// make a pattern longer than a message.
const LONGEST: usize = 80;

/// Letters of other scripts, each with the Latin letter that it looks like.
const OTHER_SCRIPTS: &str =
    "аa сc еe оo рp хx уy ѕs іi јj ԁd һh ԛq ԝw вb мm нh тt кk αa εe οo ρp υu νv χx κk ιi τt ηn γy ωw βb";

/// A pattern that a word may mean.
#[derive(Clone, PartialEq, Debug)]
pub(super) struct Wish {
    pub pattern: Pattern,
    /// The difference from the word as written; `None` without one.
    pub reason: Option<LookAlikeReason>,
}

/// The reason why a pattern is not the word as written.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(super) enum LookAlikeReason {
    /// This character cannot occur in an npub.
    Impossible(char),
    Accent,
    /// A letter of another script, and the Latin one that it looks like.
    OtherScript(char, char),
    /// The word has marks inside, such as a dot or a hyphen.
    Unsure,
}

/// The pattern that a word means: the word itself, or the cheapest that looks like it.
pub(super) fn wish(token: &Token, effort: &mut Effort) -> Option<Wish> {
    let written = token.written.as_str();
    if written.len() > LONGEST {
        return None;
    }
    if let Some(end) = written.strip_prefix('〜') {
        let pattern = Pattern::read_within(&format!("*{end}"), effort).ok()?;
        return Some(Wish { pattern, reason: Some(LookAlikeReason::Unsure) });
    }
    let error = match read(written, effort) {
        Ok(pattern) => return Some(Wish { pattern, reason: None }),
        Err(error) => error,
    };
    let bare = written.trim_start_matches("nostr:").trim_start_matches("npub1");
    // An address such as dave@example.com.
    let bare = bare
        .split_once('@')
        .filter(|(name, host)| !name.is_empty() && host.contains('.'))
        .map_or(bare, |(name, _)| name);
    let (latin, other) = latin(bare);
    if other.is_some() && !bare.contains(|c: char| c.is_ascii_alphanumeric()) {
        return None;
    }
    let letters: String = plain(&latin).chars().filter(|c| !matches!(c, '.' | '-' | '_' | '@' | '\'' | '/')).collect();
    if letters.chars().count() < 2 || !letters.chars().all(|c| c.is_ascii_alphanumeric()) {
        return None;
    }
    let reason = match () {
        () if other.is_some() => other.map(|(from, to)| LookAlikeReason::OtherScript(from, to)),
        () if letters.len() < latin.chars().count() => Some(LookAlikeReason::Unsure),
        () => Some(LookAlikeReason::Accent),
    };
    if let Ok(pattern) = Pattern::parse(&letters) {
        return Some(Wish { pattern, reason });
    }
    let forbidden = match error {
        PatternError::Forbidden { character, .. } => character,
        _ => letters.chars().find(|c| "bio1".contains(*c))?,
    };
    let forbidden =
        if forbidden.is_ascii_alphanumeric() { forbidden } else { letters.chars().find(|c| "bio1".contains(*c))? };
    let pattern = Pattern::read_within(&format!("~{letters}"), effort).ok()?;
    Some(Wish { pattern, reason: Some(LookAlikeReason::Impossible(forbidden)) })
}

/// The word with letters of other scripts replaced, and the first of them with its Latin letter. A
/// word that has others, too, is left alone.
fn latin(word: &str) -> (String, Option<(char, char)>) {
    let of = |c: char| OTHER_SCRIPTS.split(' ').find_map(|pair| pair.strip_prefix(c)).and_then(|to| to.chars().next());
    let replaced = word.chars().map(|c| of(c).unwrap_or(c)).collect();
    (replaced, word.chars().find_map(|c| Some((c, of(c)?))))
}

/// Reads words that are all meant as patterns, as after `find`.
pub(super) fn literal(words: &[&str], effort: &mut Effort) -> Intent {
    match Best::read(words) {
        Some(Ok(best)) => return Intent::Best(best),
        Some(Err(error)) => return Intent::BadWords(vec![(words.join(" "), error)]),
        None => {}
    }
    let mut patterns: Vec<Pattern> = Vec::new();
    let mut bad: Vec<(String, PatternError)> = Vec::new();
    for word in words {
        match read(word, effort) {
            Ok(pattern) if !patterns.contains(&pattern) => patterns.push(pattern),
            Ok(_) => {}
            Err(_) if has_foreign_wildcard(word) => return Intent::Unsupported(nearest_to_foreign(word)),
            Err(error) => bad.push(((*word).to_owned(), error)),
        }
    }
    if bad.is_empty() {
        return Intent::Search(patterns);
    }
    bad.truncate(3);
    Intent::BadWords(bad)
}

/// Reads one word.
pub(super) fn read(word: &str, effort: &mut Effort) -> Result<Pattern, PatternError> {
    let has_mark = word.contains(['?', '[', '*', '~', '=', ':', '@']);
    if word.len() > LONGEST && has_mark {
        return Err(PatternError::TooIntricate);
    }
    Pattern::read_within(word, effort)
}

/// Whether a word has a mark of another notation, such as an anchor or a group of a regular
/// expression.
pub(super) fn has_foreign_wildcard(word: &str) -> bool {
    word.contains(['$', '^', '{', '}', '(', ')', '+', '<', '>', '\\'])
}

/// The pattern nearest to one in another notation: its first run of two characters or more, placed
/// at the end of the key if the word ends with `$`.
fn nearest_to_foreign(word: &str) -> Option<Pattern> {
    let inner = word.trim_start_matches("nostr:").trim_start_matches("npub1");
    let mut runs = inner.split(|c: char| !c.is_alphanumeric()).filter(|run| run.len() > 1);
    let prefix = runs.find_map(|run| Pattern::parse(run).ok())?;
    if word.ends_with('$') { format!("*{prefix}").parse().ok() } else { Some(prefix) }
}
