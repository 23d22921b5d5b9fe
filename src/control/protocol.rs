//! The messages of the local socket.

use super::status::{DayStatus, FleetStatus, JobStatus, Status, View};
use serde::{Deserialize, Serialize};
use std::borrow::Cow;
use std::path::{Path, PathBuf};

/// The version of these messages. A request of another version is refused with a reason.
pub(super) const VERSION: u32 = 1;

/// The socket's path in a data folder.
pub(super) fn socket(data: &Path) -> PathBuf {
    data.join("control.sock")
}

/// A request of the operator.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
#[serde(tag = "do", rename_all = "snake_case")]
pub enum Command {
    /// Show the state of the bot.
    Status,
    /// Show every open job.
    Jobs,
    /// Show one open job.
    Show {
        /// The job's number.
        job: i64,
    },
    /// Give a job up and tell its asker.
    Cancel {
        /// The job's number.
        job: i64,
    },
    /// Show askers, those with the most open jobs first.
    Askers {
        /// The most askers to show.
        most: usize,
    },
    /// Ignore an asker, make them an ordinary one, or a friend.
    Rule {
        /// The asker's npub.
        npub: String,
        /// How the asker is treated from now on.
        standing: Standing,
    },
    /// Show what the bot did each day.
    Stats,
    /// Check the running bot.
    Doctor,
    /// Show the workers on other machines.
    Fleet,
    /// Show everything that `npubbot top` shows.
    View,
    /// Stop searching after the launches in flight. Messages are still answered.
    Pause,
    /// Search again.
    Resume,
    /// Read the configuration again.
    Reload,
    /// Log at this level from now on.
    Log {
        /// `error`, `warn`, `info`, `debug` or `trace`.
        level: String,
    },
}

/// One line of an answer.
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Reply {
    /// The state of the bot.
    Status(Status),
    /// A job.
    Job(JobStatus),
    /// The state in detail.
    View(Box<View>),
    /// An asker.
    Asker(AskerStatus),
    /// A day.
    Day(DayStatus),
    /// The result of a check.
    Finding(Finding),
    /// The workers on other machines.
    Fleet(FleetStatus),
    /// The request was carried out. The text is for the operator.
    Said(String),
    /// The request was not carried out, for this reason.
    Refused(String),
    /// The answer is complete.
    End,
}

/// How the operator wants an asker to be treated.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Standing {
    /// Messages of this asker are ignored.
    Denied,
    /// The limits of everybody.
    Ordinary,
    /// Higher limits, and no proof of work.
    Friend,
}

/// An asker with totals.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub struct AskerStatus {
    /// The asker's npub.
    pub asker: String,
    /// Accepted jobs that are searched for.
    pub open_jobs: u64,
    /// Jobs that ended with a key and are still kept.
    pub done: u64,
    /// Messages answered in the last 16 days.
    pub messages: u64,
    /// When their last job was accepted, Unix seconds.
    pub last_job_at: Option<u64>,
    /// How the asker is treated.
    pub standing: Standing,
}

/// The result of one check.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Verdict {
    /// Everything is as it should be.
    Good,
    /// The bot runs, but worse than it could.
    Weak,
    /// The bot does not run, or nobody can reach it.
    Broken,
}

/// One check and its result.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub struct Finding {
    /// Name of the check.
    pub what: Cow<'static, str>,
    /// The result of the check.
    pub verdict: Verdict,
    /// State, and the remedy if it is not good.
    pub text: String,
}

/// A request with its version.
#[derive(Debug, Serialize, Deserialize)]
pub(super) struct Request {
    pub v: u32,
    pub command: Command,
}

/// A request read for its version only, because its command may be unknown.
#[derive(Debug, Deserialize)]
pub(super) struct AnyRequest {
    pub v: u32,
}

/// A line of an answer with its version.
#[derive(Debug, Serialize, Deserialize)]
pub(super) struct Answer {
    pub v: u32,
    pub reply: Reply,
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Scripts read these texts, so a changed name needs another [`VERSION`].
    #[test]
    fn the_messages_have_these_texts() {
        let request = Request { v: VERSION, command: Command::Cancel { job: 5 } };
        assert_eq!(serde_json::to_string(&request).unwrap(), r#"{"v":1,"command":{"do":"cancel","job":5}}"#);
        let answer = Answer { v: VERSION, reply: Reply::End };
        assert_eq!(serde_json::to_string(&answer).unwrap(), r#"{"v":1,"reply":"end"}"#);
        for wrong in [r#"{"do":"nsec"}"#, r#"{"do":"show"}"#, r#"{}"#] {
            assert!(serde_json::from_str::<Command>(wrong).is_err(), "{wrong}");
        }
    }
}
