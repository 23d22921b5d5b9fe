//! All answers of the bot, as values. [`super::wording`] has the texts.

use super::policy::{Rests, Takes};
use super::price::Price;
use super::request::{OfferReason, Question, ShownCommand};
use crate::job::{BestSearch, JobId};
use crate::key::HalfPointError;
use crate::language::Language;
use crate::ledger::HalfUse;
use crate::pattern::{Best, Difficulty, Pattern, PatternError, Rate};
use std::time::Duration;

/// An answer. [`BotReply::text`] gives its text.
#[derive(Clone, PartialEq, Debug)]
#[cfg_attr(test, derive(strum::EnumCount))]
pub enum BotReply {
    /// The bot takes requests of its operator's friends only.
    FriendsOnly,
    /// A job was accepted.
    Accepted(Acceptance),
    /// A job without a target was accepted.
    AcceptedBest(BestAcceptance),
    /// Instructions for using the bot.
    Help {
        /// Number of jobs being searched, of all askers.
        open_jobs: usize,
        /// The rate of all devices, if measured.
        rate: Option<Rate>,
        /// Address of the bot's page.
        page: Option<String>,
    },
    /// The asker's jobs and keys.
    Status {
        /// Open jobs, oldest first.
        open: Vec<JobLine>,
        /// Jobs whose key can be sent again, newest first.
        results: Vec<JobId>,
        /// Number of jobs being searched, of all askers.
        open_jobs: usize,
        /// The rate of all devices, if measured.
        rate: Option<Rate>,
        /// The reason why nothing is searched now, if so.
        rests: Option<Rests>,
    },
    /// These jobs were cancelled.
    Cancelled(Vec<JobId>),
    /// There is no job to cancel.
    NothingToCancel {
        /// The job that was named, if one was.
        asked: Option<JobId>,
        /// The asker's open jobs.
        open: Vec<JobId>,
    },
    /// The result of this job is sent again.
    SentAgain(JobId),
    /// There is no result that could be sent again.
    NothingToResend {
        /// The job that was named, if one was.
        asked: Option<JobId>,
        /// Jobs whose result is kept.
        kept: Vec<JobId>,
    },
    /// Words that cannot be patterns, each with the reason.
    BadWords(Vec<(String, PatternError)>),
    /// Patterns, each on a line of its own, ready to send.
    Offer {
        /// At least one pattern.
        patterns: Vec<Pattern>,
        /// The reason why nothing was started.
        reason: OfferReason,
    },
    /// A command on a line of its own, ready to send.
    Show {
        /// The command.
        command: ShownCommand,
        /// The asker's open jobs.
        open: Vec<JobId>,
    },
    /// The answer to a frequent question.
    Answer(Question),
    /// The asker is glad.
    Thanks,
    /// Anything else that people say.
    Chat,
    /// A question for the next pattern.
    WhichNext,
    /// A name in Japanese characters.
    LatinLetters,
    /// A message in a language that the bot lacks.
    ForeignLanguage,
    /// A pattern in another notation.
    Unsupported {
        /// The nearest pattern that the bot can read.
        nearest: Option<Pattern>,
    },
    /// A pattern that the bot does not search for.
    NotSearched {
        /// The pattern.
        pattern: Pattern,
        /// The nearest pattern that the bot does search for.
        nearest: Option<Pattern>,
    },
    /// A job whose patterns have too many intervals.
    TooWide {
        /// Intervals that the patterns have.
        asked: usize,
        /// The limit.
        allowed: usize,
    },
    /// A job with too many patterns that fix little at the start.
    TooManyEnds {
        /// Tests of whole texts that the patterns need.
        asked: usize,
        /// The limit.
        allowed: usize,
    },
    /// A job that, together with all open jobs, would have too many intervals, tests of whole texts
    /// or keys to check in full.
    TooWideNow,
    /// Meanings of patterns, and their expected times.
    Explained {
        /// The first few explanations.
        explained: Vec<Explanation>,
        /// Number of further patterns, which are not explained.
        more: usize,
    },
    /// The meaning of a search without a target.
    ExplainedBest(BestExplanation),
    /// A search without a target that takes longer than is allowed.
    BestTooLong {
        /// The longest search that is accepted.
        best: Best,
    },
    /// The kinds of patterns.
    Kinds,
    /// A greeting, not a request.
    Greeting {
        /// The word as a prefix, if it can be one.
        prefix: Option<Pattern>,
    },
    /// The message has a secret key in it.
    SecretKey,
    /// More prefixes than a job may have.
    TooManyPrefixes {
        /// Prefixes in the message.
        asked: usize,
        /// The limit.
        allowed: usize,
    },
    /// The asker has an open job for the same request.
    AlreadySearching {
        /// The asker's job with the same prefixes.
        job: JobId,
    },
    /// A relay of the asker must take the last result first.
    ResultNotTaken,
    /// Results of other askers, which nobody takes, fill their room.
    TooManyNotTaken,
    /// The asker has as many open jobs as one asker may have.
    TooManyOpen {
        /// The asker's open jobs.
        open: Vec<JobId>,
        /// The limit.
        allowed: usize,
    },
    /// The asker has started as many jobs in 24 hours as one asker may.
    TooManyToday {
        /// The limit.
        allowed: usize,
        /// Seconds until the next is accepted.
        wait_seconds: u64,
    },
    /// A request that takes longer than the operator allows.
    TooHard {
        /// Expected time of the request.
        expected: Duration,
        /// Longest expected time that is accepted.
        limit: Duration,
        /// The longest prefix that is accepted now, in characters; 0 for none.
        characters: u32,
        /// A look-alike that would be accepted.
        cheaper: Option<CheaperPattern>,
    },
    /// No device has a rate yet, and the request is too long to accept without one.
    NotMeasured {
        /// The longest prefix that is accepted now, in characters.
        characters: u32,
    },
    /// A message without a word.
    Nothing,
    /// The message is a file: the bot reads text only.
    TextOnly,
    /// A message to several receivers.
    NoGroups,
    /// Instructions for keeping half of the key.
    SplitHelp {
        /// Address of the bot's page.
        page: Option<String>,
    },
    /// A split request without a usable point.
    BadPoint(Option<HalfPointError>),
    /// A split request without a prefix.
    PointAlone,
    /// A split request whose half was used before.
    HalfUsed(HalfUse),
    /// The one answer a day to messages by NIP-04: use NIP-17, or the page.
    NeedsSealed {
        /// The address of the bot's page, if it has one.
        page: Option<String>,
    },
    /// A request from before a restore of the ledger.
    Restored,
    /// A request that costs proof of work now.
    Price(Price),
    /// A proof of work without a request.
    WorkAlone,
    /// This asker sent too many messages, and gets no further answer for some time.
    Paused {
        /// The time of the next answer, in Unix seconds.
        until: u64,
    },
    /// No more messages are sent to this asker. Their open jobs are cancelled.
    Stopped {
        /// Jobs that were open.
        open: usize,
    },
    /// Messages are sent to this asker again.
    Started,
    /// The asker was forgotten.
    Forgotten {
        /// Jobs that were open.
        open: usize,
    },
    /// The asker chose the language of this answer.
    LanguageSet(Language),
    /// The languages that the bot knows.
    Languages,
}

