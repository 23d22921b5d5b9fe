//! `npubbot work`: the proof of work that a bot asks for. Offline.

use super::output::{note, stdout};
use crate::key::{Npub, Work, WorkDay, WorkTarget};
use crate::pattern::Difficulty;
use crate::progress::SearchBar;
use anyhow::Context;
use clap::Args;
use nostr::PublicKey;
use std::io::Write;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::time::{Duration, SystemTime, UNIX_EPOCH};

/// The most bits of work that are accepted: days on one core.
const MAX_WORK_BITS: i64 = 44;
/// Time between two updates of the bar.
const BAR_PERIOD: Duration = Duration::from_millis(50);

#[derive(Args, Debug)]
pub(super) struct WorkCommand {
    /// The bot that asks for work.
    #[arg(value_name = "BOT")]
    bot: String,
    /// Your npub, from which you write to the bot.
    #[arg(value_name = "YOU")]
    author: String,
    /// The bits that the bot asks for.
    #[arg(value_name = "BITS", value_parser = clap::value_parser!(u32).range(1..=MAX_WORK_BITS))]
    bits: u32,
}

impl WorkCommand {
    pub fn run(self) -> anyhow::Result<()> {
        let now = SystemTime::now().duration_since(UNIX_EPOCH).map_or(0, |now| now.as_secs());
        let target = WorkTarget::new(&npub(&self.bot)?, &npub(&self.author)?, WorkDay::of(now));
        // A number that was spent does not count again, so each run begins elsewhere.
        let first = getrandom::u64().context("the system gives no randomness")?;
        let work = search(&target, self.bits, first).context("the search ended without work")?;
        note!("Send this line to the bot, in one message with your request:");
        let mut out = stdout();
        writeln!(out, "{work}")?;
        out.flush()?;
        Ok(())
    }
}

fn npub(text: &str) -> anyhow::Result<Npub> {
    // The text is not repeated: it may be a secret key.
    let key = PublicKey::parse(text).context("name two npubs: the bot's, and yours")?;
    Ok(Npub(key.to_bytes()))
}

/// Searches on all cores, with a bar on standard error.
fn search(target: &WorkTarget, bits: u32, first: u64) -> Option<Work> {
    let threads = std::thread::available_parallelism().map_or(1, usize::from);
    let (tried, never) = (AtomicU64::new(0), AtomicBool::new(false));
    let bar = SearchBar::new(Difficulty::from_bits(bits));
    let found = std::thread::scope(|scope| {
        let search = scope.spawn(|| target.search(bits, first, threads, &tried, &never));
        while !search.is_finished() {
            bar.show_work(tried.load(Ordering::Relaxed));
            std::thread::sleep(BAR_PERIOD);
        }
        search.join()
    });
    bar.clear();
    found.ok().flatten()
}
