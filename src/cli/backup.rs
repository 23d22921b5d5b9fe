//! `npubbot backup` and `npubbot restore`.

use super::folders::FolderFlags;
use super::identity::UnlockFlags;
use super::output::note;
use crate::backup::{RestorePlaces, Restored, make, unpack};
use crate::clock::Clock;
use crate::config::{Config, ConfigError};
use crate::duration::humanize;
use crate::vault::BackupKey;
use anyhow::{Context, ensure};
use clap::Args;
use std::io;
use std::path::{Path, PathBuf};
use std::time::{Duration, UNIX_EPOCH};

#[derive(Args, Debug)]
pub(super) struct Backup {
    /// The new file, never overwritten; or a folder, for a file with the date in its name.
    #[arg(value_name = "FILE")]
    file: PathBuf,
    /// Keep this many backups in the folder, and delete older ones.
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u16).range(1..))]
    keep: Option<u16>,
    /// Encrypt to this age recipient, whose key need not be on this machine.
    #[arg(long, value_name = "AGE1...", conflicts_with_all = ["passphrase_file", "age_identity"])]
    recipient: Option<String>,
    #[command(flatten)]
    folders: FolderFlags,
    #[command(flatten)]
    unlock: UnlockFlags,
}

impl Backup {
    pub fn run(self) -> anyhow::Result<()> {
        let folders = self.folders.find()?;
        let lock = match self.recipient {
            Some(recipient) => BackupKey::Recipient(recipient),
            None => BackupKey::Unlock(self.unlock.unlock("Choose a passphrase for the backup: ", true)?),
        };
        let (now, folder) = (Clock::System.now(), self.file.is_dir().then_some(&self.file));
        ensure!(
            self.keep.is_none() || folder.is_some(),
            "--keep counts the backups in a folder, and {} is none",
            self.file.display()
        );
        let file = folder.map_or_else(|| self.file.clone(), |folder| folder.join(dated_name(now)));
        make(&folders.data, &folders.config, &file, &lock, now)?;
        note!("The backup is {}. Keep it, and its passphrase or key, on another machine.", file.display());
        match (folder, self.keep) {
            (Some(folder), Some(keep)) => delete_older(folder, keep.into()),
            _ => Ok(()),
        }
    }
}

/// The beginning of the names of backups in a folder. The date follows.
const BACKUP_NAME: &str = "npubbot-";

/// The name of a backup made at this time (Unix seconds): `npubbot-20261126T031502Z.age`.
fn dated_name(now: u64) -> String {
    let date = humantime::format_rfc3339_seconds(UNIX_EPOCH + Duration::from_secs(now)).to_string();
    format!("{BACKUP_NAME}{}.age", date.replace(['-', ':'], ""))
}

/// Deletes all but the newest `keep` backups with dated names.
fn delete_older(folder: &Path, keep: usize) -> anyhow::Result<()> {
    let is_dated = |name: &str| name.starts_with(BACKUP_NAME) && name.len() == dated_name(0).len();
    let entries = std::fs::read_dir(folder)?.collect::<io::Result<Vec<_>>>()?;
    let mut names: Vec<String> = entries.iter().filter_map(|entry| entry.file_name().into_string().ok()).collect();
    names.retain(|name| is_dated(name) && name.ends_with("Z.age"));
    names.sort_unstable_by(|a, b| b.cmp(a));
    for name in names.iter().skip(keep) {
        std::fs::remove_file(folder.join(name)).with_context(|| format!("{name} cannot be deleted"))?;
    }
    Ok(())
}

#[derive(Args, Debug)]
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
    pub fn run(self) -> anyhow::Result<()> {
        let folders = self.folders.find_for_new(true)?;
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
