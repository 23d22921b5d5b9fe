//! `npubbot mine`: a local search, without a relay.

use super::exit::Passing;
use super::identity::new_password;
use super::output::{note, stdout};
use super::patterns::{PatternFiles, SearchTarget, check_searchable, parse_target};
use super::search_flags::SearchFlags;
use crate::duration;
use crate::job::{JobId, JobSpec};
use crate::key::{HalfPoint, Npub};
use crate::os::files;
use crate::pattern::{Difficulty, Pattern, PatternSet, Rate};
use crate::progress::SearchBar;
use crate::scheduler::{Find, FindHandler, FindOutcome, Scheduler};
use crate::search::{DeviceChoice, SearchOptions};
use crate::vault::{Vault, VaultError};
use anyhow::{Context, bail};
use clap::Args;
use std::fs::File;
use std::io::Write;
use std::path::{Path, PathBuf};
use std::sync::mpsc::{self, Receiver, RecvTimeoutError, Sender};
use std::time::{Duration, Instant};
use zeroize::Zeroizing;

const PASSWORD_PROMPT: &str = "Choose a password for the keys: ";
/// Time between two updates of the bar.
const BAR_PERIOD: Duration = Duration::from_millis(100);
/// The most expected candidates of a search that the CPU ends before a GPU has started. A GPU
/// starts in 0.4 s (H100); these candidates take one core 0.14 s with the portable kernel at 60 M/s
/// (AMD EPYC, family 25).
const CPU_ONLY_BELOW: f64 = (1u64 << 23) as f64;

/// The most expected candidates of a search that has short launches, so that its key does not wait
/// for the end of a long one. They take about a second on an H100.
const SHORT_LAUNCHES_BELOW: f64 = (1u64 << 37) as f64;

