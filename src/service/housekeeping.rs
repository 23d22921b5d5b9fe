//! What happens by the clock: jobs past their time are given up, old rows are forgotten, the status is kept true.

use super::status_of;
use crate::bot::letters;
use crate::clock::Clock;
use crate::config::BotConfig;
use crate::ledger::{Job, Ledger};
use crate::mail::Letter;
use crate::nostr::Status;
use crate::scheduler::Scheduler;
use crate::shutdown::Shutdown;
use crate::vault::Vault;
use std::sync::Arc;
use std::time::{Duration, Instant};
use tokio::sync::{Notify, watch};

/// How often the clock is looked at.
const ROUND: Duration = Duration::from_secs(30);
/// Rounds between two cleanings of the ledger.
const ROUNDS_A_CLEANING: u32 = 120;

pub(super) struct Keeper {
    pub vault: Vault,
    pub ledger: Ledger,
    pub scheduler: Arc<Scheduler>,
    pub clock: Clock,
    pub bot: BotConfig,
    pub outbox: Arc<Notify>,
    pub changed: Arc<Notify>,
}

impl Keeper {
    pub async fn run(self, status: watch::Sender<Status>, mut shutdown: Shutdown) {
        let mut ticks = tokio::time::interval(ROUND);
        let mut rounds: u32 = 0;
        let (began, began_at) = (Instant::now(), self.clock.now());
        loop {
            tokio::select! {
                () = shutdown.stopped() => return,
                () = self.changed.notified() => {}
                _ = ticks.tick() => {
                    // A clock that jumps ahead must not end every job: time passes no faster than it does.
                    self.give_up_old_jobs(self.clock.now().min(began_at + began.elapsed().as_secs()));
                    if rounds.is_multiple_of(ROUNDS_A_CLEANING)
                        && let Err(error) = self.ledger.clean()
                    {
                        tracing::warn!(%error, "the ledger could not be cleaned");
                    }
                    rounds = rounds.wrapping_add(1);
                }
            }
            status.send_replace(status_of(&self.scheduler));
        }
    }

    fn give_up_old_jobs(&self, now: u64) {
        let open = match self.ledger.open_jobs() {
            Ok(open) => open,
            Err(error) => {
                tracing::warn!(%error, "open jobs could not be read");
                return;
            }
        };
        for job in open.into_iter().filter(|job| job.expires_at <= now) {
            match self.give_up(&job, now) {
                Ok(()) => tracing::info!(job = %job.id, "given up: its time is over"),
                Err(error) => tracing::warn!(job = %job.id, %error, "a job could not be given up yet"),
            }
        }
    }

    fn give_up(&self, job: &Job, now: u64) -> anyhow::Result<()> {
        let notice = self.vault.seal(&Letter {
            to: job.asker,
            text: letters::given_up(job),
            in_reply_to: Some(job.rumor),
            subject: job.subject.clone(),
            expires_at: now.max(job.accepted_at) + self.bot.answers_expire_after.as_secs(),
        })?;
        self.ledger.expire(job.id, &notice)?;
        self.scheduler.remove(job.id);
        self.outbox.notify_one();
        Ok(())
    }
}
