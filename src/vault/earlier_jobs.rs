//! Jobs that are older than tickets, because an earlier version of the bot accepted them. Their
//! tickets are made once: at the first start of a version with tickets, before the vault gets any
//! other request. From then on, a file in the bot's data folder says that this is done. An identity
//! made by a version with tickets has no such jobs, and its own encrypted file says so. For such an
//! identity, removing the file in the data folder changes nothing.

use super::request::Request;
use crate::os::files;
use std::io;
use std::path::Path;
use std::sync::atomic::{AtomicBool, Ordering};

/// Name of the file beside the identity. Only its existence counts; its content is for people.
const FILE: &str = "tickets";
const CONTENT: &str = "Every open job of this bot has its ticket. While this file is here, the vault makes none \
                       without a message that asks for it.\n";

/// Records in a bot's data folder that its open jobs have their tickets.
///
/// Errors: those of the file system.
pub fn all_jobs_have_tickets(data: &Path) -> io::Result<()> {
    let path = data.join(FILE);
    if path.exists() {
        return Ok(());
    }
    let mut file = files::create_new(&path)?;
    io::Write::write_all(&mut file, CONTENT.as_bytes())?;
    file.sync_all()
}

/// Whether the vault still makes tickets for jobs that are older than tickets.
pub(super) struct EarlierJobs(AtomicBool);

impl EarlierJobs {
    /// The state for an identity without such jobs: the vault makes no tickets for them.
    pub(super) fn none() -> EarlierJobs {
        EarlierJobs(AtomicBool::new(false))
    }

    /// The state of the bot whose identity file is at `identity`: the vault makes the tickets
    /// unless the file beside the identity exists.
    pub(super) fn beside(identity: &Path) -> EarlierJobs {
        EarlierJobs(AtomicBool::new(!identity.with_file_name(FILE).exists()))
    }

    /// Stops the making of such tickets if `request` is of any other kind.
    pub(super) fn note(&self, request: &Request) {
        if !matches!(request, Request::TicketEarlier(_)) {
            self.0.store(false, Ordering::Relaxed);
        }
    }

    /// Whether such tickets are made now.
    pub(super) fn are_open(&self) -> bool {
        self.0.load(Ordering::Relaxed)
    }
}
