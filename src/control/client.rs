//! The operator's side of the local socket.

use super::protocol::{OperatorCommand, ReplyLine, socket};
use crate::os::local_socket::{ClientStream, connect};
use std::io::{self, ErrorKind};
use std::path::Path;
use std::time::Duration;
use thiserror::Error;
use tokio::io::{AsyncBufReadExt, AsyncReadExt, AsyncWriteExt, BufReader};
use tokio::time::error::Elapsed;
use tokio::time::{sleep, timeout};

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
    #[error("no bot runs with the data folder {folder}; start it with `npubbot serve`, or name another with --data")]
    NothingRuns {
        /// The data folder.
        folder: String,
    },
    /// The socket belongs to another user.
    #[error(
        "{socket} is another user's; ask as the user that runs the bot, or as root (`sudo -u npubbot npubbot ...`)"
    )]
    NotYours {
        /// Path of the socket.
        socket: String,
    },
    /// The bot does not answer as expected.
    #[error("the running bot did not answer ({reason}); its log may say why, and a restart loses nothing")]
    NoAnswer {
        /// The reason.
        reason: String,
    },
    /// The bot does not carry the request out.
    #[error("{0}")]
    Refused(String),
    /// This program does not understand the bot's answer.
    #[error("the running bot answers as another version does ({reason}); use the program that it runs, or restart it")]
    OtherVersion {
        /// The reason.
        reason: String,
    },
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
                ControlError::NothingRuns { folder: data.display().to_string() }
            }
            ErrorKind::PermissionDenied => ControlError::NotYours { socket: path.display().to_string() },
            _ => no_answer(error),
        })?,
        Err(_) => return Err(ControlError::NoAnswer { reason: "it takes no more connections".to_owned() }),
    };
    let mut request = serde_json::to_vec(&command).map_err(|error| no_answer(error.into()))?;
    request.push(b'\n');
    timeout(limit, stream.write_all(&request)).await.map_err(too_late)?.map_err(no_answer)?;
    let mut lines = BufReader::new(stream.take(ANSWER_BYTES)).lines();
    let mut answer = Vec::new();
    while let Some(line) = timeout(limit, lines.next_line()).await.map_err(too_late)?.map_err(no_answer)? {
        match serde_json::from_str(&line).map_err(|error| ControlError::OtherVersion { reason: error.to_string() })? {
            ReplyLine::End => return Ok(answer),
            ReplyLine::Refused(reason) => return Err(ControlError::Refused(reason)),
            reply => answer.push(reply),
        }
    }
    Err(ControlError::NoAnswer { reason: "it closed the connection".to_owned() })
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
    ControlError::NoAnswer { reason: error.to_string() }
}
