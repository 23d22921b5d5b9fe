//! One message after the other: decided, answered, recorded in one transaction (T1), and only then acted upon.

use super::wanted;
use crate::bot::{self, Context, Decision};
use crate::clock::Clock;
use crate::config::Config;
use crate::ids::{Asker, JobId};
use crate::ledger::{Answer, Effect, Ledger, LedgerError, NewJob, Recorded};
use crate::mail::Letter;
use crate::nostr::Inbound;
use crate::scheduler::Scheduler;
use crate::shutdown::Shutdown;
use crate::vault::{Rumor, Vault, VaultError};
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Arc;
use std::time::Duration;
use thiserror::Error;
use tokio::sync::{Notify, mpsc};

/// A transaction that failed (a full disk, say) is tried again after this.
const TRY_AGAIN: Duration = Duration::from_millis(500);

pub(super) struct Desk {
    pub vault: Vault,
    pub ledger: Ledger,
    pub scheduler: Arc<Scheduler>,
    pub clock: Clock,
    pub config: Config,
    pub outbox: Arc<Notify>,
    pub changed: Arc<Notify>,
    pub shutdown: Shutdown,
}

#[derive(Debug, Error)]
enum DeskError {
    #[error(transparent)]
    Ledger(#[from] LedgerError),
    #[error(transparent)]
    Vault(#[from] VaultError),
}

impl Desk {
    /// Runs on a thread of its own: it waits for the disk.
    pub fn run(self, mut messages: mpsc::Receiver<Inbound>) {
        while let Some(message) = messages.blocking_recv() {
            if self.shutdown.is_stopping() {
                // The relay still has it: it is answered after the next start.
                return;
            }
            self.attend(&message);
        }
    }

    /// Answers one message, trying again as long as the ledger fails: an answer that is not recorded is not given.
    fn attend(&self, message: &Inbound) {
        loop {
            match catch_unwind(AssertUnwindSafe(|| self.handle(message))) {
                Ok(Ok(())) => return,
                Ok(Err(error)) => tracing::error!(%error, "a message cannot be answered yet"),
                Err(_) => {
                    tracing::error!(rumor = ?message.rumor.id, "answering a message panicked; it is left out");
                    return;
                }
            }
            if self.shutdown.is_stopping() {
                return;
            }
            std::thread::sleep(TRY_AGAIN);
        }
    }

    fn handle(&self, message: &Inbound) -> Result<(), DeskError> {
        let Rumor { id: rumor, author, .. } = message.rumor;
        let asker = self.ledger.asker_view(author)?;
        let next_job = self.ledger.next_job()?;
        let now = self.clock.now();
        let context = Context {
            limits: &self.config.limits,
            asker: &asker,
            pool_jobs: self.scheduler.open_jobs(),
            rate: self.scheduler.rate(),
            next_job,
            half: match bot::half_named(&message.rumor.content) {
                Some(half) => self.ledger.half_use(&half)?,
                None => None,
            },
            split_part: self.scheduler.part_of_one_more(author),
            reads_sealed: message.reads_sealed,
            now,
        };
        let (effect, reply) = match bot::decide(&message.rumor, &context) {
            Decision::Ignore => (Effect::Nothing, None),
            Decision::Say(reply) => (Effect::Nothing, Some(reply)),
            Decision::Accept { wish, reply } => {
                let job = NewJob {
                    id: next_job,
                    patterns: wish.patterns,
                    split: wish.split,
                    channel: wish.channel,
                    subject: message.rumor.subject.clone(),
                    expires_at: wish.expires_at,
                    notice_at: wish.notice_at,
                };
                (Effect::Accept(job), Some(reply))
            }
            Decision::Cancel { jobs, reply } => (Effect::Cancel(jobs), reply),
            Decision::Resend { job, reply } => (Effect::Resend(job), Some(reply)),
            Decision::Stop(reply) => (Effect::Stop, Some(reply)),
            Decision::Start(reply) => (Effect::Start, Some(reply)),
            Decision::Forget(reply) => (Effect::Forget, Some(reply)),
        };
        let open: Vec<JobId> = asker.open.iter().map(|job| job.id).collect();
        let reply = reply
            .map(|reply| {
                self.vault.seal(&Letter {
                    to: author,
                    channel: message.channel,
                    text: reply.to_string(),
                    in_reply_to: Some(rumor),
                    subject: message.rumor.subject.clone(),
                    expires_at: now + self.config.bot.answers_expire_after.as_secs(),
                })
            })
            .transpose()?;
        let answer = Answer { asker: author, rumor, seen_on: message.seen_on.clone(), effect, reply };
        if self.ledger.answer(&answer)? == Recorded::Now {
            self.act(author, answer.effect, &open);
        }
        Ok(())
    }

    /// What follows from a recorded answer. `open`: the asker's jobs so far.
    fn act(&self, asker: Asker, effect: Effect, open: &[JobId]) {
        match effect {
            Effect::Nothing | Effect::Resend(_) | Effect::Start => {}
            Effect::Accept(job) => {
                tracing::info!(job = %job.id, patterns = job.patterns.len(), split = job.split.is_some(), "accepted");
                self.scheduler.add(job.id, wanted(job.patterns, job.split, asker));
            }
            Effect::Cancel(jobs) => self.cancel(&jobs),
            Effect::Stop | Effect::Forget => self.cancel(open),
        }
        self.outbox.notify_one();
        self.changed.notify_one();
    }

    fn cancel(&self, jobs: &[JobId]) {
        for &job in jobs {
            tracing::info!(%job, "cancelled");
            self.scheduler.remove(job);
        }
    }
}
