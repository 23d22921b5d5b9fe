//! Relays of an attacker: servers on loopback that cost a client time, memory or log.
//! One server listens at every address of 127.0.0.0/8, so that each relay list names other hosts.

use futures_util::{SinkExt, StreamExt};
use nostr_sdk::RelayUrl;
use serde_json::{Value, json};
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;
use strum::VariantArray;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::{TcpListener, TcpStream};
use tokio_tungstenite::tungstenite::Message;

/// How an attacker's relay behaves.
#[derive(Clone, Copy, PartialEq, Eq, Debug, VariantArray)]
pub enum Manner {
    /// Accepts the connection and sends nothing, not even the handshake.
    Mute,
    /// Completes the handshake and sends nothing more.
    Silent,
    /// Sends its handshake slowly: one byte per 100 ms.
    Slow,
    /// Announces a frame of 16 MiB and sends one byte of it.
    HugeFrame,
    /// Sends notices without end, as fast as they are read.
    EndlessStream,
    /// Refuses every event with a reason of 200 KiB with line breaks and escape sequences.
    Refusing,
    /// Answers with a redirect to another port of this machine.
    Redirecting,
    /// Closes the connection right after the handshake.
    Closing,
    /// Confirms another event than the one sent, and answers every query with an event that does
    /// not match it.
    Lying,
}

/// The beginning of a request that follows the redirect.
const TARGET: &[u8; 15] = b"GET /redirected";

/// An attacker's relay. Dropping it closes its connections.
pub struct HostileRelay {
    port: u16,
    /// Requests for the address that the redirect names.
    redirected: Arc<AtomicUsize>,
    tasks: Vec<tokio::task::JoinHandle<()>>,
}

impl HostileRelay {
    pub async fn start(manner: Manner) -> HostileRelay {
        let listener = TcpListener::bind("0.0.0.0:0").await.unwrap();
        let target = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let (port, target_port) = (listener.local_addr().unwrap().port(), target.local_addr().unwrap().port());
        let redirected = Arc::new(AtomicUsize::new(0));
        let count = Arc::clone(&redirected);
        let watch = tokio::spawn(async move {
            while let Ok((mut stream, _)) = target.accept().await {
                let count = Arc::clone(&count);
                tokio::spawn(async move {
                    // Programs of other tests may know this port from before, so only requests for
                    // the target count.
                    let mut request = [0; TARGET.len()];
                    let read = stream.read_exact(&mut request).await;
                    if read.is_ok() && request == *TARGET {
                        count.fetch_add(1, Ordering::SeqCst);
                    }
                });
            }
        });
        let serve = tokio::spawn(async move {
            while let Ok((stream, _)) = listener.accept().await {
                tokio::spawn(serve(stream, manner, target_port));
            }
        });
        HostileRelay { port, redirected, tasks: vec![watch, serve] }
    }

    /// An address of this relay that no other asker names: each number is another host.
    pub fn url(&self, number: usize) -> RelayUrl {
        let [_, high, middle, low] = (number as u32).to_be_bytes();
        RelayUrl::parse(&format!("ws://127.{}.{middle}.{low}:{}", high + 1, self.port)).unwrap()
    }

    /// How often a redirect was followed.
    pub fn redirects_followed(&self) -> usize {
        self.redirected.load(Ordering::SeqCst)
    }
}

impl Drop for HostileRelay {
    fn drop(&mut self) {
        self.tasks.iter().for_each(tokio::task::JoinHandle::abort);
    }
}

/// Serves one connection until the other side closes it.
async fn serve(mut stream: TcpStream, manner: Manner, target_port: u16) -> Option<()> {
    match manner {
        Manner::Mute => {
            until_closed(&mut stream).await;
            return None;
        }
        Manner::Slow => {
            for byte in b"HTTP/1.1 101 Switching Protocols\r\nUpgrade: websocket\r\n".iter().cycle() {
                stream.write_all(&[*byte]).await.ok()?;
                tokio::time::sleep(Duration::from_millis(100)).await;
            }
        }
        Manner::Redirecting => {
            let _ = stream.read(&mut [0; 4096]).await;
            let head = format!("HTTP/1.1 302 Found\r\nLocation: http://127.0.0.1:{target_port}/redirected\r\n");
            stream.write_all(format!("{head}Content-Length: 0\r\n\r\n").as_bytes()).await.ok()?;
            return None;
        }
        _ => {}
    }
    let mut socket = tokio_tungstenite::accept_async(stream).await.ok()?;
    match manner {
        Manner::HugeFrame => {
            let mut frame = vec![0x82, 127];
            frame.extend((16u64 << 20).to_be_bytes());
            frame.push(0);
            let stream = socket.get_mut();
            stream.write_all(&frame).await.ok()?;
            until_closed(stream).await;
            return None;
        }
        Manner::EndlessStream => {
            let notice = json!(["NOTICE", "x".repeat(60 * 1024)]).to_string();
            loop {
                socket.send(Message::text(notice.clone())).await.ok()?;
            }
        }
        Manner::Closing => return socket.close(None).await.ok(),
        _ => {}
    }
    let reason = format!("blocked: {}", "\u{1b}[31mgo\naway ".repeat(200 * 1024 / 13));
    while let Some(message) = socket.next().await {
        let Ok(Value::Array(parts)) = serde_json::from_str(message.ok()?.to_text().ok()?) else { continue };
        let answer = match (manner, parts.first().and_then(Value::as_str)) {
            (Manner::Refusing, Some("EVENT")) => json!(["OK", parts[1]["id"], false, reason]),
            (Manner::Lying, Some("EVENT")) => json!(["OK", "00".repeat(32), true, ""]),
            (Manner::Lying, Some("REQ")) => {
                let lie = json!({"id": "00".repeat(32), "pubkey": "11".repeat(32), "created_at": 1, "kind": 10050,
                    "tags": [], "content": "", "sig": "22".repeat(64)});
                json!(["EVENT", parts[1], lie])
            }
            _ => continue,
        };
        socket.send(Message::text(answer.to_string())).await.ok()?;
    }
    None
}

async fn until_closed(stream: &mut TcpStream) {
    let mut buffer = [0; 4096];
    while stream.read(&mut buffer).await.is_ok_and(|read| read > 0) {}
}
