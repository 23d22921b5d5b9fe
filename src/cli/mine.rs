//! `npubbot mine`: a local search, without a relay.

use super::log;
use super::search_flags::SearchFlags;
use super::split::prefixes;
use crate::job::{JobId, JobSpec};
use crate::key::HalfPoint;
use crate::pattern::{Difficulty, Pattern};
use crate::progress::SearchBar;
use crate::scheduler::{Find, FindOutcome, Scheduler};
use crate::search::SearchOptions;
use crate::vault::Vault;
use anyhow::{Context, anyhow};
use clap::Args;
use std::io::Write;
use std::sync::mpsc;
use std::time::{Duration, Instant};

/// Flags of `npubbot mine`.
#[derive(Args, Debug)]
#[command(after_help = "\
Examples:
  npubbot mine m0ctane              one key, printed as npub and nsec
  npubbot mine cat dxg --count 3    three keys, each with one of the prefixes
  npubbot mine m0c --split 02ab...  the tweak for somebody's half")]
pub(super) struct Mine {
    /// Prefix of the npub, after `npub1`. With several, the first one found counts.
    #[arg(required = true, value_name = "PREFIX")]
    prefixes: Vec<String>,
    /// Number of keys to find.
    #[arg(long, default_value_t = 1, value_parser = clap::value_parser!(u32).range(1..), conflicts_with = "split")]
    count: u32,
    /// Search from the public point of somebody's half, and print the tweak instead of a key.
    #[arg(long, value_name = "POINT")]
    split: Option<HalfPoint>,
    /// Print one JSON object per key.
    #[arg(long)]
    json: bool,
    #[command(flatten)]
    search: SearchFlags,
}

impl Mine {
    /// Runs the command.
    pub fn run(self) -> anyhow::Result<()> {
        log::start("warn");
        let patterns = prefixes(&self.prefixes)?;
        let difficulty =
            Difficulty::any_of(patterns.iter().map(Pattern::difficulty)).context("at least one prefix is needed")?;
        let options = self.search.over(SearchOptions::default());
        let vault = Vault::without_identity()?;
        let (sender, finds) = mpsc::channel();
        let job = JobId(1);
        let (redeemer, json, split, began) = (vault.clone(), self.json, self.split.is_some(), Instant::now());
        let mut left = self.count;
        let bar = SearchBar::new(difficulty);
        let shown = bar.clone();
        let scheduler = Scheduler::start(&options, vault, move |find| {
            let printed = shown.suspend(|| {
                if split { print_tweak(&redeemer, &find, json) } else { print(&redeemer, &find, json, began.elapsed()) }
            });
            left -= u32::from(printed.is_ok());
            let ended = left == 0 || printed.is_err();
            // Sending cannot fail: the receiver lives longer than the scheduler.
            let _ = sender.send((printed, ended));
            if ended { FindOutcome::Done } else { FindOutcome::GoesOn }
        })?;
        scheduler.add(job, JobSpec { half: self.split, ..JobSpec::local(patterns) });
        let mut found_at = 0;
        loop {
            match finds.recv_timeout(Duration::from_millis(100)) {
                Ok((printed, ended)) => {
                    printed?;
                    found_at = scheduler.candidates();
                    if ended {
                        break;
                    }
                }
                Err(mpsc::RecvTimeoutError::Timeout) => {
                    let searched = scheduler.candidates().saturating_sub(found_at);
                    bar.show(searched, scheduler.rate());
                }
                Err(mpsc::RecvTimeoutError::Disconnected) => return Err(anyhow!("the search ended before its time")),
            }
        }
        bar.clear();
        Ok(())
    }
}

/// Prints npub and tweak.
fn print_tweak(vault: &Vault, find: &Find, json: bool) -> anyhow::Result<()> {
    let (npub, prefix) = (find.hit.npub(), &find.pattern);
    let tweak = vault.reveal(find.start, &find.hit)?;
    let mut out = std::io::stdout().lock();
    if json {
        writeln!(out, r#"{{"prefix":"{prefix}","npub":"{npub}","tweak":"{tweak}"}}"#)?;
    } else {
        writeln!(out, "{npub}\n{tweak}")?;
    }
    out.flush()?;
    Ok(())
}

/// Prints npub and nsec. Only the vault touches the secret, and writes it only to standard output.
fn print(vault: &Vault, find: &Find, json: bool, after: Duration) -> anyhow::Result<()> {
    let mut out = std::io::stdout().lock();
    let (npub, prefix, seconds) = (find.hit.npub(), &find.pattern, after.as_secs_f64());
    if json {
        write!(out, r#"{{"prefix":"{prefix}","npub":"{npub}","nsec":""#)?;
        vault.redeem_to(find.start, &find.hit, &mut out)?;
        writeln!(out, r#"","seconds":{seconds:.3}}}"#)?;
    } else {
        writeln!(out, "{npub}")?;
        vault.redeem_to(find.start, &find.hit, &mut out)?;
        writeln!(out)?;
    }
    out.flush()?;
    Ok(())
}
