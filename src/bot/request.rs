//! What a person wrote, read with good will.

use crate::job::JobId;
use crate::key::{HalfPoint, HalfPointError};
use crate::pattern::{Pattern, PatternError};

/// Words beyond this many are not read: nobody means them as prefixes.
const WORDS_READ: usize = 64;

/// Prefixes of a split request that are read beside its first word and its point.
pub const MOST_SPLIT_PREFIXES: usize = WORDS_READ - 2;

/// Words that occur in sentences around a request. Alone they are prefixes like any other.
const FILLERS: &[&str] = &[
    "a", "an", "as", "at", "can", "get", "key", "me", "my", "need", "npub", "nsec", "pls", "please", "prefer", "start",
    "starts", "thanks", "that", "the", "u", "want", "we", "you", "your",
];

/// A message, understood.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(super) enum Request {
    /// One or more prefixes, without repeats, in the order written.
    JobSpec(Vec<Pattern>),
    Help,
    Status,
    /// `None`: all of the asker's jobs.
    Cancel(Option<JobId>),
    /// `None`: the newest result.
    Resend(Option<JobId>),
    /// Words that are no prefixes, each with the reason; at most three.
    BadWords(Vec<(String, PatternError)>),
    /// Reads like a sentence: all words could be prefixes, but hardly all are meant. These are the less common ones.
    Sentence(Vec<Pattern>),
    TooManyWords(usize),
    /// A request at the asker's own point, who keeps half of the key.
    Split(HalfPoint, Vec<Pattern>),
    /// `split` with a point that is none, or with none at all.
    BadPoint(Option<HalfPointError>),
    /// `split` and a point, but no prefix.
    PointAlone,
    SplitHelp,
    /// No word any more.
    Stop,
    Start,
    /// To be forgotten.
    Delete,
    Nothing,
}

/// The point a message names, if it is a split request: whoever decides wants to know whether it was used before.
pub fn half_named(text: &str) -> Option<HalfPoint> {
    match read(text) {
        Request::Split(point, _) => Some(point),
        _ => None,
    }
}

/// Reads any text at all; the time it takes grows with its length and no faster.
pub(super) fn read(text: &str) -> Request {
    let words: Vec<String> = words(text).take(WORDS_READ + 1).collect();
    if words.len() > WORDS_READ {
        return Request::TooManyWords(self::words(text).count());
    }
    let rest: Vec<&str> = words.iter().skip(1).map(String::as_str).collect();
    match words.first().map(|word| word.trim_start_matches('/')) {
        None if text.contains('?') => Request::Help,
        None => Request::Nothing,
        Some("help" | "hi" | "hello" | "hey" | "info") if rest.is_empty() => Request::Help,
        Some("help") if rest == ["split"] => Request::SplitHelp,
        Some("split") => split(&rest),
        Some("stop") if rest.is_empty() => Request::Stop,
        Some("start") if rest.is_empty() => Request::Start,
        Some("delete") if rest.is_empty() => Request::Delete,
        Some("status") if rest.is_empty() => Request::Status,
        Some("cancel") if rest.is_empty() || rest == ["all"] => Request::Cancel(None),
        Some("resend") if rest.is_empty() => Request::Resend(None),
        Some(command @ ("cancel" | "resend")) if rest.len() == 1 && number(rest[0]).is_some() => {
            if command == "cancel" { Request::Cancel(number(rest[0])) } else { Request::Resend(number(rest[0])) }
        }
        Some("find" | "prefix" | "search" | "mine") if !rest.is_empty() => request(&rest, true),
        Some(_) => request(&words.iter().map(String::as_str).collect::<Vec<_>>(), false),
    }
}

/// `split <point> prefix …`, the point anywhere among the words.
fn split(words: &[&str]) -> Request {
    let (points, prefixes): (Vec<&str>, Vec<&str>) = words.iter().partition(|word| HalfPoint::is_meant(word));
    let point = match points.as_slice() {
        [] if words.is_empty() => return Request::SplitHelp,
        [] => return Request::BadPoint(None),
        [first, ..] => first.parse::<HalfPoint>(),
    };
    match point {
        Err(error) => Request::BadPoint(Some(error)),
        Ok(_) if prefixes.is_empty() => Request::PointAlone,
        Ok(point) => match request(&prefixes, true) {
            Request::JobSpec(patterns) => Request::Split(point, patterns),
            other => other,
        },
    }
}

/// `sure`: the asker said that these are prefixes.
fn request(words: &[&str], sure: bool) -> Request {
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
        return Request::BadWords(bad);
    }
    let filler = words.len() > 1 && words.iter().any(|word| FILLERS.contains(word));
    if filler && !sure {
        patterns.retain(|pattern| !FILLERS.contains(&pattern.as_str()));
        return Request::Sentence(patterns);
    }
    Request::JobSpec(patterns)
}

/// `12` or `#12`.
fn number(word: &str) -> Option<JobId> {
    word.trim_start_matches('#').parse().ok().filter(|&number: &i64| number > 0).map(JobId)
}

/// Lower-case words without what surrounds words in running text: punctuation, quotes, marks that are not seen.
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
