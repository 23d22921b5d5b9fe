//! Backfills: fetching stored wraps that the live subscription may have missed.
//!
//! All inbox relays are queried concurrently, beside the live stream, so that a silent relay does
//! not delay the others. Each is queried page by page.

use super::InboxItem;
use super::queue::{Arrival, MAX_AGE};
use crate::backoff::Backoff;
use crate::log_writer::LogLimit;
use crate::nostr::relay::connections::Relays;
use crate::nostr::relay::error::{NostrError, escape_for_log};
use crate::nostr::relay::query::Fetched;
use crate::vault::GIFT_WRAPS;
use futures_util::FutureExt;
use futures_util::future::join_all;
use futures_util::stream::{Stream, poll_fn};
use nostr_sdk::{Event, Filter, Kind, RelayUrl, Timestamp};
use std::collections::{HashMap, HashSet};
use std::panic::AssertUnwindSafe;
use std::time::{Duration, Instant};
use tokio::sync::mpsc;
use tokio::task::JoinSet;

/// Time between two backfills when nothing seems missing.
const BACKFILL_EVERY: Duration = Duration::from_secs(180);
/// The first pause after a backfill that some relay did not answer. The pauses double up to
/// [`BACKFILL_EVERY`], so that the other relays are not queried all the time while one is down for days.
const FIRST_BACKFILL_PAUSE: Duration = Duration::from_secs(2);
/// Time after an overflow in which no backfill starts, because its events would overflow too. If
/// overflows go on, a backfill still starts [`BACKFILL_EVERY`] after the previous one began.
const CALM_AFTER_OVERFLOW: Duration = Duration::from_secs(5);

/// Seconds by which wraps may be backdated: two days (NIP-59), and an hour for wrong clocks.
const BACKDATED: u64 = 2 * 86_400 + 3600;
/// Events per page. Relays return at most some 500.
const PAGE_EVENTS: usize = 500;
/// Events requested if a single second has more than a page; some relays return that many.
const FULL_SECOND: usize = 10_000;
/// Number of events from which a page may be incomplete.
const MAYBE_CUT_EVENTS: usize = 100;
/// The most pages of one relay in a backfill. The next one goes on there.
const MAX_PAGES: usize = 200;
/// Time limit for one page.
const PAGE_TIMEOUT: Duration = Duration::from_secs(15);

/// Limits log lines about relays that ignore `until`.
static IGNORES_UNTIL: LogLimit = LogLimit::new();

/// Starts backfills and runs one at a time.
pub(super) struct Backfill {
    schedule: Schedule,
    /// The backfill under way. It ends with the inbox.
    running: JoinSet<()>,
    /// Fetched events. The next page waits until these are processed.
    fetched: mpsc::Sender<InboxItem<Box<Event>>>,
    /// Where to go on at relays that had more than [`MAX_PAGES`].
    rest: HashMap<RelayUrl, Timestamp>,
    /// When the first of the latest incomplete backfills began.
    incomplete_since: Option<u64>,
}

/// The result of a backfill.
pub(super) struct BackfillEnd {
    /// When it began, in Unix seconds by the bot's clock.
    began: u64,
    relays: Vec<(RelayUrl, Result<Option<Timestamp>, NostrError>)>,
}

impl Backfill {
    /// The first backfill is due at once. Also returns the stream of what backfills fetch.
    pub fn new() -> (Backfill, impl Stream<Item = InboxItem<Box<Event>>>) {
        let (fetched, mut events) = mpsc::channel(1);
        let backfill = Backfill {
            schedule: Schedule::new(Instant::now()),
            running: JoinSet::new(),
            fetched,
            rest: HashMap::new(),
            incomplete_since: None,
        };
        (backfill, poll_fn(move |context| events.poll_recv(context)))
    }

    /// Makes the next backfill due after this pause, because events may have been missed.
    pub fn missed(&mut self, pause: Duration) {
        self.schedule.missed(Instant::now() + pause);
    }

    /// Records that a queue was full.
    pub fn overflowed(&mut self) {
        self.schedule.overflowed(Instant::now());
    }

