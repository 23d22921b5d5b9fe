//! The state that all parts of the service share.

use super::backlog::NewAskers;
use super::monitor::Pulse;
use crate::clock::Clock;
use crate::config::Config;
#[cfg(feature = "fleet")]
use crate::fleet::{Credentials, Fleet};
use crate::ledger::{Job, Ledger};
use crate::message::{Answered, OutgoingMessage};
use crate::nostr::{Arrival, EncryptionKeys, Relays};
use crate::roster::Roster;
use crate::scheduler::Scheduler;
use crate::shutdown::Shutdown;
use crate::vault::Vault;
use std::fmt::Display;
use std::sync::Arc;
use std::time::Duration;
use tokio::sync::Notify;

/// The least time after which relays may delete a message about a job. The outbox tries for 14 days,
/// and the date of a wrap is up to two days back.
const RESULT_LIFE: Duration = Duration::from_secs(16 * 86_400);

/// The value of a result. Its error is a warning in the log, with this text.
pub(super) fn or_warn<T>(result: Result<T, impl Display>, text: &str) -> Option<T> {
    result.inspect_err(|error| tracing::warn!(%error, "{text}")).ok()
}

/// The wake-ups by which parts of the service tell each other of new work. Each has one waiting
/// task. A call made while it does not wait is kept, and several such calls count as one.
#[derive(Clone, Debug, Default)]
pub(super) struct Wakes {
    /// The outbox has a new message.
    pub outbox: Arc<Notify>,
    /// A job was added or removed: the public status may have changed.
    pub status: Arc<Notify>,
    /// A public event is ready to be published.
    pub post: Arc<Notify>,
    /// The last status of this run is published; the publisher may end.
    pub goodbye: Arc<Notify>,
    /// The watchdog found a relay that no longer delivers: subscribe again.
    pub resubscribe: Arc<Notify>,
    /// Somebody wants to know whether the maintenance task still runs ([`Pulse`]).
    pub ping: Arc<Notify>,
}

/// The state that all parts of the service share. Cheap to clone.
#[derive(Clone)]
pub(super) struct ServiceContext {
    pub vault: Vault,
    pub ledger: Ledger,
    pub clock: Clock,
    pub config: Arc<Config>,
    pub wakes: Wakes,
    pub encryption_keys: Arc<EncryptionKeys>,
    pub pulse: Arc<Pulse>,
    pub new_askers: NewAskers,
    /// The tasks and threads of the service; those of the search are on the scheduler's roster.
    pub roster: Roster,
    /// The workers on other machines and the bot's credentials, if the configuration has a server for
    /// them.
    #[cfg(feature = "fleet")]
    pub fleet: Option<(Fleet, Arc<Credentials>)>,
    pub shutdown: Shutdown,
}

/// The handles of a running service. Cheap to clone.
#[derive(Clone)]
pub(super) struct Handles {
    pub context: ServiceContext,
    pub scheduler: Arc<Scheduler>,
    pub relays: Relays,
}

impl Handles {
    /// The tasks and threads of the service and of the search.
    pub fn rosters(&self) -> impl Iterator<Item = &Roster> {
        [&self.context.roster, self.scheduler.roster()].into_iter()
    }

    /// The tasks and threads that are gone now.
    pub fn gone(&self) -> Vec<String> {
        self.rosters().flat_map(Roster::gone).collect()
    }

    /// Each task and thread with the number of times it was started again.
    pub fn restarts(&self) -> Vec<(String, u64)> {
        self.rosters().flat_map(Roster::restarts).collect()
    }
}

impl ServiceContext {
    /// A context with the ledger in `folder` and the default configuration.
    #[cfg(test)]
    pub fn for_test(folder: &std::path::Path, clock: Clock, shutdown: Shutdown) -> ServiceContext {
        ServiceContext {
            vault: Vault::without_identity().unwrap().with_clock(clock.clone()),
            ledger: Ledger::open(folder, clock.clone()).unwrap(),
            clock,
            config: Arc::new(Config::embedded_default().unwrap()),
            wakes: Wakes::default(),
            encryption_keys: Arc::default(),
            pulse: Arc::default(),
            new_askers: NewAskers::new(1000),
            roster: Roster::default(),
            #[cfg(feature = "fleet")]
            fleet: None,
            shutdown,
        }
    }

    /// The answer to a message.
    pub fn answer_to(&self, arrival: &Arrival, text: String, now: u64) -> OutgoingMessage {
        let message = &arrival.message;
        OutgoingMessage {
            to: message.author,
            encryption_key: message.encryption_key,
            text,
            in_reply_to: Some(Answered::seen(message.id, &arrival.seen_on())),
            subject: message.subject.clone(),
            expires_at: now + self.config.bot.answers_expire_after.as_secs(),
            not_before: 0,
        }
    }

    /// A message that the bot sends on its own about a job: a result or a notice. It is encrypted
    /// to the asker's key that is in force now.
    pub fn message_about(&self, job: &Job, text: String, now: u64) -> OutgoingMessage {
        let (asker, used) = (job.spec.asker, job.spec.encryption_key);
        OutgoingMessage {
            to: asker,
            encryption_key: self.encryption_keys.in_force(asker, used, job.accepted_at),
            text,
            in_reply_to: Some(Answered::seen(job.rumor, &job.seen_on)),
            subject: job.spec.subject.clone(),
            // If the clock has gone back, relays and clients would otherwise treat the message as
            // expired.
            expires_at: now.max(job.accepted_at) + self.config.bot.answers_expire_after.max(RESULT_LIFE).as_secs(),
            not_before: job.accepted_at + 1,
        }
    }
}
