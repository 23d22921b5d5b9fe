//! Progress bar of a search. Invisible without a terminal.

use crate::duration::humanize;
use crate::pattern::{Difficulty, Rate};
use indicatif::{ProgressBar, ProgressDrawTarget, ProgressStyle};

/// Length of the bar, in steps.
const STEPS: u64 = 1000;

/// Progress of a search: rate, expected time, and the chance of a match so far. The bar shows that
/// chance, since a memoryless search has no other progress.
#[derive(Clone, Debug)]
pub struct SearchBar {
    bar: ProgressBar,
    difficulty: Difficulty,
}

impl SearchBar {
    /// A bar on standard error; invisible if that is not a terminal.
    pub fn new(difficulty: Difficulty) -> SearchBar {
        let bar = ProgressBar::with_draw_target(Some(STEPS), ProgressDrawTarget::stderr());
        let style = ProgressStyle::with_template("{elapsed_precise} [{bar:30}] {msg}").expect("a fixed template");
        bar.set_style(style.progress_chars("=> "));
        SearchBar { bar, difficulty }
    }

    /// Shows the part of a search that is over, 0 to 1, and what it has come to.
    pub fn show_part(&self, part: f64, rate: Option<Rate>, found: &str) {
        self.bar.set_position((part.clamp(0.0, 1.0) * STEPS as f64) as u64);
        let pace = rate.map_or_else(|| "measuring".to_owned(), |rate| rate.to_string());
        self.bar.set_message(pace + found);
    }

    /// Shows `searched` candidates, tested at `rate`.
    pub fn show(&self, searched: u64, rate: Option<Rate>) {
        let pace = match (rate, rate.and_then(|rate| self.difficulty.expected_time(rate))) {
            (Some(rate), Some(mean)) => format!("{rate}, {} expected", humanize(mean)),
            _ => "measuring".to_owned(),
        };
        self.show_chance(searched, &pace);
    }

    /// Shows that `tried` numbers were tried for a proof of work.
    pub fn show_work(&self, tried: u64) {
        self.show_chance(tried, "proof of work");
    }

    fn show_chance(&self, tried: u64, what: &str) {
        let chance = self.difficulty.chance_after(tried as f64);
        self.bar.set_position((chance * STEPS as f64) as u64);
        self.bar.set_message(format!("{what}, chance so far {:.0} %", chance * 100.0));
    }

    /// Hides the bar while `print` runs.
    pub fn suspend<R>(&self, print: impl FnOnce() -> R) -> R {
        self.bar.suspend(print)
    }

    /// Removes the bar.
    pub fn clear(&self) {
        self.bar.finish_and_clear();
    }
}
