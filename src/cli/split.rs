//! `npubbot split new`: makes the asker's half of a key, offline. Only its point is sent to the
//! bot.

use super::unlock::UnlockFlags;
use crate::bot::MOST_SPLIT_PREFIXES;
use crate::pattern::Pattern;
use crate::vault::Half;
use anyhow::{Context, bail};
use clap::{Args, Subcommand};
use std::io::Write;
use std::path::PathBuf;

/// Flags of `npubbot split`.
#[derive(Args, Debug)]
pub(super) struct Split {
    #[command(subcommand)]
    command: SplitCommand,
}

/// Commands under `npubbot split`.
#[derive(Subcommand, Debug)]
enum SplitCommand {
    /// Make a new secret half, and print the message for the bot.
    New(New),
}

/// Flags of `npubbot split new`.
#[derive(Args, Debug)]
#[command(after_help = "\
Examples:
  npubbot split new m0ctane --out half.age    keep the half in a file
  npubbot split new cat dxg --print           keep it yourself

Send the printed line to the bot. When the tweak arrives:
  npubbot combine ntweak1... --half half.age")]
struct New {
    /// Prefix of the npub, after `npub1`. With several, the first one found counts.
    #[arg(required = true, value_name = "PREFIX")]
    prefixes: Vec<String>,
    /// File for the half, encrypted with age. Never overwritten.
    #[arg(long, value_name = "FILE", required_unless_present = "print")]
    out: Option<PathBuf>,
    /// Print the half instead of storing it.
    #[arg(long, conflicts_with = "out")]
    print: bool,
    #[command(flatten)]
    unlock: UnlockFlags,
}

impl Split {
    /// Runs the command.
    pub fn run(self) -> anyhow::Result<()> {
        let SplitCommand::New(new) = self.command;
        new.run()
    }
}

impl New {
    fn run(self) -> anyhow::Result<()> {
        let prefixes = prefixes(&self.prefixes)?;
        if prefixes.len() > MOST_SPLIT_PREFIXES {
            bail!(
                "{} prefixes are more than any bot reads, so no half was made; name {MOST_SPLIT_PREFIXES} at most (a bot as \
                 it ships takes 10)",
                prefixes.len()
            );
        }
        let half = Half::draw()?;
        let mut out = std::io::stdout().lock();
        if let Some(path) = &self.out {
            let unlock = self.unlock.unlock("Choose a passphrase for your half: ", true)?;
            half.keep(path, &unlock, &prefixes)?;
            writeln!(std::io::stderr(), "Your secret half is in {}. Keep it until the tweak comes.", path.display())?;
        } else {
            writeln!(
                std::io::stderr(),
                "Your secret half, shown once. Keep it until the tweak comes, and show nobody:"
            )?;
            half.write_to(&mut out)?;
            writeln!(out)?;
        }
        let words: Vec<&str> = prefixes.iter().map(Pattern::as_str).collect();
        writeln!(std::io::stderr(), "Send this to the bot. It holds no secret:")?;
        writeln!(out, "split {} {}", half.point(), words.join(" "))?;
        out.flush()?;
        Ok(())
    }
}

/// Parses prefixes as people type them.
pub(super) fn prefixes(words: &[String]) -> anyhow::Result<Vec<Pattern>> {
    words.iter().map(|word| Pattern::parse(word).with_context(|| format!("`{word}` is not a prefix"))).collect()
}
