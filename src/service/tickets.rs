//! Tickets for open jobs that a version without tickets accepted. The vault makes them once, at the
//! first start of a version with tickets.

use crate::ledger::{Job, Ledger, LedgerError};
use crate::vault::{self, Asked, Order, Vault, Wanted};
use std::path::Path;

/// The most jobs in one request for tickets, so that it fits a frame.
const AT_ONCE: usize = 64;

/// Gives open jobs their tickets, and records that all have one. Call it at the start, before the
/// vault gets any other request.
///
/// Errors: those of the ledger. A job that the vault refuses is logged. It gives no key, and its
/// asker is told when its time is up.
pub(super) fn complete(vault: &Vault, ledger: &Ledger, data: &Path) -> Result<(), LedgerError> {
    let lacking: Vec<Job> = ledger.open_jobs()?.into_iter().filter(|job| job.ticket.is_none()).collect();
    for jobs in lacking.chunks(AT_ONCE) {
        match vault.tickets_of_earlier(jobs.iter().map(order).collect()) {
            Ok(tickets) => {
                let tickets: Vec<_> = jobs.iter().map(|job| job.id).zip(tickets).collect();
                ledger.keep_tickets(&tickets)?;
                tracing::info!(jobs = tickets.len(), "open jobs of an earlier version have their tickets now");
            }
            Err(error) => {
                let jobs = lacking.len();
                tracing::error!(jobs, %error, "open jobs have no ticket, so they give no key");
                return Ok(());
            }
        }
    }
    if let Err(error) = vault::all_jobs_have_tickets(data) {
        tracing::warn!(%error, "the file `tickets` cannot be written, so the vault would make tickets again");
    }
    Ok(())
}

/// The content of a job's ticket, from the job's message as it was read when it was accepted.
pub(super) fn order(job: &Job) -> Order {
    let wanted = match &job.spec.best {
        Some(search) => Wanted::Rarest(search.best.family),
        None => Wanted::Patterns(job.spec.patterns.clone()),
    };
    Order {
        asker: job.spec.asker,
        rumor: job.rumor,
        dated: job.accepted_at,
        encryption_key: job.spec.encryption_key,
        asked: Asked { wanted, half: job.spec.half },
    }
}
