//! `npubbot backup` and `npubbot restore`.

use super::folders::FolderFlags;
use super::identity::UnlockFlags;
use super::output::note;
use crate::backup::{RestorePlaces, Restored, make, unpack};
use crate::clock::Clock;
use crate::config::{Config, ConfigError};
use crate::duration::humanize;
use crate::vault::BackupKey;
use clap::Args;
use std::path::PathBuf;
use std::time::Duration;

/// Flags of `npubbot backup`.
#[derive(Args, Debug)]
#[command(after_help = "\
Examples:
  npubbot backup bot.age                                     ask for a passphrase
  npubbot backup bot.age --passphrase-file secret.txt        for a timer
  npubbot backup bot.age --recipient age1...                 only that key opens it

The bot may be running. The file has the identity (still locked with its own passphrase), the ledger,
the used halves and the configuration. `npubbot restore bot.age` makes the bot on another machine.")]
pub(super) struct Backup {
    /// The new file. Never overwritten.
    #[arg(value_name = "FILE")]
    file: PathBuf,
    /// Encrypt to this age recipient, whose key need not be on this machine.
    #[arg(long, value_name = "AGE1...", conflicts_with_all = ["passphrase_file", "age_identity"])]
    recipient: Option<String>,
    #[command(flatten)]
    folders: FolderFlags,
    #[command(flatten)]
    unlock: UnlockFlags,
}

impl Backup {
    /// Runs the command.
    pub fn run(self) -> anyhow::Result<()> {
        let folders = self.folders.find()?;
        let lock = match self.recipient {
            Some(recipient) => BackupKey::Recipient(recipient),
            None => BackupKey::Unlock(self.unlock.unlock("Choose a passphrase for the backup: ", true)?),
        };
        make(&folders.data, &folders.config, &self.file, &lock, Clock::System.now())?;
        note!("The backup is {}. Keep it, and its passphrase or key, on another machine.", self.file.display());
        Ok(())
    }
}

/// Flags of `npubbot restore`.
#[derive(Args, Debug)]
#[command(after_help = "\
Examples:
  npubbot restore bot.age                                    ask for the backup's passphrase
  npubbot restore bot.age --used-halves old/used-halves      with the newest file of the old machine

Nothing is overwritten: the data folder must be without a bot. If there is another configuration, the
backup's is written beside it as relays.toml.restored; the bot starts once you took it or deleted it.
Root restores the bot of this machine's service. Never run the same bot on two machines.")]
pub(super) struct Restore {
    /// The backup.
    #[arg(value_name = "FILE")]
    file: PathBuf,
    /// The file `used-halves` of the old machine, if it still exists: it knows the halves that
    /// served after the backup was made.
    #[arg(long, value_name = "FILE")]
    used_halves: Option<PathBuf>,
    #[command(flatten)]
    folders: FolderFlags,
    #[command(flatten)]
    unlock: UnlockFlags,
}

impl Restore {
    /// Runs the command.
    pub fn run(self) -> anyhow::Result<()> {
        let folders = self.folders.find_for_restore()?;
        let unlock = self.unlock.unlock("Passphrase of the backup: ", false)?;
        let beside = Config::restored(&folders.config);
        let places = RestorePlaces { data: &folders.data, config: &folders.config, restored_config: &beside };
        let Restored { manifest, is_config_beside } =
            unpack(&self.file, &unlock, &places, self.used_halves.as_deref())?;
        let age = Duration::from_secs(Clock::System.now().saturating_sub(manifest.made_at));
        note!("The bot of {} ago is in {}.", humanize(age), folders.data.display());
        note!("Open split jobs are given up at its first start, and requests from before are refused.");
        if self.used_halves.is_none() {
            note!(
                "Halves that served after the backup was made are not known here. If the old machine's file used-halves \
                 exists, start over with --used-halves."
            );
        }
        note!("Never run it on two machines. Next:\n{}", folders.next_commands(&self.folders));
        if is_config_beside {
            // The exit code says so too: a script must not go on with other relays or no proxy.
            return Err(ConfigError::unsettled(&folders.config).into());
        }
        Ok(())
    }
}
