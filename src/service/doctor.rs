//! The checks of `npubbot doctor`: those of the installation, and those that only the running bot
//! can make. Each says what would work.

use super::context::Handles;
use super::maintenance::causes_text;
use crate::config::{Config, RelayEntry};
use crate::control::{self, ControlError, Finding, OperatorCommand, ReplyLine, Severity};
use crate::device_cache;
use crate::duration::humanize;
use crate::ledger::{self, Inspection, LedgerError, Quarantined, Sizes};
use crate::log_writer;
use crate::nostr::{RelayFigures, nip11, reach};
use crate::os::files::{self, free_bytes};
use crate::os::walls;
use crate::scheduler::{DeviceStatus, Health, Rest};
use crate::search::cpu::describe_kernel;
use crate::search::cuda::probe;
use crate::search::{self, DeviceChoice, DeviceId, SearchOptions};
use crate::vault::{self, MissingWall};
use anyhow::bail;
use std::borrow::Cow;
use std::io::ErrorKind;
use std::net::SocketAddr;
use std::path::Path;
use std::time::Duration;

/// A finding of a check whose result is good.
pub(super) fn good(what: &'static str, text: impl Into<String>) -> Finding {
    finding(what, Severity::Good, text)
}

/// A finding of something that works worse than it could.
pub(super) fn weak(what: &'static str, text: impl Into<String>) -> Finding {
    finding(what, Severity::Weak, text)
}

/// A finding of something without which the bot serves nobody.
fn broken(what: &'static str, text: impl Into<String>) -> Finding {
    finding(what, Severity::Broken, text)
}

fn finding(what: &'static str, verdict: Severity, text: impl Into<String>) -> Finding {
    Finding { what: Cow::Borrowed(what), verdict, text: text.into() }
}

/// Time limit for a relay.
const RELAY_TIMEOUT: Duration = Duration::from_secs(7);
/// Bytes on the disk below which SQLite may fail at any moment.
pub const FULL_DISK_BYTES: u64 = 1 << 20;
/// Name of the check of the disk.
const DISK_CHECK: &str = "disk";
/// Bytes on the disk below which the operator is warned.
const LOW_DISK_BYTES: u64 = 256 << 20;
/// Time limit for a relay through a proxy: Tor takes long to make a circuit to an onion service.
const PROXY_TIMEOUT: Duration = Duration::from_secs(60);

/// Runs every check. If a bot runs with the data folder, its own checks are included. Changes
/// nothing, and opens no identity.
pub async fn doctor(config: &Path, data: &Path, identity: &Path) -> Vec<Finding> {
    let config = Config::load(config);
    let mut findings = device_findings(config.as_ref().ok().map(|config| &config.search), data);
    findings.extend(folder_findings(data, identity));
    let folder = data.to_owned();
    let of_bot = tokio::task::spawn_blocking(move || ask_running_bot(&folder)).await.unwrap_or_default();
    // A running bot looks at its disk itself.
    if !of_bot.iter().any(|found| found.what == DISK_CHECK) {
        findings.extend(free_bytes(data).and_then(disk_finding));
    }
    findings.extend(of_bot);
    match config {
        Ok(config) => {
            let relays = config.relays.len();
            findings.push(good("configuration", format!("it is in order; relays: {relays}")));
            if config.allow_private_relays {
                let text = "`allow_private_relays` is on, so askers can make the bot connect to addresses in your own \
                            network; remove it outside test networks";
                findings.push(weak("private relays", text));
            }
            findings.extend(relay_findings(config.relays, config.network.proxy).await);
        }
        Err(error) => findings.push(broken("configuration", error.to_string())),
    }
    findings
}

