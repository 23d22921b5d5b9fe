//! `npubbot stats`: what the running bot did each day.

use super::folders::FolderFlags;
use super::operate::replies;
use super::output::stdout;
use super::plot::{Panel, Shape, rate, svg, thousands};
use crate::control::{Command, DayStatus, Reply};
use crate::pattern::Rate;
use anyhow::Context;
use clap::Args;
use std::io::Write;
use std::path::PathBuf;

const SECONDS_A_DAY: f64 = 86_400.0;

/// Flags of `npubbot stats`.
#[derive(Args, Debug)]
#[command(after_help = "\
Examples:
  npubbot stats                     the last 30 days (UTC), one a line
  npubbot stats --json | jq .jobs_delivered
  npubbot stats --plot days.svg     the same as a picture

Exit code 3: no bot runs.")]
pub(super) struct Stats {
    /// Print one JSON object a line, the oldest day first.
    #[arg(long)]
    json: bool,
    /// Draw the days into this SVG file, and print nothing.
    #[arg(long, value_name = "FILE", conflicts_with = "json")]
    plot: Option<PathBuf>,
    #[command(flatten)]
    folders: FolderFlags,
}

impl Stats {
    /// Runs the command.
    pub fn run(self) -> anyhow::Result<()> {
        let replies = replies(&self.folders, Command::Stats)?.into_iter();
        let days: Vec<DayStatus> =
            replies.filter_map(|reply| if let Reply::Day(day) = reply { Some(day) } else { None }).collect();
        if let Some(file) = self.plot {
            return std::fs::write(&file, svg("npubbot, day by day", &panels(&days)))
                .with_context(|| format!("{} cannot be written", file.display()));
        }
        let mut out = stdout();
        for day in &days {
            let text = if self.json { serde_json::to_string(day)? } else { line(day) };
            writeln!(out, "{text}")?;
        }
        Ok(())
    }
}

fn line(day: &DayStatus) -> String {
    let rate = Rate(day.candidates as f64 / SECONDS_A_DAY).to_string();
    format!(
        "{}  {:>4} accepted  {:>4} delivered  {rate:>10} over the day",
        day.date, day.jobs_accepted, day.jobs_delivered
    )
}

fn panels(days: &[DayStatus]) -> Vec<Panel> {
    let labels: Vec<String> = days.iter().map(|day| day.date.get(5..).unwrap_or(&day.date).to_owned()).collect();
    let values = |of: fn(&DayStatus) -> f64| days.iter().map(of).collect::<Vec<f64>>();
    let jobs = vec![
        ("accepted".to_owned(), values(|day| day.jobs_accepted as f64)),
        ("delivered".to_owned(), values(|day| day.jobs_delivered as f64)),
    ];
    let rates = vec![("rate".to_owned(), values(|day| day.candidates as f64 / SECONDS_A_DAY))];
    let below = "day (UTC)".to_owned();
    vec![
        Panel {
            title: "Jobs".to_owned(),
            below: below.clone(),
            shape: Shape::Bars { labels: labels.clone(), series: jobs },
            label: thousands,
            least_step: 1.0,
        },
        Panel {
            title: "Keys tested a second, as a mean of the day".to_owned(),
            below,
            shape: Shape::Bars { labels, series: rates },
            label: rate,
            least_step: 0.0,
        },
    ]
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_day_is_a_line_and_a_group_of_bars() {
        let day = |date: &str, accepted| DayStatus {
            date: date.to_owned(),
            candidates: 86_400_000_000_000,
            jobs_accepted: accepted,
            jobs_delivered: 2,
        };
        let days = [day("2026-11-22", 3), day("2026-11-23", 12)];
        insta::assert_snapshot!(line(&days[1]), @"2026-11-23    12 accepted     2 delivered    1.00 G/s over the day");
        let text = svg("x", &panels(&days));
        assert!(text.contains(">11-22<") && text.contains(">1 G/s<"), "{text}");
        // Two groups of two bars, the legend, one bar of the rate a day, the background.
        assert_eq!(text.matches("<rect ").count(), 4 + 2 + 2 + 1, "{text}");
    }
}
