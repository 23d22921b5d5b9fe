//! `npubbot work`: the proof of work that a bot asks for. Offline.

use super::output::{note, stdout};
use crate::duration;
use crate::key::{Npub, Work, WorkDay, WorkTarget};
use crate::pattern::Difficulty;
use crate::progress::SearchBar;
use anyhow::{Context, bail};
use clap::Args;
use nostr::PublicKey;
use std::io::Write;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::time::{Duration, Instant, SystemTime, UNIX_EPOCH};

/// The most bits of work that are accepted: days on one core.
const MAX_WORK_BITS: u32 = 44;
/// Time between two updates of the bar.
const BAR_PERIOD: Duration = Duration::from_millis(50);

/// Flags of `npubbot work`.
#[derive(Args, Debug)]
#[command(after_help = "\
Examples:
  npubbot work npub1bot... npub1you... 20    2^20 hashes on average, on all cores
  npubbot work npub1bot... npub1you... 1m    the most work that is found in a minute

Send the printed line to the bot in one message with your request. It counts once, today (UTC).")]
pub(super) struct WorkCommand {
    /// The bot that asks for work.
    #[arg(value_name = "BOT")]
    bot: String,
    /// Your npub, from which you write to the bot.
    #[arg(value_name = "YOU")]
    author: String,
    /// The bits that the bot asks for, or the time to work.
    #[arg(value_name = "BITS|TIME", value_parser = WorkAmount::read)]
    amount: WorkAmount,
}

/// The amount of work to do.
#[derive(Clone, Copy, Debug)]
enum WorkAmount {
    Bits(u32),
    Time(Duration),
}

impl WorkAmount {
    fn read(text: &str) -> Result<WorkAmount, String> {
        match text.parse() {
            Ok(bits @ 1..=MAX_WORK_BITS) => Ok(WorkAmount::Bits(bits)),
            Ok(bits) => Err(format!("{bits} bits; name 1 to {MAX_WORK_BITS}")),
            Err(_) => duration::parse(text)
                .map(WorkAmount::Time)
                .map_err(|_| format!("`{text}` is neither a number of bits, such as 20, nor a time, such as 1m")),
        }
    }
}

impl WorkCommand {
    /// Runs the command.
    pub fn run(self) -> anyhow::Result<()> {
        let now = SystemTime::now().duration_since(UNIX_EPOCH).map_or(0, |now| now.as_secs());
        let target = WorkTarget::new(&npub(&self.bot)?, &npub(&self.author)?, WorkDay::of(now));
        // A number that was spent does not count again, so each run begins elsewhere.
        let first = getrandom::u64().context("the system gives no randomness")?;
        let Some(work) = search(&target, self.amount, first) else {
            bail!("nothing was found in that time; name a longer one")
        };
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

/// Searches on all cores, with a bar on standard error. In a given time, each find is followed by a
/// search for one bit more.
fn search(target: &WorkTarget, amount: WorkAmount, first: u64) -> Option<Work> {
    let threads = std::thread::available_parallelism().map_or(1, usize::from);
    let (tried, stop) = (AtomicU64::new(0), AtomicBool::new(false));
    let (bar, until) = match amount {
        WorkAmount::Bits(bits) => (SearchBar::new(Difficulty::from_bits(bits)), None),
        WorkAmount::Time(time) => (SearchBar::of_time(), Instant::now().checked_add(time).map(|until| (until, time))),
    };
    let run = || match amount {
        WorkAmount::Bits(bits) => target.search(bits, first, threads, &tried, &stop),
        WorkAmount::Time(_) => {
            (1..=MAX_WORK_BITS).map_while(|bits| target.search(bits, first, threads, &tried, &stop)).last()
        }
    };
    let found = std::thread::scope(|scope| {
        let search = scope.spawn(run);
        while !search.is_finished() {
            match until {
                None => bar.show_work(tried.load(Ordering::Relaxed)),
                Some((until, time)) => {
                    let left = until.saturating_duration_since(Instant::now());
                    stop.store(left.is_zero(), Ordering::Relaxed);
                    bar.show_best(1.0 - left.as_secs_f64() / time.as_secs_f64().max(1e-9), None, None);
                }
            }
            std::thread::sleep(BAR_PERIOD);
        }
        search.join()
    });
    bar.clear();
    found.ok().flatten()
}
