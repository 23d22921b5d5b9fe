//! From a find to a sealed result (T2): the start point is redeemed once, and what comes of it is recorded or lost for good.

use super::compose;
use crate::bot::notices;
use crate::clock::Clock;
use crate::config::BotConfig;
use crate::fault::{self, Step};
use crate::ledger::{Job, Ledger, LedgerError};
use crate::message::GiftWrap;
use crate::scheduler::{Find, FindOutcome};
use crate::shutdown::Shutdown;
use crate::vault::Vault;
use std::sync::Arc;
use std::time::Duration;
use tokio::sync::Notify;

/// A transaction that failed (a full disk, say) is tried again after this.
const TRY_AGAIN: Duration = Duration::from_millis(500);

pub(super) struct Results {
    pub vault: Vault,
    pub ledger: Ledger,
    pub clock: Clock,
    pub bot: BotConfig,
    pub outbox: Arc<Notify>,
    pub changed: Arc<Notify>,
    pub shutdown: Shutdown,
}

impl Results {
    /// Redeems a find and records the result. A job whose result could not be recorded is searched on.
    pub fn settle(&self, find: Find) -> FindOutcome {
        let job = match self.ledger.open_job(find.job) {
            Ok(Some(job)) => job,
            Ok(None) => return FindOutcome::Done,
            Err(error) => {
                tracing::error!(job = %find.job, %error, "a find is dropped and searched again");
                return FindOutcome::GoesOn;
            }
        };
        fault::before(Step::Redeem);
        let result = match self.redeem(&job, &find) {
            Ok(result) => result,
            Err(error) => {
                tracing::error!(job = %job.id, %error, "a find could not be redeemed; it is searched again");
                return FindOutcome::GoesOn;
            }
        };
        fault::after(Step::Redeem);
        self.record(&job, &result)
    }

    fn redeem(&self, job: &Job, find: &Find) -> Result<GiftWrap, crate::vault::VaultError> {
        let now = self.clock.now();
        let waited = Duration::from_secs(now.saturating_sub(job.accepted_at));
        let npub = find.hit.npub();
        let letter = |text: String| compose::about(job, text, now, &self.bot);
        if job.spec.half.is_some() {
            let tweak = self.vault.reveal(find.start, &find.hit)?;
            return self.vault.seal(&letter(notices::tweak_found(job.id, &find.pattern, &npub, waited, &tweak)));
        }
        let (before, after) = notices::key_found(job.id, &find.pattern, &npub, waited);
        self.vault.redeem(find.start, &find.hit, &letter(before), &after)
    }

    /// T2. The sealed result exists only here until it is recorded, so a failing disk is waited for.
    fn record(&self, job: &Job, result: &GiftWrap) -> FindOutcome {
        loop {
            match self.ledger.found(job.id, result) {
                Ok(recorded) => {
                    if recorded {
                        tracing::info!(job = %job.id, "found");
                        self.outbox.notify_one();
                    }
                    self.changed.notify_one();
                    return FindOutcome::Done;
                }
                Err(LedgerError::Database(error)) if !self.shutdown.is_stopping() => {
                    tracing::error!(job = %job.id, %error, "a result cannot be recorded yet");
                    std::thread::sleep(TRY_AGAIN);
                }
                Err(error) => {
                    tracing::error!(job = %job.id, %error, "a result could not be recorded; it is searched again");
                    return FindOutcome::GoesOn;
                }
            }
        }
    }
}
