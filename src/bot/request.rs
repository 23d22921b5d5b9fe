//! Reading messages: what people write becomes a [`Request`].

use crate::job::{Asker, JobId, RumorId};
use crate::key::{HalfPoint, HalfPointError};
use crate::pattern::{Pattern, PatternError};
use crate::vault::Rumor;

/// Meaning beyond this many are not read: nobody means them as prefixes.
const WORDS_READ: usize = 64;

/// Prefixes of a split request that are read beside its first word and its point.
pub const MOST_SPLIT_PREFIXES: usize = WORDS_READ - 2;

/// Meaning that occur in sentences around a request. Alone they are prefixes like any other.
const FILLERS: &[&str] = &[
    "a", "an", "as", "at", "can", "get", "key", "me", "my", "need", "npub", "nsec", "pls", "please", "prefer", "start",
    "starts", "thanks", "that", "the", "u", "want", "we", "you", "your",
];

/// NIP-04: a message of an old client, in the open but for its text.
const KIND_NIP04: u16 = 4;
/// NIP-09: a deletion.
const KIND_DELETION: u16 = 5;
/// NIP-17: a file message.
const KIND_FILE: u16 = 15;

/// A message, read once: who asks, how it came, and what its text says.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Request {
    pub(super) asker: Asker,
    pub(super) subject: Option<String>,
    pub(super) form: Form,
    pub(super) meaning: Meaning,
}

impl Request {
    /// The half point of a split request. The caller looks up whether it was used before.
    pub fn half(&self) -> Option<HalfPoint> {
        match &self.meaning {
            Meaning::Split(half, _) => Some(*half),
            _ => None,
        }
    }
}

/// Form of a message, beside its text.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(super) enum Form {
    /// Text in a gift wrap (NIP-17), to us alone.
    Sealed,
    /// Text in a message of kind 4.
    Nip04,
    /// A file, of which only the address came.
    File,
    /// A message to several receivers.
    Group,
    /// A deletion of these messages.
    Deletion(Vec<RumorId>),
}

/// What the text of a message asks for.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(super) enum Meaning {
    /// One or more prefixes, without repeats, in the order written.
    Find(Vec<Pattern>),
    Help,
    Status,
    /// `None`: all of the asker's jobs.
    Cancel(Option<JobId>),
    /// `None`: the newest result.
    Resend(Option<JobId>),
    /// Meaning that are no prefixes, each with the reason; at most three.
    BadWords(Vec<(String, PatternError)>),
    /// Reads like a sentence: all words could be prefixes, but hardly all are meant. These are the
    /// less common ones.
    Sentence(Vec<Pattern>),
    TooManyWords(usize),
    /// Prefixes at the asker's own point: they keep half of the key.
    Split(HalfPoint, Vec<Pattern>),
    /// `split` with a word that is no point, or without a point.
    BadPoint(Option<HalfPointError>),
    /// `split` and a point, but no prefix.
    PointAlone,
    SplitHelp,
    /// No more messages from us.
    Stop,
    Start,
    /// Forget the asker.
    Delete,
    Nothing,
}

/// Reads a message. Never panics, whatever the text.
pub fn read(rumor: &Rumor) -> Request {
    let form = match rumor.kind {
        KIND_DELETION => Form::Deletion(rumor.takes_back.clone()),
        KIND_FILE => Form::File,
        _ if rumor.other_receivers > 0 => Form::Group,
        KIND_NIP04 => Form::Nip04,
        _ => Form::Sealed,
    };
    Request { asker: rumor.author, subject: rumor.subject.clone(), form, meaning: read_text(&rumor.content) }
}

