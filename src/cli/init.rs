//! `npubbot init`: writes the configuration and makes the identity.

use super::identity::IdentityFlags;
use crate::config::Config;
use clap::Args;
use nostr::ToBech32;
use std::path::PathBuf;

/// Flags of `npubbot init`.
#[derive(Args, Debug)]
#[command(after_help = "\
Examples:
  npubbot init                                   ask for a passphrase
  npubbot init --passphrase-file secret.txt      for a service without a terminal
  npubbot init --data /var/lib/npubbot           another folder")]
pub(super) struct Init {
    /// Configuration file. Written with the defaults if it does not exist.
    #[arg(long, value_name = "FILE", default_value = "relays.toml")]
    config: PathBuf,
    #[command(flatten)]
    identity: IdentityFlags,
}

impl Init {
    /// Runs the command.
    pub fn run(self) -> anyhow::Result<()> {
        if Config::write_default(&self.config)? {
            eprintln!("The configuration is in {}. Choose your relays and limits there.", self.config.display());
        } else {
            eprintln!("The configuration {} was there already and is left as it is.", self.config.display());
        }
        let vault = self.identity.create()?;
        println!("{}", vault.public_key().to_bech32()?);
        Ok(())
    }
}