/// The devices, and whether they are the ones the configuration asks for. Opens every GPU and runs
/// a launch on it.
fn device_findings(wanted: Option<&SearchOptions>, data: &Path) -> Vec<Finding> {
    // What is compiled for the check is kept for the bot, or for this user if there is no bot yet.
    let kernels = if data.is_dir() { device_cache::kernels_in(data) } else { device_cache::kernels_of_user() };
    let options = SearchOptions { kernels, ..wanted.cloned().unwrap_or_default() };
    let found = probe::findings(&options);
    let mut findings = Vec::new();
    let severity = |ordinal| match options.devices {
        DeviceChoice::Cuda => Severity::Broken,
        DeviceChoice::CudaOrdinal(wanted) if wanted == ordinal => Severity::Broken,
        // The CPU or another GPU searches.
        DeviceChoice::All | DeviceChoice::Cpu | DeviceChoice::CudaOrdinal(_) => Severity::Weak,
    };
    match &found.driver {
        Ok(version) => findings.push(good("driver", format!("it serves CUDA {version}"))),
        Err(reason) => findings.push(weak("driver", reason.clone())),
    }
    for gpu in &found.gpus {
        let name = format!("cuda:{} is {}", gpu.ordinal, if gpu.name.is_empty() { "a GPU" } else { &gpu.name });
        findings.push(match &gpu.check {
            Ok((kernel, keys)) => {
                good("GPU", format!("{name}; a launch found the same {keys} keys as the CPU ({kernel})"))
            }
            Err(reason) => finding("GPU", severity(gpu.ordinal), format!("{name} and cannot search: {reason}")),
        });
    }
    let has_gpus = !found.gpus.is_empty();
    let kernels = match (found.built_for, found.compilers.as_slice()) {
        (Some(built), _) => good("kernels", format!("this build has them for {built}")),
        (None, [first, ..]) => good("kernels", format!("{first} compiles them at the first start, in a minute or two")),
        (None, []) if !has_gpus => good("kernels", "this build has none for GPUs, and there is no GPU"),
        (None, []) => weak(
            "kernels",
            "this build has none for GPUs, and NVRTC 12.1 or newer is not there: take a release of npubbot, or install \
             NVRTC 12.9 (`pip install nvidia-cuda-nvrtc-cu12==12.9.86`) and name its libnvrtc.so.12 in NPUBBOT_NVRTC",
        ),
    };
    findings.push(kernels);
    findings.push(good("CPU", describe_kernel()));
    let gpus: Vec<usize> = found.gpus.iter().filter(|gpu| gpu.check.is_ok()).map(|gpu| gpu.ordinal).collect();
    findings.extend(wanted.into_iter().flat_map(|options| choice_findings(options, &gpus)));
    findings
}

/// Whether the devices that the configuration asks for are among these GPUs and the CPU.
fn choice_findings(options: &SearchOptions, gpus: &[usize]) -> Vec<Finding> {
    let there = match gpus {
        [] => "no GPU can be used".to_owned(),
        gpus => format!("these GPUs can be used: {}", gpus.iter().map(usize::to_string).collect::<Vec<_>>().join(", ")),
    };
    let (verdict, text) = match options.devices {
        DeviceChoice::Cuda if gpus.is_empty() => (
            Severity::Broken,
            format!("`device` is \"cuda\", but {there}; write \"all\" to search on the CPU until one is there"),
        ),
        DeviceChoice::CudaOrdinal(ordinal) if !gpus.contains(&ordinal) => {
            (Severity::Broken, format!("`device` is \"cuda:{ordinal}\", but {there}; name another, or write \"all\""))
        }
        DeviceChoice::Cpu => (Severity::Good, "the CPU searches, as `device` says".to_owned()),
        DeviceChoice::All if gpus.is_empty() => (Severity::Good, format!("the CPU searches, for {there}")),
        DeviceChoice::All | DeviceChoice::Cuda => (Severity::Good, format!("{} GPUs search", gpus.len())),
        DeviceChoice::CudaOrdinal(ordinal) => (Severity::Good, format!("cuda:{ordinal} searches")),
    };
    let mut findings = vec![finding("search", verdict, text)];
    let one_thread = SearchOptions { threads: Some(1), ..options.clone() };
    if let Err(error) = search::open(DeviceId::Cpu, &one_thread) {
        let gpus_do = !gpus.is_empty() && options.devices != DeviceChoice::Cpu;
        let verdict = if gpus_do { Severity::Weak } else { Severity::Broken };
        findings.push(finding("search", verdict, format!("`cpu_kernel`: {error}, or write \"auto\" in its place")));
    }
    findings
}

