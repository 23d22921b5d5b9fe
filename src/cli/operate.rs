//! The commands that look at a running bot or change it, and `doctor`.

use super::exit::Passing;
use super::folders::FolderFlags;
use super::identity::{IdentityFlags, identity_file};
use super::output::{note, print_json, stdout};
use super::serve::runtime;
use crate::control::{self, Finding, JobStatus, OperatorCommand, ReplyLine, Severity, Status};
use crate::duration::{self, humanize};
use crate::ledger::{AskerTotals, DayFigures, Standing};
use crate::pattern::Rate;
use crate::service::doctor;
use anyhow::bail;
use clap::{Args, Subcommand};
use serde::Serialize;
use std::io::Write;
use std::time::Duration;

/// Time between two questions about a reload.
const RELOAD_PERIOD: Duration = Duration::from_millis(200);
const SECONDS_A_DAY: f64 = 86_400.0;

/// The commands that are requests to the running bot.
#[derive(Subcommand, Debug)]
pub(super) enum Operate {
    /// Show the state of the running bot: rate, devices, relays, jobs.
    #[command(after_help = "\
Examples:
  npubbot status                             the bot of this user
  npubbot status --json | jq .open_jobs      one number, for a script
  sudo npubbot status                        the bot of the service")]
    Status {
        /// Print one JSON object.
        #[arg(long)]
        json: bool,
        #[command(flatten)]
        folders: FolderFlags,
    },
    /// Show what the running bot did each day.
    #[command(after_help = "\
Examples:
  npubbot stats                     the last 30 days (UTC), one a line
  npubbot stats --json | jq .jobs_delivered")]
    Stats {
        /// Print one JSON object a line, the oldest day first.
        #[arg(long)]
        json: bool,
        #[command(flatten)]
        folders: FolderFlags,
    },
    /// Show the jobs of the running bot, or give one up.
    #[command(after_help = "\
Examples:
  npubbot jobs                         open jobs, oldest first
  npubbot jobs --all --asker npub1…    where is my key? also ended jobs, until they are deleted
  npubbot jobs --json                  one JSON object a line
  npubbot jobs show 5                  one job
  npubbot jobs cancel 5                give it up; its asker is told")]
    Jobs {
        #[command(subcommand)]
        command: Option<JobCommand>,
        /// Show ended jobs too.
        #[arg(long)]
        all: bool,
        /// Show those of this asker only.
        #[arg(long, value_name = "NPUB")]
        asker: Option<String>,
        /// Print one JSON object a line.
        #[arg(long, global = true)]
        json: bool,
        #[command(flatten)]
        folders: FolderFlags,
    },
    /// Show who asks the running bot: open jobs, jobs done, messages.
    #[command(after_help = "\
Examples:
  npubbot askers                 those with the most open jobs first, then the latest
  npubbot askers --limit 5
  npubbot askers --json | jq -r 'select(.standing == \"denied\") | .asker'")]
    Askers {
        /// Show at most this many.
        #[arg(long, value_name = "N", default_value_t = 50, value_parser = clap::value_parser!(u16).range(1..=10_000))]
        limit: u16,
        /// Print one JSON object a line.
        #[arg(long)]
        json: bool,
        #[command(flatten)]
        folders: FolderFlags,
    },
    /// Treat an asker as everybody again, or as a friend.
    #[command(after_help = "\
Examples:
  npubbot allow npub1…             treat a denied asker, or a friend, as everybody again
  npubbot allow --friend npub1…    ten times the open jobs and jobs a day, and no proof of work

Messages that were ignored may be answered after the next start, while the relays still have them.")]
    Allow {
        /// Raise their limits tenfold and ask no proof of work of them.
        #[arg(long)]
        friend: bool,
        /// The asker.
        #[arg(value_name = "NPUB")]
        npub: String,
        #[command(flatten)]
        folders: FolderFlags,
    },
    /// Ignore an asker from now on.
    #[command(after_help = "\
Examples:
  npubbot deny npub1…    ignore an asker; their open jobs are cancelled

They are not told. A key that was found is still sent. `npubbot allow` undoes it.")]
    Deny {
        /// The asker.
        #[arg(value_name = "NPUB")]
        npub: String,
        #[command(flatten)]
        folders: FolderFlags,
    },
    /// Delete what the running bot keeps of an asker.
    #[command(after_help = "\
Examples:
  npubbot erase npub1…    delete what the ledger has of an asker; open jobs end, and they are not told

The answer says what stays, and why. `npubbot deny` ignores them from now on.")]
    Erase {
        /// The asker.
        #[arg(value_name = "NPUB")]
        npub: String,
        #[command(flatten)]
        folders: FolderFlags,
    },
    /// Stop the search of the running bot for a while.
    #[command(after_help = "\
Examples:
  npubbot pause             stop searching, also after a restart; messages are still answered
  npubbot pause --for 3d    until `npubbot resume`, or for three days")]
    Pause {
        /// Go on by itself after this time.
        #[arg(long = "for", value_name = "TIME", value_parser = duration::parse)]
        time: Option<Duration>,
        #[command(flatten)]
        folders: FolderFlags,
    },
    /// Go on with the search.
    #[command(after_help = "\
Examples:
  npubbot resume    search again after `npubbot pause`")]
    Resume {
        #[command(flatten)]
        folders: FolderFlags,
    },
    /// Have the running bot read its configuration again.
    #[command(after_help = "\
Examples:
  npubbot reload    take up a changed relays.toml; a wrong one changes nothing")]
    Reload {
        #[command(flatten)]
        folders: FolderFlags,
    },
}

