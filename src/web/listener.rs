//! Accepts connections of HTTP clients, and limits their number and their time.

use crate::shutdown::Shutdown;
use http_body_util::Full;
use hyper::body::{Bytes, Incoming};
use hyper::{Request, Response};
use hyper_util::rt::{TokioIo, TokioTimer};
use std::convert::Infallible;
use std::io;
use std::net::SocketAddr;
use std::sync::Arc;
use std::time::Duration;
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::Semaphore;

/// ServerLimits on the resources that clients can use up.
#[derive(Clone, Copy)]
pub(crate) struct ServerLimits {
    /// Simultaneous connections. Further ones are closed without being read.
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
    let places = Arc::new(Semaphore::new(limits.connections));
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
        let Ok(place) = places.clone().try_acquire_owned() else { continue };
        let (answer, mut shutdown) = (answer.clone(), shutdown.clone());
        tokio::spawn(async move {
            tokio::select! {
                () = connection(stream, answer, limits.head) => {}
                () = tokio::time::sleep(limits.connection) => {}
                () = shutdown.stopped() => {}
            }
            drop(place);
        });
    }
}

/// Answers the requests of one connection.
async fn connection<A, F>(stream: TcpStream, answer: A, head_time: Duration)
where
    A: Fn(Request<Incoming>) -> F,
    F: Future<Output = Response<Full<Bytes>>>,
{
    let answer = |request| {
        let reply = answer(request);
        async move { Ok::<_, Infallible>(reply.await) }
    };
    let mut http = hyper::server::conn::http1::Builder::new();
    http.timer(TokioTimer::new()).header_read_timeout(head_time).max_buf_size(MAX_REQUEST_BUFFER);
    // A client that disconnects or breaks the protocol is not worth a log line.
    let _ = http.serve_connection(TokioIo::new(stream), hyper::service::service_fn(answer)).await;
}
