//! The bot's side of the local socket.

use super::protocol::{OperatorCommand, ReplyLine, socket};
use crate::os::local_socket::{Connection, LocalListener, finish, is_closed};
use crate::shutdown::Shutdown;
use std::io;
use std::path::Path;
use std::sync::Arc;
use std::time::Duration;
use tokio::io::{AsyncBufReadExt, AsyncReadExt, AsyncWriteExt, BufReader};
use tokio::sync::{Mutex, Semaphore};
use tokio::task::JoinSet;
use tokio::time::timeout;

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
