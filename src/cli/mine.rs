//! `npubbot mine`: a local search, without a relay.

use super::exit::Passing;
use super::identity::new_password;

use super::key_output::{KeyFile, KeyOutput, is_lost};
use super::output::note;
use super::patterns::{PatternFiles, SearchTarget, check_searchable, note_on_turns, parse_target, time_text};
use super::search_flags::SearchFlags;
use crate::duration;
use crate::job::{JobId, JobSpec};
use crate::key::{HalfPoint, Npub};
use crate::pattern::{Best, Difficulty, Pattern, PatternSet, Rate};
use crate::progress::SearchBar;
use crate::scheduler::{Find, FindHandler, FindOutcome, Scheduler};
use crate::search::{DeviceChoice, SearchOptions};
use crate::vault::Vault;
use anyhow::{Context, bail};
use clap::Args;
use std::path::PathBuf;
use std::sync::mpsc::{self, RecvTimeoutError, Sender};
use std::time::{Duration, Instant};
use zeroize::Zeroizing;

const PASSWORD_PROMPT: &str = "Choose a password for the keys: ";
/// A search expected to take longer than this gets a hint to cheaper patterns.
const HINT_ABOVE: Duration = Duration::from_secs(60);

/// The most expected candidates of a search that the CPU ends before a GPU has started. A GPU
/// starts in 0.4 s (H100); these candidates take one core 0.14 s with the portable kernel at 60 M/s
/// (AMD EPYC, family 25).
const CPU_ONLY_BELOW: f64 = (1u64 << 23) as f64;

/// The most expected candidates of a search that has short launches, so that its key does not wait
/// for the end of a long one. They take about a second on an H100.
const SHORT_LAUNCHES_BELOW: f64 = (1u64 << 37) as f64;

/// Flags of `npubbot mine`.
#[derive(Args, Debug)]
#[command(after_help = "\
Examples:
  npubbot mine m0ctane                    one key, printed as npub and nsec
  npubbot mine cat,dxg --count 3          three keys, each with one of the prefixes
  npubbot mine '~alice' 'm0ct*cafe'       look-alikes, or both ends
  npubbot mine words:7 --count 0 -o keys  words of seven letters, until Ctrl-C
  npubbot mine best words 10m             the rarest key of ten minutes, and how rare it is
  npubbot mine m0c --split 02ab...        the tweak for somebody's half

