//! The commands that look at a running bot or change it, and `doctor`.

use super::exit::Passing;
use super::folders::FolderFlags;
use super::identity::{IdentityFlags, identity_file};
use super::output::{note, print_json, stdout};
use super::serve::runtime;
use crate::control::{self, Finding, JobStatus, OperatorCommand, ReplyLine, Severity, Status};
use crate::duration::humanize;
use crate::ledger::{AskerTotals, DayFigures, Standing};
use crate::nostr::RelayFigures;
use crate::pattern::Rate;
use crate::scheduler::DeviceStatus;
use crate::service::doctor;
use anyhow::bail;
use clap::Args;
use serde::Serialize;
use std::io::Write;
use std::time::Duration;

const SECONDS_A_DAY: f64 = 86_400.0;

// The flags of every command that is a request to the running bot.
#[derive(Args, Debug)]
pub(super) struct RequestFlags {
    /// Print the answer as JSON, one object a line.
    #[arg(long, global = true)]
    json: bool,
    #[command(flatten)]
    folders: FolderFlags,
}

impl RequestFlags {
    /// Sends the request and prints the answer.
    ///
    /// Errors: no bot runs, or it refuses; after a reload, not all of it was taken up.
    pub fn carry_out(&self, command: OperatorCommand) -> anyhow::Result<()> {
        let is_status = command == OperatorCommand::Status;
        let none = match &command {
            OperatorCommand::Stats => Some("No day is recorded yet."),
            OperatorCommand::Jobs { command: None, all: true, .. } => Some("There is no job."),
            OperatorCommand::Jobs { command: None, .. } => Some("No job is open."),
            OperatorCommand::Askers { .. } => Some("No asker has had a job."),
            _ => None,
        };
        let lines = ask(&self.folders, command)?;
        lines.iter().try_for_each(|line| print(line, self.json))?;
        if self.json {
            return Ok(());
        }
        if let Some(none) = none.filter(|_| lines.is_empty()) {
            writeln!(stdout(), "{none}")?;
        }
        if is_status {
            for line in ask(&self.folders, OperatorCommand::Doctor)? {
                if let ReplyLine::Finding(Finding { verdict: Severity::Broken, text, .. }) = line {
                    writeln!(stdout(), "BAD {text}")?;
                }
            }
        }
        Ok(())
    }
}

#[derive(Args, Debug)]
pub(super) struct Doctor {
    #[command(flatten)]
    identity: IdentityFlags,
}

impl Doctor {
    pub fn run(self) -> anyhow::Result<()> {
        let folders = self.identity.folders.find()?;
        let runtime = runtime()?;
        let identity = identity_file(&folders.data);
        let findings = runtime.block_on(doctor(&folders.config, &folders.data, &identity));
        for finding in &findings {
            stdout().write_all(finding_text(finding).as_bytes())?;
        }
        let broken = findings.iter().filter(|finding| finding.verdict == Severity::Broken).count();
        if broken > 0 {
            bail!(Passing(format!("what is marked BAD must be fixed before the bot can serve ({broken} in all)")));
        }
        Ok(())
    }
}

/// Sends a command to the running bot and returns the lines of its answer.
///
/// Errors: no bot runs, or it refuses.
pub(super) fn ask(folders: &FolderFlags, command: OperatorCommand) -> anyhow::Result<Vec<ReplyLine>> {
    Ok(control::ask(&folders.find()?.data, command)?)
}

/// Prints a line of an answer: an object as JSON or for people, and a text for the operator on
/// standard error.
pub(super) fn print(line: &ReplyLine, is_json: bool) -> anyhow::Result<()> {
    fn show<T: Serialize>(value: &T, is_json: bool, text: impl Fn(&T) -> String) -> anyhow::Result<()> {
        if is_json { print_json(value) } else { Ok(stdout().write_all(text(value).as_bytes())?) }
    }
    match line {
        ReplyLine::Status(status) => show(status, is_json, status_text),
        ReplyLine::Job(job) => show(job, is_json, job_text),
        ReplyLine::Asker(asker) => show(asker, is_json, asker_text),
        ReplyLine::Day(day) => show(day, is_json, day_text),
        ReplyLine::Finding(finding) => show(finding, is_json, finding_text),
        #[cfg(feature = "fleet")]
        ReplyLine::Fleet(fleet) => show(fleet, is_json, super::fleet::fleet_text),
        ReplyLine::Said(text) => {
            note!("{text}");
            Ok(())
        }
        ReplyLine::View(_) | ReplyLine::Refused(_) | ReplyLine::End => Ok(()),
    }
}

