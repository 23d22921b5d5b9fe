//! Requests to vanish (NIP-62). A request to one of our relays, or to all relays, also applies to
//! us.

use crate::job::Asker;
use crate::nostr::relay::connections::Relays;
use nostr_sdk::{Event, Filter, Kind, PublicKey, RelayUrl};
use std::collections::HashMap;
use std::time::Duration;

/// The most askers in one query.
const ASKERS_A_QUERY: usize = 200;
/// Time limit for one query.
const QUERY_TIMEOUT: Duration = Duration::from_secs(10);

/// Finds the askers who published a request to vanish, with its date in Unix seconds. Relays that
/// cannot be queried are skipped, because the caller repeats this regularly.
pub async fn requests(relays: &Relays, askers: &[Asker]) -> HashMap<Asker, u64> {
    let ours = relays.ours(|_| true);
    let mut requests = HashMap::new();
    for chunk in askers.chunks(ASKERS_A_QUERY) {
        let authors: Vec<PublicKey> = chunk.iter().filter_map(|asker| PublicKey::from_slice(&asker.0).ok()).collect();
        let filter = Filter::new().kind(Kind::RequestToVanish).authors(authors);
        for url in &ours {
            let answer = relays.fetch(url, filter.clone(), QUERY_TIMEOUT).await;
            for event in answer.events.iter().filter(|event| is_for_us(event, &ours)) {
                let asker = Asker(event.pubkey.to_bytes());
                let at = event.created_at.as_secs();
                if chunk.contains(&asker) {
                    requests.entry(asker).and_modify(|newest: &mut u64| *newest = at.max(*newest)).or_insert(at);
                }
            }
        }
    }
    requests
}

fn is_for_us(event: &Event, ours: &[RelayUrl]) -> bool {
    event.kind == Kind::RequestToVanish
        && event.tags.iter().any(|tag| match tag.as_slice() {
            [name, relay, ..] if name == "relay" => {
                relay == "ALL_RELAYS" || RelayUrl::parse(relay).is_ok_and(|relay| ours.contains(&relay))
            }
            _ => false,
        })
}