/// An accepted job.
#[derive(Clone, PartialEq, Debug)]
pub struct Acceptance {
    /// The job's number.
    pub job: JobId,
    /// The job's patterns.
    pub patterns: Vec<Pattern>,
    /// Difficulty of any of the patterns.
    pub difficulty: Difficulty,
    /// Time that the search takes once it can begin, if a rate is measured.
    pub takes: Option<Takes>,
    /// The reason why the job is not searched now, if so.
    pub rests: Option<Rests>,
    /// Time until the job is searched, if that is worth mentioning.
    pub queue: Duration,
    /// Whether the asker keeps half of the key.
    pub is_split: bool,
    /// Place of a split job in line, from 1, if it is not searched at once.
    pub place: Option<usize>,
    /// Whether the job takes so long that a split key is worth mentioning.
    pub expensive: bool,
    /// The asker's only other open job.
    pub other_job: Option<JobId>,
    /// A look-alike that is found much sooner.
    pub cheaper: Option<CheaperPattern>,
}

/// An accepted job without a target.
#[derive(Clone, PartialEq, Debug)]
pub struct BestAcceptance {
    /// The job's number.
    pub job: JobId,
    /// The search, with its likely result and its time.
    pub explanation: BestExplanation,
    /// The reason why the job is not searched now, if so.
    pub rests: Option<Rests>,
    /// Time until the job is searched, if that is worth mentioning.
    pub queue: Duration,
    /// Whether the asker keeps half of the key.
    pub is_split: bool,
    /// Place of a split job in line, from 1, if it is not searched at once.
    pub place: Option<usize>,
}

/// The meaning of a search without a target, its likely result and its time.
#[derive(Clone, PartialEq, Debug)]
pub struct BestExplanation {
    /// The search.
    pub best: Best,
    /// A pattern about as rare as the key will probably be. `None` if no rate is measured, or the
    /// time is too short for any.
    pub likely: Option<Pattern>,
    /// The time until its key comes.
    pub takes: Duration,
}

/// A pattern that looks like another one and is found much sooner.
#[derive(Clone, PartialEq, Debug)]
pub struct CheaperPattern {
    /// The pattern.
    pub pattern: Pattern,
    /// Expected time until a key is found.
    pub expected: Duration,
}

/// The meaning and the expected time of one pattern.
#[derive(Clone, PartialEq, Debug)]
pub struct Explanation {
    /// The pattern.
    pub pattern: Pattern,
    /// Whether the bot searches for the pattern.
    pub is_accepted: bool,
    /// Time that a search takes, if a rate is measured.
    pub expected: Option<Takes>,
    /// The nearest pattern that the bot searches for, if it does not search for this one.
    pub nearest: Option<Pattern>,
    /// A look-alike that is found much sooner.
    pub cheaper: Option<CheaperPattern>,
}

/// One open job in a status.
#[derive(Clone, PartialEq, Debug)]
pub struct JobLine {
    /// The job's number.
    pub job: JobId,
    /// The job's patterns.
    pub patterns: Vec<Pattern>,
    /// The search without a target, if the job is one.
    pub best: Option<BestSearch>,
    /// Time since the job was accepted.
    pub waited: Duration,
    /// The job's mean time and the chance that it is done by now, if a rate is measured.
    pub expected: Option<(Duration, f64)>,
}
