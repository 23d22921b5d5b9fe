//! The operator's view of askers, and the rules that the operator sets for them.

use super::access::FRIEND_FACTOR;
use super::context::Context;
use crate::control::{AskerStatus, Reply, Standing};
use crate::job::Asker;
use crate::key::Npub;
use crate::ledger::{AskerRule, AskerTotals, LedgerError};
use crate::scheduler::Scheduler;
use nostr::{FromBech32, PublicKey};

/// The most askers in one answer.
const MOST_LISTED: usize = 10_000;

/// Lists at most `most` askers: those with the most open jobs first, then those with the latest
/// jobs.
pub(super) fn list(context: &Context, most: usize) -> Result<Vec<Reply>, LedgerError> {
    let askers = context.ledger.list_askers(most.min(MOST_LISTED))?;
    Ok(askers.into_iter().map(|asker| Reply::Asker(status(asker))).collect())
}

fn status(asker: AskerTotals) -> AskerStatus {
    AskerStatus {
        asker: Npub(asker.asker.0).to_string(),
        open_jobs: asker.open_jobs,
        done: asker.done,
        messages: asker.messages,
        last_job_at: asker.last_job_at,
        standing: match asker.rule {
            Some(AskerRule::Denied) => Standing::Denied,
            Some(AskerRule::Friend) => Standing::Friend,
            None => Standing::Ordinary,
        },
    }
}

/// The error message for a text that is not an npub. It never repeats a secret key.
fn not_an_npub(text: &str) -> String {
    match text.trim().to_lowercase().starts_with("nsec") {
        true => "that is a secret key, and the history of your shell may have it now; name the npub".to_owned(),
        false => format!("`{text}` is no npub; say one as `npubbot askers` does"),
    }
}

/// Sets how an asker is treated. Returns a message for the operator. A denial cancels the asker's
/// open jobs, and the asker is not told.
///
/// Errors: a message for the operator, if the text is not an npub or the ledger fails.
pub(super) fn set(context: &Context, scheduler: &Scheduler, npub: &str, to: Standing) -> Result<String, String> {
    let key = PublicKey::from_bech32(npub).map_err(|_| not_an_npub(npub))?;
    let rule = match to {
        Standing::Denied => Some(AskerRule::Denied),
        Standing::Ordinary => None,
        Standing::Friend => Some(AskerRule::Friend),
    };
    let cancelled =
        context.access.set(&context.ledger, Asker(key.to_bytes()), rule).map_err(|error| error.to_string())?;
    for &job in &cancelled {
        scheduler.remove(job);
    }
    context.wakes.status.wake();
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
