//! Fetching stored wraps from one relay, page by page.

use super::flood::Flood;
use super::queue::Arrival;
use crate::nostr::relay::connections::Relays;
use crate::nostr::relay::error::NostrError;
use crate::nostr::relay::query::Fetched;
use nostr_sdk::{Filter, Kind, RelayUrl, Timestamp};
use std::collections::HashSet;
use std::time::Duration;
use tokio::sync::mpsc;

/// Seconds by which wraps may be backdated: two days (NIP-59), and an hour for wrong clocks.
const BACKDATED: u64 = 2 * 86_400 + 3600;
/// Seconds after which messages are not answered; older ones are not fetched.
const OLDEST: u64 = 7 * 86_400;
/// Events per page. Relays return at most some 500.
const PAGE: usize = 500;
/// Events requested if a single second has more than a page; some relays return that many.
const FULL_SECOND: usize = 10_000;
/// Number of events from which a page may be incomplete.
const CUT: usize = 100;
/// The most pages of one relay in a backfill; the rest is left to the next one.
const PAGES: usize = 200;
/// Time limit for one page.
const PATIENCE: Duration = Duration::from_secs(15);

/// The date from which wraps are fetched: the last contact, or a week ago if that is later, minus
/// the time by which wraps may be backdated.
pub(super) fn since(last_contact: Option<u64>, now: u64) -> Timestamp {
    let oldest = now.saturating_sub(OLDEST);
    let contact = last_contact.map_or(oldest, |contact| contact.clamp(oldest, now));
    Timestamp::from(contact.saturating_sub(BACKDATED))
}

/// Gift wraps and NIP-04 messages to the bot.
pub(super) fn filter(relays: &Relays, since: Timestamp) -> Filter {
    Filter::new().kinds([Kind::GiftWrap, Kind::EncryptedDirectMessage]).pubkey(relays.bot()).since(since)
}

/// Fetches every wrap that one relay has since `since`, and sends it to `out`, unverified, newest
/// first. A page is fetched only once the page before is processed, so that a relay full of wraps
/// does not fill the memory.
///
/// Errors: the relay did not return a whole page.
pub(super) async fn fetch_all(
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
        let Fetched { events: page, end } = relays.fetch_unverified(url, page_filter, PATIENCE).await;
        let (length, oldest) = (page.len(), page.iter().map(|event| event.created_at).min());
        let before = ids.len();
        for event in page {
            if ids.insert(event.id) {
                let paid = flood.is_paid(&event);
                let arrival = Arrival { url: url.clone(), event, paid, room: None };
                if out.send(arrival).await.is_err() {
                    // The backfill was abandoned.
                    return Ok(());
                }
            }
        }
        // An incomplete page says nothing about older events.
        end?;
        let Some(oldest) = oldest else { break };
        // The page may end within a second, so the next one requests that second again. If that
        // brings nothing new, the second is either complete or larger than a page. It is then
        // requested alone, once, before older events.
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
