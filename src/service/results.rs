//! From a find to a sealed result (T2). A start point is redeemed once; its result is recorded, or
//! lost for ever.

use super::compose;
use super::context::Context;
use crate::bot::notices;
use crate::fault::{self, Step};
use crate::ledger::Job;
use crate::message::GiftWrap;
use crate::scheduler::{Find, FindOutcome};
use crate::vault::VaultError;
use std::time::Duration;

/// Pause before a failed transaction (a full disk, say) is tried again.
const TRY_AGAIN: Duration = Duration::from_millis(500);

/// Turns finds into results. Runs on the scheduler's verifier thread.
pub(super) struct Results(pub Context);

impl Results {
    /// Redeems a find and records the result. A job whose result could not be recorded is searched
    /// on.
    pub fn settle(&self, find: Find) -> FindOutcome {
        let job = match self.0.ledger.open_job(find.job) {
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

    fn redeem(&self, job: &Job, find: &Find) -> Result<GiftWrap, VaultError> {
        let now = self.0.clock.now();
        let waited = Duration::from_secs(now.saturating_sub(job.accepted_at));
        let npub = find.hit.npub();
        let message = |text: String| compose::about(job, text, now, &self.0.config.bot);
        if job.spec.half.is_some() {
            let tweak = self.0.vault.reveal(find.start, &find.hit)?;
            return self.0.vault.seal(&message(notices::tweak_found(job.id, &find.pattern, &npub, waited, &tweak)));
        }
        let (before, after) = notices::key_found(job.id, &find.pattern, &npub, waited);
        self.0.vault.redeem(find.start, &find.hit, &message(before), &after)
    }

    /// T2. The sealed result exists only here until it is recorded, so a failing disk is waited
    /// for.
    fn record(&self, job: &Job, result: &GiftWrap) -> FindOutcome {
        loop {
            match self.0.ledger.found(job.id, result) {
                Ok(recorded) => {
                    if recorded {
                        tracing::info!(job = %job.id, "found");
                        self.0.wakes.outbox.wake();
                    }
                    self.0.wakes.status.wake();
                    return FindOutcome::Done;
                }
                Err(error) if error.is_transient() && !self.0.shutdown.is_stopping() => {
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
