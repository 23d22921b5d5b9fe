//! Why a device was taken out of use.

use crate::search::SearchError;
use crate::vault::VaultError;
use thiserror::Error;

/// Why a device was taken out of use.
#[derive(Debug, Error)]
pub(super) enum Failure {
    /// The device failed.
    #[error(transparent)]
    Search(#[from] SearchError),
    /// No start point can be drawn.
    #[error(transparent)]
    Vault(#[from] VaultError),
    /// The device's claims are not believed, for this reason.
    #[error("{0}")]
    Distrusted(String),
    /// The device's thread panicked.
    #[error("its thread panicked, as the log says; it is tried again, and a newer version or driver may help")]
    Panicked,
}
