//! Builds the messages that the service sends: receiver, the message they answer, and when
//! they expire.

use super::context::Context;
use crate::config::BotConfig;
use crate::ledger::Job;
use crate::message::{Answered, OutgoingMessage};
use crate::nostr::Arrival;

/// The answer to a message.
pub(super) fn answer(arrival: &Arrival, text: String, now: u64, bot: &BotConfig) -> OutgoingMessage {
    let message = &arrival.message;
    OutgoingMessage {
        to: message.author,
        encryption_key: message.encryption_key,
        text,
        in_reply_to: Some(Answered::seen(message.id, &arrival.seen_on())),
        subject: message.subject.clone(),
        expires_at: now + bot.answers_expire_after.as_secs(),
        not_before: 0,
    }
}

/// A message that the bot sends on its own about a job: a result or a notice. It is encrypted to
/// the asker's key that is in force now.
pub(super) fn about(job: &Job, text: String, now: u64, context: &Context) -> OutgoingMessage {
    let Context { config, encryption_keys, .. } = context;
    let (asker, used) = (job.spec.asker, job.spec.encryption_key);
    OutgoingMessage {
        to: asker,
        encryption_key: encryption_keys.in_force(asker, used, job.accepted_at),
        text,
        in_reply_to: Some(Answered::seen(job.rumor, &job.seen_on)),
        subject: job.spec.subject.clone(),
        // If the clock has gone back, relays and clients would otherwise treat the message as
        // expired.
        expires_at: now.max(job.accepted_at) + config.bot.answers_expire_after.as_secs(),
        not_before: job.accepted_at + 1,
    }
}
