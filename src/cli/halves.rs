//! The asker's half of a split key, offline: `npubbot split new` makes it, `npubbot combine` makes
//! the key from it and the bot's tweak. Only its point is sent to the bot.

use super::identity::{UnlockFlags, ask, new_password};
use super::output::{note, stdout};
use super::patterns::{SearchTarget, not_accepted_by_bots, parse_target};
use crate::bot::MOST_SPLIT_PREFIXES;
use crate::key::{HalfPoint, SplitTweak, SplitWork, WorkTarget};
use crate::os::{Access, files};
use crate::pattern::Difficulty;
use crate::progress::SearchBar;
use crate::vault::HalfVault;
use anyhow::{Context, bail};
use clap::{Args, Subcommand};
use nostr::PublicKey;
use std::io::{self, Cursor, IsTerminal, Read, Write};
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

/// The most bits of work that are accepted: days on one core.
const MAX_WORK_BITS: u32 = 44;
/// Time between two updates of the bar.
const BAR_PERIOD: Duration = Duration::from_millis(50);

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
    #[arg(long, value_name = "BITS", requires = "bot", value_parser = clap::value_parser!(u32).range(1..=i64::from(MAX_WORK_BITS)))]
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
        let wanted = parse_target(&self.patterns)?;
        // Every key that a search without a target gives meets one of the patterns it begins with.
        let patterns = match &wanted {
            SearchTarget::Patterns(patterns) => patterns.clone(),
            SearchTarget::Best(best) => best.family.floor(),
        };
        if patterns.len() > MOST_SPLIT_PREFIXES {
            bail!(
                "{} patterns are more than any bot reads, so no half was made; name {MOST_SPLIT_PREFIXES} at most (a bot as \
                 it ships takes 10)",
                patterns.len()
            );
        }
        if let Some(refusal) = patterns.iter().find_map(not_accepted_by_bots) {
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
            SearchTarget::Patterns(patterns) => patterns.iter().map(ToString::to_string).collect(),
            SearchTarget::Best(best) => vec![best.to_string()],
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
    let bot = PublicKey::parse(bot).with_context(|| format!("`{bot}` is not an npub"))?;
    let target = WorkTarget::new(&bot.to_bytes(), half);
    let threads = std::thread::available_parallelism().map_or(1, usize::from);
    let (tried, bar) = (AtomicU64::new(0), SearchBar::new(Difficulty::from_bits(bits)));
    let work = std::thread::scope(|scope| {
        let search = scope.spawn(|| target.search(bits, threads, &tried));
        while !search.is_finished() {
            bar.show_work(tried.load(Ordering::Relaxed));
            std::thread::sleep(BAR_PERIOD);
        }
        search.join()
    });
    bar.clear();
    work.ok().flatten().context("no number has that many bits; ask for fewer")
}

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
        let mut requested = match parse_target(&self.patterns)? {
            SearchTarget::Patterns(patterns) => patterns,
            SearchTarget::Best(best) => best.family.floor(),
        };
        let half = self.half()?;
        if requested.is_empty() {
            requested = half.patterns().to_vec();
        }
        if requested.is_empty() {
            bail!("the pattern you asked for is not known; give it with --prefix");
        }
        let npub = half.combine(&tweak, &requested)?;
        self.mark_used(&tweak);
        let mut out = stdout();
        if self.ncryptsec {
            let password = new_password(self.password_file.as_deref(), "Choose a password for the key: ")?;
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
    fn mark_used(&self, tweak: &SplitTweak) {
        let Some(file) = &self.half else { return };
        match mark_used(file, tweak) {
            Ok(EarlierUse::Fresh) => {}
            Ok(EarlierUse::SameTweak) => note!("You combined this half with this tweak before: it is the same key."),
            Ok(EarlierUse::OtherTweak) => note!(
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

/// Whether a half was used before.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum EarlierUse {
    /// The half was not used.
    Fresh,
    /// The half was combined with the same tweak, which gives the same key.
    SameTweak,
    /// The half was combined with another tweak, so two keys exist that reveal each other.
    OtherTweak,
}

/// Path of the record for a half's file.
fn mark_of(half: &Path) -> PathBuf {
    let mut path = half.as_os_str().to_owned();
    path.push(".used");
    path.into()
}

/// Records that a half was used with this tweak, and returns its earlier use. A tweak is not a
/// secret.
///
/// Errors: the record cannot be read or written.
fn mark_used(half: &Path, tweak: &SplitTweak) -> io::Result<EarlierUse> {
    let mut file = files::open(&mark_of(half), Access::ReadAppend)?;
    let mut text = String::new();
    file.read_to_string(&mut text)?;
    let tweak = tweak.to_string();
    let earlier = match (text.lines().any(|line| line == tweak), text.lines().any(|line| line != tweak)) {
        (_, true) => EarlierUse::OtherTweak,
        (true, false) => EarlierUse::SameTweak,
        (false, false) => EarlierUse::Fresh,
    };
    if !text.lines().any(|line| line == tweak) {
        writeln!(file, "{tweak}")?;
        file.sync_all()?;
    }
    Ok(earlier)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::key::{Offset, Rotation, Tweak};

    fn tweak(number: u8) -> SplitTweak {
        let offset = Offset::from_scalar(secp256k1::Scalar::from_be_bytes([number; 32]).unwrap());
        SplitTweak { tweak: Tweak { offset, rotation: Rotation::ALL[0] }, fingerprint: [1; 8] }
    }

    #[test]
    fn a_half_remembers_its_tweaks() {
        let folder = tempfile::tempdir().unwrap();
        let half = folder.path().join("half.age");
        assert_eq!(mark_used(&half, &tweak(1)).unwrap(), EarlierUse::Fresh);
        assert_eq!(mark_used(&half, &tweak(1)).unwrap(), EarlierUse::SameTweak);
        assert_eq!(mark_used(&half, &tweak(2)).unwrap(), EarlierUse::OtherTweak);
        assert_eq!(mark_used(&half, &tweak(1)).unwrap(), EarlierUse::OtherTweak, "two keys of one half exist now");
        assert_eq!(mark_used(&folder.path().join("other.age"), &tweak(2)).unwrap(), EarlierUse::Fresh);
        assert!(mark_used(&folder.path().join("missing/half.age"), &tweak(1)).is_err());
    }
}
