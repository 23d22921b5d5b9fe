//! The commands that look at a running bot or change it: `status`, `jobs`, `pause`, `resume`,
//! `reload`, `log`.

use super::folders::FolderFlags;
use super::output::{note, stdout};
use crate::control::{self, Command, Finding, JobStatus, Reply, Status, Verdict};
use crate::duration::humanize;
use crate::pattern::Rate;
use anyhow::bail;
use clap::{Args, Subcommand};
use std::io::Write;
use std::sync::mpsc::{RecvTimeoutError, channel};
use std::time::Duration;

/// Time without an answer after which the operator is told that the command still waits.
const NOTICE: Duration = Duration::from_secs(3);

/// Flags of a command without arguments of its own: `pause`, `resume`, `reload`.
#[derive(Args, Debug)]
#[command(after_help = "\
Examples:
  npubbot pause     stop searching, for a while; messages are still answered
  npubbot resume    search again
  npubbot reload    take up a changed relays.toml; a wrong one changes nothing

Exit code 3: no bot runs.")]
pub(super) struct Simple {
    #[command(flatten)]
    folders: FolderFlags,
}

impl Simple {
    /// Sends `command` and prints the bot's words.
    pub fn run(self, command: Command) -> anyhow::Result<()> {
        carry_out(&self.folders, command)
    }
}

/// Flags of `npubbot status`.
#[derive(Args, Debug)]
#[command(after_help = "\
Examples:
  npubbot status                             the bot of this user
  npubbot status --json | jq .open_jobs      one number, for a script
  sudo npubbot status                        the bot of the service

Exit code 3: no bot runs.")]
pub(super) struct ShowStatus {
    /// Print one JSON object.
    #[arg(long)]
    json: bool,
    #[command(flatten)]
    folders: FolderFlags,
}

impl ShowStatus {
    /// Runs the command.
    pub fn run(self) -> anyhow::Result<()> {
        for reply in replies(&self.folders, Command::Status)? {
            if let Reply::Status(status) = reply {
                let text = match self.json {
                    true => serde_json::to_string(&status)? + "\n",
                    false => status_text(&status, &replies(&self.folders, Command::Doctor)?),
                };
                stdout().write_all(text.as_bytes())?;
            }
        }
        Ok(())
    }
}

/// Flags of `npubbot jobs`.
#[derive(Args, Debug)]
#[command(after_help = "\
Examples:
  npubbot jobs                 open jobs, oldest first
  npubbot jobs --json          one JSON object a line
  npubbot jobs show 5          one job
  npubbot jobs cancel 5        give it up; its asker is told

Exit code 3: no bot runs.")]
pub(super) struct Jobs {
    #[command(subcommand)]
    command: Option<JobCommand>,
    /// Print one JSON object a line.
    #[arg(long, global = true)]
    json: bool,
    #[command(flatten)]
    folders: FolderFlags,
}