/// The data folder with the identity and the ledger in it.
fn folder_findings(data: &Path, identity: &Path) -> Vec<Finding> {
    let folder = match std::fs::metadata(data) {
        Err(error) if error.kind() == ErrorKind::NotFound => good("data folder", "`npubbot init` makes it"),
        Err(error) => {
            let path = data.display();
            broken("data folder", format!("{path} cannot be read ({error}); ask as its user, or as root"))
        }
        Ok(meta) if !meta.is_dir() => {
            broken("data folder", format!("{} is not a folder; name another with --data", data.display()))
        }
        Ok(_) => {
            let writable = tempfile::Builder::new().prefix(".doctor").tempfile_in(data);
            match (writable, files::is_open_to_others(data)) {
                (Err(error), _) => {
                    let text = format!("nothing can be written there ({error}); make it yours, or name another");
                    broken("data folder", text + " with --data")
                }
                (Ok(_), Ok(false)) => good("data folder", "it is writable, and nobody else reads it"),
                (Ok(_), _) => {
                    let command = files::closing_command(data);
                    weak("data folder", format!("others on this machine can look into it: {command}"))
                }
            }
        }
    };
    let mut findings = vec![folder, identity_finding(data, identity)];
    let sound = match ledger::inspect(&ledger::folder(data)) {
        Ok(Inspection::Absent) => good("ledger", "there is none yet; the first start makes it"),
        Ok(Inspection::InUse) => good("ledger", "a running npubbot has it"),
        Ok(Inspection::Sound { schema, open_jobs, quarantined, sizes, restored_at, is_older }) => {
            findings.extend(ledger_findings(&quarantined, &sizes, restored_at));
            if is_older {
                let text = "it is older than the file used-halves beside it: a backup was put back, or that file is \
                            missing or cut; the next start gives open split jobs up and refuses older requests";
                findings.push(weak("ledger", text));
            }
            good("ledger", format!("it is sound (schema {schema}), with {open_jobs} open jobs"))
        }
        Err(error) => broken("ledger", error.to_string()),
    };
    findings.push(sound);
    findings
}

/// Checks that a data folder has its identity file.
///
/// Errors: the file is hidden from this user; there is none; there is the ledger of a bot that lost
/// it.
pub fn need_identity(file: &Path, data: &Path) -> anyhow::Result<()> {
    let (path, ledger) = (file.display(), ledger::folder(data));
    match file.try_exists() {
        Ok(true) => Ok(()),
        // A new identity would be another bot, with the jobs of this one.
        Ok(false) if ledger::is_present(&ledger) => bail!(
            "there is no identity at {path}, but there is the ledger {}; restore the identity file from your copy, or name \
             another folder with --data",
            ledger.display()
        ),
        Ok(false) => {
            bail!("there is no identity at {path}; make one with `npubbot init`, or name its folder with --data")
        }
        Err(error) => {
            bail!("the identity {path} cannot be read ({error}); run npubbot as the user that runs the bot, or as root")
        }
    }
}

fn identity_finding(data: &Path, identity: &Path) -> Finding {
    if let Err(error) = need_identity(identity, data) {
        return broken("identity", error.to_string());
    }
    match (vault::inspect_identity(identity), files::is_open_to_others(identity)) {
        (Err(error), _) => broken("identity", error.to_string()),
        (Ok(()), Ok(true)) => {
            let command = files::closing_command(identity);
            weak("identity", format!("others on this machine can copy it: {command}"))
        }
        (Ok(()), _) => good("identity", "it is there; keep a copy elsewhere"),
    }
}

