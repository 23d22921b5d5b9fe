//! The walls that the processes of a bot lack, for the operator.

use npubbot_vault::{MissingWall, os};
use std::collections::BTreeMap;
use std::sync::{Mutex, PoisonError};
use thiserror::Error;

/// The target of log lines about missing sandboxes, which `-q` does not hide.
pub const SANDBOX_LOG: &str = "npubbot::sandbox";

/// The missing walls of each process that has raised its own: `vault`, `network` and the devices.
static MISSING: Mutex<BTreeMap<String, Vec<MissingWall>>> = Mutex::new(BTreeMap::new());

/// A process lacks a sandbox that the configuration requires. Exit code 2.
#[derive(Debug, Error)]
#[error(
    "the process of {process} has no sandbox here: {loss}. Use another kernel or container, or set `walls` of [vault] \
     to \"optional\""
)]
pub struct NoWalls {
    process: String,
    loss: String,
}

/// Logs and keeps the walls that a process lacks.
///
/// Errors: it lacks a sandbox, and sandboxes are required.
pub fn check(process: &str, missing: Vec<MissingWall>, are_required: bool) -> Result<(), NoWalls> {
    let mut first = None;
    for MissingWall { loss, is_sandbox } in &missing {
        if *is_sandbox {
            tracing::warn!(target: SANDBOX_LOG, process, loss, "a process runs without one of its sandboxes");
            first = first.or(Some(loss.clone()));
        } else {
            tracing::info!(process, loss, "a process runs without one of its protections");
        }
    }
    MISSING.lock().unwrap_or_else(PoisonError::into_inner).insert(process.to_owned(), missing);
    match first.filter(|_| are_required) {
        Some(loss) => Err(NoWalls { process: process.to_owned(), loss }),
        None => Ok(()),
    }
}

/// Hides the memory of a command with a secret from other programs of the same user, and keeps it out
/// of swap, where the system allows it.
pub fn hide_memory() {
    os::walls::hide();
}

/// The missing walls of each process.
pub fn missing() -> BTreeMap<String, Vec<MissingWall>> {
    MISSING.lock().unwrap_or_else(PoisonError::into_inner).clone()
}
