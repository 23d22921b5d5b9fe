//! `npubbot explain`: what patterns mean, and how long they take.

use super::output::{print_json, stdout};
use super::patterns::{SearchTarget, not_searchable, parse_target, time_text};
use super::search_flags::SearchFlags;
use crate::bot::{english_meaning as meaning, english_meaning_of_best as meaning_of_best};
use crate::duration::humanize;
use crate::pattern::{Best, NINETY_FIVE_PERCENT, Pattern, Rate};
use crate::scheduler::{Trial, measure};
use crate::search::{DeviceChoice, SearchOptions};
use crate::vault::Vault;
use clap::Args;
use serde_json::{Value, json};
use std::io::Write;

/// Seconds to measure the rate of this machine.
const MEASURED_SECONDS: f64 = 0.5;

/// The pattern with which the rate for whole keys is measured.
const WHOLE_KEYS_PATTERN: &str = "*qqqqqq";

/// The rates of this machine, for patterns of both kinds.
#[derive(Clone, Copy)]
struct KindRates {
    /// What searches: the machine, or its CPU alone.
    name: &'static str,
    /// The rate for patterns that the first 32 bits decide.
    top_words: Rate,
    /// The rate where whole keys are compared; `None` if that was not measured.
    whole_keys: Option<Rate>,
}

impl KindRates {
    /// The rate for a pattern.
    fn of(self, pattern: &Pattern) -> Option<Rate> {
        if pattern.begins_selectively() { Some(self.top_words) } else { self.whole_keys }
    }
}

#[derive(Args, Debug)]
pub(super) struct Explain {
    /// Pattern, as `mine` takes it.
    #[arg(required = true, value_name = "PATTERN")]
    patterns: Vec<String>,
    /// Print one JSON object per pattern.
    #[arg(long)]
    json: bool,
    #[command(flatten)]
    search: SearchFlags,
}

impl Explain {
    pub fn run(self) -> anyhow::Result<()> {
        let target = parse_target(&self.patterns)?;
        let rate_of = |chosen: Vec<Pattern>| {
            let trial = Trial { patterns: 1, chosen, characters: None, seconds: MEASURED_SECONDS, split: false };
            // Opening a GPU takes longer than all the rest; `--device` asks for it.
            let options =
                self.search.override_options(SearchOptions { devices: DeviceChoice::Cpu, ..SearchOptions::default() });
            anyhow::Ok(measure(&options, Vault::start_local()?, &trial, |_| {})?.rate())
        };
        let compares_whole_keys = match &target {
            SearchTarget::Patterns(patterns) => patterns.iter().any(|pattern| !pattern.begins_selectively()),
            SearchTarget::Best(_) => false,
        };
        let whole_keys = compares_whole_keys.then(|| rate_of(vec![WHOLE_KEYS_PATTERN.parse()?])).transpose()?;
        let name = if self.search.names_a_device() { "this machine" } else { "this machine's CPU" };
        let here = KindRates { name, top_words: rate_of(Vec::new())?, whole_keys };
        match &target {
            SearchTarget::Patterns(patterns) => {
                for pattern in patterns {
                    match self.json {
                        true => print_json(&explanation(pattern, here))?,
                        false => write!(stdout(), "{}", explanation_text(pattern, here))?,
                    }
                }
            }
            SearchTarget::Best(best) if self.json => print_json(&explanation_of_best(*best, here))?,
            SearchTarget::Best(best) => write!(stdout(), "{}", text_of_best(*best, here))?,
        }
        Ok(stdout().flush()?)
    }
}

/// The JSON object of a pattern. A figure is `null` where it is not known, and the rate for a
/// pattern that cannot be searched for. `nearest` is missing if the faster kernel searches for the
/// pattern.
fn explanation(pattern: &Pattern, here: KindRates) -> Value {
    let rate = here.of(pattern).filter(|_| pattern.is_searchable());
    let seconds = |other: &Pattern| Some(other.difficulty().candidates() / here.of(other)?.0);
    let mean = rate.map(|Rate(rate)| pattern.difficulty().candidates() / rate);
    let cheaper = pattern.cheaper().into_iter().map(|other| {
        json!({
            "pattern": other.to_string(),
            "difficulty": other.difficulty().candidates(),
            "expected_seconds": seconds(&other),
        })
    });
    let mut object = json!({
        "pattern": pattern.to_string(),
        "meaning": meaning(pattern),
        "difficulty": pattern.difficulty().candidates(),
        "rate": rate,
        "expected_seconds": mean,
        "seconds_95": mean.map(|mean| mean * NINETY_FIVE_PERCENT),
        "cheaper": cheaper.collect::<Vec<_>>(),
    });
    if let Some(nearest) = pattern.nearest_searchable().filter(|nearest| nearest != pattern) {
        object["nearest"] = nearest.to_string().into();
    }
    object
}

