//! What must survive: jobs, messages seen, the outbox. SQLite behind a handful of transactions. No secret in the clear.
//!
//! ```text
//! T1  answer    seen + (job accepted | jobs cancelled | result sent again) + the answer's wrap
//! T2  found     accepted → found (compare and set) + the result's one wrap
//!     expire    accepted → expired (compare and set) + the notice's wrap
//! T3  acknowledge   a relay said OK; found → delivered
//! ```
//!
//! | state | meaning | after a crash |
//! | --- | --- | --- |
//! | accepted | promised, being searched | searched again: the search is memoryless |
//! | found | its result is sealed in the outbox | the same wrap is sent again |
//! | delivered | a relay of the asker has the result | nothing |
//! | cancelled, expired | given up, the asker knows | nothing |

mod answer;
mod asker;
mod clean;
mod days;
mod halves;
mod jobs;
mod lock;
mod look;
mod open;
mod outbox;
mod posts;
mod rows;
mod schema;
#[cfg(test)]
mod tests;

pub use days::DayFigures;
pub use look::{Look, look};
pub use open::Ledger;
pub use outbox::{Attempt, Next};
pub use posts::{DuePost, Post};

use crate::job::{Asker, JobId, JobSpec, RumorId};
use crate::message::GiftWrap;
use std::fmt;
use thiserror::Error;

/// Where a job stands.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub enum JobState {
    Accepted,
    Found,
    Delivered,
    Cancelled,
    Expired,
}

/// An accepted job, as the ledger keeps it.
#[derive(Clone)]
pub struct Job {
    pub id: JobId,
    /// The message that asked.
    pub rumor: RumorId,
    pub state: JobState,
    /// Unix seconds.
    pub accepted_at: u64,
    /// Relays where the asker's message was seen: where to answer if nothing better is known.
    pub seen_on: Vec<String>,
    /// What is searched, for whom, and until when.
    pub spec: JobSpec,
}

/// T1: one message and all that follows from it, recorded at once or not at all.
#[derive(Clone, Debug)]
pub struct Answer {
    pub asker: Asker,
    pub rumor: RumorId,
    /// Relays where the message was seen.
    pub seen_on: Vec<String>,
    pub effect: Effect,
    /// The one answer. `None` for messages that are to be ignored quietly.
    pub reply: Option<GiftWrap>,
}

impl fmt::Debug for Job {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Job {}, {:?}, {} patterns", self.id, self.state, self.spec.patterns.len())
    }
}

/// What a message does beside being answered. Its `Debug` shows no pattern.
#[derive(Clone)]
pub enum Effect {
    Nothing,
    /// A job under the number that [`Ledger::next_job`] said. Its asker is the one of the answer, its patterns are not empty.
    Accept(JobId, JobSpec),
    /// Accepted jobs of this asker to cancel. Others are left as they are.
    Cancel(Vec<JobId>),
    /// A found or delivered job of this asker whose result is to be sent again: the same wrap.
    Resend(JobId),
    /// All of this asker's jobs are cancelled, and nothing is said to them until [`Effect::Start`].
    Stop,
    Start,
    /// Everything kept about this asker goes, but the ids of their messages as long as those can be replayed, when the last
    /// day's jobs were accepted as long as that counts, and the reply to this one.
    Forget,
}

/// What a half was used for before.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum HalfUse {
    /// An open job searches for it, or for one that is related to it.
    Open,
    /// A key was found for it, or for one that is related to it.
    Spent,
}

impl fmt::Debug for Effect {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Effect::Nothing => f.write_str("Nothing"),
            Effect::Accept(id, spec) => write!(f, "Accept {id}, {spec:?}"),
            Effect::Cancel(jobs) => write!(f, "Cancel {jobs:?}"),
            Effect::Resend(job) => write!(f, "Resend {job}"),
            Effect::Stop => f.write_str("Stop"),
            Effect::Start => f.write_str("Start"),
            Effect::Forget => f.write_str("Forget"),
        }
    }
}

/// What became of T1.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Recorded {
    Now,
    /// The same asker and rumor were answered before: nothing was changed.
    Before,
}

/// The number of a letter in the outbox.
#[derive(Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord, Debug)]
pub struct MessageId(pub i64);

/// A letter that is due to be sent.
#[derive(Clone, Debug)]
pub struct DueMessage {
    pub id: MessageId,
    /// The job whose result this is; `None` for other letters.
    pub result_of: Option<JobId>,
    pub wrap: GiftWrap,
    /// Unix seconds of its being queued, or of its last being asked for again.
    pub queued_at: u64,
    /// Attempts made before this one.
    pub attempts: u32,
    /// Relays where the asker's message was seen.
    pub seen_on: Vec<String>,
    /// Relays that said OK already.
    pub acknowledged_by: Vec<String>,
}

/// What is known of one asker, for the bot's decisions.
#[derive(Clone, Debug, Default)]
pub struct AskerView {
    /// Accepted jobs, oldest first.
    pub open: Vec<Job>,
    /// Found and delivered jobs whose result is still kept, newest first.
    pub results: Vec<Job>,
    /// When each job of the last 24 hours was accepted, Unix seconds, oldest first, whatever became of it.
    pub accepted_last_day: Vec<u64>,
    /// They said stop.
    pub silent: bool,
    /// They had a job, whatever became of it, and the ledger still has it.
    pub known: bool,
}

/// How many jobs are in each state.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct Totals {
    pub accepted: u64,
    pub found: u64,
    pub delivered: u64,
    pub cancelled: u64,
    pub expired: u64,
    pub unsent_messages: u64,
}

/// Why the ledger did not do it. Nothing was changed.
#[derive(Debug, Error)]
pub enum LedgerError {
    #[error("another npubbot uses the folder {folder}; stop it, or give this one its own with --data")]
    InUse { folder: String },
    #[error(
        "the ledger in {folder} was written by a newer npubbot (schema {found}, this one knows {known}); upgrade npubbot"
    )]
    TooNew { folder: String, found: i64, known: i64 },
    #[error("the data folder {folder} cannot be used: {reason}")]
    Folder { folder: String, reason: String },
    #[error("the ledger failed: {0}")]
    Database(#[from] rusqlite::Error),
    #[error("the letter is sealed to somebody else than the asker; it was not queued")]
    Misaddressed,
    #[error("the ledger holds something unreadable: {0}")]
    Corrupt(String),
}
