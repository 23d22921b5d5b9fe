//! What happens by the clock: jobs past their time are given up, old rows are forgotten, the status is kept true.

use super::{compose, status_of};
use crate::bot::notices;
use crate::clock::Clock;
use crate::config::BotConfig;
use crate::ledger::{Job, Ledger};
use crate::memory;
use crate::message::GiftWrap;
use crate::nostr::Relays;
use crate::scheduler::Scheduler;
use crate::shutdown::Shutdown;
use crate::vault::{Vault, VaultError};
use std::sync::Arc;
use std::time::{Duration, Instant};
use tokio::sync::{Notify, watch};

/// How often the clock is looked at.
const ROUND: Duration = Duration::from_secs(30);
/// Rounds between two cleanings of the ledger, and between two words to the operator.
const ROUNDS_AN_HOUR: u32 = 120;

#[derive(Clone)]
pub(super) struct Maintenance {
    pub vault: Vault,
    pub ledger: Ledger,
    pub scheduler: Arc<Scheduler>,
    pub clock: Clock,
    pub bot: BotConfig,
    pub outbox: Arc<Notify>,
    pub changed: Arc<Notify>,
    pub relays: Relays,
}

impl Maintenance {
    pub async fn run(self, status: watch::Sender<String>, mut shutdown: Shutdown) {
        let mut ticks = tokio::time::interval(ROUND);
        let mut rounds: u32 = 0;
        let (began, began_at) = (Instant::now(), self.clock.now());
        let mut counted = 0;
        loop {
            tokio::select! {
                () = shutdown.stopped() => return,
                () = self.changed.notified() => {}
                _ = ticks.tick() => {
                    // A clock that jumps ahead must not end every job: time passes no faster than it does.
                    self.give_up_old_jobs(self.clock.now().min(began_at + began.elapsed().as_secs()));
                    self.tell_of_late_jobs();
                    counted = self.count_candidates(counted);
                    if rounds.is_multiple_of(ROUNDS_AN_HOUR) {
                        if let Err(error) = self.ledger.clean() {
                            tracing::warn!(%error, "the ledger could not be cleaned");
                        }
                        self.tell_how_it_goes().await;
                    }
                    rounds = rounds.wrapping_add(1);
                }
            }
            tracing::debug!(heap = memory::live(), "memory");
            status.send_replace(status_of(&self.scheduler));
        }
    }

    fn give_up_old_jobs(&self, now: u64) {
        let overdue = match self.ledger.overdue_jobs(now) {
            Ok(overdue) => overdue,
            Err(error) => return tracing::warn!(%error, "jobs past their time could not be read"),
        };
        for job in overdue {
            match self.give_up(&job, now) {
                Ok(()) => tracing::info!(job = %job.id, "given up: its time is over"),
                Err(error) => tracing::warn!(job = %job.id, %error, "a job could not be given up yet"),
            }
        }
    }

    /// For whoever reads the log: silence is no sign of life.
    async fn tell_how_it_goes(&self) {
        let connected = self.relays.wait_for_any(Duration::ZERO).await;
        match self.ledger.totals() {
            Ok(totals) => tracing::info!(
                rate = %self.scheduler.rate().unwrap_or_default(),
                open_jobs = totals.accepted,
                unsent_messages = totals.unsent_messages,
                delivered = totals.delivered,
                relays = connected,
                heap = memory::live(),
                "alive"
            ),
            Err(error) => tracing::warn!(%error, "alive, but the ledger could not be read"),
        }
    }

    /// Adds what was searched since to today's figures; returns what is counted now.
    fn count_candidates(&self, counted: u64) -> u64 {
        let candidates = self.scheduler.candidates();
        if candidates == counted {
            return counted;
        }
        match self.ledger.count_candidates(candidates.saturating_sub(counted)) {
            Ok(()) => candidates,
            Err(error) => {
                tracing::warn!(%error, "today's figures could not be noted yet");
                counted
            }
        }
    }

    fn tell_of_late_jobs(&self) {
        let now = self.clock.now();
        let told = self.ledger.late_jobs().map_err(anyhow::Error::from).and_then(|late| {
            for job in late {
                let notice = self.seal(&job, notices::late(&job, now), now)?;
                if self.ledger.tell_late(job.id, &notice)? {
                    tracing::info!(job = %job.id, "takes longer than promised");
                    self.outbox.notify_one();
                }
            }
            Ok(())
        });
        if let Err(error) = told {
            tracing::warn!(%error, "askers of late jobs could not be told yet");
        }
    }

    fn seal(&self, job: &Job, text: String, now: u64) -> Result<GiftWrap, VaultError> {
        self.vault.seal(&compose::about(job, text, now, &self.bot))
    }

    fn give_up(&self, job: &Job, now: u64) -> anyhow::Result<()> {
        let notice = self.seal(job, notices::given_up(job), now)?;
        self.ledger.expire(job.id, &notice)?;
        self.scheduler.remove(job.id);
        self.outbox.notify_one();
        Ok(())
    }
}