fn finding_text(finding: &Finding) -> String {
    let mark = match finding.verdict {
        Severity::Good => "ok  ",
        Severity::Weak => "weak",
        Severity::Broken => "BAD ",
    };
    format!("{mark}  {:14} {}\n", finding.what, finding.text)
}

fn status_text(status: &Status) -> String {
    let up = humanize(Duration::from_secs(status.uptime_seconds));
    let mut text = format!("{}\nnpubbot {}, up {up}\n", status.npub, status.version);
    text += &match status.rate {
        Some(rate) => format!("{rate} together\n"),
        None => "no rate is known\n".to_owned(),
    };
    for device in &status.devices {
        text += &format!("  {}\n", device_text(device));
    }
    if let Some(workers) = workers_text(status) {
        text += &format!("{workers}\n");
    }
    text += "relays\n";
    for relay in &status.relays {
        text += &format!("  {}\n", relay_text(relay));
    }
    text += &format!(
        "{} open jobs, {} undelivered messages, {} MiB of heap\n",
        status.open_jobs,
        status.undelivered,
        status.memory_bytes >> 20
    );
    for bound in &status.bounds_reached {
        text += &format!("FULL {bound}\n");
    }
    text
}

/// A device: its rate, name and state.
pub(super) fn device_text(device: &DeviceStatus) -> String {
    let rate = device.rate.map_or_else(|| "-".to_owned(), |rate| rate.to_string());
    format!("{:8} {rate:12} {}, {}", device.id.to_string(), device.name, device.state)
}

/// A relay: its state, delay, failures, and what it says.
pub(super) fn relay_text(relay: &RelayFigures) -> String {
    let state = if relay.is_connected() { "connected" } else { "disconnected" };
    let lag = relay.lag_milliseconds.map_or_else(String::new, |lag| format!(", {lag} ms"));
    let failed = if relay.failures > 0 { format!(", {} failed", relay.failures) } else { String::new() };
    let said = relay.said.as_ref().map_or_else(String::new, |said| format!(", says: {}", said.text));
    format!("{state:12} {}{lag}{failed}{said}", relay.url)
}

/// How many workers on other machines are there; `None` without a server for them.
#[cfg_attr(not(feature = "fleet"), expect(unused_variables))]
pub(super) fn workers_text(status: &Status) -> Option<String> {
    #[cfg(not(feature = "fleet"))]
    return None;
    #[cfg(feature = "fleet")]
    status.fleet.as_ref().map(|fleet| {
        let there = fleet.workers.iter().filter(|worker| worker.figures.connected).count();
        let state = if fleet.connected { "connected" } else { "away; workers get no orders until it is back" };
        format!("workers: {there} of {} are there; {} is {state}", fleet.workers.len(), fleet.server)
    })
}

fn job_text(job: &JobStatus) -> String {
    if job.state != "accepted" {
        let ago = humanize(Duration::from_secs(job.age_seconds));
        let patterns = job.patterns.join(" ");
        return format!("#{} {}, accepted {ago} ago, {} {patterns}, {}\n", job.job, job.state, job.kind, job.asker);
    }
    let expected = job.expected_seconds.map_or_else(
        || "time not known".to_owned(),
        |seconds| format!("{} expected", humanize(Duration::from_secs_f64(seconds.min(1e12)))),
    );
    format!("#{} {} {}, {expected}, {}\n", job.job, job.kind, job.patterns.join(" "), job.asker)
}

fn asker_text(asker: &AskerTotals) -> String {
    let standing = match asker.standing {
        Standing::Denied => ", denied",
        Standing::Ordinary => "",
        Standing::Friend => ", a friend",
    };
    format!("{}  {} open, {} done, {} messages{standing}\n", asker.asker, asker.open_jobs, asker.done, asker.messages)
}

fn day_text(day: &DayFigures) -> String {
    let rate = Rate(day.candidates as f64 / SECONDS_A_DAY).to_string();
    format!(
        "{}  {:>4} accepted  {:>4} delivered  {rate:>10} over the day{}\n",
        day.date,
        day.jobs_accepted,
        day.jobs_delivered,
        day.kwh.map_or_else(String::new, |kwh| format!("  {kwh:>7.2} kWh"))
    )
}

