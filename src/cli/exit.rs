//! Error messages and exit codes. What repairs an error decides its exit code.

use super::output::{is_reader_gone, note};
use crate::config::ConfigError;
use crate::control::ControlError;
#[cfg(feature = "fleet")]
use crate::fleet::FleetError;
use crate::key::{HalfPointError, SplitTweakError};
use crate::ledger::LedgerError;
use crate::log_writer;
use crate::nostr::NostrError;
use crate::os::files::free_bytes;
use crate::os::walls::NoWalls;
use crate::pattern::{PatternError, WordListError};
use crate::scheduler::MeasureError;
use crate::search::SearchError;
use crate::vault::VaultError;
use std::io::{self, ErrorKind};
use std::path::Path;
use std::process::ExitCode;
use std::time::Duration;
use thiserror::Error;

/// The exit code of what time repairs: the same again may succeed.
const TIME: u8 = 1;
/// The exit code of what a person repairs: the same again fails again. Service managers stop
/// restarting. clap uses it for wrong flags.
const PERSON: u8 = 2;
/// The exit code of what starting a bot repairs.
const NO_BOT: u8 = 3;

/// A failure that the same command may not meet again.
#[derive(Debug, Error)]
#[error("{0}")]
pub(super) struct Passing(pub String);

/// Longest wait at the end for the last lines of the log.
pub(super) const LOG_FLUSH_TIMEOUT: Duration = Duration::from_millis(200);

/// Ends a command: explains an error with all its causes on standard error, and returns the exit
/// code. A command whose reader is gone has done its work.
pub fn end(outcome: anyhow::Result<()>) -> ExitCode {
    let code = outcome.err().filter(|error| !is_reader_gone(error)).map_or(0, |error| {
        note!("npubbot: {error:#}");
        // A message of ours without a type asks a person for something else.
        let is_message = error.chain().count() == 1 && (error.is::<String>() || error.is::<&'static str>());
        error.chain().find_map(repair).unwrap_or(if is_message { PERSON } else { TIME })
    });
    log_writer::flush(LOG_FLUSH_TIMEOUT);
    ExitCode::from(code)
}

/// The exit code of one cause; `None` if it is not one of our errors. `errors_have_a_repair` in
/// `tests/it/architecture` looks for each error type in this file. No match here has a wildcard for
/// our errors, so a new one is judged before it compiles.
fn repair(cause: &(dyn std::error::Error + 'static)) -> Option<u8> {
    macro_rules! is {
        ($($error:ty),*) => { $( cause.is::<$error>() )||* };
    }
    macro_rules! of {
        ($($judge:ident),*) => { None$( .or_else(|| cause.downcast_ref().map($judge)) )* };
    }
    if is!(ConfigError, NoWalls, PatternError, WordListError, HalfPointError, SplitTweakError) {
        return Some(PERSON);
    }
    if is!(Passing, NostrError) {
        return Some(TIME);
    }
    #[cfg(feature = "fleet")]
    if let Some(code) = of!(fleet) {
        return Some(code);
    }
    of!(io, vault, ledger, control, search, measure)
}

/// An error of the system: names, rights and kinds of files stay wrong; room, network and load
/// change.
fn io(error: &io::Error) -> u8 {
    match error.kind() {
        ErrorKind::NotFound
        | ErrorKind::PermissionDenied
        | ErrorKind::AlreadyExists
        | ErrorKind::AddrInUse
        | ErrorKind::InvalidInput
        | ErrorKind::InvalidData
        | ErrorKind::InvalidFilename
        | ErrorKind::IsADirectory
        | ErrorKind::NotADirectory
        | ErrorKind::ReadOnlyFilesystem
        | ErrorKind::Unsupported => PERSON,
        _ => TIME,
    }
}

fn vault(error: &VaultError) -> u8 {
    match error {
        VaultError::FileExists { .. }
        | VaultError::File { .. }
        | VaultError::WrongKey { .. }
        | VaultError::Locked { .. }
        | VaultError::NotAHalf
        | VaultError::OtherHalf
        | VaultError::NoKey
        | VaultError::OtherKey(_)
        | VaultError::Forbidden { .. } => PERSON,
        VaultError::NoRandomness
        | VaultError::StartSpent
        | VaultError::ForeignHit
        | VaultError::ForeignTicket
        | VaultError::NotAsked
        | VaultError::Unsealable
        | VaultError::Unsigned { .. }
        | VaultError::Process { .. }
        | VaultError::Gone
        | VaultError::Failed => TIME,
    }
}

fn ledger(error: &LedgerError) -> u8 {
    match error {
        LedgerError::TooNew { .. } | LedgerError::OtherBot { .. } | LedgerError::Corrupt(_) => PERSON,
        // Room comes back; a folder of another kind, owner or file system does not.
        LedgerError::Folder { folder, .. } => match free_bytes(Path::new(folder)) {
            Some(free) if free < crate::service::FULL_DISK_BYTES => TIME,
            _ => PERSON,
        },
        LedgerError::Database(_) if error.is_refused() => PERSON,
        LedgerError::UsedHalves(error) => io(error),
        // The other npubbot may be about to end.
        LedgerError::InUse { .. } | LedgerError::Database(_) | LedgerError::Misaddressed => TIME,
    }
}

fn control(error: &ControlError) -> u8 {
    match error {
        ControlError::NothingRuns(_) => NO_BOT,
        ControlError::NotYours(_) | ControlError::OtherVersion(_) | ControlError::Refused(_) => PERSON,
        ControlError::NoAnswer(_) => TIME,
    }
}

fn search(error: &SearchError) -> u8 {
    match error {
        SearchError::NoSuchDevice { .. } | SearchError::UnsupportedCpuKernel { .. } => PERSON,
        SearchError::DeviceFailed { .. } | SearchError::Distrusted { .. } | SearchError::Misused(_) => TIME,
    }
}

fn measure(error: &MeasureError) -> u8 {
    match error {
        MeasureError::Search(error) => search(error),
        MeasureError::Vault(error) => vault(error),
        MeasureError::Patterns(_) => PERSON,
        MeasureError::Device(_) => TIME,
    }
}

#[cfg(feature = "fleet")]
fn fleet(error: &FleetError) -> u8 {
    match error {
        FleetError::File { error, .. } => io(error),
        FleetError::Refused(_) => PERSON,
        FleetError::Failed(_) => TIME,
    }
}