/// Commands under `npubbot jobs`.
#[derive(Subcommand, Debug)]
pub(super) enum JobCommand {
    /// Show one job.
    #[command(after_help = "Examples:\n  npubbot jobs show 5 --json")]
    Show {
        /// Its number.
        #[arg(value_name = "N")]
        job: i64,
    },
    /// Give a job up and tell its asker.
    #[command(after_help = "Examples:\n  npubbot jobs cancel 5")]
    Cancel {
        /// Its number.
        #[arg(value_name = "N")]
        job: i64,
    },
}

/// Takes the lines of an answer that are of this kind.
macro_rules! only {
    ($kind:ident) => {
        |line| if let ReplyLine::$kind(content) = line { Some(content) } else { None }
    };
}

impl Operate {
    /// Sends the request and prints the answer.
    ///
    /// Errors: no bot runs, or it refuses; after a reload, not all of it was taken up.
    pub fn run(self) -> anyhow::Result<()> {
        let rule = |folders, npub, standing| carry_out(folders, OperatorCommand::Rule { npub, standing });
        match self {
            Operate::Status { json, folders } => {
                let checks = if json { Vec::new() } else { ask(&folders, OperatorCommand::Doctor, only!(Finding))? };
                let text = |status: &Status| status_text(status, &checks);
                show(&folders, OperatorCommand::Status, json, only!(Status), text, "")
            }
            Operate::Stats { json, folders } => {
                show(&folders, OperatorCommand::Stats, json, only!(Day), day_text, "No day is recorded yet.")
            }
            Operate::Jobs { command: Some(JobCommand::Cancel { job }), folders, .. } => {
                carry_out(&folders, OperatorCommand::Cancel { job })
            }
            Operate::Jobs { command: Some(JobCommand::Show { job }), json, folders, .. } => {
                show(&folders, OperatorCommand::Show { job }, json, only!(Job), job_text, "")
            }
            Operate::Jobs { command: None, all, asker, json, folders } => {
                let none = if all { "There is no job." } else { "No job is open." };
                show(&folders, OperatorCommand::Jobs { all, asker }, json, only!(Job), job_text, none)
            }
            Operate::Askers { limit, json, folders } => {
                let command = OperatorCommand::Askers { most: limit.into() };
                show(&folders, command, json, only!(Asker), asker_text, "No asker has had a job.")
            }
            Operate::Allow { friend: true, npub, folders } => rule(&folders, npub, Standing::Friend),
            Operate::Allow { friend: false, npub, folders } => rule(&folders, npub, Standing::Ordinary),
            Operate::Deny { npub, folders } => rule(&folders, npub, Standing::Denied),
            Operate::Erase { npub, folders } => carry_out(&folders, OperatorCommand::Erase { npub }),
            Operate::Pause { time, folders } => {
                carry_out(&folders, OperatorCommand::Pause { seconds: time.map(|time| time.as_secs()) })
            }
            Operate::Resume { folders } => carry_out(&folders, OperatorCommand::Resume),
            Operate::Reload { folders } => reload(&folders),
        }
    }
}

/// Has the bot read its configuration again, and waits until it has taken it up.
fn reload(folders: &FolderFlags) -> anyhow::Result<()> {
    carry_out(folders, OperatorCommand::Reload)?;
    let data = folders.find()?.data;
    loop {
        std::thread::sleep(RELOAD_PERIOD);
        let mut outcome = None;
        control::ask(&data, OperatorCommand::Reloaded, |line| outcome = Some(line))?;
        if let Some(ReplyLine::Said(text)) = outcome {
            note!("{text}");
            return Ok(());
        }
    }
}

#[derive(Args, Debug)]
#[command(after_help = "\
Examples:
  npubbot doctor                            the bot of this user
  npubbot doctor --data /var/lib/npubbot    another bot; the configuration is found as usual

While the bot runs, it is asked too: paused search, devices taken out, relays that are away, rows
that cannot be read, messages that were ignored.

Exit code 1: something is marked BAD.")]
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
            let mark = match finding.verdict {
                Severity::Good => "ok  ",
                Severity::Weak => "weak",
                Severity::Broken => "BAD ",
            };
            writeln!(stdout(), "{mark}  {:14} {}", finding.what, finding.text)?;
        }
        let broken = findings.iter().filter(|finding| finding.verdict == Severity::Broken).count();
        if broken > 0 {
            bail!(Passing(format!("what is marked BAD must be fixed before the bot can serve ({broken} in all)")));
        }
        Ok(())
    }
}

