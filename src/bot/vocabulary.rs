//! The words that are understood, in all languages: the tables in `words/`.
//!
//! A table has sections. A section has phrases, separated by commas and line breaks. The words of a
//! phrase follow each other; `a|b` is either of two, `a_b` two words of one alternative, `word*`
//! any word that begins so, `word?` may be left out, and `…` is a gap of a few words. Accents,
//! capitals, and hiragana or katakana make no difference.

use super::phrases::{FILES, TextTable};
use super::text::{MessageText, Token, TokenKind, plain};
use crate::language::Language;
use serde::Deserialize;
use serde::de::IntoDeserializer;
use serde::de::value::StrDeserializer;
use std::collections::HashMap;
use std::sync::LazyLock;

/// The most words in a gap.
const MAX_GAP: usize = 4;
/// The most characters in a gap of a Japanese phrase.
const MAX_JAPANESE_GAP: usize = 14;

/// The use of a phrase: the section of its table, such as `[at-begin]`.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub(super) enum Class {
    Help,
    Status,
    Cancel,
    Resend,
    /// The asker wants no more messages.
    Stop,
    Start,
    Delete,
    /// Half of the key stays with the asker.
    Split,
    /// A wish: `quiero`, `please make`.
    Find,
    Explain,
    /// `answer in`, before the name of a language.
    Language,
    /// A question about the languages that the bot knows.
    Languages,
    /// Names of the table's own language.
    Names,
    Thanks,
    Greeting,
    Who,
    Price,
    Safety,
    /// The use of a key that was delivered, and of keys made elsewhere.
    Import,
    /// Seed words.
    Seed,
    /// Everyday answers that ask for nothing.
    Chat,
    Not,
    /// `is`, `sounds`: a statement, if nothing is asked for.
    Is,
    /// Words of a question about something, not of a wish: `how`, `what happens if`.
    Asks,
    /// `starts with`: a start follows.
    Begin,
    /// `at the start`: a start stands before or after.
    AtBegin,
    /// `ends with`: an ending follows.
    End,
    /// `at the end`: an ending stands before or after.
    AtEnd,
    Middle,
    /// `with`: a pattern probably follows.
    With,
    And,
    /// `my name is`.
    Name,
    /// A digit's name.
    Number,
    /// `instead`, `actually`.
    Change,
    Shorter,
    Longer,
    Another,
    /// What a command may be about: `it`, `the job`.
    Object,
    /// Politeness, which may stand around anything.
    Polite,
    /// Polite words of one language that people use in all.
    Neutral,
    Filler,
    /// Words of languages that the bot lacks.
    Foreign,
}

impl Class {
    /// The class of a section.
    fn named(section: &str) -> Option<Class> {
        let name: StrDeserializer<'_, serde::de::value::Error> = section.into_deserializer();
        Class::deserialize(name).ok()
    }
}

/// A phrase of a table.
struct Phrase {
    class: Class,
    language: Language,
    parts: Vec<PhrasePart>,
    /// The digit of a [`Class::Number`].
    digit: Option<char>,
    /// Whether it is a command that the texts show.
    is_shown: bool,
}

/// A part of a phrase.
enum PhrasePart {
    Gap,
    /// One of several sequences of words. An optional part has an empty one.
    OneOf(Vec<Vec<Word>>),
}

struct Word {
    text: String,
    /// Whether any word that begins so is meant.
    is_stem: bool,
}

impl Word {
    fn is(&self, token: &Token) -> bool {
        if self.is_stem { token.word.starts_with(&self.text) } else { token.word == self.text }
    }
}

/// A phrase that was found in a text.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(super) struct PhraseMatch {
    pub class: Class,
    pub language: Language,
    /// The places of its words among the tokens, ascending. Those in gaps are not among them.
    pub at: Vec<usize>,
    pub digit: Option<char>,
    /// Whether it is a command as the texts show it.
    pub is_shown: bool,
}

impl PhraseMatch {
    pub fn first(&self) -> usize {
        self.at.first().copied().unwrap_or_default()
    }

    pub fn last(&self) -> usize {
        self.at.last().copied().unwrap_or_default()
    }
}

struct Vocabulary {
    phrases: Vec<Phrase>,
    /// Phrases by the first two letters of their first word.
    by_start: HashMap<String, Vec<usize>>,
}

