//! Requests to vanish (NIP-62). Once an hour the relays are queried for them, and the data of their
//! authors is deleted.

use super::context::Context;
use crate::job::Asker;
use crate::ledger::LedgerError;
use crate::nostr::{Relays, vanish};
use crate::scheduler::Scheduler;
use crate::shutdown::Shutdown;
use std::sync::Arc;
use std::time::Duration;

/// Time between two queries of the relays.
const ROUND: Duration = Duration::from_secs(3600);

/// The task that follows requests to vanish.
#[derive(Clone)]
pub(super) struct Vanish {
    pub context: Context,
    pub scheduler: Arc<Scheduler>,
    pub relays: Relays,
}

impl Vanish {
    /// Runs until shutdown.
    pub async fn run(self, mut shutdown: Shutdown) {
        shutdown.repeat(ROUND, || self.round()).await;
    }

    async fn round(&self) {
        let askers = match self.context.ledger.askers() {
            Ok(askers) if askers.is_empty() => return,
            Ok(askers) => askers,
            Err(error) => return tracing::warn!(%error, "requests to vanish could not be looked up yet"),
        };
        for (asker, at) in vanish::requests(&self.relays, &askers).await {
            if let Err(error) = self.forget(asker, at) {
                tracing::warn!(%error, "a request to vanish could not be followed yet");
            }
        }
    }

    /// Deletes the asker's data up to `at` (Unix seconds). The asker may have returned since.
    fn forget(&self, asker: Asker, at: u64) -> Result<(), LedgerError> {
        let Some(open) = self.context.ledger.forget(asker, at)? else { return Ok(()) };
        for job in open {
            self.scheduler.remove(job);
        }
        tracing::info!("an asker asked to vanish; what was older is forgotten");
        Ok(())
    }
}