    /// Whether to start a backfill now.
    pub fn is_due(&self) -> bool {
        self.running.is_empty() && self.schedule.is_due(Instant::now())
    }

    /// Fetches all wraps since `since` from every inbox relay, and where the last backfill did not
    /// come to the end, only the rest. `began`: now, by the bot's clock.
    pub fn start(&mut self, relays: &Relays, since: Timestamp, began: u64) {
        let fetching: Vec<_> = relays
            .ours(|relay| relay.inbox)
            .into_iter()
            .map(|url| {
                let (relays, fetched) = (relays.clone(), self.fetched.clone());
                let until = self.rest.get(&url).copied();
                async move {
                    let ended = AssertUnwindSafe(fetch_all(&relays, &url, since, until, &fetched)).catch_unwind().await;
                    let ended = ended.unwrap_or_else(|_| Err(NostrError::silent(&url)));
                    (url, ended)
                }
            })
            .collect();
        let fetched = self.fetched.clone();
        self.schedule.began(Instant::now());
        self.running.spawn(async move {
            let end = BackfillEnd { began, relays: join_all(fetching).await };
            // An error means that the inbox has ended.
            let _ = fetched.send(InboxItem::BackfillEnd(end)).await;
        });
    }

    /// Ends the backfill after its last event. Returns the time up to which nothing is missing: when
    /// it began, or the first of the incomplete ones before it. Returns `None` if an inbox relay did
    /// not answer, because it may have events that the others lack; if one has more than it may send
    /// at once; or if something was missed meanwhile.
    pub fn end(&mut self, BackfillEnd { began, relays }: BackfillEnd) -> Option<u64> {
        self.running.detach_all();
        let mut complete = true;
        for (url, ended) in relays {
            match ended {
                Ok(None) => {
                    self.rest.remove(&url);
                    continue;
                }
                Ok(Some(until)) => _ = self.rest.insert(url, until),
                Err(error) => tracing::debug!(%error, "a backfill is incomplete"),
            }
            complete = false;
        }
        let since = *self.incomplete_since.get_or_insert(began);
        let is_complete = self.schedule.ended(complete, Instant::now());
        if is_complete {
            self.incomplete_since = None;
        }
        is_complete.then_some(since)
    }
}

/// Decides when the next backfill is due.
struct Schedule {
    due: Instant,
    /// Pauses after incomplete backfills.
    backoff: Backoff,
    began: Option<Instant>,
    overflowed: Option<Instant>,
    /// When to fetch what was missed since the last backfill began; `None` if nothing was.
    missed: Option<Instant>,
}

impl Schedule {
    fn new(now: Instant) -> Schedule {
        Schedule {
            due: now,
            backoff: Backoff::new(FIRST_BACKFILL_PAUSE, BACKFILL_EVERY),
            began: None,
            overflowed: None,
            missed: None,
        }
    }

    fn missed(&mut self, again: Instant) {
        self.missed = Some(self.missed.map_or(again, |earlier| earlier.min(again)));
        self.due = self.due.min(again);
    }

    fn overflowed(&mut self, now: Instant) {
        self.overflowed = Some(now);
        self.missed(now);
    }

    fn is_due(&self, now: Instant) -> bool {
        let is_calm = self.overflowed.is_none_or(|at| now >= at + CALM_AFTER_OVERFLOW);
        now >= self.due && (is_calm || self.began.is_none_or(|at| now >= at + BACKFILL_EVERY))
    }

    fn began(&mut self, now: Instant) {
        self.began = Some(now);
        self.missed = None;
    }

    /// Records the end of a backfill. Returns whether it is complete and nothing was missed during
    /// it.
    fn ended(&mut self, complete: bool, now: Instant) -> bool {
        if complete {
            self.backoff.reset();
        }
        if let Some(again) = self.missed {
            self.due = again;
            return false;
        }
        self.due = now + if complete { BACKFILL_EVERY } else { self.backoff.next_pause() };
        complete
    }
}

/// The date from which wraps are fetched: the last contact, or a week ago if that is later, minus
/// the time by which wraps may be backdated.
pub(super) fn since(last_contact: Option<u64>, now: u64) -> Timestamp {
    let oldest = now.saturating_sub(MAX_AGE);
    let contact = last_contact.map_or(oldest, |contact| contact.clamp(oldest, now));
    Timestamp::from(contact.saturating_sub(BACKDATED))
}