/// Reads any text, in time linear in its length.
pub(super) fn read_text(text: &str) -> Meaning {
    let words: Vec<String> = words(text).take(WORDS_READ + 1).collect();
    if words.len() > WORDS_READ {
        return Meaning::TooManyWords(self::words(text).count());
    }
    let rest: Vec<&str> = words.iter().skip(1).map(String::as_str).collect();
    match words.first().map(|word| word.trim_start_matches('/')) {
        None if text.contains('?') => Meaning::Help,
        None => Meaning::Nothing,
        Some("help" | "hi" | "hello" | "hey" | "info") if rest.is_empty() => Meaning::Help,
        Some("help") if rest == ["split"] => Meaning::SplitHelp,
        Some("split") => split(&rest),
        Some("stop") if rest.is_empty() => Meaning::Stop,
        Some("start") if rest.is_empty() => Meaning::Start,
        Some("delete") if rest.is_empty() => Meaning::Delete,
        Some("status") if rest.is_empty() => Meaning::Status,
        Some("cancel") if rest.is_empty() || rest == ["all"] => Meaning::Cancel(None),
        Some("resend") if rest.is_empty() => Meaning::Resend(None),
        Some(command @ ("cancel" | "resend")) if rest.len() == 1 && number(rest[0]).is_some() => {
            if command == "cancel" { Meaning::Cancel(number(rest[0])) } else { Meaning::Resend(number(rest[0])) }
        }
        Some("find" | "prefix" | "search" | "mine") if !rest.is_empty() => prefixes(&rest, true),
        Some(_) => prefixes(&words.iter().map(String::as_str).collect::<Vec<_>>(), false),
    }
}

/// `split <point> prefix …`, the point anywhere among the words.
fn split(words: &[&str]) -> Meaning {
    let (points, prefixes): (Vec<&str>, Vec<&str>) = words.iter().partition(|word| HalfPoint::is_meant(word));
    let point = match points.as_slice() {
        [] if words.is_empty() => return Meaning::SplitHelp,
        [] => return Meaning::BadPoint(None),
        [first, ..] => first.parse::<HalfPoint>(),
    };
    match point {
        Err(error) => Meaning::BadPoint(Some(error)),
        Ok(_) if prefixes.is_empty() => Meaning::PointAlone,
        Ok(point) => match self::prefixes(&prefixes, true) {
            Meaning::Find(patterns) => Meaning::Split(point, patterns),
            other => other,
        },
    }
}

/// `sure`: the asker said that these are prefixes.
fn prefixes(words: &[&str], sure: bool) -> Meaning {
    let mut patterns: Vec<Pattern> = Vec::new();
    let mut bad: Vec<(String, PatternError)> = Vec::new();
    for word in words {
        match Pattern::parse(word) {
            Ok(pattern) if !patterns.contains(&pattern) => patterns.push(pattern),
            Ok(_) => {}
            Err(error) => bad.push(((*word).to_owned(), error)),
        }
    }
    if !bad.is_empty() {
        bad.truncate(3);
        return Meaning::BadWords(bad);
    }
    let filler = words.len() > 1 && words.iter().any(|word| FILLERS.contains(word));
    if filler && !sure {
        patterns.retain(|pattern| !FILLERS.contains(&pattern.as_str()));
        return Meaning::Sentence(patterns);
    }
    Meaning::Find(patterns)
}

/// `12` or `#12`.
fn number(word: &str) -> Option<JobId> {
    word.trim_start_matches('#').parse().ok().filter(|&number: &i64| number > 0).map(JobId)
}

/// Lower-case words without what surrounds words in running text: punctuation, quotes, marks that
/// are not seen.
fn words(text: &str) -> impl Iterator<Item = String> {
    text.split(|c: char| c.is_whitespace() || c.is_control() || is_separator(c))
        .map(|word| word.chars().filter(|&c| !is_invisible(c)).flat_map(char::to_lowercase).collect::<String>())
        .map(|word| word.trim_end_matches([':', '-']).to_owned())
        .filter(|word| !word.is_empty())
}

fn is_separator(c: char) -> bool {
    matches!(c, ',' | ';' | '.' | '!' | '?' | '|' | '(' | ')' | '[' | ']' | '{' | '}' | '<' | '>' | '*' | '_' | '~')
        || matches!(c, '"' | '\'' | '`' | '“' | '”' | '„' | '‘' | '’' | '«' | '»' | '…' | '、' | '。')
}

/// Zero-width characters, marks of the writing direction, variation selectors, the byte-order mark.
fn is_invisible(c: char) -> bool {
    matches!(c, '\u{ad}' | '\u{200b}'..='\u{200f}' | '\u{202a}'..='\u{202e}' | '\u{2060}'..='\u{206f}' | '\u{feff}')
        || matches!(c, '\u{fe00}'..='\u{fe0f}' | '\u{e0000}'..='\u{e007f}')
}
