//! The commands that look at a running bot or change it: `status`, `jobs`, `askers`, `stats`,
//! `doctor`; `allow`, `deny`, `pause`, `resume`, `reload`, `log`.

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
use std::sync::mpsc::{RecvTimeoutError, channel};
use std::time::Duration;

/// Time without an answer after which the operator is told that the command still waits.
const NOTICE_AFTER: Duration = Duration::from_secs(3);
const SECONDS_A_DAY: f64 = 86_400.0;

/// Flags of `npubbot pause`.
#[derive(Args, Debug)]
#[command(after_help = "\
Examples:
  npubbot pause             stop searching, also after a restart; messages are still answered
  npubbot pause --for 3d    until `npubbot resume`, or for three days

Exit code 3: no bot runs.")]
pub(super) struct Pause {
    /// Go on by itself after this time.
    #[arg(long = "for", value_name = "TIME", value_parser = duration::parse)]
    time: Option<Duration>,
    #[command(flatten)]
    folders: FolderFlags,
}

impl Pause {
    /// Runs the command.
    pub fn run(self) -> anyhow::Result<()> {
        carry_out(&self.folders, OperatorCommand::Pause { seconds: self.time.map(|time| time.as_secs()) })
    }
}

/// Flags of a command about an asker: `deny`, `erase`.
#[derive(Args, Debug)]
pub(super) struct AboutAsker {
    /// The asker.
    #[arg(value_name = "NPUB")]
    npub: String,
    #[command(flatten)]
    folders: FolderFlags,
}

/// The examples of `npubbot deny`.
pub(super) const DENY_EXAMPLES: &str = "\
Examples:
  npubbot deny npub1…    ignore an asker; their open jobs are cancelled

They are not told. A key that was found is still sent. `npubbot allow` undoes it.
Exit code 3: no bot runs.";

/// The examples of `npubbot erase`.
pub(super) const ERASE_EXAMPLES: &str = "\
Examples:
  npubbot erase npub1…    delete what the ledger has of an asker; open jobs end, and they are not told

The answer says what stays, and why. `npubbot deny` ignores them from now on.
Exit code 3: no bot runs.";

impl AboutAsker {
    /// Sends the command that `of` makes of the npub.
    pub fn run(self, of: impl FnOnce(String) -> OperatorCommand) -> anyhow::Result<()> {
        carry_out(&self.folders, of(self.npub))
    }
}

/// Flags of a command without arguments of its own: `resume`, `reload`.
#[derive(Args, Debug)]
#[command(after_help = "\
Examples:
  npubbot resume    search again after `npubbot pause`
  npubbot reload    take up a changed relays.toml; a wrong one changes nothing

Exit code 3: no bot runs.")]
pub(super) struct Simple {
    #[command(flatten)]
    folders: FolderFlags,
}

impl Simple {
    /// Sends `command` and prints the bot's words.
    pub fn run(self, command: OperatorCommand) -> anyhow::Result<()> {
        carry_out(&self.folders, command)
    }
}

/// Time between two questions about a reload.
const RELOAD_PERIOD: Duration = Duration::from_millis(200);

impl Simple {
    /// Has the bot read its configuration again, and waits until it has taken it up.
    ///
    /// Errors: the configuration is wrong, or not all of it was taken up.
    pub fn reload(self) -> anyhow::Result<()> {
        carry_out(&self.folders, OperatorCommand::Reload)?;
        let data = self.folders.find()?.data;
        tell_if_slow(|| {
            loop {
                std::thread::sleep(RELOAD_PERIOD);
                let mut outcome = None;
                control::ask(&data, OperatorCommand::Reloaded, |line| match line {
                    ReplyLine::Said(text) => outcome = Some(Ok(text)),
                    ReplyLine::Refused(reason) => outcome = Some(Err(reason)),
                    _ => {}
                })?;
                match outcome {
                    Some(Ok(text)) => {
                        note!("{text}");
                        return Ok(());
                    }
                    Some(Err(reason)) => bail!("{reason}"),
                    None => {}
                }
            }
        })
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
        let status = |line| if let ReplyLine::Status(status) = line { Some(status) } else { None };
        let checks = if self.json { Vec::new() } else { ask(&self.folders, OperatorCommand::Doctor, finding)? };
        show(&self.folders, OperatorCommand::Status, self.json, status, |status| status_text(status, &checks))?;
        Ok(())
    }
}

/// Flags of `npubbot jobs`.
#[derive(Args, Debug)]
#[command(after_help = "\
Examples:
  npubbot jobs                         open jobs, oldest first
  npubbot jobs --all --asker npub1…    where is my key? also ended jobs, until they are deleted
  npubbot jobs --json                  one JSON object a line
  npubbot jobs show 5                  one job
  npubbot jobs cancel 5                give it up; its asker is told

Exit code 3: no bot runs.")]
pub(super) struct Jobs {
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
}

