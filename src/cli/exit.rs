//! Error messages and exit codes.

use super::folders::FolderError;
use super::identity::NoIdentity;
use super::output::{is_reader_gone, note};
use super::unlock::NoPassphrase;
use crate::backup::BackupError;
use crate::config::ConfigError;
use crate::control::ControlError;
use crate::fleet::FleetError;
use crate::ledger::LedgerError;
use crate::log_writer;
use crate::remote::{CredentialsError, WorkerError};
use crate::search::SearchError;
use crate::service::ServiceError;
use crate::vault::VaultError;
use std::process::ExitCode;
use std::time::Duration;

/// The exit codes, for help and manual pages.
pub(super) const EXIT_CODES: &str = "\
Exit codes:
  0    done, or stopped as asked
  1    failed; the same again may succeed
  2    something must be put right first: flags, configuration, passphrase, identity or ledger
  3    no bot runs, so there is nothing to show or change
  130  ended at once by a second Ctrl-C";

/// Exit code for errors that a restart cannot fix. Service managers stop restarting on it. clap
/// uses it for wrong flags.
const NEEDS_OPERATOR: u8 = 2;
/// Exit code of other errors.
const FAILED: u8 = 1;
/// Exit code if no bot runs that could be asked.
const NOTHING_RUNS: u8 = 3;

/// Longest wait at the end for the last lines of the log.
pub(super) const LOG_FLUSH_TIMEOUT: Duration = Duration::from_millis(200);

/// Ends a command: explains an error with all its causes on standard error, and returns the exit
/// code: 3 if no bot runs that could be asked, 2 if the operator has to change something before a
/// restart can succeed, else 1. A command whose reader is gone has done its work.
pub fn end(outcome: anyhow::Result<()>) -> ExitCode {
    let code = outcome.err().filter(|error| !is_reader_gone(error)).map_or(0, |error| {
        explain(&error);
        code(&error)
    });
    log_writer::flush(LOG_FLUSH_TIMEOUT);
    ExitCode::from(code)
}

/// Writes an error with all its causes to standard error.
pub(super) fn explain(error: &anyhow::Error) {
    note!("npubbot: {error:#}");
}

/// Whether a service that ended with this error should be started again.
pub(super) fn is_worth_a_restart(error: &anyhow::Error) -> bool {
    code(error) != NEEDS_OPERATOR
}

/// The exit code of an error.
pub(super) fn code(error: &anyhow::Error) -> u8 {
    if matches!(error.downcast_ref(), Some(ControlError::NothingRuns { .. })) {
        return NOTHING_RUNS;
    }
    let backup = error.downcast_ref::<BackupError>();
    let vault = match backup {
        Some(BackupError::Vault(vault)) => Some(vault),
        _ => error.downcast_ref(),
    };
    let is_wrong_key = matches!(vault, Some(VaultError::WrongKey { .. } | VaultError::Locked { .. }));
    let wrong_backup = matches!(backup, Some(BackupError::TooNew { .. } | BackupError::Occupied { .. }));
    let no_credentials = error.is::<CredentialsError>()
        || matches!(error.downcast_ref(), Some(ServiceError::Fleet(_)))
        || matches!(error.downcast_ref(), Some(WorkerError::Refused { .. } | WorkerError::NoWorker { .. }))
        || error.is::<FleetError>();
    let kernel = matches!(error.downcast_ref(), Some(ServiceError::Search(SearchError::UnsupportedCpuKernel { .. })));
    let ledger = match (error.downcast_ref(), backup) {
        (Some(ServiceError::Ledger(ledger)), _) | (_, Some(BackupError::Ledger(ledger))) => Some(ledger),
        _ => error.downcast_ref(),
    };
    let wrong_ledger =
        matches!(ledger, Some(LedgerError::TooNew { .. } | LedgerError::OtherBot { .. } | LedgerError::Corrupt(_)));
    let needs_operator = error.is::<ConfigError>()
        || error.is::<FolderError>()
        || error.is::<NoIdentity>()
        || error.is::<NoPassphrase>()
        || is_wrong_key
        || wrong_backup
        || kernel
        || no_credentials
        || wrong_ledger;
    if needs_operator { NEEDS_OPERATOR } else { FAILED }
}
