//! Askers as the operator wants them treated: messages of a denied asker are ignored, and a friend
//! has higher limits. Friends are those whom the operator allowed as such, and those whom the npubs
//! of `friends_of` follow.
//!
//! The ledger keeps both tables. Every message is checked against them, so a copy is in memory. Only
//! the operator and these npubs add rows, so strangers cannot make the tables grow.

use super::context::{Handles, or_warn};
use crate::config::Limits;
use crate::job::{Asker, JobId};
use crate::ledger::{Ledger, LedgerError, Standing};
use crate::nostr::follows;
use nostr::{FromBech32, PublicKey};
use std::borrow::Cow;
use std::collections::{HashMap, HashSet};
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{PoisonError, RwLock};

/// Factor by which a friend's limits on open jobs and on jobs a day exceed those of other askers.
const FRIEND_FACTOR: usize = 10;

/// The standings of askers, and a count of ignored messages.
#[derive(Debug, Default)]
pub(super) struct Access {
    standings: RwLock<HashMap<Asker, Standing>>,
    followed: RwLock<HashSet<Asker>>,
    ignored: AtomicU64,
}

impl Access {
    /// Loads the standings from the ledger.
    pub fn load(ledger: &Ledger) -> Result<Access, LedgerError> {
        let standings = RwLock::new(ledger.standings()?.into_iter().collect());
        let followed = RwLock::new(ledger.followed()?);
        Ok(Access { standings, followed, ignored: AtomicU64::new(0) })
    }

    /// Sets how an asker is treated, here and in the ledger. Returns the jobs that a denial
    /// cancelled. A message being answered at this moment may still become a job.
    pub fn set(&self, ledger: &Ledger, asker: Asker, standing: Standing) -> Result<Vec<JobId>, LedgerError> {
        let cancelled = ledger.set_standing(asker, standing)?;
        self.standings.write().unwrap_or_else(PoisonError::into_inner).insert(asker, standing);
        Ok(cancelled)
    }

    /// Whether the messages of this asker are ignored. If so, the call counts one ignored message.
    pub fn ignores(&self, asker: Asker) -> bool {
        let is_denied = self.standing(asker) == Standing::Denied;
        if is_denied {
            self.ignored.fetch_add(1, Ordering::Relaxed);
        }
        is_denied
    }

    /// Messages ignored since the service started.
    pub fn ignored(&self) -> u64 {
        self.ignored.load(Ordering::Relaxed)
    }

    /// Whether the asker is a friend.
    pub fn is_friend(&self, asker: Asker) -> bool {
        match self.standing(asker) {
            Standing::Denied => false,
            Standing::Friend => true,
            Standing::Ordinary => self.followed.read().unwrap_or_else(PoisonError::into_inner).contains(&asker),
        }
    }

    /// Replaces those whom the npubs of `friends_of` follow, here and in the ledger.
    fn set_followed(&self, ledger: &Ledger, followed: HashSet<Asker>) -> Result<(), LedgerError> {
        let mut known = self.followed.write().unwrap_or_else(PoisonError::into_inner);
        if *known != followed {
            ledger.set_followed(&followed)?;
            tracing::info!(friends = followed.len(), "friends of `friends_of` are looked up");
            *known = followed;
        }
        Ok(())
    }

    /// The limits for an asker: the configured ones, with some raised for a friend.
    pub fn limits<'a>(&self, asker: Asker, limits: &'a Limits) -> Cow<'a, Limits> {
        if !self.is_friend(asker) {
            return Cow::Borrowed(limits);
        }
        Cow::Owned(Limits {
            open_jobs_per_asker: limits.open_jobs_per_asker.saturating_mul(FRIEND_FACTOR),
            jobs_per_day: limits.jobs_per_day.saturating_mul(FRIEND_FACTOR),
            ..limits.clone()
        })
    }

    /// Those whom the npubs of `friends_of` follow.
    pub fn followed(&self) -> HashSet<Asker> {
        self.followed.read().unwrap_or_else(PoisonError::into_inner).clone()
    }

    fn standing(&self, asker: Asker) -> Standing {
        self.standings.read().unwrap_or_else(PoisonError::into_inner).get(&asker).copied().unwrap_or_default()
    }
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
        let kept = if missing > 0 { context.access.followed() } else { HashSet::new() };
        let recorded = context.access.set_followed(&context.ledger, found.into_iter().chain(kept).collect());
        or_warn(recorded, "friends could not be recorded yet");
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
/// open jobs, and the asker is not told.
///
/// Errors: a message for the operator, if the text is not an npub or the ledger fails.
pub(super) fn set_standing(bot: &Handles, npub: &str, to: Standing) -> Result<String, String> {
    let context = &bot.context;
    let cancelled = context.access.set(&context.ledger, parse_npub(npub)?, to).map_err(|error| error.to_string())?;
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
