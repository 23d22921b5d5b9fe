//! Requests to vanish (NIP-62): whoever asks one of our relays, or all relays, to forget them, asks us too.

use crate::job::Asker;
use crate::nostr::relay::connections::Relays;
use nostr_sdk::{Event, Filter, Kind, PublicKey, RelayUrl};
use std::collections::HashMap;
use std::time::Duration;

/// Askers looked up at once.
const AT_ONCE: usize = 200;
const PATIENCE: Duration = Duration::from_secs(10);

/// Which of these askers want to vanish, and since when (Unix seconds). A relay that cannot be asked is left out; this
/// is asked again and again.
pub async fn requests(relays: &Relays, askers: &[Asker]) -> HashMap<Asker, u64> {
    let ours = relays.ours(|_| true);
    let mut wanted = HashMap::new();
    for some in askers.chunks(AT_ONCE) {
        let authors: Vec<PublicKey> = some.iter().filter_map(|asker| PublicKey::from_slice(&asker.0).ok()).collect();
        let filter = Filter::new().kind(Kind::RequestToVanish).authors(authors);
        for url in &ours {
            let answer = relays.fetch(url, filter.clone(), PATIENCE).await;
            for event in answer.events.iter().filter(|event| is_for_us(event, &ours)) {
                let asker = Asker(event.pubkey.to_bytes());
                let at = event.created_at.as_secs();
                if some.contains(&asker) {
                    wanted.entry(asker).and_modify(|newest: &mut u64| *newest = at.max(*newest)).or_insert(at);
                }
            }
        }
    }
    wanted
}

fn is_for_us(event: &Event, ours: &[RelayUrl]) -> bool {
    event.kind == Kind::RequestToVanish
        && event.verify().is_ok()
        && event.tags.iter().any(|tag| match tag.as_slice() {
            [name, relay, ..] if name == "relay" => {
                relay == "ALL_RELAYS" || RelayUrl::parse(relay).is_ok_and(|relay| ours.contains(&relay))
            }
            _ => false,
        })
}