/// The finding about a disk with few bytes left.
fn disk_finding(free: u64) -> Option<Finding> {
    let left = format!("{:.1} MiB are left on the disk of the data folder", free as f64 / f64::from(1 << 20));
    if free < FULL_DISK_BYTES {
        let text = format!(
            "{left}, so nothing is accepted and no key is recorded; free some space: the bot goes on by itself"
        );
        return Some(broken(DISK_CHECK, text));
    }
    (free < LOW_DISK_BYTES).then(|| weak(DISK_CHECK, format!("{left}; free some space soon")))
}

/// Weaknesses of a ledger.
fn ledger_findings(quarantined: &[Quarantined], sizes: &Sizes, restored_at: Option<u64>) -> Vec<Finding> {
    let bounds = sizes.bounds_reached(crate::clock::Clock::System.now());
    let skipped = quarantined.iter().map(|Quarantined { place, reason, .. }| {
        format!(
            "{place} cannot be read ({reason}) and is skipped; mend or delete the row, then its row in `quarantine`"
        )
    });
    let restored = restored_at
        .map(|_| "a backup was restored: open split jobs were given up, older requests are refused".to_owned());
    let dropped = (sizes.dropped > 0)
        .then(|| format!("{} unsent answers were dropped, because they were over the budget", sizes.dropped));
    skipped.chain(restored).chain(dropped).chain(bounds).map(|text| weak("ledger", text)).collect()
}

/// The findings of the running bot itself.
fn ask_running_bot(data: &Path) -> Vec<Finding> {
    let mut findings = Vec::new();
    let asked = control::ask(data, OperatorCommand::Doctor, |line| {
        if let ReplyLine::Finding(found) = line {
            findings.push(found);
        }
    });
    findings.extend(asked.err().map(|error| match error {
        ControlError::NothingRuns { .. } => good("running bot", "none answers on the local socket"),
        ControlError::NotYours { .. } | ControlError::Refused(_) => weak("running bot", error.to_string()),
        error => broken("running bot", error.to_string()),
    }));
    findings
}

async fn relay_findings(entries: Vec<RelayEntry>, proxy: Option<SocketAddr>) -> Vec<Finding> {
    let mut looking = tokio::task::JoinSet::new();
    for entry in entries.iter().cloned() {
        looking.spawn(async move {
            let timeout = if proxy.is_some() { PROXY_TIMEOUT } else { RELAY_TIMEOUT };
            // Relays' descriptions are read without the proxy. That would show the operator's
            // address, so none is read where a proxy is set.
            let description = async { if proxy.is_some() { None } else { nip11::read(&entry.url).await } };
            let (reached, document) = tokio::join!(reach(&entry.url, proxy, timeout), description);
            let problems = document.map(|document| nip11::problems(&document)).unwrap_or_default();
            (entry, reached, problems)
        });
    }
    let mut findings = Vec::new();
    let mut inboxes = 0;
    for (entry, reached, problems) in looking.join_all().await {
        let url = &entry.url;
        match reached {
            Ok(_) if entry.inbox && !problems.is_empty() => {
                findings.push(weak("relay", format!("{url} cannot serve: {}", problems.join("; "))));
            }
            Ok(took) => {
                inboxes += usize::from(entry.inbox);
                findings.push(good("relay", format!("{url} answers within {} ms", took.as_millis())));
            }
            Err(reason) => {
                let text = format!("{url} cannot be reached ({reason}); if it stays away, replace it in relays.toml");
                findings.push(weak("relay", text));
            }
        }
    }
    findings.sort_by(|a, b| a.text.cmp(&b.text));
    if inboxes == 0 {
        let text =
            "no relay with the role \"inbox\" works, so nobody reaches the bot; look at the network, or name others";
        findings.push(broken("relays", text));
    }
    findings
}
/// Checks a running bot. `up`: the time since it was ready.
pub(super) async fn check_running(bot: &Handles, up: Duration) -> Vec<Finding> {
    let mut findings = vec![program_finding(std::env::current_exe().ok().as_deref(), up)];
    findings.extend(search_findings(&bot.scheduler.devices(), bot.scheduler.is_paused()));
    #[cfg(feature = "fleet")]
    findings.extend(bot.fleet_status().iter().flat_map(super::workers::findings));
    findings.extend(connection_findings(&bot.relays.figures().await));
    findings.extend(bot.relays.clock_behind().and_then(clock_finding));
    findings.extend(walls::missing().iter().flat_map(|(process, missing)| wall_findings(process, missing)));
    findings.extend(vault_findings(bot.context.vault.trouble(), bot.context.vault.refusals()));
    let dropped = causes_text(&bot.context.vault.dropped(), bot.context.pulse.denied());
    findings.push(good("messages", format!("not answered since the start: {dropped}")));
    findings.extend(restart_findings(&bot.restarts(), log_writer::lost_lines()));
    findings.extend(bot.context.ledger.free_bytes().and_then(disk_finding));
    findings.extend(ledger_totals(bot));
    findings
}