/// Commands under `npubbot jobs`.
#[derive(Subcommand, Debug)]
enum JobCommand {
    /// Show one open job.
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

impl Jobs {
    /// Runs the command.
    pub fn run(self) -> anyhow::Result<()> {
        let command = match self.command {
            Some(JobCommand::Cancel { job }) => return carry_out(&self.folders, Command::Cancel { job }),
            Some(JobCommand::Show { job }) => Command::Show { job },
            None => Command::Jobs,
        };
        let mut out = stdout();
        let replies = replies(&self.folders, command)?;
        if replies.is_empty() && !self.json {
            writeln!(out, "No job is open.")?;
        }
        for reply in replies {
            match reply {
                Reply::Job(job) if self.json => writeln!(out, "{}", serde_json::to_string(&job)?)?,
                Reply::Job(job) => write!(out, "{}", job_text(&job))?,
                _ => {}
            }
        }
        Ok(())
    }
}

/// Flags of `npubbot log`.
#[derive(Args, Debug)]
#[command(after_help = "\
Examples:
  npubbot log debug    log more, until the next start
  npubbot log info     as usual

Exit code 3: no bot runs.")]
pub(super) struct Log {
    /// The level: `error`, `warn`, `info`, `debug` or `trace`.
    #[arg(value_name = "LEVEL", value_parser = ["error", "warn", "info", "debug", "trace"])]
    level: String,
    #[command(flatten)]
    folders: FolderFlags,
}

impl Log {
    /// Runs the command.
    pub fn run(self) -> anyhow::Result<()> {
        carry_out(&self.folders, Command::Log { level: self.level })
    }
}

/// Sends a command and prints the bot's words.
pub(super) fn carry_out(folders: &FolderFlags, command: Command) -> anyhow::Result<()> {
    for reply in replies(folders, command)? {
        if let Reply::Said(text) = reply {
            note!("{text}");
        }
    }
    Ok(())
}

/// Sends a command to the running bot and returns its replies.
///
/// Errors: no bot runs, or it refuses.
pub(super) fn replies(folders: &FolderFlags, command: Command) -> anyhow::Result<Vec<Reply>> {
    let mut replies = Vec::new();
    let data = folders.find()?.data;
    patiently(|| control::ask(&data, command, |reply| replies.push(reply)))?;
    if let Some(Reply::Refused(reason)) = replies.iter().find(|reply| matches!(reply, Reply::Refused(_))) {
        bail!("{reason}");
    }
    Ok(replies)
}

/// Runs a function that asks the bot, and tells the operator on standard error if it takes long.
pub(super) fn patiently<T>(ask: impl FnOnce() -> T) -> T {
    let (asking, asked) = channel::<()>();
    std::thread::scope(|scope| {
        scope.spawn(move || {
            if asked.recv_timeout(NOTICE) == Err(RecvTimeoutError::Timeout) {
                note!("npubbot: no answer yet; a bot is given {} seconds", control::PATIENCE.as_secs());
            }
        });
        let answer = ask();
        drop(asking);
        answer
    })
}

/// The state for people, with the failed checks that keep the bot from serving.
fn status_text(status: &Status, checks: &[Reply]) -> String {
    let rate = |rate: Option<f64>| rate.map_or_else(|| "-".to_owned(), |rate| Rate(rate).to_string());
    let mut text = format!(
        "{}\nnpubbot {}, up {}\n",
        status.npub,
        status.version,
        humanize(Duration::from_secs(status.uptime_seconds))
    );
    text += &match status.rate {
        Some(rate) => format!("{} together\n", Rate(rate)),
        None => "no rate is known\n".to_owned(),
    };
    for device in &status.devices {
        text += &format!("  {:8} {:12} {}, {}\n", device.id, rate(device.rate), device.name, device.state);
    }
    if let Some(fleet) = &status.fleet {
        let there = fleet.workers.iter().filter(|worker| worker.connected).count();
        let state = if fleet.connected { "connected" } else { "away; workers get no orders until it is back" };
        text += &format!("workers: {there} of {} are there; {} is {state}\n", fleet.workers.len(), fleet.server);
    }
    text += "relays\n";
    for relay in &status.relays {
        text += &format!("  {:12} {}\n", relay.state, relay.url);
    }
    text += &format!(
        "{} open jobs, {} undelivered messages, {} MiB of heap\n",
        status.open_jobs,
        status.undelivered,
        status.memory_bytes >> 20
    );
    for check in checks {
        if let Reply::Finding(Finding { verdict: Verdict::Broken, text: problem, .. }) = check {
            text += &format!("BAD {problem}\n");
        }
    }
    text
}

fn job_text(job: &JobStatus) -> String {
    let expected = job.expected_seconds.map_or_else(
        || "time not known".to_owned(),
        |seconds| format!("{} expected", humanize(Duration::from_secs_f64(seconds.min(1e12)))),
    );
    format!("#{} {} {}, {expected}, {}\n", job.job, job.kind, job.patterns.join(" "), job.asker)
}

/// The round trip and the clock of a device, if they are known.
#[cfg(any(feature = "fleet", feature = "top"))]
pub(super) fn echo_text(device: &control::WorkerDeviceStatus) -> String {
    let Some((time, ahead)) = device.round_trip.zip(device.clock_ahead) else { return String::new() };
    // The error of the clock is up to half the round trip.
    let clock = if ahead.abs() < 1.0 { format!("{:+.0} ms", ahead * 1e3) } else { format!("{ahead:+.0} s") };
    format!(", round trip {:.0} ms, clock {clock}", time * 1e3)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::control::{DeviceStatus, FleetStatus, RelayStatus};

    #[test]
    fn status_and_jobs_are_short_for_people() {
        let status = Status {
            version: "0.1.0".to_owned(),
            npub: "npub1x".to_owned(),
            uptime_seconds: 7300,
            rate: Some(1.6e9),
            devices: vec![DeviceStatus {
                id: "cpu".to_owned(),
                name: "x86_64".to_owned(),
                rate: None,
                state: "paused".to_owned(),
            }],
            fleet: Some(FleetStatus { server: "tls://a:4222".to_owned(), connected: false, workers: Vec::new() }),
            relays: vec![RelayStatus { url: "wss://nos.lol".to_owned(), state: "connected".to_owned() }],
            open_jobs: 2,
            undelivered: 1,
            memory_bytes: 40 << 20,
        };
        let found =
            |verdict, text: &str| Reply::Finding(Finding { what: "disk".into(), verdict, text: text.to_owned() });
        let checks = [found(Verdict::Broken, "no room; free some"), found(Verdict::Weak, "little room"), Reply::End];
        insta::assert_snapshot!(status_text(&status, &checks), @r"
        npub1x
        npubbot 0.1.0, up 2 h 2 min
        1.60 G/s together
          cpu      -            x86_64, paused
        workers: 0 of 0 are there; tls://a:4222 is away; workers get no orders until it is back
        relays
          connected    wss://nos.lol
        2 open jobs, 1 undelivered messages, 40 MiB of heap
        BAD no room; free some
        ");
        assert!(status_text(&Status { rate: None, ..status }, &[]).contains("\nno rate is known\n"));
        let job = JobStatus {
            job: 5,
            asker: "npub1y".to_owned(),
            patterns: vec!["m0ctane".to_owned()],
            kind: "pool".to_owned(),
            accepted_at: 1,
            expires_at: 2,
            difficulty: Some(1.0),
            expected_seconds: Some(34.0),
        };
        insta::assert_snapshot!(job_text(&job), @"#5 pool m0ctane, 34 seconds expected, npub1y");
    }
}
