//! The library's WebSocket connection, without Nagle's delay: a subscription's end and the event behind it are two small
//! writes, and the second would wait some 40 ms for the receipt of the first.

use async_wsocket::futures_util::{Sink, StreamExt, TryStreamExt};
use async_wsocket::{ConnectionMode, Message, WebSocket};
use nostr_relay_pool::transport::error::TransportError;
use nostr_relay_pool::transport::websocket::{WebSocketSink, WebSocketStream, WebSocketTransport};
use nostr_sdk::Url;
use nostr_sdk::util::BoxedFuture;
use std::pin::Pin;
use std::task::{Context, Poll};
use std::time::Duration;
use tokio_tungstenite::MaybeTlsStream;

/// Connects and switches the delay off.
#[derive(Clone, Copy, Debug)]
pub(super) struct Prompt;

impl WebSocketTransport for Prompt {
    fn support_ping(&self) -> bool {
        true
    }

    fn connect<'a>(
        &'a self,
        url: &'a Url,
        mode: &'a ConnectionMode,
        timeout: Duration,
    ) -> BoxedFuture<'a, Result<(WebSocketSink, WebSocketStream), TransportError>> {
        Box::pin(async move {
            let socket = WebSocket::connect(url, mode, timeout).await.map_err(TransportError::backend)?;
            let WebSocket::Tokio(stream) = &socket;
            let tcp = match stream.get_ref() {
                MaybeTlsStream::Plain(tcp) => Some(tcp),
                MaybeTlsStream::Rustls(tls) => Some(tls.get_ref().0),
                _ => None,
            };
            // Without it the connection works as well, only later.
            let _ = tcp.map(|tcp| tcp.set_nodelay(true));
            let (sink, stream) = socket.split();
            let stream: WebSocketStream = Box::pin(stream.map_err(TransportError::backend));
            Ok((Box::new(Outward(sink)) as WebSocketSink, stream))
        })
    }
}

/// The library's error type around a sink. (Its own adapter for that panics when polled again after an error.)
struct Outward<S>(S);

impl<S: Sink<Message, Error = async_wsocket::Error> + Unpin> Sink<Message> for Outward<S> {
    type Error = TransportError;

    fn poll_ready(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<Result<(), TransportError>> {
        Pin::new(&mut self.0).poll_ready(context).map_err(TransportError::backend)
    }

    fn start_send(mut self: Pin<&mut Self>, message: Message) -> Result<(), TransportError> {
        Pin::new(&mut self.0).start_send(message).map_err(TransportError::backend)
    }

    fn poll_flush(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<Result<(), TransportError>> {
        Pin::new(&mut self.0).poll_flush(context).map_err(TransportError::backend)
    }

    fn poll_close(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<Result<(), TransportError>> {
        Pin::new(&mut self.0).poll_close(context).map_err(TransportError::backend)
    }
}
