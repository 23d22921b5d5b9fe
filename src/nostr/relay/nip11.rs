//! What a relay says of itself (NIP-11), read at the start: better a word to the operator than wraps that vanish.

use nostr::nips::nip11::{Limitation, RelayInformationDocument};
use nostr_sdk::{JsonUtil, RelayUrl};
use std::time::Duration;

const PATIENCE: Duration = Duration::from_secs(5);
/// A document is some kilobytes; nobody needs more.
const LARGEST: u64 = 256 * 1024;
/// Wraps are dated up to two days back (NIP-59), seconds.
const BACKDATED: u64 = 2 * 86_400;
/// A wrap with a key has some 2 KB, and one with a long text up to this many bytes.
const LONGEST_WRAP: i32 = 16 * 1024;

/// Reads the document of a relay. `None` where there is none, or it cannot be read: that is no fault.
pub async fn read(url: &RelayUrl) -> Option<RelayInformationDocument> {
    let address = url.to_string().replacen("ws", "http", 1);
    let read = tokio::task::spawn_blocking(move || {
        let agent: ureq::Agent = ureq::Agent::config_builder().timeout_global(Some(PATIENCE)).build().into();
        let mut answer = agent.get(&address).header("Accept", "application/nostr+json").call().ok()?;
        answer.body_mut().with_config().limit(LARGEST).read_to_string().ok()
    });
    RelayInformationDocument::from_json(read.await.ok()??).ok()
}

/// What makes a relay a bad DM relay, each with what to do about it.
pub fn problems(document: &RelayInformationDocument) -> Vec<String> {
    let Some(limits) = &document.limitation else { return Vec::new() };
    let mut problems = Vec::new();
    let mut say = |is: bool, what: &str| {
        if is {
            problems.push(format!("{what}; give the role \"inbox\" to another relay in relays.toml"));
        }
    };
    say(limits.payment_required == Some(true), "it wants to be paid, so most askers cannot write there");
    say(refuses_old(limits), "it refuses events that are two days old, as sealed messages may be dated");
    say(
        limits.min_pow_difficulty.is_some_and(|bits| bits > 0),
        "it wants proof of work, which no client puts on sealed messages",
    );
    say(
        limits.max_message_length.is_some_and(|bytes| bytes > 0 && bytes < LONGEST_WRAP),
        "it takes only small messages, so long requests are lost",
    );
    problems
}

fn refuses_old(limits: &Limitation) -> bool {
    limits.created_at_lower_limit.is_some_and(|limit| limit.as_secs() > 0 && limit.as_secs() < BACKDATED)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_relay_that_cannot_serve_is_named_with_what_to_do() {
        let problems_of = |limitation: &str| {
            let json = format!(r#"{{"name":"r","limitation":{limitation}}}"#);
            problems(&RelayInformationDocument::from_json(json).unwrap())
        };
        assert!(problems_of("{}").is_empty());
        assert!(problems_of(r#"{"auth_required":true,"max_message_length":131072}"#).is_empty(), "AUTH is no problem");
        for bad in [
            r#"{"payment_required":true}"#,
            r#"{"created_at_lower_limit":900}"#,
            r#"{"min_pow_difficulty":20}"#,
            r#"{"max_message_length":4096}"#,
        ] {
            let problems = problems_of(bad);
            assert!(problems.len() == 1 && problems[0].contains("relays.toml"), "{bad}: {problems:?}");
        }
        assert!(problems_of(r#"{"created_at_lower_limit":31536000}"#).is_empty());
    }
}
