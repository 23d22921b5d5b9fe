//! Accepts connections of HTTP clients, and limits their number and their time.

use crate::shutdown::Shutdown;
use http_body_util::Full;
use hyper::body::{Bytes, Incoming};
use hyper::{Request, Response};
use hyper_util::rt::{TokioIo, TokioTimer};
use std::collections::VecDeque;
use std::convert::Infallible;
use std::io;
use std::net::SocketAddr;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;
use tokio::net::{TcpListener, TcpStream};
use tokio::task::AbortHandle;

/// ServerLimits on the resources that clients can use up.
#[derive(Clone, Copy)]
pub(crate) struct ServerLimits {
    /// Simultaneous connections. One more closes the oldest that is not being answered; if all are,
    /// it is closed without being read.
    pub connections: usize,
    /// Time limit for the head of a request.
    pub head: Duration,
    /// Time limit for a connection.
    pub connection: Duration,
}

/// The most bytes of a request that are buffered.
const MAX_REQUEST_BUFFER: usize = 16 * 1024;
/// Pause after a connection could not be accepted, for example for lack of file handles.
const ACCEPT_PAUSE: Duration = Duration::from_millis(200);

/// An error of the system about an address to listen at, begun with `what`. The bot then does not
/// start.
pub(crate) fn bind_error(what: &str, key: &str, address: SocketAddr, error: &io::Error) -> io::Error {
    let text = format!("{what} {address} ({error}); choose another `{key}` in [web], or leave it out");
    io::Error::new(error.kind(), text)
}

/// Gives each request to `answer`, until the shutdown. A failed connection does not affect the
/// others.
pub(crate) async fn serve<A, F>(listener: &TcpListener, limits: ServerLimits, mut shutdown: Shutdown, answer: A)
where
    A: Fn(Request<Incoming>) -> F + Clone + Send + Sync + 'static,
    F: Future<Output = Response<Full<Bytes>>> + Send + 'static,
{
    let mut open: VecDeque<OpenConnection> = VecDeque::new();
    loop {
        let accepted = tokio::select! {
            accepted = listener.accept() => accepted,
            () = shutdown.stopped() => return,
        };
        let stream = match accepted {
            Ok((stream, _)) => stream,
            Err(error) => {
                tracing::debug!(%error, "an HTTP connection could not be accepted");
                tokio::time::sleep(ACCEPT_PAUSE).await;
                continue;
            }
        };
        open.retain(|connection| !connection.task.is_finished());
        if open.len() >= limits.connections {
            let idle = open.iter().position(|connection| !connection.is_answered.load(Ordering::Relaxed));
            let Some(oldest) = idle.and_then(|at| open.remove(at)) else { continue };
            oldest.task.abort();
        }
        let (answer, mut shutdown, is_answered) = (answer.clone(), shutdown.clone(), Arc::<AtomicBool>::default());
        let flag = Arc::clone(&is_answered);
        let task = tokio::spawn(async move {
            tokio::select! {
                () = connection(stream, answer, limits.head, flag) => {}
                () = tokio::time::sleep(limits.connection) => {}
                () = shutdown.stopped() => {}
            }
        });
        open.push_back(OpenConnection { task: task.abort_handle(), is_answered });
    }
}

/// A connection that may be closed to make room.
struct OpenConnection {
    task: AbortHandle,
    /// Whether a request of it is being answered.
    is_answered: Arc<AtomicBool>,
}

/// Answers the requests of one connection.
async fn connection<A, F>(stream: TcpStream, answer: A, head_time: Duration, is_answered: Arc<AtomicBool>)
where
    A: Fn(Request<Incoming>) -> F,
    F: Future<Output = Response<Full<Bytes>>>,
{
    let answer = |request| {
        let (reply, is_answered) = (answer(request), Arc::clone(&is_answered));
        async move {
            is_answered.store(true, Ordering::Relaxed);
            let reply = reply.await;
            is_answered.store(false, Ordering::Relaxed);
            Ok::<_, Infallible>(reply)
        }
    };
    let mut http = hyper::server::conn::http1::Builder::new();
    http.timer(TokioTimer::new()).header_read_timeout(head_time).max_buf_size(MAX_REQUEST_BUFFER);
    // A client that disconnects or breaks the protocol is not worth a log line.
    let _ = http.serve_connection(TokioIo::new(stream), hyper::service::service_fn(answer)).await;
}