docs/askers/patterns.md has all kinds of patterns. Quote those with * ? [ or ~.")]
pub(super) struct Mine {
    /// The characters after `npub1`, or another kind of pattern. With several, the first one found
    /// counts. `best 10m`, `best zeros 10m`, `best words 10m` and `surprise` have no target.
    #[arg(required_unless_present_any = ["words", "list"], value_name = "PATTERN")]
    patterns: Vec<String>,
    #[command(flatten)]
    files: PatternFiles,
    /// Number of keys to find; 0 for no end.
    #[arg(short = 'n', long, default_value_t = 1, conflicts_with = "split")]
    count: u32,
    /// Stop after this time, like "90 s", 10m or "2 h".
    #[arg(short, long, value_name = "TIME", value_parser = duration::parse)]
    time: Option<Duration>,
    /// Append the keys to this file and print only their npubs. The file must be readable by you
    /// alone.
    #[arg(short = 'o', long = "out", value_name = "FILE")]
    out: Option<PathBuf>,
    /// Lock the keys with a password (NIP-49), which is asked for.
    #[arg(long, conflicts_with = "split")]
    ncryptsec: bool,
    /// File whose first line is that password.
    #[arg(long, value_name = "FILE", requires = "ncryptsec")]
    password_file: Option<PathBuf>,
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
        let target = self.target()?;
        let vault = Vault::start_local()?;
        let output = KeyOutput {
            vault: vault.clone(),
            json: self.json,
            is_split: self.split.is_some(),
            file: self.out.as_deref().map(KeyFile::open).transpose()?,
            password: self
                .ncryptsec
                .then(|| new_password(self.password_file.as_deref(), PASSWORD_PROMPT))
                .transpose()?,
            began: Instant::now(),
        };
        match target {
            SearchTarget::Patterns(patterns) => {
                let set = PatternSet::new(patterns.clone());
                let difficulty = set.difficulty().context("at least one pattern is needed")?;
                self.search(&patterns, difficulty, vault, output)
            }
            SearchTarget::Best(best) => {
                let options = self.search.without_bot();
                search_best(&options, JobSpec { half: self.split, ..JobSpec::local_best(best) }, best, output)
            }
        }
    }

    /// The request of the command line.
    ///
    /// Errors: a text is not a pattern or cannot be searched for, or a flag does not go with
    /// `best`.
    fn target(&self) -> anyhow::Result<SearchTarget> {
        let mut all = match parse_target(&self.patterns)? {
            SearchTarget::Patterns(patterns) => patterns,
            SearchTarget::Best(best) => {
                if self.count != 1 || self.time.is_some() || !self.files.is_empty() {
                    bail!("`{best}` gives one key after its own time; leave out --count, --time, --file and --words");
                }
                return Ok(SearchTarget::Best(best));
            }
        };
        all.extend(self.files.read()?);
        check_searchable(&all)?;
        Ok(SearchTarget::Patterns(all))
    }

    /// Searches until enough keys are written, or the time is over.
    fn search(
        &self,
        patterns: &[Pattern],
        difficulty: Difficulty,
        vault: Vault,
        mut output: KeyOutput,
    ) -> anyhow::Result<()> {
        let candidates = f64::from(self.count) * difficulty.candidates();
        let options = options_for(self.search.without_bot(), candidates, self.search.names_a_device());
        let (sender, finds) = mpsc::channel();
        let (began, wanted) = (output.began, self.count);
        let mut written = 0u64;
        let bar = SearchBar::new(difficulty);
        let shown = bar.clone();
        let scheduler = Scheduler::start(&options, vault, move |find| {
            let printed = shown.suspend(|| output.write(&find));
            if printed.as_ref().is_err_and(is_lost) {
                return FindOutcome::GoesOn;
            }
            written += u64::from(printed.is_ok());
            let ended = printed.is_err() || (wanted > 0 && written >= u64::from(wanted));
            // The receiver lives as long as the scheduler, so this cannot fail.
            let _ = sender.send((printed, ended));
            if ended { FindOutcome::Done } else { FindOutcome::GoesOn }
        })?;
        scheduler.add(JobId(1), JobSpec { half: self.split, ..JobSpec::local(patterns.to_vec()) });
        if let Some(said) = note_on_turns(patterns).filter(|_| self.split.is_none()) {
            bar.suspend(|| note!("{said}"));
        }
        let takes_turns = note_on_turns(patterns).is_some();
        let (mut found_at, mut found_since, mut found, mut is_hinted) = (0, began, 0u32, false);
        loop {
            match finds.recv_timeout(Duration::from_millis(100)) {
                Ok((printed, ended)) => {
                    printed?;
                    found += 1;
                    found_at = scheduler.candidates();
                    found_since = Instant::now();
                    if ended {
                        break;
                    }
                }
                Err(mpsc::RecvTimeoutError::Timeout) => {
                    let rate = scheduler.rate_for(patterns);
                    let searched = match rate {
                        // Candidates of the two kernels do not count the same, so the bar shows
                        // rate times time.
                        Some(Rate(rate)) if takes_turns => (rate * found_since.elapsed().as_secs_f64()) as u64,
                        _ => scheduler.candidates().saturating_sub(found_at),
                    };
                    bar.show(searched, rate);
                    if let (Some(rate), false) = (rate, is_hinted) {
                        is_hinted = true;
                        bar.suspend(|| hint(patterns, rate));
                    }
                }
                Err(mpsc::RecvTimeoutError::Disconnected) => {
                    return Err(Passing("the search ended before its time".to_owned()).into());
                }
            }
            if self.time.is_some_and(|time| began.elapsed() >= time) {
                break;
            }
        }
        // From here on no key is printed, so those that were are counted.
        scheduler.remove(JobId(1));
        drop(scheduler);
        bar.clear();
        for (printed, _) in finds.try_iter() {
            printed?;
            found += 1;
        }
        let missing = wanted.max(1).saturating_sub(found);
        if missing > 0 {
            bail!(Passing(format!("the time is over: {found} found, {missing} missing")));
        }
        Ok(())
    }
}

/// Options of a search that is expected to test this number of candidates, 0 if it has no end. The
/// CPU is the only device of a search that ends before a GPU has started, unless a device is named.
/// A short search has short launches, because its key waits for the end of one or two launches.
fn options_for(options: SearchOptions, candidates: f64, is_device_named: bool) -> SearchOptions {
    let is_below = |bound: f64| candidates > 0.0 && candidates <= bound;
    let devices = if is_below(CPU_ONLY_BELOW) && !is_device_named { DeviceChoice::Cpu } else { options.devices };
    SearchOptions { devices, polite: options.polite || is_below(SHORT_LAUNCHES_BELOW), ..options }
}

