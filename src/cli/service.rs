//! `npubbot service`: the bot as a service of Windows.

use super::exit::{code, explain, is_worth_a_restart};
use super::folders::{FolderFlags, Folders};
use super::identity::{IDENTITY_PROMPT, IdentityFlags, identity_file};
use super::log::RunningLog;
use super::output::{note, stdout};
use super::serve::Serve;
use crate::config::Config;
use crate::os::files;
use crate::os::service::{self, Installation, ServiceEnd};
use crate::service::need_identity;
use crate::vault::{IdentityFile, PassphraseSource, Vault};
use anyhow::bail;
use clap::Subcommand;
use nostr::ToBech32;
use std::ffi::OsString;
use std::io::Write;
use std::path::absolute;

/// Name of the file in the data folder that holds the passphrase or key of the identity.
const UNLOCK_FILE: &str = "unlock";
/// Name of the log in the data folder.
const LOG_FILE: &str = "service.log";

/// Examples of `npubbot service`.
pub(super) const EXAMPLES: &str = "\
Examples, in a PowerShell that was started as administrator:
  npubbot init --config $env:ProgramData\\npubbot\\relays.toml --data $env:ProgramData\\npubbot\\data
  npubbot service install    hand this bot to the service manager
  Start-Service npubbot      start it now; Windows starts it with the machine
  npubbot service remove     stop it, and keep its files

For systemd, docs/operators/npubbot.service is a unit; this command is for Windows.";

/// Commands under `npubbot service`.
#[derive(Subcommand, Debug)]
pub(super) enum ServiceCommand {
    /// Install the bot as a service, which has an account of its own.
    #[command(after_help = "\
Examples:
  npubbot service install                           ask for the passphrase once, and keep it
  npubbot service install --passphrase-file p.txt   read it from a file, and keep it

In a PowerShell that was started as administrator.")]
    Install {
        #[command(flatten)]
        identity: IdentityFlags,
    },
    /// Stop the service and remove it. The bot's files stay.
    #[command(after_help = "\
Examples:
  npubbot service remove                       stop the service and remove it
  npubbot service remove --data D:\\npubbot    the same for a bot with another data folder

In a PowerShell that was started as administrator.")]
    Remove {
        #[command(flatten)]
        folders: FolderFlags,
    },
    /// Serve, as the service manager asks.
    #[command(hide = true)]
    Run(Serve),
}

impl ServiceCommand {
    /// The log level without `--verbose` and `--quiet`.
    pub fn usual_log_level(&self) -> &'static str {
        if matches!(self, ServiceCommand::Run(_)) { "info" } else { "warn" }
    }

    pub fn run(self, log: RunningLog) -> anyhow::Result<()> {
        match self {
            ServiceCommand::Install { identity } => install(&identity),
            ServiceCommand::Remove { folders } => remove(&folders),
            ServiceCommand::Run(serve) => run(serve, log),
        }
    }
}

/// Runs the bot until the service manager stops it.
fn run(serve: Serve, log: RunningLog) -> anyhow::Result<()> {
    let file = serve.data()?.join(LOG_FILE);
    let serve = move || match serve.run(log) {
        Ok(()) => ServiceEnd { code: 0, is_to_restart: false },
        Err(error) => {
            explain(&error);
            ServiceEnd { code: code(&error), is_to_restart: is_worth_a_restart(&error) }
        }
    };
    Ok(service::run(&file, serve)?)
}

/// Keeps what opens the identity in a file, opens it as the service will, and installs the service.
fn install(flags: &IdentityFlags) -> anyhow::Result<()> {
    let Folders { config, data } = flags.folders.of_service();
    let (config, data) = (absolute(config)?, absolute(data)?);
    service::check(&config)?;
    let identity = identity_file(&data);
    need_identity(&identity, &data)?;
    // Finds a wrong configuration now; the service could tell nobody.
    Config::load(&config)?;
    let unlock = flags.unlock.keep(&data.join(UNLOCK_FILE), IDENTITY_PROMPT)?;
    let (flag, file) = match &unlock {
        PassphraseSource::AgeIdentityFile(file) => ("--age-identity", file.clone()),
        PassphraseSource::PassphraseFile(file) => ("--passphrase-file", file.clone()),
        PassphraseSource::Person { .. } => bail!("a person cannot open the identity of a service"),
    };
    let words = ["service", "run", "--config"].map(OsString::from).into_iter();
    let arguments = words.chain([config.clone().into(), "--data".into(), data.clone().into(), flag.into()]);
    let arguments = arguments.chain([file.clone().into_os_string()]).collect();
    let open_and_install = || -> anyhow::Result<String> {
        let vault = Vault::start(IdentityFile { file: identity, means: unlock, is_new: false }, None)?;
        let npub = vault.public_key().to_bech32()?;
        drop(vault);
        service::install(&Installation { arguments, config, data: data.clone() })?;
        Ok(npub)
    };
    let npub = open_and_install().inspect_err(|_| drop(std::fs::remove_file(file)))?;
    writeln!(stdout(), "{npub}")?;
    note!("The service is installed. Its files are in {}, for it and the administrators alone.", data.display());
    let flags =
        if data == files::service_folders().1 { String::new() } else { format!(" --data {}", files::quoted(&data)) };
    note!("Start it, and look at it:\n  Start-Service npubbot\n  npubbot status{flags}");
    Ok(())
}

fn remove(folders: &FolderFlags) -> anyhow::Result<()> {
    let data = absolute(folders.of_service().data)?;
    service::remove(&data)?;
    // Without this file the identity needs its passphrase again.
    match std::fs::remove_file(data.join(UNLOCK_FILE)) {
        Err(error) if error.kind() != std::io::ErrorKind::NotFound => return Err(error.into()),
        _ => {}
    }
    note!("The service is removed. The bot's files are yours again: {}", data.display());
    Ok(())
}