static ALL: LazyLock<Vocabulary> = LazyLock::new(Vocabulary::read);

fn two_letters(word: &str) -> String {
    word.chars().take(2).collect()
}

impl Vocabulary {
    fn read() -> Vocabulary {
        let mut all = Vocabulary { phrases: Vec::new(), by_start: HashMap::new() };
        for (language, _, file) in FILES {
            let mut class = None;
            for line in file.lines().map(str::trim).filter(|line| !line.is_empty() && !line.starts_with('#')) {
                match line.strip_prefix('[').and_then(|line| line.strip_suffix(']')) {
                    Some(name) => class = Class::named(name),
                    None => {
                        let Some(class) = class else { continue };
                        line.split(',').for_each(|phrase| all.add(class, language, phrase.trim(), false));
                    }
                }
            }
            // The commands that the texts show are understood.
            for name in COMMANDS {
                let Some(class) = Class::named(name) else { continue };
                let shown = TextTable::of(language).words(&format!("command-{name}"));
                shown.iter().for_each(|word| all.add(class, language, word, true));
            }
        }
        all
    }

    fn add(&mut self, class: Class, language: Language, phrase: &str, is_shown: bool) {
        let (digit, phrase) = match phrase.split_once(' ') {
            Some((digit, rest)) if class == Class::Number => (digit.chars().next(), rest),
            _ => (None, phrase),
        };
        let parts: Vec<PhrasePart> = phrase.replace('…', " … ").split_whitespace().filter_map(part).collect();
        if parts.iter().all(|part| matches!(part, PhrasePart::Gap)) {
            return;
        }
        let index = self.phrases.len();
        for part in &parts {
            let PhrasePart::OneOf(choices) = part else { break };
            for word in choices.iter().filter_map(|choice| choice.first()) {
                let phrases = self.by_start.entry(two_letters(&word.text)).or_default();
                if phrases.last() != Some(&index) {
                    phrases.push(index);
                }
            }
            if choices.iter().all(|choice| !choice.is_empty()) {
                break;
            }
        }
        self.phrases.push(Phrase { class, language, parts, digit, is_shown });
    }
}

/// Commands that the texts show, by their classes.
const COMMANDS: [&str; 10] =
    ["help", "status", "cancel", "resend", "stop", "start", "delete", "find", "explain", "language"];

fn part(text: &str) -> Option<PhrasePart> {
    if text == "…" {
        return Some(PhrasePart::Gap);
    }
    let (text, is_optional) = match text.strip_suffix('?') {
        Some(text) if !text.is_empty() => (text, true),
        _ => (text, false),
    };
    let mut choices: Vec<Vec<Word>> = text.split('|').map(sequence).filter(|choice| !choice.is_empty()).collect();
    if choices.is_empty() {
        return None;
    }
    if is_optional {
        choices.push(Vec::new());
    }
    Some(PhrasePart::OneOf(choices))
}

/// The words of one alternative: the characters of a Japanese one.
fn sequence(text: &str) -> Vec<Word> {
    let (text, is_stem) = text.strip_suffix('*').map_or((text, false), |text| (text, true));
    // Most are one plain word, and there are thousands.
    if !text.is_empty() && text.bytes().all(|byte| byte.is_ascii_lowercase()) {
        return vec![Word { text: text.to_owned(), is_stem }];
    }
    let tokens = MessageText::read(&text.replace('_', " ")).tokens;
    let last = tokens.len().saturating_sub(1);
    tokens
        .into_iter()
        .enumerate()
        .map(|(at, token)| Word { text: token.word, is_stem: is_stem && at == last })
        .collect()
}

/// Finds the phrases of all tables in a text. Of one phrase at one place, the longest.
pub(super) fn find(tokens: &[Token]) -> Vec<PhraseMatch> {
    let mut found = Vec::new();
    for (start, token) in tokens.iter().enumerate().filter(|(_, token)| token.kind != TokenKind::Link) {
        for &index in ALL.by_start.get(&two_letters(&token.word)).into_iter().flatten() {
            let phrase = &ALL.phrases[index];
            let mut at = Vec::new();
            if match_parts(&phrase.parts, tokens, start, &mut at) && !at.is_empty() {
                let Phrase { class, language, digit, is_shown, .. } = *phrase;
                found.push(PhraseMatch { class, language, at, digit, is_shown });
            }
        }
    }
    found
}