/// The JSON object of a search without a target, whose time is fixed. `likely` is a pattern about
/// as rare as its key will probably be.
fn explanation_of_best(best: Best, here: KindRates) -> Value {
    let (rate, seconds) = (here.top_words, best.time.as_secs_f64());
    let mut object = json!({
        "pattern": best.to_string(),
        "meaning": meaning_of_best(&best),
        "difficulty": null,
        "rate": rate,
        "expected_seconds": seconds,
        "seconds_95": seconds,
        "cheaper": [],
    });
    if let Some(likely) = best.likely_pattern(rate) {
        object["likely"] = json!({ "pattern": likely.to_string(), "one_in": likely.difficulty().candidates() });
    }
    object
}

fn text_of_best(best: Best, KindRates { name, top_words: rate, .. }: KindRates) -> String {
    let likely = match best.likely_pattern(rate) {
        Some(likely) => format!("probably 1 key in {} ({likely}), or rarer", likely.difficulty()),
        None => "the first key, which takes longer".to_owned(),
    };
    let (meaning, time) = (meaning_of_best(&best), humanize(best.time));
    format!("{best}\n  {meaning}\n  takes {time}\n  {name}, {rate}: {likely}\n")
}

fn explanation_text(pattern: &Pattern, here: KindRates) -> String {
    let mut text = format!("{pattern}\n  {}\n", meaning(pattern));
    text += &format!("  about 1 key in {} fits\n", pattern.difficulty());
    if !pattern.is_searchable() {
        return text + &format!("  {}\n", not_searchable(pattern));
    }
    if !pattern.begins_selectively() {
        text += "  whole keys are compared, which is slower than comparing how they start\n";
    }
    if let Some(rate) = here.of(pattern) {
        text += &format!("  {}, {rate}: {}\n", here.name, time_text(pattern, rate));
    }
    for other in pattern.cheaper() {
        if let Some(rate) = here.of(&other) {
            text += &format!("  looks alike and is cheaper: {other}, {}\n", time_text(&other, rate));
        }
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    const HERE: KindRates = KindRates { name: "this machine", top_words: Rate(1e9), whole_keys: Some(Rate(0.25e9)) };

    #[test]
    fn look_alikes_equal_characters_and_an_unsearchable_pattern_are_explained() {
        let kinds = ["~alice", "~*cafe", "=7*", "*[ql][ql][ql][ql][ql]*", "hex:*beef", "m0ctanem*7"];
        let patterns = kinds.map(|text| text.parse::<Pattern>().unwrap());
        insta::assert_snapshot!(
            "explained",
            patterns.each_ref().map(|pattern| explanation_text(pattern, HERE)).join("\n")
        );
        // The last digits of a difficulty that is a sum are not fixed.
        let [text, _, _, unsearchable, _, both_ends] = patterns.map(|pattern| explanation(&pattern, HERE));
        insta::assert_snapshot!("explained_json", serde_json::to_string_pretty(&[text, both_ends]).unwrap());
        assert!(unsearchable["rate"].is_null() && unsearchable["nearest"] == "[lq][lq][lq][lq][lq]", "{unsearchable}");
    }

    #[test]
    fn a_search_without_a_target_is_explained_with_what_it_comes_to() {
        insta::assert_snapshot!(text_of_best("best 10m".parse().unwrap(), HERE), @r"
        best 10m
          the rarest key seen in 10 min of search, by zero bits, equal characters or a word at its start
          takes 10 min
          this machine, 1.00 G/s: probably 1 key in 1.21 T (words:9), or rarer
        ");
        let value = explanation_of_best(Best::SURPRISE, HERE);
        assert_eq!((&value["pattern"], &value["likely"]["pattern"]), (&"best words 10s".into(), &"words:8".into()));
        assert!(value["difficulty"].is_null() && value["expected_seconds"] == 10.0, "{value}");
        let one_in = value["likely"]["one_in"].as_f64().unwrap();
        assert!((1.1e10..1.3e10).contains(&one_in), "{one_in}");
    }
}