/// Sends a command whose answer is a text.
fn carry_out(folders: &FolderFlags, command: OperatorCommand) -> anyhow::Result<()> {
    ask(folders, command, |_| None::<()>).map(drop)
}

/// Sends a command and prints the lines of the answer that `pick` takes: each as a JSON object, or
/// as text. `none` is the text if there are none.
pub(super) fn show<T: Serialize>(
    folders: &FolderFlags,
    command: OperatorCommand,
    is_json: bool,
    pick: impl Fn(ReplyLine) -> Option<T>,
    text: impl Fn(&T) -> String,
    none: &str,
) -> anyhow::Result<()> {
    let lines = ask(folders, command, pick)?;
    for line in &lines {
        if is_json { print_json(line)? } else { stdout().write_all(text(line).as_bytes())? }
    }
    if lines.is_empty() && !is_json {
        writeln!(stdout(), "{none}")?;
    }
    Ok(())
}

/// Sends a command to the running bot and returns the lines of its answer that `pick` takes. Prints
/// its texts for the operator on standard error.
///
/// Errors: no bot runs, or it refuses.
fn ask<T>(
    folders: &FolderFlags,
    command: OperatorCommand,
    pick: impl Fn(ReplyLine) -> Option<T>,
) -> anyhow::Result<Vec<T>> {
    let mut lines = Vec::new();
    control::ask(&folders.find()?.data, command, |line| match line {
        ReplyLine::Said(text) => note!("{text}"),
        line => lines.extend(pick(line)),
    })?;
    Ok(lines)
}

/// The state for people, with the failed checks that keep the bot from serving.
fn status_text(status: &Status, checks: &[Finding]) -> String {
    let up = humanize(Duration::from_secs(status.uptime_seconds));
    let mut text = format!("{}\nnpubbot {}, up {up}\n", status.npub, status.version);
    text += &match status.rate {
        Some(rate) => format!("{rate} together\n"),
        None => "no rate is known\n".to_owned(),
    };
    for device in &status.devices {
        let rate = device.rate.map_or_else(|| "-".to_owned(), |rate| rate.to_string());
        text += &format!("  {:8} {rate:12} {}, {}\n", device.id.to_string(), device.name, device.state);
    }
    #[cfg(feature = "fleet")]
    if let Some(fleet) = &status.fleet {
        let there = fleet.workers.iter().filter(|worker| worker.connected).count();
        let state = if fleet.connected { "connected" } else { "away; workers get no orders until it is back" };
        text += &format!("workers: {there} of {} are there; {} is {state}\n", fleet.workers.len(), fleet.server);
    }
    text += "relays\n";
    for relay in &status.relays {
        let state = if relay.is_connected() { "connected" } else { "disconnected" };
        let said = relay.said.as_ref().map_or_else(String::new, |said| format!(", says: {}", said.text));
        text += &format!("  {state:12} {}{said}\n", relay.url);
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
    for check in checks.iter().filter(|check| check.verdict == Severity::Broken) {
        text += &format!("BAD {}\n", check.text);
    }
    text
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
    use crate::nostr::{ConnectionState, RelayFigures, RelayWords};
    use crate::scheduler::DeviceStatus;
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

    #[test]
    fn each_object_is_a_line_or_more_for_people() {
        let relay = RelayFigures {
            url: "wss://nos.lol".to_owned(),
            state: ConnectionState::Connected,
            failures: 0,
            lag_milliseconds: None,
            said: Some(RelayWords { text: "NOTICE slow down".to_owned(), refuses_inbox: false }),
        };
        let status = Status {
            version: "0.1.0".to_owned(),
            npub: "npub1x".to_owned(),
            uptime_seconds: 7300,
            rate: Some(Rate(1.6e9)),
            devices: vec![device(DeviceId::Cpu, None, "paused")],
            #[cfg(feature = "fleet")]
            fleet: Some(crate::fleet::FleetStatus { server: "tls://a:4222".to_owned(), ..Default::default() }),
            relays: vec![relay],
            open_jobs: 2,
            undelivered: 1,
            memory_bytes: 40 << 20,
            bounds_reached: vec!["the table is full".to_owned()],
        };
        let found = |verdict, text: &str| Finding { what: "disk".into(), verdict, text: text.to_owned() };
        let checks = [found(Severity::Broken, "no room; free some"), found(Severity::Weak, "little room")];
        insta::assert_snapshot!(status_text(&status, &checks), @r"
        npub1x
        npubbot 0.1.0, up 2 h 2 min
        1.60 G/s together
          cpu      -            NVIDIA H100 80GB HBM3, paused
        workers: 0 of 0 are there; tls://a:4222 is away; workers get no orders until it is back
        relays
          connected    wss://nos.lol, says: NOTICE slow down
        2 open jobs, 1 undelivered messages, 40 MiB of heap
        FULL the table is full
        BAD no room; free some
        ");
        assert!(status_text(&Status { rate: None, ..status }, &[]).contains("\nno rate is known\n"));
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
