//! The messages of the local socket.

use crate::duration;
#[cfg(feature = "fleet")]
use crate::fleet::FleetStatus;
use crate::ledger::{AskerTotals, DayFigures};
use crate::nostr::RelayFigures;
use crate::pattern::Rate;
use crate::scheduler::DeviceStatus;
use crate::search::SensorValues;
use clap::Subcommand;
use serde::{Deserialize, Serialize};
use std::borrow::Cow;
use std::path::{Path, PathBuf};
use std::time::Duration;

/// The socket's path in a data folder.
pub fn socket(data: &Path) -> PathBuf {
    data.join("control.sock")
}

/// The most askers, or jobs with ended ones, in one answer.
pub const MAX_LISTED: usize = 10_000;

/// A command of the operator. Those that are commands of `npubbot` have the help of it.
#[derive(Subcommand, Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
#[serde(tag = "do", rename_all = "snake_case")]
pub enum OperatorCommand {
    /// Show the state of the running bot: rate, devices, relays, jobs.
    Status,
    /// Show what the running bot did each day.
    Stats,
    /// Show the jobs of the running bot, or give one up.
    Jobs {
        /// What to do with one job; `None` lists jobs.
        #[command(subcommand)]
        command: Option<JobCommand>,
        /// Show ended jobs too.
        #[arg(long)]
        all: bool,
        /// Show those of this asker only.
        #[arg(long, value_name = "NPUB")]
        asker: Option<String>,
    },
    /// Show who asks the running bot: open jobs, jobs done, messages.
    Askers {
        /// Show at most this many.
        #[arg(long, value_name = "N", default_value_t = 50, value_parser = clap::value_parser!(u16).range(1..=10_000))]
        limit: u16,
    },
    /// Treat an asker as everybody again, or as a friend.
    Allow {
        /// Raise their limits tenfold and ask no proof of work of them.
        #[arg(long)]
        friend: bool,
        /// The asker.
        #[arg(value_name = "NPUB")]
        npub: String,
    },
    /// Ignore an asker from now on.
    Deny {
        /// The asker.
        #[arg(value_name = "NPUB")]
        npub: String,
    },
    /// Delete what the running bot keeps of an asker.
    Erase {
        /// The asker.
        #[arg(value_name = "NPUB")]
        npub: String,
    },
    /// Stop the search of the running bot for a while.
    Pause {
        /// Go on by itself after this time.
        #[arg(long = "for", value_name = "TIME", value_parser = seconds)]
        seconds: Option<u64>,
    },
    /// Go on with the search.
    Resume,
    /// Have the running bot read its configuration again.
    Reload,
    /// The checks that only the running bot can make.
    #[command(skip)]
    Doctor,
    /// The workers on other machines.
    #[command(skip)]
    Fleet,
    /// Everything that `npubbot top` shows.
    #[command(skip)]
    View,
}

impl OperatorCommand {
    /// Time to carry out the command and to read its answer. A reload starts the bot anew, which may
    /// compile kernels.
    pub fn time_limit(&self) -> Duration {
        Duration::from_secs(if *self == OperatorCommand::Reload { 600 } else { 30 })
    }
}

/// Commands under `npubbot jobs`.
#[derive(Subcommand, Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum JobCommand {
    /// Show one job.
    Show {
        /// Its number.
        #[arg(value_name = "N")]
        job: i64,
    },
    /// Give a job up and tell its asker.
    Cancel {
        /// Its number.
        #[arg(value_name = "N")]
        job: i64,
    },
}

fn seconds(text: &str) -> Result<u64, String> {
    duration::parse(text).map(|time| time.as_secs())
}

/// One line of an answer.
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum ReplyLine {
    /// The state of the bot.
    Status(Status),
    /// A job.
    Job(JobStatus),
    /// The state in detail.
    View(Box<View>),
    /// An asker.
    Asker(AskerTotals),
    /// A day.
    Day(DayFigures),
    /// The result of a check.
    Finding(Finding),
    /// The workers on other machines.
    #[cfg(feature = "fleet")]
    Fleet(FleetStatus),
    /// A text for the operator: the request was carried out, or the answer has a limit.
    Said(String),
    /// The request was not carried out, for this reason.
    Refused(String),
    /// The answer is complete.
    End,
}

