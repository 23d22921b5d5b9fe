//! One small file a command: flags in, calls out.

mod bench;
mod combine;
#[cfg(feature = "demo")]
mod demo;
mod doctor;
mod identity;
mod init;
mod log;
mod mine;
mod search_flags;
mod serve;
mod signals;
mod split;
mod unlock;

use crate::config::ConfigError;
use crate::ledger::LedgerError;
use crate::search::SearchError;
use crate::service::ServiceError;
use crate::vault::VaultError;
use clap::{Parser, Subcommand};
use std::io::Write;
use std::process::ExitCode;

/// Finds vanity npubs for whoever asks by encrypted Nostr message.
#[derive(Parser, Debug)]
#[command(name = "npubbot", version, about, propagate_version = true)]
pub struct Cli {
    #[command(subcommand)]
    command: Command,
}

#[derive(Subcommand, Debug)]
enum Command {
    #[cfg(feature = "demo")]
    /// Shows the whole thing on this machine: a relay, the bot, and an asker who gets a key.
    Demo(demo::Demo),
    /// Runs the bot until Ctrl-C. The first run makes its identity.
    Serve(serve::Serve),
    /// Makes configuration and identity of a bot, without serving.
    Init(init::Init),
    /// Searches a key here and now, and prints it.
    Mine(mine::Mine),
    /// Makes your secret half of a key, for a bot you need not trust.
    Split(split::Split),
    /// Makes the key of your half and the tweak a bot sent.
    Combine(combine::Combine),
    /// Looks at everything the bot needs, and says what to do about what is missing.
    Doctor(doctor::Doctor),
    /// Measures how fast this machine searches, proven by what it finds.
    Bench(bench::Bench),
}

impl Cli {
    /// Runs the command. Errors say what is wrong and what would work.
    pub fn run(self) -> anyhow::Result<()> {
        no_core_dumps();
        match self.command {
            #[cfg(feature = "demo")]
            Command::Demo(demo) => demo.run(),
            Command::Serve(serve) => serve.run(),
            Command::Init(init) => init.run(),
            Command::Mine(mine) => mine.run(),
            Command::Split(split) => split.run(),
            Command::Combine(combine) => combine.run(),
            Command::Doctor(doctor) => doctor.run(),
            Command::Bench(bench) => bench.run(),
        }
    }
}

/// Prints an error with all its causes to standard error.
pub fn explain(error: &anyhow::Error) {
    // Where even that fails there is nobody left to tell.
    let _ = writeln!(std::io::stderr(), "npubbot: {error:#}");
}

/// What a service manager may go by: 2 if starting again is of no use before somebody has put something right (so it is for
/// flags nobody knows), else 1.
pub fn exit_code(error: &anyhow::Error) -> ExitCode {
    let is_wrong_key = matches!(error.downcast_ref(), Some(VaultError::WrongKey { .. }));
    let cannot_start = matches!(
        error.downcast_ref(),
        Some(
            ServiceError::Search(SearchError::UnsupportedCpuKernel { .. })
                | ServiceError::Ledger(LedgerError::TooNew { .. })
        )
    );
    if error.is::<ConfigError>() || is_wrong_key || cannot_start { ExitCode::from(2) } else { ExitCode::FAILURE }
}

/// A dead process must not leave its secrets in a file.
fn no_core_dumps() {
    use rustix::process::{Resource, Rlimit, setrlimit};
    let none = Rlimit { current: Some(0), maximum: Some(0) };
    if let Err(error) = setrlimit(Resource::Core, none) {
        tracing::warn!(%error, "core dumps could not be switched off");
    }
}

/// The runtime every command with sockets runs on.
fn runtime() -> anyhow::Result<tokio::runtime::Runtime> {
    Ok(tokio::runtime::Builder::new_multi_thread().enable_all().build()?)
}