/// The version and uptime of the process, and whether its program was replaced since its start:
/// Linux appends ` (deleted)` to the path of such a program.
fn program_finding(path: Option<&Path>, up: Duration) -> Finding {
    let about = format!("npubbot {} is up {}", env!("CARGO_PKG_VERSION"), humanize(up));
    match path.is_some_and(|path| path.to_string_lossy().ends_with(" (deleted)")) {
        true => {
            let text = format!("{about}; its program was replaced since, so restart it to run the new one");
            weak("running bot", text)
        }
        false => good("running bot", about),
    }
}

/// The devices, and whether they search.
fn search_findings(devices: &[DeviceStatus], is_paused: bool) -> Vec<Finding> {
    let works = |device: &DeviceStatus| device.health == Health::Working;
    let out = if devices.iter().any(works) { Severity::Weak } else { Severity::Broken };
    let mut findings = Vec::new();
    for device in devices {
        let id = &device.id;
        let (verdict, text) = match (&device.health, &device.rest, device.rate) {
            (Health::Out(reason), ..) => {
                let remedy = "the bot tries it again by itself; if it stays out, restart the bot";
                (out, format!("{id} is out of use: {reason}; {remedy}"))
            }
            // Rest outside the hours or on the battery is as the operator wants it.
            (Health::Working, Some(rest @ Rest::Heat { .. }), _) => (Severity::Weak, format!("{id} rests {rest}")),
            (Health::Working, Some(rest), _) => (Severity::Good, format!("{id} rests {rest}")),
            (Health::Working, None, Some(rate)) if !is_paused => {
                let part = 100.0 * device.part;
                let share = if part < 99.5 { format!(", {part:.0} % of the time") } else { String::new() };
                (Severity::Good, format!("{id} searches at {rate}{share}"))
            }
            (Health::Working, ..) => (Severity::Good, format!("{id} is ready")),
        };
        findings.push(finding("search", verdict, text));
        findings.extend(device.warnings.iter().map(|text| weak("search", format!("{id}: {text}"))));
    }
    if is_paused {
        let text = "the search is paused, so no job ends; `npubbot resume` goes on with it";
        findings.push(weak("search", text));
    }
    findings
}

/// The connections to the bot's own relays.
fn connection_findings(relays: &[RelayFigures]) -> Vec<Finding> {
    let mut findings: Vec<Finding> = Vec::new();
    for relay in relays {
        let text = match (&relay.said, relay.is_connected()) {
            (Some(said), _) => format!("{} says: {}", relay.url, said.text),
            (None, false) => format!("the bot is not connected to {}; it tries again", relay.url),
            (None, true) => continue,
        };
        findings.push(weak("connections", text));
    }
    let connected = relays.iter().filter(|relay| relay.is_connected()).count();
    findings.push(match connected {
        0 => broken("connections", "the bot is connected to no relay, so nobody reaches it"),
        _ if !relays.iter().any(RelayFigures::serves) => {
            broken("connections", "every connected relay refuses to show the bot its messages, so nobody reaches it")
        }
        _ => good("connections", format!("{connected} of {} relays are connected", relays.len())),
    });
    findings
}

/// Difference from other clocks at which relays and clients begin to refuse events.
pub(super) const CLOCK_WRONG_SECONDS: u64 = 600;
/// Difference from other clocks that is worth a word.
const CLOCK_OFF_SECONDS: u64 = 60;

