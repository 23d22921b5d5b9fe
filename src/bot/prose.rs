//! Reads texts that do not begin with a command: small talk, sentences around a prefix, bare
//! prefixes.

use super::meaning::Meaning;
use super::patterns::{at_the_end, is_certain, nearest_prefix, patterns};
use super::vocabulary::{Command, Speech, command};
use crate::pattern::{Effort, Pattern};

/// Reads a text that does not begin with a command.
pub(super) fn free_text(words: &[&str], speech: &Speech, effort: &mut Effort) -> Meaning {
    let is_number = |word: &str| matches!(word, "12" | "24" | "twelve" | "seed");
    let asks_for_seed = words.iter().any(|word| speech.is_seed(word))
        || words == ["seed"]
        || words.windows(2).any(|two| is_number(two[0]) && speech.is_seed_word(two[1]));
    if asks_for_seed {
        return Meaning::SeedWords;
    }
    if let Some(meaning) = polite_command(words, speech) {
        return meaning;
    }
    if speech.is_small_talk(words) {
        let prefix = if words.len() == 1 { Pattern::parse(words[0]).ok() } else { None };
        return Meaning::SmallTalk(prefix);
    }
    if wants_elsewhere(words, speech) {
        let last = words.iter().rev().find(|word| !speech.is_filler(word) && !speech.is_elsewhere(word));
        return Meaning::Unsupported(last.and_then(|word| at_the_end(&nearest_prefix(word)?)));
    }
    match meant(words, speech, effort) {
        Some(meant) => patterns(&meant, None, effort),
        None => patterns(words, Some(speech), effort),
    }
}

/// Reads `help` or `status` in a sentence of another language than English: `ayuda por favor`,
/// 「使い方を教えて」. Other commands must stand alone.
fn polite_command(words: &[&str], speech: &Speech) -> Option<Meaning> {
    let whole = |word: &str| command(word).map(|(command, _)| command);
    let harmless = |word: &str| match whole(word).or_else(|| speech.command_within(word)) {
        Some(Command::Help) => Some(Meaning::Help),
        Some(Command::Status) => Some(Meaning::Status),
        _ => None,
    };
    let (commands, others): (Vec<&str>, Vec<&str>) = words.iter().copied().partition(|word| harmless(word).is_some());
    match commands.as_slice() {
        [word] if speech.is_foreign() && others.iter().all(|word| speech.is_filler(word)) => harmless(word),
        _ => None,
    }
}

fn wants_elsewhere(words: &[&str], speech: &Speech) -> bool {
    let other = |word: &&&str| !speech.is_filler(word) && !speech.is_elsewhere(word);
    words.iter().any(|word| speech.is_elsewhere(word)) && words.len() > 1 && words.iter().filter(other).count() < 2
}

/// The words of a sentence that are certainly meant as patterns. Among words that cannot be
/// prefixes, these are words that begin with `npub1`, words with marks such as `~alice`, and the
/// word after `starts with`. In a sentence of another language than English, it is also the only
/// word that is no filler.
fn meant<'a>(words: &[&'a str], speech: &Speech, effort: &mut Effort) -> Option<Vec<&'a str>> {
    let is_npub = |word: &str| word.len() < 58 && word.trim_start_matches("nostr:").starts_with("npub1");
    let mut is_marked = |word: &&str| is_npub(word) || is_certain(word, effort);
    let is_prose = |word: &&str| speech.is_filler(word) || Pattern::parse(word).is_err();
    let (marked, others): (Vec<&str>, Vec<&str>) = words.iter().copied().partition(|word| is_marked(word));
    let is_around = |word: &&str| speech.is_filler(word) || (is_prose(word) && marked.iter().all(|word| is_npub(word)));
    if !marked.is_empty() && !others.is_empty() && others.iter().all(is_around) {
        return Some(marked);
    }
    let (fillers, others): (Vec<&str>, Vec<&str>) = words.iter().copied().partition(|word| speech.is_filler(word));
    if speech.is_foreign() && !fillers.is_empty() && others.len() == 1 && Pattern::parse(others[0]).is_ok() {
        return Some(others);
    }
    let after_with = words.iter().position(|word| *word == "with").map(|at| words.split_at(at));
    match after_with {
        Some((before, [_, prefix]))
            if before.last().is_some_and(|word| ["start", "starts", "starting", "begins"].contains(word))
                && before.iter().all(is_prose) =>
        {
            Some(vec![prefix])
        }
        _ => None,
    }
}
