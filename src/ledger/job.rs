//! Jobs and askers, as the ledger knows them.

use crate::job::{JobId, JobSpec, RumorId, Ticket};
use crate::language::Language;
use std::fmt;

/// State of a job.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub enum JobState {
    /// The job was accepted, and its key is being searched for.
    Accepted,
    /// The sealed result is in the outbox.
    Found,
    /// A relay of the asker has the result.
    Delivered,
    /// Given up by its asker.
    Cancelled,
    /// Given up by the bot.
    Expired,
}

/// An accepted job, as the ledger keeps it.
#[derive(Clone)]
pub struct Job {
    /// The job's number.
    pub id: JobId,
    /// The message that asked.
    pub rumor: RumorId,
    /// The job's state.
    pub state: JobState,
    /// When the job was accepted, Unix seconds.
    pub accepted_at: u64,
    /// Relays where the asker's message was seen: the last choice for the answer.
    pub seen_on: Vec<String>,
    /// The vault's ticket; no key is sealed without it.
    pub ticket: Ticket,
    /// Patterns, asker and time limit of the search.
    pub spec: JobSpec,
    /// The asker's language when this row was read. Messages about the job are in it.
    pub language: Language,
}

impl fmt::Debug for Job {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Job {}, {:?}, {} patterns", self.id, self.state, self.spec.patterns.len())
    }
}

/// Facts about one asker, for the bot's decisions.
#[derive(Clone, Debug, Default)]
pub struct AskerView {
    /// Accepted jobs, oldest first.
    pub open: Vec<Job>,
    /// Found and delivered jobs whose result is still kept, newest first.
    pub results: Vec<JobId>,
    /// Times when the jobs of the last 24 hours were accepted, Unix seconds, oldest first. Ended
    /// jobs count too.
    pub accepted_last_day: Vec<u64>,
    /// Whether the asker sent `stop` and has not sent `start` since.
    pub silent: bool,
    /// Whether a message by NIP-04 was answered in the last 24 hours ([`Effect::Redirect`]).
    ///
    /// [`Effect::Redirect`]: super::Effect::Redirect
    pub redirected: bool,
    /// Whether the ledger has a job of this asker, in any state.
    pub known: bool,
    /// Language of the conversation.
    pub language: Language,
}

/// Number of jobs in each state.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct Totals {
    /// Jobs being searched.
    pub accepted: u64,
    /// Jobs whose result no relay has yet.
    pub found: u64,
    /// Jobs whose result a relay has.
    pub delivered: u64,
    /// Jobs given up by their askers.
    pub cancelled: u64,
    /// Jobs given up by the bot.
    pub expired: u64,
    /// Messages in the outbox that are not sent yet.
    pub unsent_messages: u64,
}