/// Gift wraps and NIP-04 messages to the bot.
pub(super) fn filter(relays: &Relays, since: Timestamp) -> Filter {
    Filter::new().kinds(GIFT_WRAPS).kind(Kind::EncryptedDirectMessage).pubkey(relays.bot()).since(since)
}

/// Fetches every wrap that one relay has since `since`, and sends it to `out`, unverified, newest
/// first. A page is fetched only once the page before is processed, so that a relay full of wraps
/// does not fill the memory.
///
/// With `until`, newer ones are left out. Returns where the next backfill has to go on, if this one
/// has fetched [`MAX_PAGES`].
///
/// Errors: the relay did not return a whole page.
async fn fetch_all(
    relays: &Relays,
    url: &RelayUrl,
    since: Timestamp,
    mut until: Option<Timestamp>,
    out: &mpsc::Sender<InboxItem<Box<Event>>>,
) -> Result<Option<Timestamp>, NostrError> {
    let mut ids = HashSet::new();
    let mut full_second: Option<Timestamp> = None;
    for _ in 0..MAX_PAGES {
        let alone = full_second.take();
        let page_filter = match (until, alone) {
            (_, Some(second)) => filter(relays, second).until(second).limit(FULL_SECOND),
            (Some(until), None) => filter(relays, since).until(until).limit(PAGE_EVENTS),
            (None, None) => filter(relays, since).limit(PAGE_EVENTS),
        };
        let Fetched { events: page, end } = relays.fetch_unverified(url, page_filter, PAGE_TIMEOUT).await;
        let dates = || page.iter().map(|event| event.created_at);
        let (length, oldest, newest) = (page.len(), dates().min(), dates().max());
        let before = ids.len();
        for event in page {
            if ids.insert(event.id) {
                let arrival = Arrival { id: event.id.to_bytes(), message: event, relay: url.clone() };
                if out.send(InboxItem::Message(arrival)).await.is_err() {
                    // The backfill was abandoned.
                    return Ok(None);
                }
            }
        }
        // An incomplete page says nothing about older events.
        end?;
        let Some(oldest) = oldest else { return Ok(None) };
        if alone.or(until).is_some_and(|until| newest.is_some_and(|newest| newest > until)) {
            // It would send the same page again and again. It has nothing older for us.
            if let Some(skipped) = IGNORES_UNTIL.next(Instant::now()) {
                let url = escape_for_log(url);
                tracing::warn!(url, skipped, "an inbox relay ignores `until`, so only its newest messages are fetched");
            }
            return Ok(None);
        }
        // The page may end within a second, so the next one requests that second again. If that
        // brings nothing new, the second is either complete or larger than a page. It is then
        // requested alone, once, before older events.
        let is_done = alone.is_some() || ids.len() == before;
        full_second = Some(oldest).filter(|_| is_done && alone.is_none() && length >= MAYBE_CUT_EVENTS);
        until = Some(if is_done { oldest - 1u64 } else { oldest });
    }
    Ok(until)
}

#[cfg(test)]
mod tests {
    use super::*;

    use crate::nostr::tests::{StubbornRelay, connect};
    use nostr_sdk::{EventBuilder, Keys};
    use std::sync::atomic::Ordering;

    const SECOND: Duration = Duration::from_secs(1);

    #[tokio::test]
    async fn a_relay_that_ignores_until_is_asked_twice_and_not_two_hundred_times() {
        let relay = StubbornRelay::default();
        let wrap = |number: u64| EventBuilder::new(Kind::GiftWrap, "").custom_created_at(number.into());
        let wraps = (1..=2 * MAYBE_CUT_EVENTS as u64).map(wrap);
        let keys = Keys::generate();
        *relay.events.lock().unwrap() = wraps.map(|wrap| wrap.sign_with_keys(&keys).unwrap()).collect();
        let url = relay.run().await;
        let relays = connect(&url).await;
        let (fetched, mut events) = mpsc::channel(1000);
        fetch_all(&relays, &url, Timestamp::from(0), None, &fetched).await.unwrap();
        drop(fetched);
        let mut count = 0;
        while events.recv().await.is_some() {
            count += 1;
        }
        assert_eq!((count, relay.queries.load(Ordering::SeqCst)), (2 * MAYBE_CUT_EVENTS, 2));
        relays.disconnect().await;
    }

