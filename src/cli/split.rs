//! `npubbot split new`: the asker's half of a key, made offline. It never leaves this machine; its point does.

use super::unlock::UnlockFlags;
use crate::bot::MOST_SPLIT_PREFIXES;
use crate::pattern::Pattern;
use crate::vault::Half;
use anyhow::{Context, bail};
use clap::{Args, Subcommand};
use std::io::Write;
use std::path::PathBuf;

#[derive(Args, Debug)]
pub(super) struct Split {
    #[command(subcommand)]
    command: SplitCommand,
}

#[derive(Subcommand, Debug)]
enum SplitCommand {
    /// Makes a new secret half, and shows the message to send to a bot.
    New(New),
}

#[derive(Args, Debug)]
struct New {
    /// Characters the npub is to have after `npub1`; of several, any one will do.
    #[arg(required = true, value_name = "PREFIX")]
    prefixes: Vec<String>,
    /// Where to keep the half, locked with age. Never overwritten.
    #[arg(long, value_name = "FILE", required_unless_present = "print")]
    out: Option<PathBuf>,
    /// Print the half once instead, for you to keep.
    #[arg(long, conflicts_with = "out")]
    print: bool,
    #[command(flatten)]
    unlock: UnlockFlags,
}

impl Split {
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

/// Reads prefixes as they are typed.
pub(super) fn prefixes(words: &[String]) -> anyhow::Result<Vec<Pattern>> {
    words.iter().map(|word| Pattern::parse(word).with_context(|| format!("`{word}` is no prefix"))).collect()
}
