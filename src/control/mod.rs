//! The local socket of a running bot, for its operator.
//!
//! Each connection carries one request, which is one line of JSON. The answer is one or more lines
//! of JSON, and the last one is `end`. The socket is a file in the data folder that only its owner
//! and root can open. No secret passes through it: no request can ask for one, and no type of an
//! answer has room for one.
//!
//! ```text
//! → {"do":"resume"}
//! ← {"said":"the devices search again"}
//! ← "end"
//! ```

use crate::duration;
#[cfg(feature = "fleet")]
use crate::fleet::FleetStatus;
use crate::ledger::{AskerTotals, DayFigures};
use crate::nostr::RelayFigures;
use crate::os::local_socket::{ClientStream, Connection, LocalListener, connect, finish, is_closed};
use crate::pattern::Rate;
use crate::scheduler::DeviceStatus;
use crate::search::SensorValues;
use crate::shutdown::Shutdown;
use clap::Subcommand;
use serde::{Deserialize, Serialize};
use std::borrow::Cow;
use std::io::{self, ErrorKind};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;
use thiserror::Error;
use tokio::io::{AsyncBufReadExt, AsyncReadExt, AsyncWriteExt, BufReader};
use tokio::sync::{Mutex, Semaphore};
use tokio::task::JoinSet;
use tokio::time::error::Elapsed;
use tokio::time::{sleep, timeout};

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

/// The longest wait for the bot beyond [`OperatorCommand::time_limit`].
const EXTRA_TIME: Duration = Duration::from_secs(10);
/// Pause before another attempt at a socket that takes no connection now.
const BUSY_PAUSE: Duration = Duration::from_millis(20);
/// The longest answer that is read, in bytes.
const ANSWER_BYTES: u64 = 256 << 20;

/// Why a request to a running bot failed.
#[derive(Debug, Error)]
pub enum ControlError {
    /// No bot runs with this data folder.
    #[error("no bot runs with the data folder {0}; start it with `npubbot serve`, or name another with --data")]
    NothingRuns(String),
    /// The socket belongs to another user.
    #[error("{0} is another user's; ask as the user that runs the bot, or as root (`sudo -u npubbot npubbot ...`)")]
    NotYours(String),
    /// The bot does not answer as expected.
    #[error("the running bot did not answer ({0}); its log may say why, and a restart loses nothing")]
    NoAnswer(String),
    /// The bot does not carry the request out.
    #[error("{0}")]
    Refused(String),
    /// This program does not understand the bot's answer.
    #[error("the running bot answers as another version does ({0}); use the program that it runs, or restart it")]
    OtherVersion(String),
}

/// Sends a request to the bot of a data folder. Returns the lines of its answer. Call it outside of
/// tasks.
pub fn ask(data: &Path, command: OperatorCommand) -> Result<Vec<ReplyLine>, ControlError> {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build();
    runtime.map_err(no_answer)?.block_on(ask_at(&socket(data), data, command))
}

async fn ask_at(path: &Path, data: &Path, command: OperatorCommand) -> Result<Vec<ReplyLine>, ControlError> {
    let limit = command.time_limit() + EXTRA_TIME;
    let too_late = |_: Elapsed| no_answer(io::Error::other(format!("it said nothing for {} seconds", limit.as_secs())));
    let mut stream = match timeout(limit, connect_when_free(path)).await {
        Ok(connected) => connected.map_err(|error| match error.kind() {
            ErrorKind::NotFound | ErrorKind::ConnectionRefused | ErrorKind::NotADirectory => {
                ControlError::NothingRuns(data.display().to_string())
            }
            ErrorKind::PermissionDenied => ControlError::NotYours(path.display().to_string()),
            _ => no_answer(error),
        })?,
        Err(_) => return Err(ControlError::NoAnswer("it takes no more connections".to_owned())),
    };
    let mut request = serde_json::to_vec(&command).map_err(|error| no_answer(error.into()))?;
    request.push(b'\n');
    timeout(limit, stream.write_all(&request)).await.map_err(too_late)?.map_err(no_answer)?;
    let mut lines = BufReader::new(stream.take(ANSWER_BYTES)).lines();
    let mut answer = Vec::new();
    while let Some(line) = timeout(limit, lines.next_line()).await.map_err(too_late)?.map_err(no_answer)? {
        match serde_json::from_str(&line).map_err(|error| ControlError::OtherVersion(error.to_string()))? {
            ReplyLine::End => return Ok(answer),
            ReplyLine::Refused(reason) => return Err(ControlError::Refused(reason)),
            reply => answer.push(reply),
        }
    }
    Err(ControlError::NoAnswer("it closed the connection".to_owned()))
}

/// Connects once the socket takes a connection.
async fn connect_when_free(path: &Path) -> io::Result<ClientStream> {
    loop {
        match connect(path).await {
            Err(error) if error.kind() == ErrorKind::WouldBlock => sleep(BUSY_PAUSE).await,
            connected => return connected,
        }
    }
}

