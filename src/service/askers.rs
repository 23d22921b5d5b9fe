//! Askers as the operator wants them treated: messages of a denied asker are ignored, and a friend
//! has higher limits. Friends are those whom the operator allowed as such, and those whom the npubs
//! of `friends_of` follow.

use super::context::{Handles, or_warn};
use crate::config::Limits;
use crate::job::Asker;
use crate::ledger::{LedgerError, Standing};
use crate::nostr::follows;
use nostr::{FromBech32, PublicKey};
use std::borrow::Cow;
use std::collections::HashSet;

/// Factor by which a friend's limits on open jobs and on jobs a day exceed those of other askers.
const FRIEND_FACTOR: usize = 10;

/// The limits for an asker: the configured ones, with some raised for a friend.
pub(super) fn limits_of(limits: &Limits, is_friend: bool) -> Cow<'_, Limits> {
    if !is_friend {
        return Cow::Borrowed(limits);
    }
    Cow::Owned(Limits {
        open_jobs_per_asker: limits.open_jobs_per_asker.saturating_mul(FRIEND_FACTOR),
        jobs_per_day: limits.jobs_per_day.saturating_mul(FRIEND_FACTOR),
        ..limits.clone()
    })
}

impl Handles {
    /// Looks up whom the npubs of `friends_of` follow. If one has no list on any relay, the earlier
    /// friends stay.
    pub async fn look_up_friends(&self) {
        let context = &self.context;
        let (found, missing) = follows(&self.relays, &context.config.bot.friends_of).await;
        if missing > 0 {
            tracing::warn!(
                missing,
                "whom some npubs of `friends_of` follow is not on the relays; earlier friends stay"
            );
        }
        let record = || -> Result<(), LedgerError> {
            let before = context.ledger.followed()?;
            let kept = before.iter().copied().filter(|_| missing > 0);
            let friends: HashSet<Asker> = found.into_iter().chain(kept).collect();
            if friends != before {
                context.ledger.set_followed(&friends)?;
                tracing::info!(friends = friends.len(), "friends of `friends_of` are looked up");
            }
            Ok(())
        };
        or_warn(record(), "friends could not be recorded yet");
    }
}

/// The error message for a text that is not an npub. It never repeats a secret key.
fn not_an_npub(text: &str) -> String {
    match text.trim().to_lowercase().starts_with("nsec") {
        true => "that is a secret key, and the history of your shell may have it now; name the npub".to_owned(),
        false => format!("`{text}` is not an npub; copy one from `npubbot askers`"),
    }
}

/// The asker with this npub.
///
/// Errors: a message for the operator.
pub(super) fn parse_npub(npub: &str) -> Result<Asker, String> {
    PublicKey::from_bech32(npub).map(|key| Asker(key.to_bytes())).map_err(|_| not_an_npub(npub))
}

/// Sets how an asker is treated. Returns a message for the operator. A denial cancels the asker's
/// open jobs, and the asker is not told. A message being answered at this moment may still become a
/// job.
///
/// Errors: a message for the operator, if the text is not an npub or the ledger fails.
pub(super) fn set_standing(bot: &Handles, npub: &str, to: Standing) -> Result<String, String> {
    let context = &bot.context;
    let cancelled = context.ledger.set_standing(parse_npub(npub)?, to).map_err(|error| error.to_string())?;
    for &job in &cancelled {
        bot.scheduler.remove(job);
    }
    context.wakes.status.notify_one();
    tracing::info!(?to, cancelled = cancelled.len(), "the operator set how an asker is treated");
    Ok(match (to, cancelled.len()) {
        (Standing::Denied, 0) => "their messages are ignored from now on; they had no open job".to_owned(),
        (Standing::Denied, jobs) => {
            format!("their messages are ignored from now on; {jobs} open jobs are cancelled, and they are not told")
        }
        (Standing::Ordinary, _) => "they are treated as everybody from now on".to_owned(),
        (Standing::Friend, _) => format!(
            "they may have {FRIEND_FACTOR} times the open jobs and jobs a day from now on, without proof of work"
        ),
    })
}

/// Deletes everything about an asker. Returns a message for the operator.
///
/// Errors: as [`set_standing`].
pub(super) fn erase(bot: &Handles, npub: &str) -> Result<String, String> {
    let erased = bot.context.ledger.erase(parse_npub(npub)?).map_err(|error| error.to_string())?;
    let Some(open) = erased else { return Ok("the ledger has nothing of them that can be erased".to_owned()) };
    open.iter().for_each(|&job| bot.scheduler.remove(job));
    bot.context.wakes.status.notify_one();
    tracing::info!(open = open.len(), "the operator erased an asker's data");
    Ok(format!(
        "their jobs ({} open), results, unsent messages and language are erased and overwritten. What stays: ids of \
         answered messages for 9 days and spent work for 2, so that no relay's copy becomes a job again; times of the last day's jobs; a \
         rule of `deny` or `allow`; and that a half was used, without its asker. Backups and relays keep what they have",
        open.len()
    ))
}