#[derive(Args, Debug)]
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
        let (vault, options) = (Vault::start_local()?, self.search.without_bot());
        let (spec, difficulty, options) = match &target {
            SearchTarget::Patterns(patterns) => {
                let difficulty = PatternSet::new(patterns.clone()).difficulty();
                let difficulty = difficulty.context("at least one pattern is needed")?;
                let candidates = f64::from(self.count) * difficulty.candidates();
                let options = options_for(options, candidates, self.search.names_a_device());
                (JobSpec::local(patterns.clone()), difficulty, options)
            }
            SearchTarget::Best(best) => (JobSpec::local_best(*best), Difficulty::from_bits(0), options),
        };
        let (bar, (sender, events)) = (SearchBar::new(difficulty), mpsc::channel());
        let locked = self.ncryptsec.then(|| new_password(self.password_file.as_deref(), PASSWORD_PROMPT));
        let keys = FoundKeys {
            vault: vault.clone(),
            json: self.json,
            is_split: self.split.is_some(),
            is_best: matches!(target, SearchTarget::Best(_)),
            file: self.out.as_deref().map(KeyFile::open).transpose()?,
            password: locked.transpose()?,
            began: Instant::now(),
            kept: None,
            wanted: self.count,
            written: 0,
            bar: bar.clone(),
            events: sender,
        };
        let scheduler = Scheduler::start(&options, vault, keys)?;
        scheduler.add(JobId(1), JobSpec { half: self.split, ..spec });
        self.wait(&target, scheduler, &events, &bar)
    }

    /// Waits until the search is over or its time is, and shows how far it is.
    fn wait(
        &self,
        target: &SearchTarget,
        scheduler: Scheduler,
        events: &Receiver<Event>,
        bar: &SearchBar,
    ) -> anyhow::Result<()> {
        let patterns = match target {
            SearchTarget::Patterns(patterns) => patterns.as_slice(),
            SearchTarget::Best(_) => &[],
        };
        let (began, mut found, mut rarest) = (Instant::now(), 0u32, None);
        while self.time.is_none_or(|time| began.elapsed() < time) {
            match events.recv_timeout(BAR_PERIOD) {
                Ok(Event::Kept(pattern)) => rarest = Some(pattern),
                Ok(Event::Written(written, is_over)) => {
                    written?;
                    found += 1;
                    if is_over {
                        break;
                    }
                }
                Err(RecvTimeoutError::Disconnected) => bail!(Passing("the search ended before its time".to_owned())),
                Err(RecvTimeoutError::Timeout) => {
                    let rate = scheduler.rate_for(patterns);
                    match target {
                        SearchTarget::Best(best) => {
                            let searched = scheduler.best().first().map_or(Duration::ZERO, |(_, best)| best.searched);
                            let so_far = |rarest: &Pattern| format!(", so far {rarest}: {}", one_in(rarest));
                            let so_far = rarest.as_ref().map_or_else(String::new, so_far);
                            let part = searched.as_secs_f64() / best.time.as_secs_f64();
                            bar.show_part(part, scheduler.rate(), &so_far);
                        }
                        SearchTarget::Patterns(_) if self.count == 1 => {
                            // Candidates of the two kernels do not count the same, and time does.
                            let Rate(a_second) = rate.unwrap_or_default();
                            let searched = (a_second * began.elapsed().as_secs_f64()) as u64;
                            bar.show(searched, rate);
                        }
                        SearchTarget::Patterns(_) => {
                            let part = f64::from(found) / f64::from(self.count.max(1));
                            bar.show_part(part, rate, &format!(", {found} found"));
                        }
                    }
                }
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
        if let Some(pattern) = rarest {
            note!("It fits {pattern}, as {} does.", one_in(&pattern));
        }
        let missing = self.count.max(1).saturating_sub(found);
        if missing > 0 {
            bail!(Passing(format!("the time is over: {found} found, {missing} missing")));
        }
        Ok(())
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
}

/// The share of keys that meet a pattern.
fn one_in(pattern: &Pattern) -> String {
    format!("1 key in {}", pattern.difficulty())
}

/// Options of a search that is expected to test this number of candidates, 0 if it has no end. The
/// CPU is the only device of a search that ends before a GPU has started, unless a device is named.
/// A short search has short launches, because its key waits for the end of one or two launches.
fn options_for(options: SearchOptions, candidates: f64, is_device_named: bool) -> SearchOptions {
    let is_below = |bound: f64| candidates > 0.0 && candidates <= bound;
    let devices = if is_below(CPU_ONLY_BELOW) && !is_device_named { DeviceChoice::Cpu } else { options.devices };
    SearchOptions { devices, polite: options.polite || is_below(SHORT_LAUNCHES_BELOW), ..options }
}

/// A message of the search to the command.
enum Event {
    /// A key is the best so far.
    Kept(Pattern),
    /// A key was written, or something failed; and whether the search is over.
    Written(anyhow::Result<()>, bool),
}

/// Writes each key that is found. Of a search without a target, keeps the best one so far in memory
/// and writes it when the search is over.
struct FoundKeys {
    /// The vault that derives the keys.
    vault: Vault,
    /// Whether each key is a JSON object.
    json: bool,
    /// Whether tweaks are written in place of keys.
    is_split: bool,
    /// Whether the search has no target.
    is_best: bool,
    /// File that the keys are appended to, in place of standard output.
    file: Option<KeyFile>,
    /// The password that the keys are encrypted with (NIP-49), if any.
    password: Option<Zeroizing<String>>,
    /// Time at which the search began.
    began: Instant,
    kept: Option<(Npub, Zeroizing<Vec<u8>>)>,
    /// The number of keys after which the search is over; 0 for no end.
    wanted: u32,
    written: u32,
    bar: SearchBar,
    events: Sender<Event>,
}

impl FindHandler for FoundKeys {
    fn found(&mut self, find: Find) -> FindOutcome {
        match self.lines(&find) {
            Ok(lines) if self.is_best => {
                self.kept = Some((find.hit.npub(), lines));
                // The receiver lives as long as the scheduler, so this cannot fail.
                let _ = self.events.send(Event::Kept(find.pattern));
                FindOutcome::Kept
            }
            Ok(lines) => self.write(&find.hit.npub(), &lines),
            // Another vault process was started, and the search goes on.
            Err(error) if matches!(error.downcast_ref(), Some(VaultError::StartSpent | VaultError::Gone)) => {
                FindOutcome::GoesOn
            }
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
        let bar = self.bar.clone();
        let written = bar.suspend(|| self.write_lines(npub, lines));
        self.written = self.written.saturating_add(u32::from(written.is_ok()));
        self.tell(written)
    }

    fn tell(&self, written: anyhow::Result<()>) -> FindOutcome {
        let is_over = written.is_err() || self.is_best || (self.wanted > 0 && self.written >= self.wanted);
        let _ = self.events.send(Event::Written(written, is_over));
        if is_over { FindOutcome::Done } else { FindOutcome::GoesOn }
    }

    /// Writes the lines of a key.
    fn write_lines(&mut self, npub: &Npub, lines: &[u8]) -> anyhow::Result<()> {
        let mut out = stdout();
        match &mut self.file {
            Some(file) => {
                file.append(lines)?;
                if self.json { writeln!(out, r#"{{"npub":"{npub}"}}"#)? } else { writeln!(out, "{npub}")? }
            }
            None => out.write_all(lines)?,
        }
        out.flush()?;
        Ok(())
    }

    /// The lines of a key, or of a tweak, cleared when they are dropped because they hold the secret. Making them
    /// spends the start point.
    fn lines(&self, find: &Find) -> anyhow::Result<Zeroizing<Vec<u8>>> {
        let mut lines = Zeroizing::new(Vec::with_capacity(1024));
        let (npub, pattern) = (find.hit.npub(), &find.pattern);
        let name = match (self.is_split, &self.password) {
            (true, _) => "tweak",
            (false, Some(_)) => "ncryptsec",
            (false, None) => "nsec",
        };
        if self.json {
            // Neither patterns nor keys have characters that JSON escapes.
            write!(lines, r#"{{"pattern":"{pattern}","#)?;
            match (pattern.prefix(), pattern.met_by(&npub)) {
                (Some(prefix), _) => write!(lines, r#""prefix":"{prefix}","#)?,
                (None, met) => write!(lines, r#""found":"{}","#, met.unwrap_or_default())?,
            }
            write!(lines, r#""npub":"{npub}","{name}":""#)?;
        } else {
            writeln!(lines, "{npub}")?;
        }
        let password = self.password.as_ref().map(|password| password.as_str());
        lines.extend(self.vault.show(find.start, &find.hit, password)?.bytes());
        if !self.json {
            writeln!(lines)?;
            return Ok(lines);
        }
        write!(lines, "\"")?;
        if self.is_best {
            write!(lines, ",\"one_in\":{:.0}", pattern.difficulty().candidates())?;
        }
        if !self.is_split {
            write!(lines, ",\"seconds\":{:.3}", self.began.elapsed().as_secs_f64())?;
        }
        writeln!(lines, "}}")?;
        Ok(lines)
    }
}

/// A file of keys. Only its owner may read it, and each key is on the disk before the search for
/// the next begins.
#[derive(Debug)]
struct KeyFile {
    path: PathBuf,
    file: File,
}

impl KeyFile {
    /// Opens the file, or makes it so that only its owner can read it.
    ///
    /// Errors: it cannot be written, or others may read it.
    fn open(path: &Path) -> anyhow::Result<KeyFile> {
        let named = || format!("{} cannot be written", path.display());
        let file = files::open_to_append(path).with_context(named)?;
        if !file.metadata().with_context(named)?.is_file() {
            bail!("{} is not a regular file; name one for the keys", path.display());
        }
        if files::is_file_open_to_others(&file).with_context(named)? {
            bail!("others may read {}; run `{}` first", path.display(), files::closing_command(path));
        }
        Ok(KeyFile { path: path.to_owned(), file })
    }

    /// Appends a key and waits until it is on the disk.
    fn append(&mut self, lines: &[u8]) -> anyhow::Result<()> {
        let written = self.file.write_all(lines).and_then(|()| self.file.sync_all());
        written.with_context(|| format!("{} cannot be written", self.path.display()))
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

    #[test]
    fn keys_are_appended_to_a_file_that_nobody_else_reads() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("keys");
        KeyFile::open(&path).unwrap().append(b"one\n").unwrap();
        KeyFile::open(&path).unwrap().append(b"two\n").unwrap();
        assert_eq!(std::fs::read(&path).unwrap(), b"one\ntwo\n");
        assert!(!files::is_open_to_others(&path).unwrap());
        files::open_to_others(&path).unwrap();
        let error = KeyFile::open(&path).unwrap_err().to_string();
        assert!(error.contains(&files::closing_command(&path)), "{error}");
    }
}
