//! When the inbox relays are swept, and the sweep under way. Every relay is fetched beside the stream: one that says nothing
//! must not make the bot deaf to the others.

use super::flood::Flood;
use super::pages;
use super::queue::Arrival;
use crate::nostr::NostrError;
use crate::nostr::relay::connections::Relays;
use nostr_sdk::Timestamp;
use std::time::{Duration, Instant};
use tokio::sync::mpsc;
use tokio::task::JoinSet;

/// Time between two sweeps when nothing seems lost.
const EVERY: Duration = Duration::from_secs(180);
/// After a sweep that did not hear every relay, doubling up to the time above: one that is away for days must not have the
/// others fetched all the time.
const FIRST_PAUSE: Duration = Duration::from_secs(2);
/// While wraps run over, what the relays hold is not fetched before this long has passed without: it would run over too.
const LULL: Duration = Duration::from_secs(5);

pub(in crate::nostr) struct Backfill {
    pacing: Pacing,
    running: Option<Sweep>,
}

/// A sweep under way.
struct Sweep {
    /// By the bot's clock.
    began: u64,
    /// What the relays had, page by page: they wait until it is attended to.
    events: mpsc::Receiver<Arrival>,
    fetching: JoinSet<Result<(), NostrError>>,
}

impl Backfill {
    pub fn new() -> Backfill {
        Backfill { pacing: Pacing::new(Instant::now()), running: None }
    }

    /// Something may have been missed.
    pub fn missed(&mut self) {
        self.pacing.missed(Instant::now());
    }

    /// Something found no room.
    pub fn ran_over(&mut self) {
        self.pacing.ran_over(Instant::now());
    }

    pub fn is_due(&self) -> bool {
        self.running.is_none() && self.pacing.is_due(Instant::now())
    }

    /// Asks every inbox relay for all that may have been missed since `since`.
    pub fn start(&mut self, relays: &Relays, flood: &Flood, since: Timestamp, began: u64) {
        let mut fetching = JoinSet::new();
        let (fetched, events) = mpsc::channel(1);
        for url in relays.ours(|relay| relay.inbox) {
            let (relays, flood, fetched) = (relays.clone(), flood.clone(), fetched.clone());
            fetching.spawn(async move { pages::fetch_all(&relays, &url, since, &flood, &fetched).await });
        }
        self.pacing.began(Instant::now());
        self.running = Some(Sweep { began, events, fetching });
    }

    /// The next event of the sweep under way, `None` at its end; waits for ever while there is none.
    pub async fn next(&mut self) -> Option<Arrival> {
        match &mut self.running {
            Some(sweep) => sweep.events.recv().await,
            None => std::future::pending().await,
        }
    }

    /// After the last event, when all were passed on. Says when the sweep began, if nothing was missed: only then was every
    /// inbox relay heard, and one that is away may hold what the others do not.
    pub async fn end(&mut self) -> Option<u64> {
        let mut sweep = self.running.take()?;
        let mut all_heard = true;
        while let Some(ended) = sweep.fetching.join_next().await {
            match ended {
                Ok(Ok(())) => continue,
                Ok(Err(error)) => tracing::debug!(%error, "a sweep is incomplete"),
                Err(error) => tracing::error!(%error, "fetching from a relay panicked"),
            }
            all_heard = false;
        }
        self.pacing.ended(all_heard, Instant::now()).then_some(sweep.began)
    }
}

/// When the next sweep is due.
struct Pacing {
    due: Instant,
    /// After the next sweep that does not hear every relay.
    pause: Duration,
    began: Option<Instant>,
    ran_over: Option<Instant>,
    /// Something was missed since the last sweep began.
    missed: bool,
}

impl Pacing {
    fn new(now: Instant) -> Pacing {
        Pacing { due: now, pause: FIRST_PAUSE, began: None, ran_over: None, missed: false }
    }

    fn missed(&mut self, now: Instant) {
        self.missed = true;
        self.due = now;
    }

    fn ran_over(&mut self, now: Instant) {
        self.ran_over = Some(now);
        self.missed(now);
    }

    fn is_due(&self, now: Instant) -> bool {
        let is_calm = self.ran_over.is_none_or(|at| now >= at + LULL);
        now >= self.due && (is_calm || self.began.is_none_or(|at| now >= at + EVERY))
    }

    fn began(&mut self, now: Instant) {
        self.began = Some(now);
        self.missed = false;
    }

    /// Whether nothing was missed.
    fn ended(&mut self, all_heard: bool, now: Instant) -> bool {
        if all_heard {
            self.pause = FIRST_PAUSE;
        }
        self.due = now;
        if self.missed {
            return false;
        }
        self.due += if all_heard { EVERY } else { self.pause };
        if !all_heard {
            self.pause = (self.pause * 2).min(EVERY);
        }
        all_heard
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const SECOND: Duration = Duration::from_secs(1);

    /// Begins at `at` and ends at once; says after how many seconds the next is due.
    fn sweep(pacing: &mut Pacing, at: Instant, all_heard: bool) -> u32 {
        assert!(pacing.is_due(at));
        pacing.began(at);
        assert_eq!(pacing.ended(all_heard, at), all_heard);
        (0..1000).find(|&seconds| pacing.is_due(at + SECOND * seconds)).unwrap()
    }

    #[test]
    fn a_relay_that_stays_away_has_the_others_swept_less_and_less_often() {
        let mut now = Instant::now();
        let mut pacing = Pacing::new(now);
        let mut waits = Vec::new();
        for _ in 0..9 {
            waits.push(sweep(&mut pacing, now, false));
            now += SECOND * *waits.last().unwrap();
        }
        assert_eq!(waits, [2, 4, 8, 16, 32, 64, 128, 180, 180]);
        // It is back, which is noticed; once it was heard the pauses are short again.
        pacing.missed(now);
        assert_eq!(sweep(&mut pacing, now, true), 180);
        assert_eq!(sweep(&mut pacing, now + EVERY, false), 2);
    }

    #[test]
    fn what_is_missed_during_a_sweep_is_fetched_by_the_next_at_once() {
        let now = Instant::now();
        let mut pacing = Pacing::new(now);
        pacing.began(now);
        pacing.missed(now);
        assert!(!pacing.ended(true, now + SECOND), "the cursor stays");
        assert!(pacing.is_due(now + SECOND));
    }

    #[test]
    fn while_wraps_run_over_nothing_is_fetched_but_every_three_minutes() {
        let now = Instant::now();
        let mut pacing = Pacing::new(now);
        sweep(&mut pacing, now, true);
        for seconds in 1..180 {
            pacing.ran_over(now + SECOND * seconds);
            assert!(!pacing.is_due(now + SECOND * (seconds + 4).min(179)), "{seconds}");
        }
        assert!(pacing.is_due(now + EVERY));
        pacing.ran_over(now + SECOND);
        assert!(!pacing.is_due(now + SECOND * 5) && pacing.is_due(now + SECOND * 6));
    }
}
