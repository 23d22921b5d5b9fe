//! `npubbot split new`: makes the asker's half of a key, offline. Only its point is sent to the
//! bot.

use super::output::{note, stdout};
use super::patterns::{Wanted, refusal_of_bots, wanted};
use super::unlock::UnlockFlags;
use crate::bot::MOST_SPLIT_PREFIXES;
use crate::key::{HalfPoint, SplitWork, WorkTarget};
use crate::pattern::Difficulty;
use crate::progress::SearchBar;
use crate::vault::HalfVault;
use anyhow::{Context, bail};
use clap::{Args, Subcommand};
use nostr::PublicKey;
use std::io::Write;
use std::path::PathBuf;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

/// The most bits of work that are accepted: days on one core.
const MOST_BITS: u32 = 44;
/// Time between two updates of the bar.
const SHOW_EVERY: Duration = Duration::from_millis(50);

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
  npubbot split new cat '~alice' --print      keep it yourself; the first one found counts
  npubbot split new best 10m --out half.age   the rarest key of ten minutes
  npubbot split new m0ctane --out half.age --work 18 --bot npub1...
                                              do the work that a bot with many split jobs asks for

Send the printed line to the bot. When the tweak arrives:
  npubbot combine ntweak1... --half half.age")]
struct New {
    /// Pattern of any kind, as `mine` takes it. With several, the first one found counts.
    #[arg(required = true, value_name = "PATTERN")]
    patterns: Vec<String>,
    /// File for the half, encrypted with age. Never overwritten.
    #[arg(long, value_name = "FILE", required_unless_present = "print")]
    out: Option<PathBuf>,
    /// Print the half instead of storing it.
    #[arg(long, conflicts_with = "out")]
    print: bool,
    /// Do this many bits of proof of work for the request: 2^BITS hashes on average.
    #[arg(long, value_name = "BITS", requires = "bot", value_parser = clap::value_parser!(u32).range(1..=i64::from(MOST_BITS)))]
    work: Option<u32>,
    /// The bot that the work is for.
    #[arg(long, value_name = "NPUB", requires = "work")]
    bot: Option<String>,
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
        let wanted = wanted(&self.patterns)?;
        // Every key that a search without a target gives meets one of the patterns it begins with.
        let patterns = match &wanted {
            Wanted::Patterns(patterns) => patterns.clone(),
            Wanted::Best(best) => best.family.floor(),
        };
        if patterns.len() > MOST_SPLIT_PREFIXES {
            bail!(
                "{} patterns are more than any bot reads, so no half was made; name {MOST_SPLIT_PREFIXES} at most (a bot as \
                 it ships takes 10)",
                patterns.len()
            );
        }
        if let Some(refusal) = patterns.iter().find_map(refusal_of_bots) {
            bail!("{refusal}; no half was made");
        }
        let file = match &self.out {
            Some(path) => Some((path.clone(), self.unlock.means("Choose a passphrase for your half: ", true)?)),
            None => None,
        };
        let half = HalfVault::draw(file)?;
        // The work is done before the half is stored, so an interrupted command leaves no file
        // behind.
        let work = match (self.work, &self.bot) {
            (Some(bits), Some(bot)) => Some(work(bits, bot, &half.point())?),
            _ => None,
        };
        let mut out = stdout();
        if let Some(path) = &self.out {
            half.keep(path, &patterns)?;
            note!("Your secret half is in {}. Keep it until the tweak comes.", path.display());
        } else {
            note!("Your secret half, shown once. Keep it until the tweak comes, and show nobody:");
            half.write_to(&mut out)?;
            writeln!(out)?;
        }
        let work = work.map(|work| work.to_string());
        let asked = match &wanted {
            Wanted::Patterns(patterns) => patterns.iter().map(ToString::to_string).collect(),
            Wanted::Best(best) => vec![best.to_string()],
        };
        let words: Vec<String> = asked.into_iter().chain(work).collect();
        note!("Send this to the bot. It holds no secret:");
        writeln!(out, "split {} {}", half.point(), words.join(" "))?;
        out.flush()?;
        Ok(())
    }
}

/// Does the work for a half, on all cores, with a bar on standard error.
fn work(bits: u32, bot: &str, half: &HalfPoint) -> anyhow::Result<SplitWork> {
    let bot = PublicKey::parse(bot).with_context(|| format!("`{bot}` is no npub"))?;
    let target = WorkTarget::new(&bot.to_bytes(), half);
    let threads = std::thread::available_parallelism().map_or(1, usize::from);
    let (tried, bar) = (AtomicU64::new(0), SearchBar::new(Difficulty::from_bits(bits)));
    let work = std::thread::scope(|scope| {
        let search = scope.spawn(|| target.search(bits, threads, &tried));
        while !search.is_finished() {
            bar.show_work(tried.load(Ordering::Relaxed));
            std::thread::sleep(SHOW_EVERY);
        }
        search.join()
    });
    bar.clear();
    work.ok().flatten().context("no number has that many bits; ask for fewer")
}
