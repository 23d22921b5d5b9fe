//! Meanings of the text of a message.

use crate::job::JobId;
use crate::key::{HalfPoint, HalfPointError};
use crate::language::Language;
use crate::pattern::{Best, GrammarError, Pattern};

/// Meaning of the text of a message.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(super) enum Meaning {
    /// One or more patterns, without repeats, in the order written.
    Find(Vec<Pattern>),
    /// A search without a target.
    Best(Best),
    Help,
    Status,
    /// Cancel a job; `None`: all of the asker's jobs.
    Cancel(Option<JobId>),
    /// Send a result again; `None`: the newest.
    Resend(Option<JobId>),
    /// A question about the meaning and the expected time of these patterns.
    Explain(Vec<Pattern>),
    /// A question about the meaning and the expected time of a search without a target.
    ExplainBest(Best),
    /// A question about the kinds of patterns.
    Kinds,
    /// Words that are not patterns, each with the reason; at most three.
    BadWords(Vec<(String, GrammarError)>),
    /// A sentence. Many of its words could be prefixes, but hardly all are meant. Holds those that
    /// are no fillers.
    Sentence(Vec<Pattern>),
    TooManyWords(usize),
    /// A pattern in another notation, or words that ask for an ending. Holds the nearest pattern.
    Unsupported(Option<Pattern>),
    /// Small talk, with the word as a prefix if it can be one.
    SmallTalk(Option<Pattern>),
    /// A secret key, or a part of one.
    SecretKey,
    /// A question about seed words.
    SeedWords,
    /// Patterns at the asker's own point. The asker keeps half of the key.
    Split(HalfPoint, Vec<Pattern>),
    /// A search without a target at the asker's own point.
    SplitBest(HalfPoint, Best),
    /// `split` without a point, or with a word that is meant as a point and is none.
    BadPoint(Option<HalfPointError>),
    /// `split` and a point, but no prefix.
    PointAlone,
    SplitHelp,
    /// The asker wants no more messages.
    Stop,
    Start,
    /// The asker wants their data deleted.
    Delete,
    /// Answers in this language from now on.
    Language(Language),
    /// A question about the languages that the bot knows.
    Languages,
    Nothing,
}
