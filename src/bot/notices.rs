//! Messages that the bot sends on its own, in the asker's language: results, and notices about
//! jobs.

use super::phrases::{TextTable, name, number, one_in, say, span, time_of_day};
use crate::key::Npub;
use crate::language::Language;
use crate::ledger::Job;
use crate::pattern::{Pattern, PatternKind, word_spelt};
use std::time::Duration;

/// The kind of search that found a key.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum ResultKind {
    /// The key is the target of a job that was accepted this long ago.
    After(Duration),
    /// The key is the rarest one of a job without a target.
    Best,
}

/// The first message of a result. The nsec is the second one.
pub fn key_found(job: &Job, pattern: &Pattern, npub: &Npub, found: ResultKind) -> String {
    let t = TextTable::of(job.language);
    say!(t, "key-found", heading = heading(t, job, pattern, npub, found), npub = npub.to_string())
}

/// The first line of a result.
fn heading(t: &TextTable, job: &Job, pattern: &Pattern, npub: &Npub, found: ResultKind) -> String {
    let (job, fits) = (job.id.to_string(), fits(t, pattern, npub));
    match found {
        ResultKind::After(waited) => say!(t, "found-after", job = job, waited = span(t, waited), fits = fits),
        ResultKind::Best => say!(t, "found-best", job = job, fits = fits, amount = one_in(t, pattern.difficulty())),
    }
}

/// A sentence that says how a key fits its pattern: `This npub starts with npub1cat`, `This npub
/// has al7ce, which fits ~alice`.
fn fits(t: &TextTable, pattern: &Pattern, npub: &Npub) -> String {
    match pattern.kind() {
        PatternKind::Prefix => say!(t, "found-prefix", pattern = pattern.to_string()),
        PatternKind::HexStart(_) | PatternKind::HexEnd(_) | PatternKind::Zeros(_) => {
            say!(t, "found-fits", pattern = pattern.to_string())
        }
        _ => {
            let met = pattern.met_by(npub).unwrap_or_default();
            match word_spelt(&met).filter(|word| matches!(pattern.kind(), PatternKind::Words(_)) && *word != met) {
                Some(word) => say!(t, "found-word", met = met, word = word),
                None => say!(t, "found-met", met = met, pattern = name(pattern)),
            }
        }
    }
}

/// The line about tips at the end of the first message of a result, with its line break.
pub fn tips(language: Language, address: &str) -> String {
    format!("\n{}", say!(TextTable::of(language), "tips", address = address))
}

/// The answer to a request from before a restore of the ledger.
pub fn restored(language: Language) -> String {
    say!(TextTable::of(language), "restored")
}

/// The answer to an asker who sent too many messages, and gets no further one until this time, Unix
/// seconds.
pub fn paused(language: Language, until: u64) -> String {
    say!(TextTable::of(language), "paused", time = time_of_day(until))
}

/// The answer to a message that made the bot panic twice.
pub fn apology(language: Language) -> String {
    say!(TextTable::of(language), "apology")
}

/// The first message of the result of a split job. The tweak, which is useless without the asker's
/// half, is the second one.
pub fn tweak_found(job: &Job, pattern: &Pattern, npub: &Npub, found: ResultKind) -> String {
    let t = TextTable::of(job.language);
    say!(t, "tweak-found", heading = heading(t, job, pattern, npub, found), npub = npub.to_string())
}

/// The notice of a job that takes longer than was promised. A job has at most one. `now`: Unix
/// seconds.
pub fn late(job: &Job, now: u64) -> String {
    let t = TextTable::of(job.language);
    let waited = span(t, Duration::from_secs(now.saturating_sub(job.accepted_at)));
    let left = span(t, Duration::from_secs(job.spec.expires_at.saturating_sub(now)));
    say!(t, "late", job = job.id.to_string(), waited = waited, left = left, number = number(job.id))
}

/// Notice of a split job that a restore of the ledger ended.
pub fn lost(job: &Job) -> String {
    say!(TextTable::of(job.language), "lost", job = job.id.to_string())
}

/// The notice of a job that has expired.
pub fn given_up(job: &Job) -> String {
    let t = TextTable::of(job.language);
    let after = span(t, Duration::from_secs(job.spec.expires_at.saturating_sub(job.accepted_at)));
    say!(t, "given-up", job = job.id.to_string(), patterns = job.spec.patterns.len(), span = after)
}
