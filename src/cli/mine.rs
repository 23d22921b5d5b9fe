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
use crate::pattern::{Best, Pattern, PatternSet, Rate};
use crate::progress::SearchBar;
use crate::scheduler::{Find, FindHandler, FindOutcome, Scheduler};
use crate::search::{DeviceChoice, SearchOptions};
use crate::vault::Vault;
use anyhow::{Context, bail};
use clap::Args;
use std::path::PathBuf;
use std::sync::mpsc::{self, Receiver, RecvTimeoutError, Sender};
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
        let options = self.search.without_bot();
        let (spec, bar, options) = match &target {
            SearchTarget::Patterns(patterns) => {
                let difficulty = PatternSet::new(patterns.clone()).difficulty();
                let difficulty = difficulty.context("at least one pattern is needed")?;
                let candidates = f64::from(self.count) * difficulty.candidates();
                let options = options_for(options, candidates, self.search.names_a_device());
                (JobSpec::local(patterns.clone()), SearchBar::new(difficulty), options)
            }
            SearchTarget::Best(best) => (JobSpec::local_best(*best), SearchBar::of_time(), options),
        };
        let (sender, events) = mpsc::channel();
        let is_best = matches!(target, SearchTarget::Best(_));
        let keys =
            FoundKeys { output, is_best, kept: None, wanted: self.count, written: 0, bar: bar.clone(), events: sender };
        let scheduler = Scheduler::start(&options, vault, keys)?;
        scheduler.add(JobId(1), JobSpec { half: self.split, ..spec });
        match target {
            SearchTarget::Patterns(patterns) => self.wait_for_keys(&patterns, scheduler, &events, &bar),
            SearchTarget::Best(best) => wait_for_best(best, &scheduler, &events, &bar),
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

    /// Waits until enough keys are written, or the time is over.
    fn wait_for_keys(
        &self,
        patterns: &[Pattern],
        scheduler: Scheduler,
        events: &Receiver<Event>,
        bar: &SearchBar,
    ) -> anyhow::Result<()> {
        let turns = note_on_turns(patterns);
        if let Some(said) = turns.filter(|_| self.split.is_none()) {
            bar.suspend(|| note!("{said}"));
        }
        let began = Instant::now();
        let (mut found_at, mut found_since, mut found, mut is_hinted) = (0, began, 0u32, false);
        loop {
            match next_event(events)? {
                Some(Event::Kept(_)) => {}
                Some(Event::Written(written, is_over)) => {
                    written?;
                    found += 1;
                    (found_at, found_since) = (scheduler.candidates(), Instant::now());
                    if is_over {
                        break;
                    }
                }
                None => {
                    let rate = scheduler.rate_for(patterns);
                    let searched = match rate {
                        // Candidates of the two kernels do not count the same, so the bar shows
                        // rate times time.
                        Some(Rate(rate)) if turns.is_some() => (rate * found_since.elapsed().as_secs_f64()) as u64,
                        _ => scheduler.candidates().saturating_sub(found_at),
                    };
                    bar.show(searched, rate);
                    if let (Some(rate), false) = (rate, is_hinted) {
                        is_hinted = true;
                        bar.suspend(|| hint(patterns, rate));
                    }
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
        for event in events.try_iter() {
            if let Event::Written(written, _) = event {
                written?;
                found += 1;
            }
        }
        let missing = self.count.max(1).saturating_sub(found);
        if missing > 0 {
            bail!(Passing(format!("the time is over: {found} found, {missing} missing")));
        }
        Ok(())
    }
}

/// Waits until the rarest key of a search without a target is written, and says how rare it is. A
/// search that has found nothing when its time is over goes on to the first key.
fn wait_for_best(best: Best, scheduler: &Scheduler, events: &Receiver<Event>, bar: &SearchBar) -> anyhow::Result<()> {
    let mut rarest: Option<Pattern> = None;
    loop {
        match next_event(events)? {
            Some(Event::Kept(pattern)) => rarest = Some(pattern),
            Some(Event::Written(written, _)) => {
                bar.clear();
                written?;
                if let Some(pattern) = rarest {
                    note!("It fits {pattern}, as 1 key in {} does.", pattern.difficulty());
                }
                return Ok(());
            }
            None => {
                let searched = scheduler.best().first().map_or(Duration::ZERO, |(_, search)| search.searched);
                let part = searched.as_secs_f64() / best.time.as_secs_f64();
                bar.show_best(part, scheduler.rate(), rarest.as_ref());
            }
        }
    }
}

/// A message of the search to the command.
enum Event {
    /// A key is the best so far.
    Kept(Pattern),
    /// A key was written, or something failed; and whether the search is over.
    Written(anyhow::Result<()>, bool),
}

/// The next message; `None` if the bar is due first.
fn next_event(events: &Receiver<Event>) -> Result<Option<Event>, Passing> {
    match events.recv_timeout(Duration::from_millis(100)) {
        Ok(event) => Ok(Some(event)),
        Err(RecvTimeoutError::Timeout) => Ok(None),
        Err(RecvTimeoutError::Disconnected) => Err(Passing("the search ended before its time".to_owned())),
    }
}

/// Writes each key that is found. Of a search without a target, keeps the best one so far in memory
/// and writes it when the search is over.
struct FoundKeys {
    output: KeyOutput,
    is_best: bool,
    kept: Option<(Npub, Zeroizing<Vec<u8>>)>,
    /// The number of keys after which the search is over; 0 for no end.
    wanted: u32,
    written: u32,
    bar: SearchBar,
    events: Sender<Event>,
}

impl FindHandler for FoundKeys {
    fn found(&mut self, find: Find) -> FindOutcome {
        let one_in = self.is_best.then(|| find.pattern.difficulty().candidates());
        match self.output.lines(&find, one_in) {
            Ok(lines) if self.is_best => {
                self.kept = Some((find.hit.npub(), lines));
                // The receiver lives as long as the scheduler, so this cannot fail.
                let _ = self.events.send(Event::Kept(find.pattern));
                FindOutcome::Kept
            }
            Ok(lines) => self.write(&find.hit.npub(), &lines),
            Err(error) if is_lost(&error) => FindOutcome::GoesOn,
            Err(error) => self.tell(Err(error)),
        }
    }

    fn finish_search(&mut self, _: JobId) -> FindOutcome {
        let Some((npub, lines)) = self.kept.take() else { return FindOutcome::GoesOn };
        self.write(&npub, &lines)
    }
}

impl FoundKeys {
    fn write(&mut self, npub: &Npub, lines: &[u8]) -> FindOutcome {
        let written = self.bar.suspend(|| self.output.write_lines(npub, lines));
        self.written = self.written.saturating_add(u32::from(written.is_ok()));
        self.tell(written)
    }

    fn tell(&self, written: anyhow::Result<()>) -> FindOutcome {
        let is_over = written.is_err() || self.is_best || (self.wanted > 0 && self.written >= self.wanted);
        let _ = self.events.send(Event::Written(written, is_over));
        if is_over { FindOutcome::Done } else { FindOutcome::GoesOn }
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
