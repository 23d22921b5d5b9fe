//! `npubbot bench`: the rate over wall time, checked by the number of hits.

use super::output::{print_json, stdout};
use super::patterns::{PatternFiles, SearchTarget, check_searchable, parse_target};
use super::search_flags::SearchFlags;
use crate::pattern::Pattern;
use crate::scheduler::{DeviceStatus, Measurement, Trial, measure};
use crate::search::SearchOptions;
use crate::vault::Vault;
use anyhow::bail;
use clap::Args;
use indicatif::{ProgressBar, ProgressDrawTarget};
use serde_json::{Value, json};
use std::env;
use std::io::Write;

/// The most chosen patterns that the result names. If there are more, it gives their number.
const MAX_NAMED_PATTERNS: usize = 8;

#[derive(Args, Debug)]
pub(super) struct Bench {
    /// Patterns of any kind to search for, in place of random prefixes.
    #[arg(value_name = "PATTERN")]
    chosen: Vec<String>,
    #[command(flatten)]
    files: PatternFiles,
    /// Number of random prefixes to search for at once.
    #[arg(long, default_value_t = 1, value_parser = clap::value_parser!(u32).range(1..=1_000_000),
        conflicts_with_all = ["chosen", "words", "list"])]
    patterns: u32,
    /// Length of each pattern [default: the longest that still gives about 1,000 hits].
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u32).range(1..=12),
        conflicts_with_all = ["chosen", "words", "list"])]
    characters: Option<u32>,
    /// Seconds to search.
    #[arg(long, default_value_t = 10.0, value_name = "S", value_parser = seconds)]
    seconds: f64,
    /// Search from a split key's point.
    #[arg(long)]
    split: bool,
    /// Shared memory that a block may have, in bytes: runs what a GPU with less of it would run.
    #[arg(long, value_name = "BYTES", hide = true)]
    shared_memory: Option<u32>,
    /// Print the result as a block to paste into an issue, with version and system.
    #[arg(long, conflicts_with = "json")]
    report: bool,
    /// Print the result as a JSON object.
    #[arg(long)]
    json: bool,
    #[command(flatten)]
    search: SearchFlags,
}

/// Checks the hits of a measurement.
///
/// Errors: hits were wrong, or their number does not fit the candidates that the devices report.
fn check_hits(measured: &Measurement) -> anyhow::Result<()> {
    if measured.hits_wrong > 0 || measured.deviation().abs() > 5.0 {
        bail!(
            "{} hits were wrong, and {} were found where {:.0} were expected: these devices cannot be trusted",
            measured.hits_wrong,
            measured.hits_found,
            measured.hits_expected
        );
    }
    Ok(())
}

/// Parses the value of `--seconds`.
fn seconds(text: &str) -> Result<f64, String> {
    let seconds: f64 = text.parse().map_err(|_| "give a number of seconds, like 10 or 2.5".to_owned())?;
    (0.1..=86_400.0).contains(&seconds).then_some(seconds).ok_or_else(|| "allowed are 0.1 to 86400 seconds".to_owned())
}

impl Bench {
    pub fn run(self) -> anyhow::Result<()> {
        let options = SearchOptions { shared_memory: self.shared_memory, ..SearchOptions::default() };
        let options = self.search.override_options(options);
        let mut chosen = match parse_target(&self.chosen)? {
            SearchTarget::Patterns(patterns) => patterns,
            SearchTarget::Best(best) => bail!(
                "`{best}` has no target whose hits could prove a rate; measure patterns that it meets, like zeros:30 =6 \
                 words:7"
            ),
        };
        chosen.extend(self.files.read()?);
        check_searchable(&chosen)?;
        let trial = Trial {
            patterns: self.patterns as usize,
            chosen,
            characters: self.characters,
            seconds: self.seconds,
            split: self.split,
        };
        let bar = ProgressBar::with_draw_target(Some(100), ProgressDrawTarget::stderr());
        let measured =
            measure(&options, Vault::start_local()?, &trial, |share| bar.set_position((share * 100.0) as u64))?;
        bar.finish_and_clear();
        if self.json {
            print_json(&result_json(&trial, &measured))?;
            return check_hits(&measured);
        }
        if self.report {
            let (version, system) = (super::long_version(), format!("{} {}", env::consts::OS, env::consts::ARCH));
            writeln!(stdout(), "```text\nnpubbot {version}\nsystem: {system}")?;
        }
        print_result(&trial, &measured)?;
        if self.report {
            writeln!(stdout(), "```")?;
        }
        check_hits(&measured)
    }
}

/// The result as a JSON object. Power is `null` where it is not known.
fn result_json(trial: &Trial, measured: &Measurement) -> Value {
    let join = |text: fn(&DeviceStatus) -> String| measured.devices.iter().map(text).collect::<Vec<_>>().join(", ");
    json!({
        "device": join(|device| device.id.to_string()),
        "name": join(|device| device.name.clone()),
        "threads": measured.devices.iter().map(|device| device.threads).sum::<usize>(),
        "patterns": trial.count(),
        "seconds": measured.wall.as_secs_f64(),
        "candidates": measured.candidates,
        "candidates_per_second": measured.rate(),
        "hits_expected": measured.hits_expected,
        "hits_found": measured.hits_found,
        "hits_wrong": measured.hits_wrong,
        "watts": measured.watts(),
        "candidates_per_joule": measured.candidates_per_joule(),
    })
}

/// Prints the result for people.
fn print_result(trial: &Trial, measured: &Measurement) -> anyhow::Result<()> {
    for (device, hardware) in measured.devices.iter().zip(&measured.hardware) {
        let driver = hardware.driver.as_ref().map_or_else(String::new, |version| format!(", driver {version}"));
        let clock = hardware.megahertz.map_or_else(String::new, |clock| format!(", {clock:.0} MHz"));
        let DeviceStatus { id, name, kernel, threads, .. } = device;
        writeln!(stdout(), "{id}: {name}, kernel {kernel}, {threads} threads{driver}{clock}")?;
    }
    let (wall, busy) = (measured.wall.as_secs_f64(), measured.busy.as_secs_f64());
    writeln!(stdout(), "{} over {wall:.2} s of wall time (device busy {:.1} %)", measured.rate(), 100.0 * busy / wall)?;
    match measured.watts().zip(measured.candidates_per_joule()) {
        Some((watts, per_joule)) => writeln!(stdout(), "{watts:.0} W, {:.1} M candidates a joule", per_joule / 1e6)?,
        None => writeln!(stdout(), "power: not known")?,
    }
    let what = match trial.chosen.as_slice() {
        [] => format!("{} patterns of {} characters", trial.count(), measured.characters),
        few if few.len() <= MAX_NAMED_PATTERNS => few.iter().map(Pattern::to_string).collect::<Vec<_>>().join(" "),
        many => format!("{} patterns", many.len()),
    };
    writeln!(
        stdout(),
        "{what}: {} hits found, {:.0} expected ({:+.1} standard deviations), {} wrong",
        measured.hits_found,
        measured.hits_expected,
        measured.deviation(),
        measured.hits_wrong
    )?;
    Ok(())
}