/// Commands under `npubbot jobs`.
#[derive(Subcommand, Debug)]
enum JobCommand {
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

impl Jobs {
    /// Runs the command.
    pub fn run(self) -> anyhow::Result<()> {
        let command = match self.command {
            Some(JobCommand::Cancel { job }) => return carry_out(&self.folders, OperatorCommand::Cancel { job }),
            Some(JobCommand::Show { job }) => OperatorCommand::Show { job },
            None => OperatorCommand::Jobs { all: self.all, asker: self.asker },
        };
        let job = |line| if let ReplyLine::Job(job) = line { Some(job) } else { None };
        if show(&self.folders, command, self.json, job, job_text)? == 0 && !self.json {
            writeln!(stdout(), "{}", if self.all { "There is no job." } else { "No job is open." })?;
        }
        Ok(())
    }
}

/// Flags of `npubbot askers`.
#[derive(Args, Debug)]
#[command(after_help = "\
Examples:
  npubbot askers                 those with the most open jobs first, then the latest
  npubbot askers --limit 5
  npubbot askers --json | jq -r 'select(.standing == \"denied\") | .asker'

Exit code 3: no bot runs.")]
pub(super) struct Askers {
    /// Show at most this many.
    #[arg(long, value_name = "N", default_value_t = 50, value_parser = clap::value_parser!(u16).range(1..=10_000))]
    limit: u16,
    /// Print one JSON object a line.
    #[arg(long)]
    json: bool,
    #[command(flatten)]
    folders: FolderFlags,
}

impl Askers {
    /// Runs the command.
    pub fn run(self) -> anyhow::Result<()> {
        let asker = |line| if let ReplyLine::Asker(asker) = line { Some(asker) } else { None };
        let command = OperatorCommand::Askers { most: self.limit.into() };
        if show(&self.folders, command, self.json, asker, asker_text)? == 0 && !self.json {
            writeln!(stdout(), "No asker has had a job.")?;
        }
        Ok(())
    }
}

/// Flags of `npubbot stats`.
#[derive(Args, Debug)]
#[command(after_help = "\
Examples:
  npubbot stats                     the last 30 days (UTC), one a line
  npubbot stats --json | jq .jobs_delivered

Exit code 3: no bot runs.")]
pub(super) struct Stats {
    /// Print one JSON object a line, the oldest day first.
    #[arg(long)]
    json: bool,
    #[command(flatten)]
    folders: FolderFlags,
}

impl Stats {
    /// Runs the command.
    pub fn run(self) -> anyhow::Result<()> {
        let day = |line| if let ReplyLine::Day(day) = line { Some(day) } else { None };
        show(&self.folders, OperatorCommand::Stats, self.json, day, day_text).map(drop)
    }
}

/// Flags of `npubbot allow`.
#[derive(Args, Debug)]
#[command(after_help = "\
Examples:
  npubbot allow npub1…             treat a denied asker, or a friend, as everybody again
  npubbot allow --friend npub1…    ten times the open jobs and jobs a day, and no proof of work

Messages that were ignored may be answered after the next start, while the relays still have them.
Exit code 3: no bot runs.")]
pub(super) struct Allow {
    /// Raise their limits tenfold and ask no proof of work of them.
    #[arg(long)]
    friend: bool,
    #[command(flatten)]
    asker: AboutAsker,
}

impl Allow {
    /// Runs the command.
    pub fn run(self) -> anyhow::Result<()> {
        let standing = if self.friend { Standing::Friend } else { Standing::Ordinary };
        self.asker.run(|npub| OperatorCommand::Rule { npub, standing })
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
        carry_out(&self.folders, OperatorCommand::Log { level: self.level })
    }
}

/// Flags of `npubbot doctor`.
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
    /// Runs the command.
    pub fn run(self) -> anyhow::Result<()> {
        let folders = self.identity.folders.find()?;
        let runtime = runtime()?;
        let identity = identity_file(&folders.data);
        let findings = tell_if_slow(|| runtime.block_on(doctor(&folders.config, &folders.data, &identity)));
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
/// as text. Returns their number.
pub(super) fn show<T: Serialize>(
    folders: &FolderFlags,
    command: OperatorCommand,
    is_json: bool,
    pick: impl Fn(ReplyLine) -> Option<T>,
    text: impl Fn(&T) -> String,
) -> anyhow::Result<usize> {
    let lines = ask(folders, command, pick)?;
    for line in &lines {
        if is_json { print_json(line)? } else { stdout().write_all(text(line).as_bytes())? }
    }
    Ok(lines.len())
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
    let (mut lines, mut refused) = (Vec::new(), None);
    let data = folders.find()?.data;
    tell_if_slow(|| {
        control::ask(&data, command, |line| match line {
            ReplyLine::Refused(reason) => refused = Some(reason),
            ReplyLine::Said(text) => note!("{text}"),
            line => lines.extend(pick(line)),
        })
    })?;
    if let Some(reason) = refused {
        bail!("{reason}");
    }
    Ok(lines)
}

/// Runs a function that asks the bot, and tells the operator on standard error if it takes long.
pub(super) fn tell_if_slow<T>(ask: impl FnOnce() -> T) -> T {
    let (asking, asked) = channel::<()>();
    std::thread::scope(|scope| {
        scope.spawn(move || {
            if asked.recv_timeout(NOTICE_AFTER) == Err(RecvTimeoutError::Timeout) {
                note!("npubbot: no answer yet; a bot is given {} seconds", control::ANSWER_TIMEOUT.as_secs());
            }
        });
        let answer = ask();
        drop(asking);
        answer
    })
}

fn finding(line: ReplyLine) -> Option<Finding> {
    if let ReplyLine::Finding(finding) = line { Some(finding) } else { None }
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