    #[test]
    fn a_backfill_goes_on_where_the_last_one_had_to_stop_and_the_cursor_waits_for_it() {
        let url = RelayUrl::parse("wss://relay.example").unwrap();
        let (mut backfill, _fetched) = Backfill::new();
        let mut run = |began, ended: Result<Option<u64>, NostrError>| {
            let ended = ended.map(|until| until.map(Timestamp::from));
            let until = backfill.end(BackfillEnd { began, relays: vec![(url.clone(), ended)] });
            (until, backfill.rest.values().next().map(Timestamp::as_secs))
        };
        assert_eq!(run(100, Ok(Some(70))), (None, Some(70)));
        assert_eq!(run(200, Err(NostrError::silent(&url))), (None, Some(70)));
        assert_eq!(run(300, Ok(Some(40))), (None, Some(40)));
        assert_eq!(run(400, Ok(None)), (Some(100), None), "nothing is missing up to the first of them");
        assert_eq!(run(500, Ok(None)), (Some(500), None));
    }

    /// Runs a backfill that begins at `at` and ends at once. Returns the seconds until the next is
    /// due.
    fn run(schedule: &mut Schedule, at: Instant, complete: bool) -> u32 {
        assert!(schedule.is_due(at));
        schedule.began(at);
        assert_eq!(schedule.ended(complete, at), complete);
        (0..1000).find(|&seconds| schedule.is_due(at + SECOND * seconds)).unwrap()
    }

    #[test]
    fn backfills_become_rare_while_a_relay_is_away() {
        let mut now = Instant::now();
        let mut schedule = Schedule::new(now);
        let mut waits = Vec::new();
        for _ in 0..9 {
            waits.push(run(&mut schedule, now, false));
            now += SECOND * *waits.last().unwrap();
        }
        assert_eq!(waits, [2, 4, 8, 16, 32, 64, 128, 180, 180]);
        // The relay returns. After a complete backfill the pauses are short again.
        schedule.missed(now);
        assert_eq!(run(&mut schedule, now, true), 180);
        assert_eq!(run(&mut schedule, now + BACKFILL_EVERY, false), 2);
    }

    #[test]
    fn events_missed_during_a_backfill_make_the_next_one_due_at_once() {
        let now = Instant::now();
        let mut schedule = Schedule::new(now);
        schedule.began(now);
        schedule.missed(now);
        assert!(!schedule.ended(true, now + SECOND), "the cursor stays");
        assert!(schedule.is_due(now + SECOND));
    }

    #[test]
    fn during_overflows_there_is_one_backfill_every_three_minutes() {
        let now = Instant::now();
        let mut schedule = Schedule::new(now);
        run(&mut schedule, now, true);
        for seconds in 1..180 {
            schedule.overflowed(now + SECOND * seconds);
            assert!(!schedule.is_due(now + SECOND * (seconds + 4).min(179)), "{seconds}");
        }
        assert!(schedule.is_due(now + BACKFILL_EVERY));
        schedule.overflowed(now + SECOND);
        assert!(!schedule.is_due(now + SECOND * 5) && schedule.is_due(now + SECOND * 6));
    }

    #[test]
    fn the_cursor_reaches_back_two_days_and_never_into_the_future() {
        let now = 1_800_000_000;
        assert_eq!(since(Some(now), now).as_secs(), now - BACKDATED);
        assert_eq!(since(Some(now + 999_999), now).as_secs(), now - BACKDATED);
        assert_eq!(since(Some(now - 3 * 86_400), now).as_secs(), now - 3 * 86_400 - BACKDATED);
        assert_eq!(since(None, now).as_secs(), now - MAX_AGE - BACKDATED);
        assert_eq!(since(Some(5), now).as_secs(), now - MAX_AGE - BACKDATED);
        assert_eq!(since(None, 0).as_secs(), 0);
    }
}
