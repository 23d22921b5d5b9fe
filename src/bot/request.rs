//! Reading messages: what people write becomes a [`Request`].

use super::words::{has_wildcard, is_invisible, words};
use crate::job::{Asker, JobId, RumorId};
use crate::key::{HalfPoint, HalfPointError, SplitWork};
use crate::pattern::{ALPHABET, Pattern, PatternError};
use crate::vault::Rumor;
use unicode_normalization::UnicodeNormalization;

/// Only this many words are read: nobody means more of them as prefixes.
const WORDS_READ: usize = 64;

/// The most prefixes of a split request that are read, besides its first word, its point and its
/// work.
pub const MOST_SPLIT_PREFIXES: usize = WORDS_READ - 3;

/// Words that surround a request in a sentence. On their own they are prefixes like any other.
const FILLERS: &[&str] = &[
    "a", "an", "and", "as", "at", "begins", "bot", "can", "could", "dear", "find", "for", "get", "give", "have",
    "hello", "hey", "hi", "i", "i'd", "id", "in", "is", "it", "key", "like", "make", "me", "mine", "my", "need",
    "npub", "nsec", "of", "one", "ok", "or", "pls", "please", "plz", "prefer", "prefix", "search", "start", "starting",
    "starts", "thank", "thanks", "that", "the", "thx", "to", "u", "vanity", "want", "we", "which", "whose", "will",
    "wish", "with", "would", "you", "your",
];

/// Words of small talk. Alone, or after each other, they are no request.
const SMALL_TALK: &[&str] = &[
    "cool", "gm", "gn", "good", "great", "lol", "morning", "much", "nice", "night", "no", "nope", "ok", "okay",
    "please", "pls", "sure", "test", "testing", "thank", "thanks", "thx", "ty", "very", "wow", "yeah", "yep", "yes",
    "you",
];

/// Words that ask about seed words.
const SEED_WORDS: &[&str] = &["bip39", "bip-39", "mnemonic", "mnemonics", "mnemonic?", "seedphrase"];

/// This many bech32 characters after `nsec1` count as a secret key, in one piece or in several.
const SECRET_IN_ONE: usize = 6;
const SECRET_IN_PIECES: usize = 50;

/// NIP-04: a message of an old client. Only its text is encrypted.
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
    work: Option<SplitWork>,
}

impl Request {
    /// The proof of work in the text, the first if there are several. The caller checks it.
    pub fn split_work(&self) -> Option<SplitWork> {
        self.work
    }

    /// The half point of a split request. The caller looks up whether it was used before.
    pub fn half(&self) -> Option<HalfPoint> {
        match &self.meaning {
            Meaning::Split(half, _) => Some(*half),
            _ => None,
        }
    }
}

/// The kind of a message, besides its text.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(super) enum Form {
    /// Text in a gift wrap (NIP-17), to us alone.
    Sealed,
    /// Text in a message of kind 4.
    Nip04,
    /// A file. Only its address was sent.
    File,
    /// A message to several receivers.
    Group,
    /// A deletion of these messages.
    Deletion(Vec<RumorId>),
}

/// Meaning of the text of a message.
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
    /// Words that are no prefixes, each with the reason; at most three.
    BadWords(Vec<(String, PatternError)>),
    /// A sentence. All its words could be prefixes, but hardly all are meant. These are the less
    /// common ones.
    Sentence(Vec<Pattern>),
    TooManyWords(usize),
    /// A pattern of a kind that we do not search for, and the nearest prefix that we do.
    Unsupported(Option<Pattern>),
    /// Small talk, with the word as a prefix if it can be one.
    SmallTalk(Option<Pattern>),
    /// A secret key, or a part of one.
    SecretKey,
    /// A question about seed words.
    SeedWords,
    /// Prefixes at the asker's own point: they keep half of the key.
    Split(HalfPoint, Vec<Pattern>),
    /// `split` with a word that is no point, or without a point.
    BadPoint(Option<HalfPointError>),
    /// `split` and a point, but no prefix.
    PointAlone,
    SplitHelp,
    /// The asker wants no more messages.
    Stop,
    Start,
    /// The asker wants their data deleted.
    Delete,
    Nothing,
}

/// Reads a message. Never panics, for any text.
pub fn read(rumor: &Rumor) -> Request {
    let form = match rumor.kind {
        KIND_DELETION => Form::Deletion(rumor.takes_back.clone()),
        KIND_FILE => Form::File,
        _ if rumor.other_receivers > 0 => Form::Group,
        KIND_NIP04 => Form::Nip04,
        _ => Form::Sealed,
    };
    let work = rumor.content.split_whitespace().find_map(|word| word.to_lowercase().parse().ok());
    Request { asker: rumor.author, subject: rumor.subject.clone(), form, meaning: read_text(&rumor.content), work }
}