/// Matches the parts at a place, and collects the places of the words. Long alternatives first.
fn match_parts(parts: &[PhrasePart], tokens: &[Token], from: usize, at: &mut Vec<usize>) -> bool {
    let Some((part, rest)) = parts.split_first() else { return true };
    let length = at.len();
    match part {
        PhrasePart::Gap => {
            let is_japanese = tokens.get(from).is_some_and(|token| token.kind == TokenKind::Japanese);
            let most = if is_japanese { MAX_JAPANESE_GAP } else { MAX_GAP };
            (0..=most).any(|gap| {
                at.truncate(length);
                match_parts(rest, tokens, from + gap, at)
            })
        }
        PhrasePart::OneOf(choices) => choices.iter().any(|choice| {
            at.truncate(length);
            let fits = choice
                .iter()
                .enumerate()
                .all(|(next, word)| tokens.get(from + next).is_some_and(|token| word.is(token)));
            at.extend((0..choice.len()).map(|next| from + next));
            fits && match_parts(rest, tokens, from + choice.len(), at)
        }),
    }
}

/// The first phrase of a section, as the manual shows it.
#[cfg(test)]
pub(super) fn example(language: Language, section: &str) -> &'static str {
    let (.., file) = FILES.into_iter().find(|(other, ..)| *other == language).unwrap_or(FILES[0]);
    let mut lines = file.lines().skip_while(|line| *line != format!("[{section}]"));
    lines.nth(1).unwrap_or_default()
}

/// The language that a word names: by its code, or by one of its names.
pub(super) fn language_named(tokens: &[Token]) -> Option<Language> {
    let code = tokens.first().filter(|_| tokens.len() == 1).and_then(|token| Language::from_code(&token.word));
    let name = find(tokens).into_iter().find(|found| found.class == Class::Names && found.at.len() == tokens.len());
    code.or(name.map(|found| found.language))
}

/// The command that a single word probably is, with one typing error.
pub(super) fn misspelt(word: &str, could_be_prefix: bool) -> Option<(Class, Language)> {
    use Class::*;
    let commands = [Help, Status, Cancel, Resend, Stop, Delete, Thanks];
    let word = plain(word);
    let of_phrase = |phrase: &Phrase| {
        let [PhrasePart::OneOf(choices)] = phrase.parts.as_slice() else { return None };
        let least = could_be_prefix.then_some(if phrase.class == Help { 5 } else { 6 });
        let is_near = |choice: &Vec<Word>| match choice.as_slice() {
            [one] => (phrase.is_shown || one.text.len() > 5) && is_one_error(&one.text, &word, least),
            _ => false,
        };
        (commands.contains(&phrase.class) && choices.iter().any(is_near)).then_some((phrase.class, phrase.language))
    };
    ALL.phrases.iter().find_map(of_phrase)
}

/// Whether two words differ by one typing error: two letters swapped, one doubled, missing, added
/// or replaced. A word that could be a prefix must have at least `least` letters and one more if
/// one is replaced, or letters swapped or doubled.
fn is_one_error(right: &str, typed: &str, least: Option<usize>) -> bool {
    let (right, typed): (Vec<char>, Vec<char>) = (right.chars().collect(), typed.chars().collect());
    let (long, short) = (right.len().max(typed.len()), right.len().min(typed.len()));
    if right.len() < 4 || right == typed || long > short + 1 {
        return false;
    }
    let same = right.iter().zip(&typed).take_while(|(one, other)| one == other).count();
    let (right_rest, typed_rest) = (&right[same..], &typed[same..]);
    let swapped = matches!((right_rest, typed_rest), ([a, b, right @ ..], [c, d, typed @ ..]) if a == d && b == c && right == typed);
    let replaced = right.len() == typed.len() && right_rest[1..] == typed_rest[1..];
    let missing = right.len() > typed.len() && right_rest[1..] == *typed_rest;
    let added = typed.len() > right.len() && typed_rest[1..] == *right_rest;
    let doubled = added && same > 0 && typed[same] == typed[same - 1];
    let is_long = |letters: usize| right.len() >= letters;
    swapped
        || (doubled && is_long(4))
        || ((missing || added) && is_long(least.unwrap_or(5)))
        || (replaced && is_long(least.map_or(5, |least| least + 1)))
}