/// The finding about a clock that differs from those of others. `behind`: by how many seconds.
pub(super) fn clock_finding(behind: i64) -> Option<Finding> {
    let off = behind.unsigned_abs();
    let verdict = match off {
        ..CLOCK_OFF_SECONDS => return None,
        CLOCK_OFF_SECONDS..CLOCK_WRONG_SECONDS => Severity::Weak,
        CLOCK_WRONG_SECONDS.. => Severity::Broken,
    };
    let side = if behind > 0 { "behind" } else { "ahead of" };
    let text = format!(
        "this machine's clock is {} {side} those of relays and askers, so messages are refused on both sides; set it, \
         for example with `timedatectl set-ntp true`",
        humanize(Duration::from_secs(off))
    );
    Some(finding("clock", verdict, text))
}

/// The walls that a process lacks.
fn wall_findings(process: &str, missing: &[MissingWall]) -> Vec<Finding> {
    let finding = |MissingWall { loss, is_sandbox }: &MissingWall| match is_sandbox {
        true => broken("walls", format!("a sandbox is missing around {process}: {loss}")),
        false => weak("walls", format!("a protection is missing around {process}: {loss}")),
    };
    missing.iter().map(finding).collect()
}

/// The vault process. `trouble` says why it does not work; `refusals` counts the signatures that it
/// refused.
fn vault_findings(trouble: Option<String>, refusals: u64) -> Vec<Finding> {
    let mut findings = Vec::new();
    if refusals > 0 {
        let text = format!("it refused {refusals} signatures: a bug, or the bot's process is captured; see the log");
        findings.push(broken("vault", text));
    }
    findings.push(match trouble {
        None => good("vault", "the vault answers"),
        Some(reason) => broken("vault", format!("no message is opened and no key found: {reason}")),
    });
    findings
}

/// Tasks and threads that were started again, and lines of the log that were lost.
fn restart_findings(restarts: &[(String, u64)], lost_lines: u64) -> Vec<Finding> {
    let restarted = restarts.iter().filter(|(_, count)| *count > 0).map(|(part, count)| {
        let text = format!("{part} ended {count} times and was started again; the log says why");
        weak("running bot", text)
    });
    let lost = (lost_lines > 0).then(|| {
        let text = format!("{lost_lines} lines of the log could not be written: is its disk full, or its reader gone?");
        weak("running bot", text)
    });
    restarted.chain(lost).collect()
}

