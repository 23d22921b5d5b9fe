//! The words that are understood, in all languages: lists in the tables of texts.

use super::tables::Table;
use super::words::{has_kana, is_japanese};
use crate::language::Language;
use crate::pattern::Pattern;
use std::collections::{HashMap, HashSet};
use std::sync::LazyLock;

/// A command, as the first word of a message gives it.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Command {
    Help,
    Status,
    Cancel,
    Resend,
    Stop,
    Start,
    Delete,
    Split,
    Find,
    Explain,
    Language,
    /// `all` in `cancel all`. It is no command on its own.
    All,
}

/// Commands with the lists of their words.
const COMMANDS: [(Command, &[&str]); 12] = [
    (Command::Help, &["command-help", "also-help"]),
    (Command::Status, &["command-status", "also-status"]),
    (Command::Cancel, &["command-cancel", "also-cancel"]),
    (Command::Resend, &["command-resend", "also-resend"]),
    (Command::Stop, &["command-stop", "also-stop"]),
    (Command::Start, &["command-start", "also-start"]),
    (Command::Delete, &["command-delete", "also-delete"]),
    (Command::Split, &["command-split", "also-split"]),
    (Command::Find, &["command-find", "also-find"]),
    (Command::Explain, &["command-explain", "also-explain"]),
    (Command::Language, &["command-language", "also-language"]),
    (Command::All, &["also-all"]),
];

/// The words of one language.
struct Words {
    language: Language,
    commands: HashMap<String, Command>,
    /// Names of this language.
    names: HashSet<String>,
    /// Words that people write around a request.
    fillers: HashSet<String>,
    small_talk: HashSet<String>,
    seed: HashSet<String>,
    seed_words: HashSet<String>,
    elsewhere: HashSet<String>,
}

static ALL: LazyLock<Vec<Words>> = LazyLock::new(|| Language::ALL.into_iter().map(Words::of).collect());

impl Words {
    fn of(language: Language) -> Words {
        let table = Table::of(language);
        let list = |id: &str| table.words(id).into_iter().collect::<HashSet<String>>();
        let words = |(command, ids): (Command, &[&str])| {
            ids.iter().flat_map(|id| table.words(id)).map(|word| (word, command)).collect::<Vec<_>>()
        };
        Words {
            language,
            commands: COMMANDS.into_iter().flat_map(words).collect(),
            names: list("names").into_iter().chain([language.code().to_owned()]).collect(),
            fillers: list("fillers"),
            small_talk: list("small-talk"),
            seed: list("seed"),
            seed_words: list("seed-words"),
            elsewhere: list("elsewhere"),
        }
    }

    /// Whether a word is one of this language.
    fn has(&self, word: &str) -> bool {
        let lists = [&self.fillers, &self.small_talk, &self.seed, &self.seed_words, &self.elsewhere];
        // Kanji alone may be Chinese.
        (self.language == Language::Japanese && has_kana(word))
            || self.commands.contains_key(word)
            || lists.iter().any(|list| list.contains(word))
    }

    /// Whether a word of this language belongs to the sentence around a request.
    fn is_filler(&self, word: &str) -> bool {
        let is_english = self.language == Language::English;
        let is_other = || self.small_talk.contains(word) || self.commands.get(word) == Some(&Command::Find);
        self.fillers.contains(word) || (!is_english && is_other())
    }

    /// Whether a list has a word. Japanese has no spaces, so there a part of the word is enough.
    fn is_in(&self, list: &HashSet<String>, word: &str) -> bool {
        list.contains(word) || (is_japanese(word) && list.iter().any(|part| is_japanese(part) && word.contains(part)))
    }
}

/// The command that a word means, and the languages in which it does.
pub(super) fn command(word: &str) -> Option<(Command, Vec<Language>)> {
    let found: Vec<&Words> = ALL.iter().filter(|words| words.commands.contains_key(word)).collect();
    let command = found.first()?.commands.get(word).copied().filter(|command| *command != Command::All)?;
    Some((command, found.iter().map(|words| words.language).collect()))
}

/// Whether a word is this command in some language.
pub(super) fn is_command(word: &str, command: Command) -> bool {
    ALL.iter().any(|words| words.commands.get(word) == Some(&command))
}

/// The language that a word names: by its code, or by one of its names.
pub(super) fn language_named(word: &str) -> Option<Language> {
    ALL.iter().find(|words| words.names.contains(word)).map(|words| words.language)
}

/// The languages of a text that does not begin with a command: English, and others that its words
/// suggest.
pub(super) struct Speech(Vec<&'static Words>);

impl Speech {
    /// Finds the languages of a text: English, and the languages with the most of its words, if
    /// they have more of them than English. One of the words must be impossible as a prefix, or all
    /// must be small talk: `una clave` alone means two prefixes.
    pub fn of(words: &[&str]) -> Speech {
        let known = |language: &Words| words.iter().filter(|word| language.has(word)).count();
        let is_written = |language: &&Words| {
            let shows = |word: &&str| language.has(word) && Pattern::parse(word).is_err();
            words.iter().any(shows) || words.iter().all(|word| language.small_talk.contains(*word))
        };
        let (english, others) = ALL.split_at(1);
        let most = others.iter().filter(is_written).map(known).max().unwrap_or(0);
        let mut languages = vec![&english[0]];
        if most > known(&english[0]) {
            languages.extend(others.iter().filter(is_written).filter(|language| known(language) == most));
        }
        Speech(languages)
    }

    /// The languages other than English.
    pub fn languages(&self) -> Vec<Language> {
        self.0.iter().skip(1).map(|words| words.language).collect()
    }

    /// Whether the text is in another language than English.
    pub fn is_foreign(&self) -> bool {
        self.0.len() > 1
    }

    /// Whether a word belongs to the sentence around a request. Japanese words always do, because
    /// no prefix has Japanese script.
    pub fn is_filler(&self, word: &str) -> bool {
        is_japanese(word) || self.0.iter().any(|words| words.is_filler(word))
    }

    /// Whether a text is small talk: every word is small talk of one language, or every word is
    /// Japanese.
    pub fn is_small_talk(&self, words: &[&str]) -> bool {
        words.iter().all(|word| is_japanese(word))
            || self.0.iter().any(|language| words.iter().all(|word| language.small_talk.contains(*word)))
    }

    /// Whether a word asks about seed words.
    pub fn is_seed(&self, word: &str) -> bool {
        self.0.iter().any(|words| words.is_in(&words.seed, word))
    }

    /// Whether a word is "words", as in "12 words".
    pub fn is_seed_word(&self, word: &str) -> bool {
        self.0.iter().any(|words| words.is_in(&words.seed_words, word))
    }

    /// Whether a word asks for characters elsewhere than right after `npub1`.
    pub fn is_elsewhere(&self, word: &str) -> bool {
        self.0.iter().any(|words| words.is_in(&words.elsewhere, word))
    }

    /// The command whose Japanese name is a part of this word.
    pub fn command_within(&self, word: &str) -> Option<Command> {
        let japanese = self.0.iter().find(|words| words.language == Language::Japanese && is_japanese(word))?;
        let within = japanese.commands.iter().filter(|(part, _)| is_japanese(part) && word.contains(part.as_str()));
        // Of several commands, the first in the order of `Command`.
        within.map(|(_, command)| *command).min_by_key(|command| *command as u8)
    }
}
