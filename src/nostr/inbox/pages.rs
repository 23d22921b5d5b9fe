//! Fetching everything again, overlapping: what the stream lost, and what came while nobody listened.

use super::flood::Flood;
use super::queue::Arrival;
use crate::nostr::NostrError;
use crate::nostr::relay::connections::Relays;
use crate::nostr::relay::query::Answer;
use nostr_sdk::{Filter, Kind, RelayUrl, Timestamp};
use std::collections::HashSet;
use std::time::Duration;
use tokio::sync::mpsc;

/// Wraps are dated up to two days back on purpose, by clocks that may be off.
const BACKDATED: u64 = 2 * 86_400 + 3600;
/// Messages older than a week are not answered, so nothing older than this is fetched.
const OLDEST: u64 = 7 * 86_400;
/// Events asked for at once: relays answer with some 500 at most.
const PAGE: usize = 500;
/// Asked for where one second fills a page: some relays show that many.
const FULL_SECOND: usize = 10_000;
/// A page with so many may have been cut.
const CUT: usize = 100;
/// Pages of one relay before the rest is left to the next sweep.
const PAGES: usize = 200;
/// How long one page may take.
const PATIENCE: Duration = Duration::from_secs(15);

/// From when on wraps are wanted, in the wraps' own clock.
pub(in crate::nostr) fn since(last_contact: Option<u64>, now: u64) -> Timestamp {
    let oldest = now.saturating_sub(OLDEST);
    let contact = last_contact.map_or(oldest, |contact| contact.clamp(oldest, now));
    Timestamp::from(contact.saturating_sub(BACKDATED))
}

/// Gift wraps to the bot, and messages of the old kind 4.
pub(in crate::nostr) fn filter(relays: &Relays, since: Timestamp) -> Filter {
    Filter::new().kinds([Kind::GiftWrap, Kind::EncryptedDirectMessage]).pubkey(relays.bot()).since(since)
}

/// Passes on every wrap one relay holds since `since`, as the relay shows it, page by page, the newest first. A page is fetched when the one
/// before is attended to, so that a relay full of wraps does not fill the memory.
pub(in crate::nostr) async fn fetch_all(
    relays: &Relays,
    url: &RelayUrl,
    since: Timestamp,
    flood: &Flood,
    out: &mpsc::Sender<Arrival>,
) -> Result<(), NostrError> {
    let mut ids = HashSet::new();
    let mut until: Option<Timestamp> = None;
    let mut full_second: Option<Timestamp> = None;
    for _ in 0..PAGES {
        let alone = full_second.take();
        let page_filter = match (until, alone) {
            (_, Some(second)) => filter(relays, second).until(second).limit(FULL_SECOND),
            (Some(until), None) => filter(relays, since).until(until).limit(PAGE),
            (None, None) => filter(relays, since).limit(PAGE),
        };
        let Answer { events: page, end } = relays.fetch_unverified(url, page_filter, PATIENCE).await;
        let (length, oldest) = (page.len(), page.iter().map(|event| event.created_at).min());
        let before = ids.len();
        for event in page {
            if ids.insert(event.id) {
                let paid = flood.is_paid(&event);
                let arrival = Arrival { url: url.clone(), event: Box::new(event), paid, room: None };
                if out.send(arrival).await.is_err() {
                    // Nobody takes anything any more.
                    return Ok(());
                }
            }
        }
        // Of a page that was cut short nothing is known but what came.
        end?;
        let Some(oldest) = oldest else { break };
        // The page's last second may be cut, so it is asked for again. Where that brings nothing new, the second is done, or
        // holds more than a page: it is asked for alone, once, and then what is older.
        let is_done = alone.is_some() || ids.len() == before;
        full_second = Some(oldest).filter(|_| is_done && alone.is_none() && length >= CUT);
        until = Some(if is_done { oldest - 1u64 } else { oldest });
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_cursor_reaches_back_two_days_and_never_into_the_future() {
        let now = 1_800_000_000;
        assert_eq!(since(Some(now), now).as_secs(), now - BACKDATED);
        assert_eq!(since(Some(now + 999_999), now).as_secs(), now - BACKDATED);
        assert_eq!(since(Some(now - 3 * 86_400), now).as_secs(), now - 3 * 86_400 - BACKDATED);
        assert_eq!(since(None, now).as_secs(), now - OLDEST - BACKDATED);
        assert_eq!(since(Some(5), now).as_secs(), now - OLDEST - BACKDATED);
        assert_eq!(since(None, 0).as_secs(), 0);
    }
}