/// Names the cheaper look-alikes of a single pattern that takes long.
fn hint(patterns: &[Pattern], rate: Rate) {
    let [pattern] = patterns else { return };
    if pattern.difficulty().expected_time(rate).is_none_or(|mean| mean < HINT_ABOVE) {
        return;
    }
    for other in pattern.cheaper() {
        note!(
            "{pattern} takes {}.\n{other} looks alike and takes {}.",
            time_text(pattern, rate),
            time_text(&other, rate)
        );
    }
}

/// A message of the search to the command.
enum Event {
    /// A key is the best so far.
    Kept(Pattern),
    /// The best key was written, or something failed.
    Over(anyhow::Result<()>),
}

/// Keeps the best key so far in memory, and writes it when the search is over.
struct BestOutput {
    output: KeyOutput,
    kept: Option<(Npub, Zeroizing<Vec<u8>>)>,
    bar: SearchBar,
    events: Sender<Event>,
}

impl FindHandler for BestOutput {
    fn found(&mut self, find: Find) -> FindOutcome {
        match self.output.lines(&find, Some(find.pattern.difficulty().candidates())) {
            Ok(lines) => {
                self.kept = Some((find.hit.npub(), lines));
                self.tell(Event::Kept(find.pattern));
                FindOutcome::Kept
            }
            Err(error) if is_lost(&error) => FindOutcome::GoesOn,
            Err(error) => {
                self.tell(Event::Over(Err(error)));
                FindOutcome::Done
            }
        }
    }

    fn finish_search(&mut self, _: JobId) -> FindOutcome {
        let Some((npub, lines)) = self.kept.take() else { return FindOutcome::GoesOn };
        let written = self.bar.suspend(|| self.output.write_lines(&npub, &lines));
        self.tell(Event::Over(written));
        FindOutcome::Done
    }
}

impl BestOutput {
    fn tell(&self, event: Event) {
        // The receiver lives as long as the scheduler, so this cannot fail.
        let _ = self.events.send(event);
    }
}

/// Searches for the time of `best`, writes the rarest key, and says how rare it is. A search that
/// has found nothing by then goes on to the first key.
pub(super) fn search_best(options: &SearchOptions, job: JobSpec, best: Best, output: KeyOutput) -> anyhow::Result<()> {
    let (sender, events) = mpsc::channel();
    let bar = SearchBar::of_time();
    let vault = output.vault.clone();
    let best_output = BestOutput { output, kept: None, bar: bar.clone(), events: sender };
    let scheduler = Scheduler::start(options, vault, best_output)?;
    scheduler.add(JobId(1), job);
    let mut rarest: Option<Pattern> = None;
    loop {
        match events.recv_timeout(Duration::from_millis(100)) {
            Ok(Event::Kept(pattern)) => rarest = Some(pattern),
            Ok(Event::Over(written)) => {
                bar.clear();
                written?;
                if let Some(pattern) = rarest {
                    note!("It fits {pattern}, as 1 key in {} does.", pattern.difficulty());
                }
                return Ok(());
            }
            Err(RecvTimeoutError::Timeout) => {
                let searched = scheduler.best().first().map_or(Duration::ZERO, |(_, search)| search.searched);
                let part = searched.as_secs_f64() / best.time.as_secs_f64();
                bar.show_best(part, scheduler.rate(), rarest.as_ref());
            }
            Err(RecvTimeoutError::Disconnected) => {
                return Err(Passing("the search ended before its time".to_owned()).into());
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn quick_searches_take_the_cpu_and_short_ones_short_launches() {
        let chosen = |candidates: f64, is_device_named: bool| {
            let options = options_for(SearchOptions::default(), candidates, is_device_named);
            (options.devices, options.polite)
        };
        assert_eq!(chosen(CPU_ONLY_BELOW, false), (DeviceChoice::Cpu, true));
        assert_eq!(chosen(CPU_ONLY_BELOW, true), (DeviceChoice::All, true));
        assert_eq!(chosen(2.0 * CPU_ONLY_BELOW, false), (DeviceChoice::All, true));
        assert_eq!(chosen(SHORT_LAUNCHES_BELOW, false), (DeviceChoice::All, true));
        assert_eq!(chosen(2.0 * SHORT_LAUNCHES_BELOW, false), (DeviceChoice::All, false));
        // A search without an end has count 0.
        assert_eq!(chosen(0.0, false), (DeviceChoice::All, false));
        let polite = SearchOptions { polite: true, ..SearchOptions::default() };
        assert!(options_for(polite, 2.0 * SHORT_LAUNCHES_BELOW, false).polite);
    }
}