#[cfg(test)]
pub(super) mod tests {
    use super::*;
    use crate::nostr::{ConnectionState, RelayWords};
    use crate::search::DeviceId;

    /// A device in a state.
    pub(in crate::cli) fn device(id: DeviceId, rate: Option<f64>, state: &str) -> DeviceStatus {
        DeviceStatus {
            state: state.to_owned(),
            rate: rate.map(Rate),
            ..DeviceStatus::new(id, "NVIDIA H100 80GB HBM3".to_owned(), "cuda sm_90".to_owned(), 1)
        }
    }

    /// An open job.
    pub(in crate::cli) fn job(job: i64, kind: &str, patterns: &[&str]) -> JobStatus {
        JobStatus {
            job,
            asker: "npub1asker".to_owned(),
            patterns: patterns.iter().map(ToString::to_string).collect(),
            kind: kind.to_owned(),
            state: "accepted".to_owned(),
            accepted_at: 1,
            expires_at: 2,
            difficulty: Some(1e12),
            expected_seconds: Some(34.0),
            age_seconds: 3,
            chance_so_far: None,
            seconds_left: None,
        }
    }

    /// A bot with a CPU, two relays and a table that is full.
    pub(in crate::cli) fn status() -> Status {
        let relay = |url: &str, state, failures, lag_milliseconds, said: Option<&str>| RelayFigures {
            url: url.to_owned(),
            state,
            failures,
            lag_milliseconds,
            said: said.map(|text| RelayWords { text: text.to_owned(), refuses_inbox: false }),
        };
        Status {
            version: "0.1.0".to_owned(),
            npub: "npub1m0ctane8kyy3vr0kgg2vz5qp3cye5z7qfe4rd6rzv0mfmzlyh3srdv9d5".to_owned(),
            uptime_seconds: 7300,
            rate: Some(Rate(1.6e9)),
            devices: vec![device(DeviceId::Cpu, None, "paused")],
            #[cfg(feature = "fleet")]
            fleet: Some(crate::fleet::FleetStatus { server: "tls://a:4222".to_owned(), ..Default::default() }),
            relays: vec![
                relay("wss://nos.lol", ConnectionState::Connected, 0, Some(43), Some("NOTICE slow down")),
                relay("wss://relay.damus.io", ConnectionState::Disconnected, 7, None, None),
            ],
            open_jobs: 3,
            undelivered: 1,
            memory_bytes: 40 << 20,
            bounds_reached: vec!["the table is full".to_owned()],
        }
    }

    #[test]
    fn each_object_is_a_line_or_more_for_people() {
        insta::assert_snapshot!(status_text(&status()), @r"
        npub1m0ctane8kyy3vr0kgg2vz5qp3cye5z7qfe4rd6rzv0mfmzlyh3srdv9d5
        npubbot 0.1.0, up 2 h 2 min
        1.60 G/s together
          cpu      -            NVIDIA H100 80GB HBM3, paused
        workers: 0 of 0 are there; tls://a:4222 is away; workers get no orders until it is back
        relays
          connected    wss://nos.lol, 43 ms, says: NOTICE slow down
          disconnected wss://relay.damus.io, 7 failed
        3 open jobs, 1 undelivered messages, 40 MiB of heap
        FULL the table is full
        ");
        assert!(status_text(&Status { rate: None, ..status() }).contains("\nno rate is known\n"));
        insta::assert_snapshot!(job_text(&job(5, "pool", &["m0ctane"])), @"#5 pool m0ctane, 34 seconds expected, npub1asker");
        let ended = JobStatus { state: "delivered".to_owned(), ..job(6, "split", &["cat"]) };
        insta::assert_snapshot!(job_text(&ended), @"#6 delivered, accepted 3 seconds ago, split cat, npub1asker");
        let asker = AskerTotals {
            asker: "npub1x".to_owned(),
            open_jobs: 2,
            done: 5,
            messages: 17,
            last_job_at: Some(1),
            standing: Standing::Denied,
        };
        insta::assert_snapshot!(asker_text(&asker), @"npub1x  2 open, 5 done, 17 messages, denied");
        let day = DayFigures {
            date: "2026-11-23".to_owned(),
            candidates: 86_400_000_000_000,
            jobs_accepted: 12,
            jobs_delivered: 2,
            kwh: Some(2.4),
        };
        insta::assert_snapshot!(day_text(&day), @"2026-11-23    12 accepted     2 delivered    1.00 G/s over the day     2.40 kWh");
    }
}
