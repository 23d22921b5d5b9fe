//! `npubbot init`: configuration and identity, without serving.

use super::identity::IdentityFlags;
use crate::config::Config;
use clap::Args;
use nostr::ToBech32;
use std::path::PathBuf;

#[derive(Args, Debug)]
pub(super) struct Init {
    /// The configuration; one with the defaults is written where there is none.
    #[arg(long, value_name = "FILE", default_value = "relays.toml")]
    config: PathBuf,
    #[command(flatten)]
    identity: IdentityFlags,
}

impl Init {
    pub fn run(self) -> anyhow::Result<()> {
        if Config::write_default(&self.config)? {
            eprintln!("The configuration is in {}; choose your relays and limits there.", self.config.display());
        }
        let vault = self.identity.create()?;
        println!("{}", vault.public_key().to_bech32()?);
        Ok(())
    }
}