/// The open ledger.
fn ledger_totals(bot: &Handles) -> Vec<Finding> {
    let ledger = &bot.context.ledger;
    let read = || -> Result<Vec<Finding>, LedgerError> {
        let totals = ledger.totals()?;
        let mut findings = ledger_findings(&ledger.quarantined()?, &ledger.sizes()?, ledger.restored_at()?);
        let text = format!(
            "{} open jobs; {} messages that no relay of their receivers has yet",
            totals.accepted, totals.unsent_messages
        );
        findings.push(good("ledger", text));
        Ok(findings)
    };
    let mut findings = read().unwrap_or_else(|error| vec![broken("ledger", format!("it cannot be read: {error}"))]);
    if let Some(damage) = ledger.damage() {
        findings.push(broken("ledger", damage));
    }
    findings
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::pattern::Rate;

    fn device(health: Health, rate: Option<f64>) -> DeviceStatus {
        DeviceStatus {
            health,
            rate: rate.map(Rate),
            ..DeviceStatus::new(DeviceId::Cpu, "test".to_owned(), "test".to_owned(), 1)
        }
    }

    fn worst(findings: &[Finding]) -> Severity {
        findings.iter().map(|finding| finding.verdict).max().unwrap()
    }

    #[test]
    fn a_device_taken_out_is_named_with_what_to_do() {
        let (works, out) = (device(Health::Working, Some(1e6)), device(Health::Out("it lies".to_owned()), None));
        assert_eq!(worst(&search_findings(std::slice::from_ref(&works), false)), Severity::Good);
        assert_eq!(worst(&search_findings(&[works, out.clone()], false)), Severity::Weak, "another device searches");
        let none = search_findings(&[out], false);
        assert!(worst(&none) == Severity::Broken && none[0].text.contains("it lies"), "{none:?}");
    }

    #[test]
    fn a_device_that_rests_says_why_and_a_cap_that_does_not_hold_is_named() {
        let works = device(Health::Working, Some(1e6));
        let hot = Rest::Heat { celsius: Some(91.0), limit: 85.0 };
        let resting = search_findings(&[DeviceStatus { rest: Some(hot), ..works.clone() }], false);
        assert!(worst(&resting) == Severity::Weak && resting[0].text.contains("91 °C"), "{resting:?}");
        let by_day = Rest::Hours { until: Some(1), local_time: "22:00 CET".to_owned() };
        let resting = search_findings(&[DeviceStatus { rest: Some(by_day), ..works.clone() }], false);
        assert!(worst(&resting) == Severity::Good && resting[0].text.contains("rests until 22:00 CET"), "{resting:?}");
        let warnings = vec!["its power is not capped at 250 W: no".to_owned()];
        let capped = search_findings(&[DeviceStatus { part: 0.5, warnings, ..works }], false);
        assert!(capped[0].text.ends_with(", 50 % of the time") && worst(&capped) == Severity::Weak, "{capped:?}");
    }

    #[test]
    fn a_disk_that_fills_and_a_clock_that_differs_are_named_before_anybody_is_lost() {
        let verdict = |free| disk_finding(free).map(|found| found.verdict);
        let expected = [Some(Severity::Broken), Some(Severity::Weak), Some(Severity::Weak), None];
        assert_eq!([FULL_DISK_BYTES - 1, FULL_DISK_BYTES, LOW_DISK_BYTES - 1, LOW_DISK_BYTES].map(verdict), expected);
        assert_eq!([0, 59, -59].map(clock_finding), [None, None, None]);
        assert_eq!(clock_finding(-60).map(|found| found.verdict), Some(Severity::Weak));
        let late = clock_finding(43_200).unwrap();
        assert!(late.verdict == Severity::Broken && late.text.contains("12 h behind"), "{late:?}");
    }

    #[test]
    fn a_vault_that_does_not_start_and_each_missing_sandbox_are_named() {
        assert_eq!(worst(&vault_findings(None, 0)), Severity::Good);
        let gone = vault_findings(Some("wrong passphrase; try again".to_owned()), 0);
        assert!(worst(&gone) == Severity::Broken && gone[0].text.contains("wrong passphrase"), "{gone:?}");
        let missing = |is_sandbox| MissingWall { loss: "its memory may be swapped to disk".to_owned(), is_sandbox };
        assert_eq!(worst(&wall_findings("vault", &[missing(true)])), Severity::Broken);
        let low = wall_findings("cuda:0", &[missing(false)]);
        assert_eq!(worst(&vault_findings(None, 1)), Severity::Broken);
        assert!(worst(&low) == Severity::Weak && low[0].text.contains("swapped"), "{low:?}");
    }

    #[test]
    fn a_part_that_was_started_again_and_a_lost_line_are_named() {
        let restarts = |count| [("inbox".to_owned(), count)];
        assert!(restart_findings(&restarts(0), 0).is_empty());
        let texts: Vec<String> = restart_findings(&restarts(2), 3).into_iter().map(|finding| finding.text).collect();
        assert!(
            texts.len() == 2 && texts[0].contains("inbox ended 2 times") && texts[1].contains("3 lines"),
            "{texts:?}"
        );
    }

    #[test]
    fn a_program_replaced_while_it_runs_asks_for_a_restart() {
        let verdict = |path: &str| program_finding(Some(Path::new(path)), Duration::from_secs(90)).verdict;
        assert_eq!(verdict("/usr/bin/npubbot"), Severity::Good);
        assert_eq!(verdict("/usr/bin/npubbot (deleted)"), Severity::Weak);
    }
}
