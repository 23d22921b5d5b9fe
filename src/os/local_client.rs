//! A connection to the local socket of a running bot.

use super::local_socket::{ClientStream, connect};
use std::io::{self, Read, Write};
use std::path::Path;
use std::time::Duration;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::runtime::Runtime;
use tokio::time::{sleep, timeout};

/// Pause before another attempt at a socket that takes no connection now.
const BUSY_PAUSE: Duration = Duration::from_millis(20);

/// A connection to a running bot.
pub struct Client {
    stream: ClientStream,
    patience: Duration,
    runtime: Runtime,
}

impl Client {
    /// Connects to the socket at a path. The connection, each read and each write may take at most
    /// `patience`.
    ///
    /// Errors: `NotFound`, `ConnectionRefused` or `NotADirectory` if nothing listens;
    /// `PermissionDenied`; `NotConnected` if the bot takes no more connections.
    pub fn open(path: &Path, patience: Duration) -> io::Result<Client> {
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build()?;
        let connected = async {
            loop {
                match connect(path).await {
                    Err(error) if error.kind() == io::ErrorKind::WouldBlock => sleep(BUSY_PAUSE).await,
                    connected => return connected,
                }
            }
        };
        let stream = runtime
            .block_on(async { timeout(patience, connected).await })
            .map_err(|_| io::ErrorKind::NotConnected)??;
        Ok(Client { stream, patience, runtime })
    }
}

impl Read for Client {
    fn read(&mut self, into: &mut [u8]) -> io::Result<usize> {
        let Client { stream, patience, runtime } = self;
        match runtime.block_on(async { timeout(*patience, stream.read(into)).await })? {
            // The other end is closed.
            Err(error) if error.kind() == io::ErrorKind::BrokenPipe => Ok(0),
            read => read,
        }
    }
}

impl Write for Client {
    fn write(&mut self, from: &[u8]) -> io::Result<usize> {
        let Client { stream, patience, runtime } = self;
        runtime.block_on(async { timeout(*patience, stream.write(from)).await })?
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}
