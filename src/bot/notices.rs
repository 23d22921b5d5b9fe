//! What the bot writes without being asked: the key, and that a job is given up.

use crate::duration::humanize;
use crate::job::JobId;
use crate::key::{Npub, SplitTweak};
use crate::ledger::Job;
use crate::pattern::Pattern;
use std::time::Duration;

/// The text before and after the line with the nsec.
pub fn key_found(job: JobId, pattern: &Pattern, npub: &Npub, waited: Duration) -> (String, String) {
    let before = format!(
        "Job {job} is done after {}: a key that starts with npub1{pattern}.\n{npub}\nThis is its secret key. Whoever has \
         it is this identity, so keep it safe and show it to nobody:",
        humanize(waited)
    );
    let after = "It was made on my operator's machine: trust it as far as you trust the operator. To get this message \
                 again: resend"
        .to_owned();
    (before, after)
}

/// The answer to a message that made something here fail, twice.
pub fn apology() -> String {
    "Something went wrong on my side with this message, so nothing came of it; my operator's log tells of it. Say it in \
     other words, or send: help"
        .to_owned()
}

/// What comes of a split job: the tweak, which only the asker's half turns into the key.
pub fn tweak_found(job: JobId, pattern: &Pattern, npub: &Npub, waited: Duration, tweak: &SplitTweak) -> String {
    format!(
        "Job {job} is done after {}: a key that starts with npub1{pattern}.\n{npub}\nThis is the tweak. It is no secret; \
         your half and it make the key, with: npubbot combine\n{tweak}\nYour half has served now. Make a new one for the \
         next key.",
        humanize(waited)
    )
}

/// The one notice of a job that takes longer than was promised.
pub fn late(job: &Job, now: u64) -> String {
    let waited = Duration::from_secs(now.saturating_sub(job.accepted_at));
    let left = Duration::from_secs(job.spec.expires_at.saturating_sub(now));
    format!(
        "Job {} takes longer than I said: {} so far. That is bad luck or a slow day, not your doing; I search on, for {} at \
         most. You need do nothing. To stop: cancel {}",
        job.id,
        humanize(waited),
        humanize(left),
        job.id.0
    )
}

/// Notice of a split job that a restore of the ledger ended.
pub fn lost(job: &Job) -> String {
    format!(
        "Job {} is given up: I was restored from a backup, and your half may have been used already. Two keys of one half \
         reveal each other.\nMake a new half and send me its point: npubbot split new",
        job.id
    )
}

/// The notice of a job past its time.
pub fn given_up(job: &Job) -> String {
    let after = Duration::from_secs(job.spec.expires_at.saturating_sub(job.accepted_at));
    format!(
        "Job {} is given up: {} have passed without a find. Send a shorter prefix, or the same once more to try again.",
        job.id,
        humanize(after)
    )
}
