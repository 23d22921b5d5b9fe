//! `npubbot vault`: the process that holds the secrets of a bot, of a search without one, or of an
//! asker's half. `serve`, `mine`, `combine` and others start it.

use super::unlock::obtain;
use crate::bot;
use crate::vault;
use anyhow::Context;
use clap::Args;

/// `npubbot vault` has no flags: what it opens comes over the socket.
#[derive(Args, Debug)]
pub(super) struct Vault {}

impl Vault {
    /// Answers the bot at the other end of standard input, until it closes it.
    ///
    /// Errors: standard input is no socket, or something else than requests comes.
    pub fn run(self) -> anyhow::Result<()> {
        let unlock = |means: &vault::Means| obtain(means).map_err(|error| format!("{error:#}"));
        vault::answer(unlock, bot::asked).context("this command is a part of `npubbot serve`, which starts it")
    }
}
