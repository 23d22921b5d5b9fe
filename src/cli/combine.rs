//! `npubbot combine`: half and tweak make the key, offline.

use super::split::prefixes;
use super::unlock::{UnlockFlags, ask, first_line};
use crate::key::SplitTweak;
use crate::pattern::Pattern;
use crate::vault::Half;
use anyhow::{Context, bail};
use clap::Args;
use std::io::{Cursor, IsTerminal, Write};
use std::path::PathBuf;

#[derive(Args, Debug)]
pub(super) struct Combine {
    /// The tweak the bot sent, `ntweak1…`. It is no secret.
    #[arg(value_name = "TWEAK")]
    tweak: String,
    /// The file of your half, as `split new` made it. Without it, the half is asked for, or read from standard input.
    #[arg(long, value_name = "FILE")]
    half: Option<PathBuf>,
    /// What you asked for, so that another key is not taken for it. A half's file knows it.
    #[arg(long = "prefix", value_name = "PREFIX", required_unless_present = "half")]
    prefixes: Vec<String>,
    /// Print the key locked with a password (NIP-49), in place of the nsec.
    #[arg(long)]
    ncryptsec: bool,
    /// A file whose first line is that password.
    #[arg(long, value_name = "FILE", requires = "ncryptsec")]
    password_file: Option<PathBuf>,
    #[command(flatten)]
    unlock: UnlockFlags,
}

impl Combine {
    pub fn run(self) -> anyhow::Result<()> {
        let tweak: SplitTweak = self.tweak.parse()?;
        let mut requested = prefixes(&self.prefixes)?;
        let (half, named) = self.half()?;
        if requested.is_empty() {
            requested = named;
        }
        if requested.is_empty() {
            bail!("what was asked for is not known; say it with --prefix");
        }
        let key = half.combine(&tweak, &requested)?;
        let mut out = std::io::stdout().lock();
        if self.ncryptsec {
            let password = match &self.password_file {
                Some(file) => first_line(file)?,
                None => ask("Choose a password for the key: ", true)?,
            };
            if password.is_empty() {
                bail!("an empty password protects nothing; give one");
            }
            let locked = key.ncryptsec(&password)?;
            writeln!(out, "{}\n{locked}", key.npub())?;
        } else {
            writeln!(out, "{}", key.npub())?;
            key.write_nsec(&mut out)?;
            writeln!(out)?;
        }
        out.flush()?;
        Ok(())
    }

    fn half(&self) -> anyhow::Result<(Half, Vec<Pattern>)> {
        if let Some(file) = &self.half {
            let unlock = self.unlock.unlock("Passphrase of your half: ", false)?;
            return Ok(Half::open(file, &unlock)?);
        }
        let half = if std::io::stdin().is_terminal() {
            let typed = ask("Your half (nhalf1…, not shown): ", false)?;
            Half::read(Cursor::new(typed.as_bytes()))
        } else {
            Half::read(std::io::stdin().lock())
        };
        Ok((half.context("the half could not be read")?, Vec::new()))
    }
}
