//! Messages that the bot sends on its own, in the asker's language: results, and notices about
//! jobs.

use super::meanings::name;
use super::numbers::span;
use super::phrases::number;
use super::tables::{Table, say};
use crate::key::{Npub, SplitTweak};
use crate::language::Language;
use crate::ledger::Job;
use crate::pattern::{Kind, Pattern};
use std::time::Duration;

/// The text before and after the line with the nsec.
pub fn key_found(job: &Job, pattern: &Pattern, npub: &Npub, waited: Duration) -> (String, String) {
    let t = Table::of(job.language);
    let fits = fits(t, pattern, npub);
    let (job, waited, npub) = (job.id.to_string(), span(t, waited), npub.to_string());
    let before = say!(t, "key-found", job = job, waited = waited, fits = fits, npub = npub);
    (before, say!(t, "key-found-after"))
}

/// How a key fits its pattern: `This npub starts with npub1cat`, `This npub has al7ce, which fits
/// ~alice`.
fn fits(t: &Table, pattern: &Pattern, npub: &Npub) -> String {
    match pattern.kind() {
        Kind::Prefix => say!(t, "found-prefix", pattern = pattern.to_string()),
        Kind::HexStart(_) | Kind::HexEnd(_) | Kind::Zeros(_) => say!(t, "found-fits", pattern = pattern.to_string()),
        _ => {
            let met = pattern.met_by(npub).unwrap_or_default();
            say!(t, "found-met", met = met, pattern = name(pattern))
        }
    }
}

/// The answer to a message that made the bot panic twice.
pub fn apology(language: Language) -> String {
    say!(Table::of(language), "apology")
}

/// The result of a split job: the tweak, which is useless without the asker's half.
pub fn tweak_found(job: &Job, pattern: &Pattern, npub: &Npub, waited: Duration, tweak: &SplitTweak) -> String {
    let t = Table::of(job.language);
    let (job, waited, fits) = (job.id.to_string(), span(t, waited), fits(t, pattern, npub));
    let (npub, tweak) = (npub.to_string(), tweak.to_string());
    say!(t, "tweak-found", job = job, waited = waited, fits = fits, npub = npub, tweak = tweak)
}

/// The one notice of a job that takes longer than was promised. `now`: Unix seconds.
pub fn late(job: &Job, now: u64) -> String {
    let t = Table::of(job.language);
    let waited = span(t, Duration::from_secs(now.saturating_sub(job.accepted_at)));
    let left = span(t, Duration::from_secs(job.spec.expires_at.saturating_sub(now)));
    say!(t, "late", job = job.id.to_string(), waited = waited, left = left, number = number(job.id))
}

/// Notice of a split job that a restore of the ledger ended.
pub fn lost(job: &Job) -> String {
    say!(Table::of(job.language), "lost", job = job.id.to_string())
}

/// The notice of a job that has expired.
pub fn given_up(job: &Job) -> String {
    let t = Table::of(job.language);
    let after = span(t, Duration::from_secs(job.spec.expires_at.saturating_sub(job.accepted_at)));
    say!(t, "given-up", job = job.id.to_string(), patterns = job.spec.patterns.len(), span = after)
}
