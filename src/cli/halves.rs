//! The asker's half of a split key, offline: `npubbot split new` makes it, `npubbot combine` makes
//! the key from it and the bot's tweak. Only its point is sent to the bot.

use super::identity::{UnlockFlags, ask, new_password};
use super::output::{note, stdout};
use super::patterns::{SearchTarget, not_accepted_by_bots, parse_target};
use crate::bot::MAX_SPLIT_PREFIXES;
use crate::key::SplitTweak;
use crate::os::{files, walls};
use crate::vault::Half;
use anyhow::{Context, bail};
use clap::{Args, Subcommand};
use std::io::{self, IsTerminal, Read, Write};
use std::path::{Path, PathBuf};

/// Commands under `npubbot split`.
#[derive(Subcommand, Debug)]
pub(super) enum Split {
    /// Make a new secret half, and print the message for the bot.
    New(New),
}

#[derive(Args, Debug)]
pub(super) struct New {
    /// Pattern of any kind, as `mine` takes it. With several, the first one found counts.
    #[arg(required = true, value_name = "PATTERN")]
    patterns: Vec<String>,
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
    pub fn run(self) -> anyhow::Result<()> {
        let Split::New(new) = self;
        new.run()
    }
}

impl New {
    fn run(self) -> anyhow::Result<()> {
        let wanted = parse_target(&self.patterns)?;
        let patterns = wanted.patterns();
        if patterns.len() > MAX_SPLIT_PREFIXES {
            bail!(
                "{} patterns are more than any bot reads, so no half was made; name {MAX_SPLIT_PREFIXES} at most (a bot as \
                 it ships takes 10)",
                patterns.len()
            );
        }
        if let Some(refusal) = patterns.iter().find_map(not_accepted_by_bots) {
            bail!("{refusal}; no half was made");
        }
        walls::hide_memory();
        let half = Half::draw(self.out.as_deref())?;
        let mut out = stdout();
        if let Some(path) = &self.out {
            let unlock = self.unlock.unlock("Choose a passphrase for your half: ", true)?;
            half.keep(path, &unlock, &patterns)?;
            note!("Your secret half is in {}. Keep it until the tweak comes.", path.display());
        } else {
            note!("Your secret half, shown once. Keep it until the tweak comes, and show nobody:");
            writeln!(out, "{}", *half.text())?;
        }
        let words: Vec<String> = match &wanted {
            SearchTarget::Patterns(patterns) => patterns.iter().map(ToString::to_string).collect(),
            SearchTarget::Best(best) => vec![best.to_string()],
        };
        note!("Send this to the bot. It holds no secret:");
        writeln!(out, "split {} {}", half.point(), words.join(" "))?;
        out.flush()?;
        Ok(())
    }
}

#[derive(Args, Debug)]
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
    pub fn run(self) -> anyhow::Result<()> {
        let tweak: SplitTweak = self.tweak.parse()?;
        let mut requested = parse_target(&self.patterns)?.patterns();
        let half = self.half()?;
        if requested.is_empty() {
            requested = half.patterns().to_vec();
        }
        if requested.is_empty() {
            bail!("the pattern you asked for is not known; give it with --prefix");
        }
        let (npub, mut key) = half.combine(&tweak, &requested, None)?;
        self.mark_used(&tweak);
        if self.ncryptsec {
            let password = new_password(self.password_file.as_deref(), "Choose a password for the key: ")?;
            key = half.combine(&tweak, &requested, Some(&password))?.1;
        }
        let mut out = stdout();
        writeln!(out, "{npub}\n{}", *key)?;
        out.flush()?;
        Ok(())
    }

    /// Marks the half's file as used, before the key is shown, and warns of an earlier use.
    fn mark_used(&self, tweak: &SplitTweak) {
        let Some(file) = &self.half else { return };
        match mark_used(file, tweak).as_deref() {
            Ok([]) => {}
            Ok([earlier]) if *earlier == tweak.to_string() => {
                note!("You combined this half with this tweak before: it is the same key.");
            }
            Ok(_) => note!(
                "WARNING: this half was used before, with another tweak. Whoever has one of the two keys can compute the \
                 other.\nUse one of them only, and make a new half for each key: npubbot split new"
            ),
            Err(error) => {
                note!("WARNING: {} could not be marked as used ({error}). Never use this half again.", file.display())
            }
        }
    }

    /// The half in the file, or one that is typed or piped.
    fn half(&self) -> anyhow::Result<Half> {
        walls::hide_memory();
        if let Some(file) = &self.half {
            return Ok(Half::open(file, &self.unlock.unlock("Passphrase of your half: ", false)?)?);
        }
        let half = if std::io::stdin().is_terminal() {
            Half::read(ask("Your half (nhalf1…, not shown): ", false, "--half FILE")?.as_bytes())
        } else {
            Half::read(std::io::stdin().lock())
        };
        half.context("the half could not be read")
    }
}

/// Records that a half was used with this tweak, in a file beside the half's. Returns the tweaks
/// that it was used with before; two of them give keys that reveal each other. A tweak is not a
/// secret.
///
/// Errors: the record cannot be read or written.
fn mark_used(half: &Path, tweak: &SplitTweak) -> io::Result<Vec<String>> {
    let mut path = half.as_os_str().to_owned();
    path.push(".used");
    let mut file = files::open_to_append(Path::new(&path))?;
    let mut text = String::new();
    file.read_to_string(&mut text)?;
    let earlier: Vec<String> = text.lines().map(str::to_owned).collect();
    let tweak = tweak.to_string();
    if !earlier.contains(&tweak) {
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
        let [one, two] = [tweak(1), tweak(2)];
        for (tweak, earlier) in [(&one, vec![]), (&one, vec![&one]), (&two, vec![&one]), (&one, vec![&one, &two])] {
            let earlier: Vec<String> = earlier.into_iter().map(ToString::to_string).collect();
            assert_eq!(mark_used(&half, tweak).unwrap(), earlier);
        }
        assert!(mark_used(&folder.path().join("other.age"), &two).unwrap().is_empty());
        assert!(mark_used(&folder.path().join("missing/half.age"), &one).is_err());
    }
}
