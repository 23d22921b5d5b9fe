//! Builds the messages that the service sends: receiver, channel, the message they answer, and when
//! they expire.

use crate::config::BotConfig;
use crate::ledger::Job;
use crate::message::{Answered, OutgoingMessage};
use crate::nostr::IncomingMessage;

/// The answer to a message.
pub(super) fn answer(message: &IncomingMessage, text: String, now: u64, bot: &BotConfig) -> OutgoingMessage {
    OutgoingMessage {
        to: message.rumor.author,
        channel: message.channel,
        text,
        in_reply_to: Some(Answered::seen(message.rumor.id, &message.seen_on)),
        subject: message.rumor.subject.clone(),
        expires_at: now + bot.answers_expire_after.as_secs(),
        not_before: 0,
    }
}

/// A message about a job that answers no new message: a result or a notice.
pub(super) fn about(job: &Job, text: String, now: u64, bot: &BotConfig) -> OutgoingMessage {
    OutgoingMessage {
        to: job.spec.asker,
        channel: job.spec.channel,
        text,
        in_reply_to: Some(Answered::seen(job.rumor, &job.seen_on)),
        subject: job.spec.subject.clone(),
        // If the clock has gone back, relays and clients would otherwise treat the message as
        // expired.
        expires_at: now.max(job.accepted_at) + bot.answers_expire_after.as_secs(),
        not_before: job.accepted_at + 1,
    }
}
