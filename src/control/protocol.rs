//! The messages of the local socket.

use serde::{Deserialize, Serialize};
use std::path::{Path, PathBuf};

/// The version of these messages. Another one is refused with words.
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
        /// Its number.
        job: i64,
    },
    /// Give a job up and tell its asker.
    Cancel {
        /// Its number.
        job: i64,
    },
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
    /// The request was carried out; words for the operator.
    Said(String),
    /// The request was not carried out, for this reason.
    Refused(String),
    /// The answer is complete.
    End,
}

/// The state of a running bot. Totals only: nothing of it names an asker or a pattern.
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize)]
pub struct Status {
    /// Version of the program.
    pub version: String,
    /// The bot's address.
    pub npub: String,
    /// Seconds since it was ready.
    pub uptime_seconds: u64,
    /// Candidates a second of all working devices; `null` before the first measurement.
    pub rate: Option<f64>,
    /// Every device.
    pub devices: Vec<DeviceStatus>,
    /// The bot's relays.
    pub relays: Vec<RelayStatus>,
    /// Accepted jobs that are searched for.
    pub open_jobs: u64,
    /// Messages that no relay of their receivers has yet.
    pub undelivered: u64,
    /// Heap bytes in use.
    pub memory_bytes: u64,
}

/// The state of a device.
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize)]
pub struct DeviceStatus {
    /// `cpu`, `cuda:0`, …
    pub id: String,
    /// The maker's name.
    pub name: String,
    /// Candidates a second; `null` before the first measurement.
    pub rate: Option<f64>,
    /// `working`, `paused`, or `out: ` and the reason.
    pub state: String,
}

/// The state of a relay of the bot.
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize)]
pub struct RelayStatus {
    /// Its address.
    pub url: String,
    /// `connected` or `disconnected`.
    pub state: String,
}

/// An open job.
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize)]
pub struct JobStatus {
    /// Its number.
    pub job: i64,
    /// The npub of its asker.
    pub asker: String,
    /// Its patterns.
    pub patterns: Vec<String>,
    /// `pool` or `split`.
    pub kind: String,
    /// When it was accepted, Unix seconds.
    pub accepted_at: u64,
    /// When it is given up, Unix seconds.
    pub expires_at: u64,
    /// Candidates per match, on average; `null` if it takes too long to compute.
    pub difficulty: Option<f64>,
    /// Seconds that a search alone on all devices takes on average; `null` without a rate.
    pub expected_seconds: Option<f64>,
}

/// A request with its version.
#[derive(Debug, Serialize, Deserialize)]
pub(super) struct Request {
    pub v: u32,
    pub command: Command,
}

/// The version of a request whose command may not be known.
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

    /// Scripts read these texts, so a change of a name needs another version.
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
