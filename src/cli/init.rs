//! `npubbot init`: the identity, without serving.

use super::identity::IdentityFlags;
use clap::Args;
use nostr::ToBech32;

#[derive(Args, Debug)]
pub(super) struct Init {
    #[command(flatten)]
    identity: IdentityFlags,
}

impl Init {
    pub fn run(self) -> anyhow::Result<()> {
        let vault = self.identity.create()?;
        println!("{}", vault.public_key().to_bech32()?);
        Ok(())
    }
}
