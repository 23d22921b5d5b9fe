//! The operator's side of the local socket.

use super::protocol::{OperatorCommand, ReplyLine, SocketReply, SocketRequest, VERSION, socket};
use crate::os::local_client::Client;
use std::io::{self, BufRead, BufReader, Read, Write};
use std::path::Path;
use std::time::Duration;
use thiserror::Error;

/// The longest wait for a line of the answer.
pub const ANSWER_TIMEOUT: Duration = Duration::from_secs(40);
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
    /// This program does not understand the bot's answer.
    #[error("the running bot answers as another version does ({reason}); use the program that it runs, or restart it")]
    OtherVersion {
        /// The reason.
        reason: String,
    },
}

/// Sends a request to the bot of a data folder and gives each line of its answer to `each`.
///
/// Errors: [`ControlError`]. If the bot refuses the request, that is no error: the answer says so
/// ([`ReplyLine::Refused`]).
pub fn ask(data: &Path, command: OperatorCommand, mut each: impl FnMut(ReplyLine)) -> Result<(), ControlError> {
    let path = socket(data);
    let no_answer = |error: io::Error| ControlError::NoAnswer {
        reason: match error.kind() {
            io::ErrorKind::WouldBlock | io::ErrorKind::TimedOut => {
                format!("it said nothing for {} seconds", ANSWER_TIMEOUT.as_secs())
            }
            // The socket's queue is full of connections that were not accepted yet.
            io::ErrorKind::NotConnected => "it takes no more connections".to_owned(),
            _ => error.to_string(),
        },
    };
    let mut client = Client::open(&path, ANSWER_TIMEOUT).map_err(|error| match error.kind() {
        io::ErrorKind::NotFound | io::ErrorKind::ConnectionRefused | io::ErrorKind::NotADirectory => {
            ControlError::NothingRuns { folder: data.display().to_string() }
        }
        io::ErrorKind::PermissionDenied => ControlError::NotYours { socket: path.display().to_string() },
        _ => no_answer(error),
    })?;
    let mut request =
        serde_json::to_vec(&SocketRequest { v: VERSION, command }).map_err(|error| no_answer(error.into()))?;
    request.push(b'\n');
    client.write_all(&request).map_err(no_answer)?;
    for line in BufReader::new(client.take(ANSWER_BYTES)).lines() {
        let answer: SocketReply = serde_json::from_str(&line.map_err(no_answer)?)
            .map_err(|error| ControlError::OtherVersion { reason: error.to_string() })?;
        match answer.reply {
            ReplyLine::End => return Ok(()),
            reply => each(reply),
        }
    }
    Err(ControlError::NoAnswer { reason: "it closed the connection".to_owned() })
}
