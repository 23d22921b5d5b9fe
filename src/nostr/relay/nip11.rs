//! Relay information documents (NIP-11), used to warn the operator of DM relays that would lose
//! wraps.

use nostr::nips::nip11::{Limitation, RelayInformationDocument};
use nostr_sdk::{JsonUtil, RelayUrl};
use std::time::Duration;

/// Time limit for one document.
const DOCUMENT_TIMEOUT: Duration = Duration::from_secs(5);
/// Largest document, in bytes; some kilobytes are usual.
const MAX_DOCUMENT_BYTES: u64 = 256 * 1024;
/// The most seconds by which wraps are backdated (NIP-59).
const BACKDATED_SECONDS: u64 = 2 * 86_400;
/// Length of a wrap with a long text, in bytes. A wrap with a key has some 3 KB.
const LONG_WRAP_BYTES: i32 = 16 * 1024;

/// Reads the document of a relay without following redirects. `None` if there is none or it cannot
/// be read; that is not an error.
pub async fn read(url: &RelayUrl) -> Option<RelayInformationDocument> {
    let address = url.to_string().replacen("ws", "http", 1);
    let read = tokio::task::spawn_blocking(move || {
        let agent: ureq::Agent =
            ureq::Agent::config_builder().timeout_global(Some(DOCUMENT_TIMEOUT)).max_redirects(0).build().into();
        let mut answer = agent.get(&address).header("Accept", "application/nostr+json").call().ok()?;
        answer.body_mut().with_config().limit(MAX_DOCUMENT_BYTES).read_to_string().ok()
    });
    RelayInformationDocument::from_json(read.await.ok()??).ok()
}

/// Reasons why a relay is a bad DM relay, each with a remedy.
pub fn problems(document: &RelayInformationDocument) -> Vec<String> {
    let Some(limits) = &document.limitation else { return Vec::new() };
    let mut problems = Vec::new();
    let mut check = |applies: bool, what: &str| {
        if applies {
            problems.push(format!("{what}; give the role \"inbox\" to another relay in relays.toml"));
        }
    };
    check(limits.payment_required == Some(true), "it requires payment, so most askers cannot write there");
    check(refuses_old(limits), "it refuses events that are two days old, as gift wraps may be");
    check(
        limits.min_pow_difficulty.is_some_and(|bits| bits > 0),
        "it requires proof of work, which no client puts on gift wraps",
    );
    check(
        limits.max_message_length.is_some_and(|bytes| bytes > 0 && bytes < LONG_WRAP_BYTES),
        "it accepts only small messages, so long requests are lost",
    );
    problems
}

fn refuses_old(limits: &Limitation) -> bool {
    limits.created_at_lower_limit.is_some_and(|limit| limit.as_secs() > 0 && limit.as_secs() < BACKDATED_SECONDS)
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::io::{Read, Write};
    use std::net::TcpListener;

    #[tokio::test]
    async fn a_redirect_is_not_followed() {
        let (relay, router) = (TcpListener::bind("127.0.0.1:0").unwrap(), TcpListener::bind("127.0.0.1:0").unwrap());
        let url = RelayUrl::parse(&format!("ws://{}", relay.local_addr().unwrap())).unwrap();
        let to = router.local_addr().unwrap();
        std::thread::spawn(move || {
            let (mut stream, _) = relay.accept().unwrap();
            let _ = stream.read(&mut [0; 2048]);
            write!(stream, "HTTP/1.1 302 Found\r\nLocation: http://{to}/\r\nContent-Length: 0\r\n\r\n").unwrap();
        });
        assert!(read(&url).await.is_none());
        router.set_nonblocking(true).unwrap();
        assert!(router.accept().is_err(), "nobody connected to the other address");
    }

    #[tokio::test]
    async fn a_document_beyond_the_limit_is_not_read() {
        for (bytes, is_read) in [(MAX_DOCUMENT_BYTES as usize - 100, true), (MAX_DOCUMENT_BYTES as usize + 1, false)] {
            let relay = TcpListener::bind("127.0.0.1:0").unwrap();
            let url = RelayUrl::parse(&format!("ws://{}", relay.local_addr().unwrap())).unwrap();
            std::thread::spawn(move || {
                let (mut stream, _) = relay.accept().unwrap();
                let _ = stream.read(&mut [0; 2048]);
                let name = "{\"name\":\"r\"}";
                let body = format!("{name}{}", " ".repeat(bytes - name.len()));
                // The reader may hang up.
                let _ = write!(stream, "HTTP/1.1 200 OK\r\nContent-Length: {bytes}\r\n\r\n{body}");
            });
            assert_eq!(read(&url).await.is_some(), is_read, "{bytes} bytes");
        }
    }

    #[test]
    fn a_relay_that_cannot_serve_is_named_with_what_to_do() {
        let problems_of = |limitation: &str| {
            let json = format!(r#"{{"name":"r","limitation":{limitation}}}"#);
            problems(&RelayInformationDocument::from_json(json).unwrap())
        };
        assert!(problems_of("{}").is_empty());
        assert!(problems_of(r#"{"auth_required":true,"max_message_length":131072}"#).is_empty(), "AUTH is no problem");
        assert!(problems_of(r#"{"min_pow_difficulty":0,"max_message_length":0}"#).is_empty(), "no limits");
        for bad in [
            r#"{"payment_required":true}"#,
            r#"{"created_at_lower_limit":900}"#,
            r#"{"min_pow_difficulty":1}"#,
            r#"{"max_message_length":4096}"#,
        ] {
            let problems = problems_of(bad);
            assert!(problems.len() == 1 && problems[0].contains("relays.toml"), "{bad}: {problems:?}");
        }
        assert!(problems_of(r#"{"created_at_lower_limit":31536000}"#).is_empty());
    }
}
