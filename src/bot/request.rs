//! Reads messages: a person's text becomes a [`Request`].

use super::accepted::effort;
use super::meaning::Meaning;
use super::patterns::patterns;
use super::prose::free_text;
use super::vocabulary::{self, Command, Speech};
use super::words::{is_invisible, words};
use crate::job::{Asker, EncryptionKey, JobId, RumorId};
use crate::key::{HalfPoint, SplitWork};
use crate::language::Language;
use crate::pattern::{ALPHABET, Effort, Pattern};
use crate::vault::{Asked, Rumor, Wanted};
use unicode_normalization::UnicodeNormalization;

/// The most words of a message that are read. Nobody means more of them as prefixes.
const WORDS_READ: usize = 64;

/// The most prefixes of a split request that are read, besides its first word, its point and its
/// work.
pub const MOST_SPLIT_PREFIXES: usize = WORDS_READ - 3;

/// Number of bech32 characters after `nsec1`, in one piece, that count as a secret key.
const SECRET_IN_ONE: usize = 6;
/// Number of bech32 characters after `nsec1`, with gaps between them, that count as a secret key.
const SECRET_IN_PIECES: usize = 50;

/// NIP-04: a message of an old client. Only its text is encrypted.
const KIND_NIP04: u16 = 4;
/// NIP-09: a deletion.
const KIND_DELETION: u16 = 5;
/// MLS (Marmot): an invitation to a group, as White Noise sends it. The bot cannot join.
const KIND_INVITATION: u16 = 444;
/// NIP-17: a file message.
const KIND_FILE: u16 = 15;

/// A message, read once: who asks, how it came, and what its text says.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Request {
    pub(super) asker: Asker,
    pub(super) encryption_key: Option<EncryptionKey>,
    pub(super) subject: Option<String>,
    pub(super) form: Form,
    pub(super) meaning: Meaning,
    /// Languages other than English that the words of the message suggest.
    languages: Vec<Language>,
    /// The only word of the message, if it is a command and could be a prefix.
    pub(super) shadowed: Option<Pattern>,
    work: Option<SplitWork>,
}

impl Request {
    /// The proof of work in the text, the first if there are several. The caller checks it.
    pub fn split_work(&self) -> Option<SplitWork> {
        self.work
    }

    /// The language to answer in. `current`: the asker's language so far. It stays if the words
    /// suggest no other language, or several of which it is one.
    pub fn language(&self, current: Language) -> Language {
        match self.languages.first() {
            Some(first) if !self.languages.contains(&current) => *first,
            _ => current,
        }
    }

    /// The half point of a split request. The caller looks up whether it was used before.
    pub fn half(&self) -> Option<HalfPoint> {
        match &self.meaning {
            Meaning::Split(half, _) | Meaning::SplitBest(half, _) if self.form == Form::Sealed => Some(*half),
            _ => None,
        }
    }

    /// Whether the message came by NIP-04. Its answer goes the same way.
    pub fn is_nip04(&self) -> bool {
        self.form == Form::Nip04
    }
}

/// The kind of a message, besides its text.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(super) enum Form {
    /// Text in a gift wrap (NIP-17), to us only.
    Sealed,
    /// A message of kind 4. Only its language is read.
    Nip04,
    /// A file. Only its address was sent.
    File,
    /// A message to several receivers, or an invitation to a group.
    Group,
    /// A deletion of these messages.
    Deletion(Vec<RumorId>),
}

/// Reads a message. Never panics, for any text.
pub fn read(rumor: &Rumor) -> Request {
    let form = match rumor.kind {
        KIND_DELETION => Form::Deletion(rumor.deletes.clone()),
        KIND_FILE => Form::File,
        KIND_NIP04 => Form::Nip04,
        KIND_INVITATION => Form::Group,
        _ if rumor.other_receivers > 0 => Form::Group,
        _ => Form::Sealed,
    };
    let work = rumor.content.split_whitespace().find_map(|word| word.to_lowercase().parse().ok());
    let Reading { meaning, languages, shadowed } = match form {
        // What the text asks for is not done, so no word of it needs an explanation.
        Form::Nip04 => Reading { shadowed: None, ..read_text(without_comment(&rumor.content)) },
        _ => read_text(&rumor.content),
    };
    let (encryption_key, subject) = (rumor.encryption_key, rumor.subject.clone());
    Request { asker: rumor.author, encryption_key, subject, form, meaning, languages, shadowed, work }
}

/// A NIP-04 text without Amethyst's first line, `[//]: # (nip18)`.
fn without_comment(text: &str) -> &str {
    match text.split_once('\n') {
        Some((first, rest)) if first.starts_with("[//]:") => rest,
        _ => text,
    }
}

/// The keys that a message asks for; `None` if it asks for none. Runs inside the vault, for the
/// ticket. An accepted job searches for the same keys.
pub fn asked(rumor: &Rumor) -> Option<Asked> {
    let Request { form: Form::Sealed, meaning, .. } = read(rumor) else { return None };
    let (wanted, half) = match meaning {
        Meaning::Find(patterns) => (Wanted::Patterns(patterns), None),
        Meaning::Split(half, patterns) => (Wanted::Patterns(patterns), Some(half)),
        Meaning::Best(best) => (Wanted::Rarest(best.family), None),
        Meaning::SplitBest(half, best) => (Wanted::Rarest(best.family), Some(half)),
        _ => return None,
    };
    Some(Asked { wanted, half })
}

/// Meaning of a text, and its language.
pub(super) struct Reading {
    pub meaning: Meaning,
    pub languages: Vec<Language>,
    pub shadowed: Option<Pattern>,
}

impl From<Meaning> for Reading {
    fn from(meaning: Meaning) -> Reading {
        Reading { meaning, languages: Vec::new(), shadowed: None }
    }
}