/// Reads any text, in time linear in its length.
pub(super) fn read_text(text: &str) -> Meaning {
    if has_secret_key(text) {
        return Meaning::SecretKey;
    }
    let words: Vec<String> = words(text).take(WORDS_READ + 1).collect();
    if words.len() > WORDS_READ {
        return Meaning::TooManyWords(self::words(text).count());
    }
    let words: Vec<&str> = words.iter().map(String::as_str).collect();
    let (Some(first), rest) = (words.first(), words.get(1..).unwrap_or_default()) else {
        return if text.contains('?') { Meaning::Help } else { Meaning::Nothing };
    };
    match *first {
        "help" | "hi" | "hello" | "hey" | "info" if rest.is_empty() => Meaning::Help,
        "help" if rest == ["split"] => Meaning::SplitHelp,
        "split" => split(rest),
        "stop" if rest.is_empty() => Meaning::Stop,
        "start" if rest.is_empty() => Meaning::Start,
        "delete" if rest.is_empty() => Meaning::Delete,
        "status" if rest.is_empty() => Meaning::Status,
        "cancel" if rest.is_empty() || rest == ["all"] => Meaning::Cancel(None),
        "resend" if rest.is_empty() => Meaning::Resend(None),
        command @ ("cancel" | "resend") if rest.len() == 1 && number(rest[0]).is_some() => {
            if command == "cancel" {
                Meaning::Cancel(number(rest[0]))
            } else {
                Meaning::Resend(number(rest[0]))
            }
        }
        "find" | "prefix" | "search" | "mine" if !rest.is_empty() => prefixes(rest, true),
        _ => free_text(&words),
    }
}

/// Reads a text that does not begin with a command.
fn free_text(words: &[&str]) -> Meaning {
    let asks_for_seed = words.iter().any(|word| SEED_WORDS.contains(word))
        || words == ["seed"]
        || words.windows(2).any(|two| matches!(two, ["12" | "24" | "twelve" | "seed", "words" | "word" | "phrase"]));
    if asks_for_seed {
        return Meaning::SeedWords;
    }
    if words.iter().all(|word| SMALL_TALK.contains(word)) {
        let prefix = if words.len() == 1 { Pattern::parse(words[0]).ok() } else { None };
        return Meaning::SmallTalk(prefix);
    }
    if wants_elsewhere(words) {
        let last = words.iter().rev().find(|word| !FILLERS.contains(word) && !ELSEWHERE.contains(word));
        return Meaning::Unsupported(last.and_then(|word| Pattern::parse(word).ok()));
    }
    match meant(words) {
        Some(meant) => prefixes(&meant, true),
        None => prefixes(words, false),
    }
}

/// Words for characters that are not right after `npub1`.
const ELSEWHERE: &[&str] = &[
    "anywhere",
    "contain",
    "containing",
    "contains",
    "end",
    "ending",
    "ends",
    "finishing",
    "inside",
    "middle",
    "suffix",
];

fn wants_elsewhere(words: &[&str]) -> bool {
    let other = |word: &&&str| !FILLERS.contains(word) && !ELSEWHERE.contains(word);
    words.iter().any(|word| ELSEWHERE.contains(word)) && words.len() > 1 && words.iter().filter(other).count() < 2
}

/// The prefixes of a sentence, if they are certain: written as `npub1…` or after `starts with`, and
/// all other words cannot be meant as prefixes.
fn meant<'a>(words: &[&'a str]) -> Option<Vec<&'a str>> {
    let is_marked = |word: &&str| word.len() < 58 && word.trim_start_matches("nostr:").starts_with("npub1");
    let is_prose = |word: &&str| FILLERS.contains(word) || Pattern::parse(word).is_err();
    let (marked, others): (Vec<&str>, Vec<&str>) = words.iter().copied().partition(|word| is_marked(word));
    if !marked.is_empty() && !others.is_empty() && others.iter().all(is_prose) {
        return Some(marked);
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

/// Reads `split <point> prefix …`. The point may be anywhere among the words, and so may `work:…`.
fn split(words: &[&str]) -> Meaning {
    let words: Vec<&str> = words.iter().copied().filter(|word| word.parse::<SplitWork>().is_err()).collect();
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

/// Reads words as prefixes. `sure` means that the asker said that they are.
fn prefixes(words: &[&str], sure: bool) -> Meaning {
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
    let fillers = words.iter().filter(|word| FILLERS.contains(word)).count();
    let is_prose = words.len() > 1 && fillers > 0 && !sure;
    if is_prose {
        patterns.retain(|pattern| !FILLERS.contains(&pattern.as_str()));
        bad.retain(|(word, _)| !FILLERS.contains(&word.as_str()));
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

/// Reads `12` or `#12`.
fn number(word: &str) -> Option<JobId> {
    word.trim_start_matches('#').parse().ok().filter(|&number: &i64| number > 0).map(JobId)
}