/// The state of a running bot. It has totals only, and names no asker and no pattern.
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize)]
pub struct Status {
    /// Version of the program.
    pub version: String,
    /// The bot's address.
    pub npub: String,
    /// Seconds since the bot was ready.
    pub uptime_seconds: u64,
    /// Candidates a second of all working devices; `null` before the first measurement.
    pub rate: Option<Rate>,
    /// Every device.
    pub devices: Vec<DeviceStatus>,
    /// The workers on other machines; absent without a server for them.
    #[cfg(feature = "fleet")]
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub fleet: Option<FleetStatus>,
    /// The bot's relays.
    pub relays: Vec<RelayFigures>,
    /// Accepted jobs that are searched for.
    pub open_jobs: u64,
    /// Messages that no relay of their receivers has yet.
    pub undelivered: u64,
    /// Heap bytes in use.
    pub memory_bytes: u64,
    /// Bounds of the ledger that are reached, and who is refused therefore.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub bounds_reached: Vec<String>,
}

/// A job and its progress.
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize)]
pub struct JobStatus {
    /// The job's number.
    pub job: i64,
    /// The npub of its asker.
    pub asker: String,
    /// The job's patterns.
    pub patterns: Vec<String>,
    /// `pool` or `split`.
    pub kind: String,
    /// `accepted` while it is open; then `found`, `delivered`, `cancelled` or `expired`.
    pub state: String,
    /// When the job was accepted, Unix seconds.
    pub accepted_at: u64,
    /// When the job is given up, Unix seconds.
    pub expires_at: u64,
    /// Candidates per match, on average; `null` if it takes too long to compute.
    pub difficulty: Option<f64>,
    /// Mean seconds that the search would take with all devices to itself; `null` without a rate.
    pub expected_seconds: Option<f64>,
    /// Seconds since the job was accepted.
    pub age_seconds: u64,
    /// The chance, 0 to 1, that a search ends within this age with the job's present share of the
    /// devices; `null` without a rate.
    pub chance_so_far: Option<f64>,
    /// Mean seconds from now until a key is found, with the job's present share of the devices.
    /// They do not depend on its age, because the search has no memory. `null` without a rate.
    pub seconds_left: Option<f64>,
}

/// Everything that `npubbot top` shows.
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize)]
pub struct View {
    /// The state as `npubbot status` shows it.
    pub status: Status,
    /// Whether the operator paused the search.
    pub is_paused: bool,
    /// Keys tried since the start, on all devices.
    pub candidates: u64,
    /// Sensors of the devices, in the order of `status.devices`.
    pub sensors: Vec<SensorValues>,
    /// The oldest open jobs, 100 at most.
    pub jobs: Vec<JobStatus>,
    /// Messages that wait for their answer.
    pub messages_waiting: u64,
    /// The last lines of the log, oldest first, 100 at most.
    pub events: Vec<String>,
}

/// How bad the result of a check is.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Severity {
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
    pub verdict: Severity,
    /// State, and the remedy if it is not good.
    pub text: String,
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Scripts read these texts.
    #[test]
    fn the_messages_have_these_texts() {
        let request = serde_json::to_string(&OperatorCommand::Allow { friend: true, npub: "x".to_owned() }).unwrap();
        assert_eq!(request, r#"{"do":"allow","friend":true,"npub":"x"}"#);
        let answer =
            [ReplyLine::Said("done".to_owned()), ReplyLine::End].map(|line| serde_json::to_string(&line).unwrap());
        assert_eq!(answer, [r#"{"said":"done"}"#, r#""end""#]);
        for wrong in [r#"{"do":"nsec"}"#, r#"{"do":"deny"}"#, r#"{}"#] {
            assert!(serde_json::from_str::<OperatorCommand>(wrong).is_err(), "{wrong}");
        }
    }
}
