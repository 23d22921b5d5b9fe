//! Intents: what an asker wants, and what is known of the asker when a message is read.

use crate::job::JobId;
use crate::key::{HalfPoint, HalfPointError};
use crate::language::Language;
use crate::pattern::{Best, Pattern, PatternError};

/// What an asker wants of the bot.
#[derive(Clone, PartialEq, Debug)]
pub(super) enum Intent {
    /// A search for patterns, without repeats, in the order written.
    Search(Vec<Pattern>),
    /// A search without a target.
    Best(Best),
    /// Patterns at the asker's own point. The asker keeps half of the key.
    Split(HalfPoint, Vec<Pattern>),
    /// A search without a target at the asker's own point.
    SplitBest(HalfPoint, Best),
    /// `split` without a point, or with a word that is meant as a point and is none.
    BadPoint(Option<HalfPointError>),
    /// `split` and a point, but no prefix.
    PointAlone,
    /// Patterns that are shown, ready to send; nothing starts.
    Offer(Vec<Pattern>, OfferReason),
    Help,
    SplitHelp,
    Status,
    /// Cancel a job; `None`: all of the asker's jobs.
    Cancel(Option<JobId>),
    /// Send a result again; `None`: the newest.
    Resend(Option<JobId>),
    /// The asker wants no more messages.
    Stop,
    Start,
    /// The asker wants their data deleted.
    Delete,
    /// A command that is shown, ready to send; it is not certain enough to be obeyed.
    Show(Shown),
    /// A question about the meaning and the expected time of these patterns.
    Explain(Vec<Pattern>),
    /// A question about the meaning and the expected time of a search without a target.
    ExplainBest(Best),
    /// A question about the kinds of patterns.
    Kinds,
    /// Words that are not patterns, each with the reason; at most three.
    BadWords(Vec<(String, PatternError)>),
    /// A pattern in another notation. Holds the nearest pattern.
    Unsupported(Option<Pattern>),
    TooManyWords(usize),
    /// A question that always has the same answer.
    Ask(Question),
    /// A secret key, or a part of one.
    SecretKey,
    /// Answers in this language from now on.
    Language(Language),
    /// A question about the languages that the bot knows.
    Languages,
    Thanks,
    Greeting,
    /// Anything else that people say.
    Chat,
    /// A wish for a longer pattern, or for one more key: the asker has to say which.
    WhichNext,
    /// A name in Japanese characters that have no one spelling.
    LatinLetters,
    /// A language that the bot lacks.
    ForeignLanguage,
    Nothing,
}

/// A question that always has the same answer.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Question {
    /// "Who are you?"
    Who,
    /// "What does it cost?"
    Price,
    /// "Is it safe?"
    Safety,
    /// "How do I use the key?", "Can I keep my old key?"
    Import,
    /// "Do I get 12 words?"
    Seed,
}

/// A command that is shown, ready to send.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Shown {
    /// `cancel`
    Cancel,
    /// `delete`
    Delete,
    /// `stop`
    Stop,
}

/// The reason why patterns are shown and not searched.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum OfferReason {
    /// A character cannot occur in an npub.
    Impossible(char),
    /// Only an accent is impossible.
    Accent,
    /// A letter of another script looks like one that is possible.
    OtherScript(char, char),
    /// It is not certain that the word is meant.
    Unsure,
    /// The patterns that are more than 1,000 times as hard as the easiest one, which would
    /// always be found first.
    Uneven(Pattern),
    /// The asker has an open job for something else.
    Change(JobId),
}

/// A message's meaning and the language of the answer.
#[derive(Clone, PartialEq, Debug)]
pub struct Reading {
    pub(super) intent: Intent,
    /// The language of the answer.
    pub language: Language,
    /// The only word of the message, if it is a command and could be a prefix.
    pub(super) shadowed: Option<Pattern>,
}

/// What is known of an asker when a message is read.
#[derive(Clone, PartialEq, Debug, Default)]
pub struct Context {
    /// Language of the chat.
    pub language: Language,
    /// Open jobs with their patterns, oldest first.
    pub open: Vec<(JobId, Vec<Pattern>)>,
    /// Whether a key was delivered and no job is open.
    pub delivered: bool,
}