fn no_answer(error: io::Error) -> ControlError {
    ControlError::NoAnswer(error.to_string())
}

/// The most connections served at once. Further ones wait.
const MAX_CONNECTIONS: usize = 8;
/// The longest request, in bytes.
const REQUEST_BYTES: u64 = 4096;
/// Time to send a request.
const REQUEST_TIMEOUT: Duration = Duration::from_secs(5);
/// Pause after a connection could not be accepted, for example for lack of file descriptors.
const ACCEPT_PAUSE: Duration = Duration::from_millis(200);

/// The open socket. The file is deleted with the last clone; clones share the socket.
#[derive(Clone)]
pub struct ControlServer(Arc<Mutex<LocalListener>>);

impl ControlServer {
    /// Opens the socket in a data folder. The caller holds the folder's lock, so a socket that is
    /// there is left over from a crash and is replaced.
    ///
    /// Errors: the socket cannot be made, for example because its path has more than 107 bytes.
    pub fn open(data: &Path) -> io::Result<ControlServer> {
        LocalListener::open(&socket(data)).map(|listener| ControlServer(Arc::new(Mutex::new(listener))))
    }

    /// Serves requests until shutdown. `carry_out` returns the lines of an answer, without the
    /// final [`ReplyLine::End`]. Each connection is a separate task, and a panic ends only that
    /// one.
    pub async fn run<C, F>(&self, carry_out: C, mut shutdown: Shutdown)
    where
        C: Fn(OperatorCommand) -> F + Clone + Send + 'static,
        F: Future<Output = Vec<ReplyLine>> + Send + 'static,
    {
        let places = Arc::new(Semaphore::new(MAX_CONNECTIONS));
        let mut connections = JoinSet::new();
        let mut listener = self.0.lock().await;
        let serve = async {
            loop {
                let Ok(place) = Arc::clone(&places).acquire_owned().await else { return };
                match listener.accept().await {
                    Ok(connection) => {
                        let carry_out = carry_out.clone();
                        connections.spawn(async move {
                            // The operator's program may go at any time. It sees the reason itself.
                            let _ = serve(connection, carry_out).await;
                            drop(place);
                        });
                    }
                    Err(error) => {
                        tracing::debug!(%error, "a connection to the local socket failed");
                        tokio::time::sleep(ACCEPT_PAUSE).await;
                    }
                }
                while connections.try_join_next().is_some() {}
            }
        };
        tokio::select! {
            () = shutdown.stopped() => {}
            () = serve => {}
        }
    }
}

/// Serves one connection.
async fn serve<F: Future<Output = Vec<ReplyLine>>>(
    mut connection: Connection,
    carry_out: impl FnOnce(OperatorCommand) -> F,
) -> io::Result<()> {
    let mut line = Vec::new();
    let mut reader = BufReader::new((&mut connection).take(REQUEST_BYTES));
    timeout(REQUEST_TIMEOUT, reader.read_until(b'\n', &mut line)).await??;
    // The operator's program has gone, for example because this process was suspended, and has told
    // the operator that the request failed. So the request is not carried out.
    if is_closed(&connection) {
        tracing::debug!("a request over the local socket came too late, and is not carried out");
        return Ok(());
    }
    let request = read(&line);
    let limit = request.as_ref().map_or(REQUEST_TIMEOUT, OperatorCommand::time_limit);
    let answer = async {
        let replies = match request {
            Ok(command) => carry_out(command).await,
            Err(reason) => vec![ReplyLine::Refused(reason)],
        };
        for reply in replies.into_iter().chain([ReplyLine::End]) {
            let mut text = serde_json::to_vec(&reply)?;
            text.push(b'\n');
            connection.write_all(&text).await?;
        }
        connection.flush().await?;
        finish(connection).await
    };
    timeout(limit, answer).await?
}

/// Reads a request. Errors: the reason, as a text for the operator.
fn read(line: &[u8]) -> Result<OperatorCommand, String> {
    if !line.ends_with(b"\n") {
        return Err(format!("a request is one line of at most {REQUEST_BYTES} bytes"));
    }
    serde_json::from_slice(line).map_err(|error| {
        let version = env!("CARGO_PKG_VERSION");
        format!("this is not a request that the running npubbot {version} knows; use the same program ({error})")
    })
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

    #[test]
    fn a_request_that_is_wrong_is_refused_with_words() {
        assert_eq!(read(b"{\"do\":\"pause\"}\n"), Ok(OperatorCommand::Pause { seconds: None }));
        let cases: [(&[u8], &str); 4] = [
            (b"", "one line"),
            (b"{\"do\"", "one line"),
            (b"hello\n", "not a request"),
            (b"{\"do\":\"nsec\"}\n", "`nsec`"),
        ];
        for (line, expected) in cases {
            let reason = read(line).unwrap_err();
            assert!(reason.contains(expected), "{reason}");
        }
    }
}
