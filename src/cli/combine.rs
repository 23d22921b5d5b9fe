//! `npubbot combine`: makes the key from half and tweak, offline.

use super::half_mark::{Earlier, mark};
use super::output::{note, stdout};
use super::patterns::{Wanted, wanted};
use super::unlock::{UnlockFlags, ask, first_line};
use crate::key::SplitTweak;
use crate::vault::HalfVault;
use anyhow::{Context, bail};
use clap::Args;
use std::io::{Cursor, IsTerminal, Write};
use std::path::PathBuf;

/// Flags of `npubbot combine`.
#[derive(Args, Debug)]
#[command(after_help = "\
Examples:
  npubbot combine ntweak1... --half half.age               print npub and nsec
  npubbot combine ntweak1... --half half.age --ncryptsec   lock the key with a password
  npubbot combine ntweak1... --prefix m0ctane              type the half yourself

This works offline. The nsec is printed once and stored nowhere.")]
pub(super) struct Combine {
    /// The tweak that the bot sent, `ntweak1…`. It is not secret.
    #[arg(value_name = "TWEAK")]
    tweak: String,
    /// File of your half, made by `split new`. Without it, the half is prompted for or read from
    /// standard input.
    #[arg(long, value_name = "FILE")]
    half: Option<PathBuf>,
    /// Prefix or other pattern you asked for, to check the tweak against. The half's file already
    /// holds it.
    #[arg(long = "prefix", visible_alias = "pattern", value_name = "PATTERN", required_unless_present = "half")]
    patterns: Vec<String>,
    /// Print the key encrypted with a password (NIP-49) instead of the nsec.
    #[arg(long)]
    ncryptsec: bool,
    /// File whose first line is that password.
    #[arg(long, value_name = "FILE", requires = "ncryptsec")]
    password_file: Option<PathBuf>,
    #[command(flatten)]
    unlock: UnlockFlags,
}

impl Combine {
    /// Runs the command.
    pub fn run(self) -> anyhow::Result<()> {
        let tweak: SplitTweak = self.tweak.parse()?;
        let mut requested = match wanted(&self.patterns)? {
            Wanted::Patterns(patterns) => patterns,
            Wanted::Best(best) => best.family.floor(),
        };
        let half = self.half()?;
        if requested.is_empty() {
            requested = half.patterns().to_vec();
        }
        if requested.is_empty() {
            bail!("the pattern you asked for is not known; give it with --prefix");
        }
        let npub = half.combine(&tweak, &requested)?;
        self.mark(&tweak);
        let mut out = stdout();
        if self.ncryptsec {
            let password = match &self.password_file {
                Some(file) => first_line(file)?,
                None => ask("Choose a password for the key: ", true, "--password-file FILE")?,
            };
            if password.is_empty() {
                bail!("an empty password protects nothing; give one");
            }
            let locked = half.ncryptsec(&tweak, &requested, &password)?;
            writeln!(out, "{npub}\n{locked}")?;
        } else {
            writeln!(out, "{npub}")?;
            half.write_nsec(&tweak, &requested, &mut out)?;
            writeln!(out)?;
        }
        out.flush()?;
        Ok(())
    }

    /// Marks the half's file as used, before the key is shown, and warns of an earlier use.
    fn mark(&self, tweak: &SplitTweak) {
        let Some(file) = &self.half else { return };
        match mark(file, tweak) {
            Ok(Earlier::Fresh) => {}
            Ok(Earlier::SameTweak) => note!("You combined this half with this tweak before: it is the same key."),
            Ok(Earlier::OtherTweak) => note!(
                "WARNING: this half was used before, with another tweak. Whoever has one of the two keys can compute the \
                 other.\nUse one of them only, and make a new half for each key: npubbot split new"
            ),
            Err(error) => {
                note!("WARNING: {} could not be marked as used ({error}). Never use this half again.", file.display())
            }
        }
    }

    /// Starts the vault process with the half.
    fn half(&self) -> anyhow::Result<HalfVault> {
        if let Some(file) = &self.half {
            let means = self.unlock.means("Passphrase of your half: ", false)?;
            return Ok(HalfVault::open(file.clone(), means)?);
        }
        let half = if std::io::stdin().is_terminal() {
            let typed = ask("Your half (nhalf1…, not shown): ", false, "--half FILE")?;
            HalfVault::read(Cursor::new(typed.as_bytes()))
        } else {
            HalfVault::read(std::io::stdin().lock())
        };
        half.context("the half could not be read")
    }
}
