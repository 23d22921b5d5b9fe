//! Encryption keys of askers with an open job: looked up at the start and once an hour, so that a
//! result is encrypted to the key in force when it is sealed.

use super::context::Context;
use crate::nostr::Relays;
use crate::shutdown::Shutdown;
use std::collections::BTreeMap;
use std::time::Duration;

/// Time between two lookups of the keys.
const ROUND: Duration = Duration::from_secs(3600);

/// The task that looks up encryption keys again.
#[derive(Clone)]
pub(super) struct RefreshKeys {
    pub context: Context,
    pub relays: Relays,
}

impl RefreshKeys {
    /// Runs until shutdown.
    pub async fn run(self, mut shutdown: Shutdown) {
        shutdown.repeat(ROUND, || self.round()).await;
    }

    /// Looks the askers up one after the other. Askers who write with their own key need no lookup.
    async fn round(&self) {
        let open = match self.context.ledger.open_jobs() {
            Ok(open) => open,
            Err(error) => return tracing::warn!(%error, "encryption keys could not be looked up yet"),
        };
        let decoupled = open.into_iter().filter(|job| job.spec.encryption_key.is_some());
        let askers: BTreeMap<_, _> = decoupled.map(|job| (job.spec.asker, job.seen_on)).collect();
        let askers: Vec<_> = askers.into_iter().collect();
        self.context.encryption_keys.refresh(&self.relays, &askers, self.context.clock.now()).await;
    }
}
