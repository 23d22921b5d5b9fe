//! `npubbot vault`: the process that holds the secrets of a bot, of a search without one, or of an
//! asker's half. `serve`, `mine`, `combine` and others start it.

use super::unlock::obtain;
use crate::bot;
use crate::vault;
use anyhow::Context;
use clap::Args;

/// `npubbot vault`. It has no flags: the socket brings everything it opens.
#[derive(Args, Debug)]
pub(super) struct Vault {}

impl Vault {
    /// Answers the bot at the other end of standard input, until the bot closes it.
    ///
    /// Errors: standard input is not a socket, or brings something other than requests.
    pub fn run(self) -> anyhow::Result<()> {
        let unlock = |means: &vault::PassphraseSource| obtain(means, true).map_err(|error| format!("{error:#}"));
        vault::answer(unlock, bot::asked).context("this command is a part of `npubbot serve`, which starts it")
    }
}
