//! Messages that the bot sends on its own: results, and notices about jobs.

use super::numbers::plural;
use crate::duration::humanize;
use crate::job::JobId;
use crate::key::{Npub, SplitTweak};
use crate::ledger::Job;
use crate::pattern::Pattern;
use std::time::Duration;

/// The text before and after the line with the nsec.
pub fn key_found(job: JobId, pattern: &Pattern, npub: &Npub, waited: Duration) -> (String, String) {
    let before = format!(
        "Job {job} is done after {}. This npub starts with npub1{pattern}:\n{npub}\nThis is its secret key. Whoever has it \
         is this identity. Keep it safe, and show it to nobody:",
        humanize(waited)
    );
    let after =
        "It was made on my operator's machine: trust it as far as you trust the operator.\nTo get this message \
                 again, send:\nresend"
            .to_owned();
    (before, after)
}

/// The answer to a message that made the bot panic twice.
pub fn apology() -> String {
    "Something went wrong on my side with this message. Nothing was started.\nMy operator's log tells of it. Say it in \
     other words, or send:\nhelp"
        .to_owned()
}

/// The result of a split job: the tweak, which is useless without the asker's half.
pub fn tweak_found(job: JobId, pattern: &Pattern, npub: &Npub, waited: Duration, tweak: &SplitTweak) -> String {
    format!(
        "Job {job} is done after {}. This npub starts with npub1{pattern}:\n{npub}\nThis is the tweak. It is no \
         secret:\n{tweak}\nYour half and it make the key:\nnpubbot combine\nYour half has served now. Make a new one \
         for the next key.",
        humanize(waited)
    )
}

/// The one notice of a job that takes longer than was promised. `now`: Unix seconds.
pub fn late(job: &Job, now: u64) -> String {
    let waited = Duration::from_secs(now.saturating_sub(job.accepted_at));
    let left = Duration::from_secs(job.spec.expires_at.saturating_sub(now));
    format!(
        "Job {} takes longer than I said: {} so far.\nThat is bad luck or a slow day. I go on for {} at most; you need do \
         nothing.\nTo stop, send:\ncancel {}",
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

/// The notice of a job that has expired.
pub fn given_up(job: &Job) -> String {
    let after = Duration::from_secs(job.spec.expires_at.saturating_sub(job.accepted_at));
    let patterns = plural(job.spec.patterns.len(), "prefix").replace("prefixs", "prefixes");
    format!(
        "Job {} is given up: I found none of its {patterns} in {}.\nSend a shorter one, or the same once more to try \
         again.",
        job.id,
        humanize(after)
    )
}
