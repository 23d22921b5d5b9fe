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

/// The exit codes, for help and manual pages.
pub(super) const EXIT_CODES: &str = "\
Exit codes:
  0    done, or stopped as asked
  1    failed; the same again may succeed
  2    something must be put right first: flags, configuration, passphrase, identity or ledger
  3    no bot runs, so there is nothing to show or change
  130  ended at once by a second Ctrl-C";

/// What repairs an error.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Repair {
    /// Time: the same again may succeed.
    Time,
    /// A person: the same again fails again. Service managers stop restarting. clap uses its code
    /// for wrong flags.
    Person,
    /// Starting a bot.
    Start,
}

impl Repair {
    fn code(self) -> u8 {
        match self {
            Repair::Time => 1,
            Repair::Person => 2,
            Repair::Start => 3,
        }
    }
}

/// A failure that the same command may not meet again.
#[derive(Debug, Error)]
#[error("{0}")]
pub(super) struct Passing(pub String);

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

/// The exit code of an error.
pub(super) fn code(error: &anyhow::Error) -> u8 {
    // A message of ours without a type asks a person for something else.
    let is_message = error.chain().count() == 1 && (error.is::<String>() || error.is::<&'static str>());
    let other = if is_message { Repair::Person } else { Repair::Time };
    error.chain().find_map(repair).unwrap_or(other).code()
}

/// What repairs one cause; `None` if it is not one of our errors. `errors_have_a_repair` in
/// `tests/it/architecture` looks for each error type in this file. No match here has a wildcard for
/// our errors, so a new one is judged before it compiles.
fn repair(cause: &(dyn std::error::Error + 'static)) -> Option<Repair> {
    macro_rules! is {
        ($($error:ty),*) => { $( cause.is::<$error>() )||* };
    }
    macro_rules! of {
        ($($judge:ident),*) => { None$( .or_else(|| cause.downcast_ref().map($judge)) )* };
    }
    if is!(ConfigError, NoWalls, PatternError, WordListError, HalfPointError, SplitTweakError) {
        return Some(Repair::Person);
    }
    if is!(Passing, NostrError) {
        return Some(Repair::Time);
    }
    #[cfg(feature = "fleet")]
    {
        if let Some(repair) = of!(fleet) {
            return Some(repair);
        }
    }
    of!(io, vault, ledger, control, search, measure)
}

/// An error of the system: names, rights and kinds of files stay wrong; room, network and load
/// change.
fn io(error: &io::Error) -> Repair {
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
        | ErrorKind::Unsupported => Repair::Person,
        _ => Repair::Time,
    }
}

fn vault(error: &VaultError) -> Repair {
    match error {
        VaultError::FileExists { .. }
        | VaultError::File { .. }
        | VaultError::WrongKey { .. }
        | VaultError::Locked { .. }
        | VaultError::NotAHalf
        | VaultError::OtherHalf
        | VaultError::NoKey
        | VaultError::OtherKey(_)
        | VaultError::Forbidden { .. } => Repair::Person,
        VaultError::Output(error) => io(error),
        VaultError::NoRandomness
        | VaultError::StartSpent
        | VaultError::ForeignHit
        | VaultError::ForeignTicket
        | VaultError::NotAsked
        | VaultError::HalfGone
        | VaultError::Unsealable
        | VaultError::Unsigned { .. }
        | VaultError::Process { .. }
        | VaultError::Gone
        | VaultError::Failed => Repair::Time,
    }
}

fn ledger(error: &LedgerError) -> Repair {
    match error {
        LedgerError::TooNew { .. } | LedgerError::OtherBot { .. } | LedgerError::Corrupt(_) => Repair::Person,
        // Room comes back; a folder of another kind, owner or file system does not.
        LedgerError::Folder { folder, .. } => match free_bytes(Path::new(folder)) {
            Some(free) if free < crate::service::FULL_DISK_BYTES => Repair::Time,
            _ => Repair::Person,
        },
        LedgerError::Database(_) if error.is_refused() => Repair::Person,
        LedgerError::UsedHalves(error) => io(error),
        // The other npubbot may be about to end.
        LedgerError::InUse { .. } | LedgerError::Database(_) | LedgerError::Misaddressed => Repair::Time,
    }
}

fn control(error: &ControlError) -> Repair {
    match error {
        ControlError::NothingRuns { .. } => Repair::Start,
        ControlError::NotYours { .. } | ControlError::OtherVersion { .. } | ControlError::Refused(_) => Repair::Person,
        ControlError::NoAnswer { .. } => Repair::Time,
    }
}

fn search(error: &SearchError) -> Repair {
    match error {
        SearchError::NoSuchDevice { .. } | SearchError::UnsupportedCpuKernel { .. } => Repair::Person,
        SearchError::DeviceFailed { .. } | SearchError::Distrusted { .. } | SearchError::Misused(_) => Repair::Time,
    }
}

fn measure(error: &MeasureError) -> Repair {
    match error {
        MeasureError::Search(error) => search(error),
        MeasureError::Vault(error) => vault(error),
        MeasureError::Patterns(_) => Repair::Person,
        MeasureError::Device(_) => Repair::Time,
    }
}

#[cfg(feature = "fleet")]
fn fleet(error: &FleetError) -> Repair {
    match error {
        FleetError::File { error, .. } => io(error),
        FleetError::Refused(_) => Repair::Person,
        FleetError::Failed(_) => Repair::Time,
    }
}
