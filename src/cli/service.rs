//! `npubbot service`: the bot as a service of Windows.

use super::exit::{code, explain, is_worth_a_restart};
use super::folders::Folders;
use super::identity::{IdentityFlags, identity_file, need_identity};
use super::log::LogLevel;
use super::output::{note, stdout};
use super::serve::Serve;
use crate::config::Config;
use crate::os::files;
use crate::os::service::{self, Installation, ServiceEnd};
use crate::vault::{IdentityFile, PassphraseSource, Vault};
use clap::{Args, Subcommand};
use nostr::ToBech32;
use std::ffi::OsString;
use std::io::Write;
use std::path::{Path, absolute};

/// Name of the file in the data folder that holds the passphrase or key of the identity.
const UNLOCK_FILE: &str = "unlock";
/// Name of the log in the data folder.
const LOG_FILE: &str = "service.log";

/// Flags of `npubbot service`.
#[derive(Args, Debug)]
#[command(after_help = "\
Examples, in a PowerShell that was started as administrator:
  npubbot init --config $env:ProgramData\\npubbot\\relays.toml --data $env:ProgramData\\npubbot\\data
  npubbot service install    hand this bot to the service manager
  Start-Service npubbot      start it now; Windows starts it with the machine
  npubbot service remove     stop it, and keep its files

For systemd, docs/operators/npubbot.service is a unit; this command is for Windows.")]
pub(super) struct ServiceCommand {
    #[command(subcommand)]
    action: Action,
}

#[derive(Subcommand, Debug)]
enum Action {
    /// Install the bot as a service, which has an account of its own.
    Install(Install),
    /// Stop the service and remove it. The bot's files stay.
    Remove(Remove),
    /// Serve, as the service manager asks.
    #[command(hide = true)]
    Run(Serve),
}

/// Flags of `npubbot service install`.
#[derive(Args, Debug)]
#[command(after_help = "\
Examples:
  npubbot service install                           ask for the passphrase once, and keep it
  npubbot service install --passphrase-file p.txt   read it from a file, and keep it

In a PowerShell that was started as administrator.")]
struct Install {
    #[command(flatten)]
    identity: IdentityFlags,
}

/// Flags of `npubbot service remove`.
#[derive(Args, Debug)]
#[command(after_help = "\
Examples:
  npubbot service remove                       stop the service and remove it
  npubbot service remove --data D:\\npubbot    the same for a bot with another data folder

In a PowerShell that was started as administrator.")]
struct Remove {
    #[command(flatten)]
    folders: super::folders::FolderFlags,
}

impl ServiceCommand {
    /// The log level without `--verbose` and `--quiet`.
    pub fn usual_log_level(&self) -> &'static str {
        if matches!(self.action, Action::Run(_)) { "info" } else { "warn" }
    }

    /// Runs the command.
    pub fn run(self, level: LogLevel) -> anyhow::Result<()> {
        match self.action {
            Action::Install(install) => install.run(),
            Action::Remove(remove) => remove.run(),
            Action::Run(serve) => run(serve, level),
        }
    }
}

/// Runs the bot until the service manager stops it.
fn run(serve: Serve, level: LogLevel) -> anyhow::Result<()> {
    let log = serve.data()?.join(LOG_FILE);
    let serve = move || match serve.run(level) {
        Ok(()) => ServiceEnd { code: 0, is_to_restart: false },
        Err(error) => {
            explain(&error);
            ServiceEnd { code: code(&error), is_to_restart: is_worth_a_restart(&error) }
        }
    };
    Ok(service::run(&log, serve)?)
}

impl Install {
    fn run(self) -> anyhow::Result<()> {
        let Folders { config, data } = self.identity.folders.of_service();
        let (config, data) = (absolute(config)?, absolute(data)?);
        service::check(&config)?;
        let identity = identity_file(&data);
        need_identity(&identity, &data)?;
        // Finds a wrong configuration now; the service could tell nobody.
        Config::load(&config)?;
        let unlock = self.identity.keep_means(&data.join(UNLOCK_FILE))?;
        let installed = install(&config, &data, unlock.clone());
        if installed.is_err() {
            let _ = std::fs::remove_file(path_of(&unlock));
        }
        writeln!(stdout(), "{}", installed?)?;
        note!("The service is installed. Its files are in {}, for it and the administrators alone.", data.display());
        note!("Start it, and look at it:\n  Start-Service npubbot\n  npubbot status{}", flags(&data));
        Ok(())
    }
}

/// Opens the bot's identity as the service will, and installs the service. Returns the npub.
fn install(config: &Path, data: &Path, unlock: PassphraseSource) -> anyhow::Result<String> {
    let flag =
        if matches!(unlock, PassphraseSource::AgeIdentityFile(_)) { "--age-identity" } else { "--passphrase-file" };
    let words: [OsString; 8] = [
        "service".into(),
        "run".into(),
        "--config".into(),
        config.into(),
        "--data".into(),
        data.into(),
        flag.into(),
        path_of(&unlock).into(),
    ];
    let vault = Vault::start(IdentityFile { file: identity_file(data), means: unlock, is_new: false }, None)?;
    let npub = vault.public_key().to_bech32()?;
    drop(vault);
    let (config, data) = (config.to_owned(), data.to_owned());
    service::install(&Installation { arguments: words.to_vec(), config, data })?;
    Ok(npub)
}

/// The file that opens the identity.
fn path_of(unlock: &PassphraseSource) -> &Path {
    match unlock {
        PassphraseSource::PassphraseFile(file) | PassphraseSource::AgeIdentityFile(file) => file,
        // A person's answer is never kept in a file.
        PassphraseSource::Person { .. } => Path::new(""),
    }
}

/// The flag that a command needs to find the service's bot; empty if it needs none.
fn flags(data: &Path) -> String {
    let (_, usual) = files::service_folders();
    if data == usual { String::new() } else { format!(" --data {}", files::quoted(data)) }
}

impl Remove {
    fn run(self) -> anyhow::Result<()> {
        let data = absolute(self.folders.of_service().data)?;
        service::remove(&data)?;
        // Without this file the identity needs its passphrase again.
        match std::fs::remove_file(data.join(UNLOCK_FILE)) {
            Err(error) if error.kind() != std::io::ErrorKind::NotFound => return Err(error.into()),
            _ => {}
        }
        note!("The service is removed. The bot's files are yours again: {}", data.display());
        Ok(())
    }
}