/// Reads any text, in time linear in its length, besides the bounded time of its patterns.
pub(super) fn read_text(text: &str) -> Reading {
    if has_secret_key(text) {
        return Meaning::SecretKey.into();
    }
    let words: Vec<String> = words(text).take(WORDS_READ + 1).collect();
    if words.len() > WORDS_READ {
        return Meaning::TooManyWords(self::words(text).count()).into();
    }
    let words: Vec<&str> = words.iter().map(String::as_str).collect();
    let Some((first, rest)) = words.split_first() else {
        return if text.contains(['?', '？']) { Meaning::Help } else { Meaning::Nothing }.into();
    };
    let mut effort = effort();
    command(first, rest, &mut effort).unwrap_or_else(|| {
        let speech = Speech::of(&words);
        Reading { meaning: free_text(&words, &speech, &mut effort), languages: speech.languages(), shadowed: None }
    })
}

/// Reads a text that begins with a command.
fn command(first: &str, rest: &[&str], effort: &mut Effort) -> Option<Reading> {
    if let (Some(language), []) = (vocabulary::language_named(first), rest)
        && Pattern::parse(first).is_err()
    {
        return Some(chosen(language));
    }
    let (command, languages) = vocabulary::command(first)?;
    let is_alone = rest.is_empty();
    let job = match rest {
        [word] => number(word),
        _ => None,
    };
    let meaning = match command {
        Command::Help if is_alone => Meaning::Help,
        Command::Help if matches!(rest, [word] if vocabulary::is_command(word, Command::Split)) => Meaning::SplitHelp,
        Command::Split => split(rest, effort),
        Command::Stop if is_alone => Meaning::Stop,
        Command::Start if is_alone => Meaning::Start,
        Command::Delete if is_alone => Meaning::Delete,
        Command::Status if is_alone => Meaning::Status,
        Command::Cancel if is_alone || matches!(rest, [word] if vocabulary::is_command(word, Command::All)) => {
            Meaning::Cancel(None)
        }
        Command::Cancel if job.is_some() => Meaning::Cancel(job),
        Command::Resend if is_alone => Meaning::Resend(None),
        Command::Resend if job.is_some() => Meaning::Resend(job),
        Command::Find if !is_alone => patterns(rest, None, effort),
        Command::Explain if is_alone => Meaning::Kinds,
        Command::Explain => match patterns(rest, None, effort) {
            Meaning::Find(patterns) => Meaning::Explain(patterns),
            Meaning::Best(best) => Meaning::ExplainBest(best),
            other => other,
        },
        // `lang` alone is a prefix, so it does not ask for the languages.
        Command::Language if is_alone && Pattern::parse(first).is_err() => Meaning::Languages,
        // The bot's list of languages shows `lang ja (日本語)`, so a text may name a language twice.
        Command::Language => {
            let mut named = rest.iter().map(|word| vocabulary::language_named(word));
            let first = named.next()??;
            return named.all(|other| other == Some(first)).then(|| chosen(first));
        }
        _ => return None,
    };
    // Every manual has the English commands, so they say nothing about the asker's language.
    let is_english = languages.contains(&Language::English);
    let shadowed = if is_alone && !is_english { Pattern::parse(first).ok() } else { None };
    Some(Reading { meaning, languages: if is_english { Vec::new() } else { languages }, shadowed })
}

/// The reading of a text that chooses a language.
fn chosen(language: Language) -> Reading {
    Reading { meaning: Meaning::Language(language), languages: vec![language], shadowed: None }
}

/// Whether a text has a secret key in it, or a large part of one: `nsec1…`, `ncryptsec1…`,
/// `nhalf1…`.
fn has_secret_key(text: &str) -> bool {
    let folded: String = text.nfkc().filter(|&c| !is_invisible(c)).flat_map(char::to_lowercase).collect();
    ["nsec1", "ncryptsec1", "nhalf1"].into_iter().any(|kind| {
        folded.split(kind).skip(1).any(|rest| {
            let is_bech32 = |c: &char| ALPHABET.contains(&(*c as u8)) && c.is_ascii();
            let in_one = rest.chars().take_while(is_bech32).count();
            let gaps = |c: &char| !c.is_whitespace() && !c.is_control();
            let in_pieces = rest.chars().filter(gaps).take(SECRET_IN_PIECES).take_while(is_bech32).count();
            in_one >= SECRET_IN_ONE || in_pieces >= SECRET_IN_PIECES
        })
    })
}

/// Reads `split <point> pattern …`. The point may be anywhere among the words, and so may `work:…`.
fn split(words: &[&str], effort: &mut Effort) -> Meaning {
    let words: Vec<&str> = words.iter().copied().filter(|word| word.parse::<SplitWork>().is_err()).collect();
    let (points, asked): (Vec<&str>, Vec<&str>) = words.iter().partition(|word| HalfPoint::is_meant(word));
    let point = match points.as_slice() {
        [] if words.is_empty() => return Meaning::SplitHelp,
        [] => return Meaning::BadPoint(None),
        [first, ..] => first.parse::<HalfPoint>(),
    };
    match point {
        Err(error) => Meaning::BadPoint(Some(error)),
        Ok(_) if asked.is_empty() => Meaning::PointAlone,
        Ok(point) => match patterns(&asked, None, effort) {
            Meaning::Find(patterns) => Meaning::Split(point, patterns),
            Meaning::Best(best) => Meaning::SplitBest(point, best),
            other => other,
        },
    }
}

/// Reads `12` or `#12`.
fn number(word: &str) -> Option<JobId> {
    word.trim_start_matches('#').parse().ok().filter(|&number: &i64| number > 0).map(JobId)
}
