//! The checks of `npubbot doctor`: those of the installation, and those that only the running bot
//! can make. Each says what would work.

use super::Handles;
use super::tasks::causes_text;
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
use crate::search::{DeviceChoice, SearchOptions};
use crate::vault::{self, MissingWall};
use anyhow::bail;
use std::borrow::Cow;
use std::io::ErrorKind;
use std::net::SocketAddr;
use std::path::Path;
use std::time::Duration;

/// Time limit for a relay.
const RELAY_TIMEOUT: Duration = Duration::from_secs(7);
/// Time limit for a relay through a proxy: Tor takes long to make a circuit to an onion service.
const PROXY_TIMEOUT: Duration = Duration::from_secs(60);
/// Bytes on the disk below which SQLite may fail at any moment.
pub const FULL_DISK_BYTES: u64 = 1 << 20;
/// Bytes on the disk below which the operator is warned.
const LOW_DISK_BYTES: u64 = 256 << 20;
/// Name of the check of the disk.
const DISK_CHECK: &str = "disk";
/// Difference from other clocks at which relays and clients begin to refuse events.
const CLOCK_WRONG_SECONDS: u64 = 600;
/// Difference from other clocks that is worth a word.
const CLOCK_OFF_SECONDS: u64 = 60;

/// What the checks found.
#[derive(Debug, Default)]
pub(super) struct Report(pub Vec<Finding>);

impl Report {
    fn add(&mut self, what: &'static str, verdict: Severity, text: impl Into<String>) {
        self.0.push(Finding { what: Cow::Borrowed(what), verdict, text: text.into() });
    }

    /// All is as it should be.
    pub fn good(&mut self, what: &'static str, text: impl Into<String>) {
        self.add(what, Severity::Good, text);
    }

    /// Something works worse than it could.
    pub fn weak(&mut self, what: &'static str, text: impl Into<String>) {
        self.add(what, Severity::Weak, text);
    }

    /// Without this the bot serves nobody.
    fn broken(&mut self, what: &'static str, text: impl Into<String>) {
        self.add(what, Severity::Broken, text);
    }
}

/// Runs every check. If a bot runs with the data folder, its own checks are included. Changes
/// nothing, and opens no identity.
pub async fn doctor(config: &Path, data: &Path, identity: &Path) -> Vec<Finding> {
    let (config, mut report) = (Config::load(config), Report::default());
    check_devices(&mut report, config.as_ref().ok().map(|config| &config.search), data);
    check_folder(&mut report, data, identity);
    let folder = data.to_owned();
    let of_bot = tokio::task::spawn_blocking(move || ask_running_bot(&folder)).await.unwrap_or_default();
    // A running bot looks at its disk itself.
    if !of_bot.0.iter().any(|found| found.what == DISK_CHECK) {
        check_disk(&mut report, free_bytes(data));
    }
    report.0.extend(of_bot.0);
    match config {
        Ok(config) => {
            report.good("configuration", format!("it is in order; relays: {}", config.relays.len()));
            if config.allow_private_relays {
                let text = "`allow_private_relays` is on, so askers can make the bot connect to addresses in your own \
                            network; remove it outside test networks";
                report.weak("private relays", text);
            }
            check_relays(&mut report, config.relays, config.network.proxy).await;
        }
        Err(error) => report.broken("configuration", error.to_string()),
    }
    report.0
}

/// The devices, and whether they are the ones the configuration asks for. Opens every GPU and runs
/// a launch on it.
fn check_devices(report: &mut Report, wanted: Option<&SearchOptions>, data: &Path) {
    // What is compiled for the check is kept for the bot, or for this user if there is no bot yet.
    let kernels = if data.is_dir() { device_cache::kernels_in(data) } else { device_cache::kernels_of_user() };
    let options = SearchOptions { kernels, ..wanted.cloned().unwrap_or_default() };
    let found = probe::findings(&options);
    match &found.driver {
        Ok(version) => report.good("driver", format!("it serves CUDA {version}")),
        Err(reason) => report.weak("driver", reason.clone()),
    }
    for gpu in &found.gpus {
        let name = format!("cuda:{} is {}", gpu.ordinal, if gpu.name.is_empty() { "a GPU" } else { &gpu.name });
        match &gpu.check {
            Ok((kernel, keys)) => {
                report.good("GPU", format!("{name}; a launch found the same {keys} keys as the CPU ({kernel})"));
            }
            Err(reason) => report.weak("GPU", format!("{name} and cannot search: {reason}")),
        }
    }
    match (found.built_for, found.compilers.as_slice()) {
        (Some(built), _) => report.good("kernels", format!("this build has them for {built}")),
        (None, [first, ..]) => {
            report.good("kernels", format!("{first} compiles them at the first start, in a minute or two"));
        }
        (None, []) if found.gpus.is_empty() => {
            report.good("kernels", "this build has none for GPUs, and there is no GPU");
        }
        (None, []) => report.weak(
            "kernels",
            "this build has none for GPUs, and NVRTC 12.1 or newer is not there: take a release of npubbot, or install \
             NVRTC 12.9 (`pip install nvidia-cuda-nvrtc-cu12==12.9.86`) and name its libnvrtc.so.12 in NPUBBOT_NVRTC",
        ),
    }
    report.good("CPU", describe_kernel());
    let works = |wanted: Option<usize>| {
        found.gpus.iter().any(|gpu| gpu.check.is_ok() && wanted.is_none_or(|ordinal| gpu.ordinal == ordinal))
    };
    let missing = match options.devices {
        DeviceChoice::Cuda if !works(None) => "cuda".to_owned(),
        DeviceChoice::CudaOrdinal(ordinal) if !works(Some(ordinal)) => format!("cuda:{ordinal}"),
        _ => return report.good("search", "the devices that `device` names can be used"),
    };
    let text = format!("`device` is \"{missing}\", which cannot be used; name another, or write \"all\"");
    report.broken("search", text);
}

/// The data folder with the identity and the ledger in it.
fn check_folder(report: &mut Report, data: &Path, identity: &Path) {
    const FOLDER: &str = "data folder";
    let path = data.display();
    match std::fs::metadata(data) {
        Err(error) if error.kind() == ErrorKind::NotFound => report.good(FOLDER, "`npubbot init` makes it"),
        Err(error) => report.broken(FOLDER, format!("{path} cannot be read ({error}); ask as its user, or as root")),
        Ok(meta) if !meta.is_dir() => {
            report.broken(FOLDER, format!("{path} is not a folder; name another with --data"))
        }
        Ok(_) => match tempfile::Builder::new().prefix(".doctor").tempfile_in(data) {
            Err(error) => {
                let text =
                    format!("nothing can be written there ({error}); make it yours, or name another with --data");
                report.broken(FOLDER, text);
            }
            Ok(_) if matches!(files::is_open_to_others(data), Ok(false)) => {
                report.good(FOLDER, "it is writable, and nobody else reads it");
            }
            Ok(_) => {
                let command = files::closing_command(data);
                report.weak(FOLDER, format!("others on this machine can look into it: {command}"));
            }
        },
    }
    let opens = need_identity(identity, data).and_then(|()| Ok(vault::inspect_identity(identity)?));
    match (opens, files::is_open_to_others(identity)) {
        (Err(error), _) => report.broken("identity", error.to_string()),
        (Ok(()), Ok(true)) => {
            let command = files::closing_command(identity);
            report.weak("identity", format!("others on this machine can copy it: {command}"));
        }
        (Ok(()), _) => report.good("identity", "it is there; keep a copy elsewhere"),
    }
    match ledger::inspect(&ledger::folder(data)) {
        Ok(Inspection::Absent) => report.good("ledger", "there is none yet; the first start makes it"),
        Ok(Inspection::InUse) => report.good("ledger", "a running npubbot has it"),
        Ok(Inspection::Sound { schema, open_jobs, quarantined, sizes, restored_at, is_older }) => {
            check_rows(report, &quarantined, &sizes, restored_at);
            if is_older {
                let text = "it is older than the file used-halves beside it: a backup was put back, or that file is \
                            missing or cut; the next start gives open split jobs up and refuses older requests";
                report.weak("ledger", text);
            }
            report.good("ledger", format!("it is sound (schema {schema}), with {open_jobs} open jobs"));
        }
        Err(error) => report.broken("ledger", error.to_string()),
    }
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

/// A disk with few bytes left.
fn check_disk(report: &mut Report, free: Option<u64>) {
    let Some(free) = free.filter(|&free| free < LOW_DISK_BYTES) else { return };
    let left = format!("{:.1} MiB are left on the disk of the data folder", free as f64 / f64::from(1 << 20));
    if free >= FULL_DISK_BYTES {
        return report.weak(DISK_CHECK, format!("{left}; free some space soon"));
    }
    let text =
        format!("{left}, so nothing is accepted and no key is recorded; free some space: the bot goes on by itself");
    report.broken(DISK_CHECK, text);
}

/// Weaknesses of a ledger.
fn check_rows(report: &mut Report, quarantined: &[Quarantined], sizes: &Sizes, restored_at: Option<u64>) {
    for Quarantined { place, reason, .. } in quarantined {
        let remedy = "is skipped; mend or delete the row, then its row in `quarantine`";
        report.weak("ledger", format!("{place} cannot be read ({reason}) and {remedy}"));
    }
    if restored_at.is_some() {
        report.weak("ledger", "a backup was restored: open split jobs were given up, older requests are refused");
    }
    if sizes.dropped > 0 {
        let text = format!("{} unsent answers were dropped, because they were over the budget", sizes.dropped);
        report.weak("ledger", text);
    }
    for bound in sizes.bounds_reached(crate::clock::Clock::System.now()) {
        report.weak("ledger", bound);
    }
}

/// The findings of the running bot itself.
fn ask_running_bot(data: &Path) -> Report {
    let mut report = Report::default();
    let finding = |line| if let ReplyLine::Finding(found) = line { Some(found) } else { None };
    match control::ask(data, OperatorCommand::Doctor) {
        Ok(lines) => report.0.extend(lines.into_iter().filter_map(finding)),
        Err(ControlError::NothingRuns(_)) => report.good("running bot", "none answers on the local socket"),
        Err(error @ (ControlError::NotYours(_) | ControlError::Refused(_))) => {
            report.weak("running bot", error.to_string());
        }
        Err(error) => report.broken("running bot", error.to_string()),
    }
    report
}

async fn check_relays(report: &mut Report, entries: Vec<RelayEntry>, proxy: Option<SocketAddr>) {
    let mut looking = tokio::task::JoinSet::new();
    for entry in entries {
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
    let mut looked = looking.join_all().await;
    looked.sort_by(|(a, ..), (b, ..)| a.url.cmp(&b.url));
    let mut inboxes = 0;
    for (RelayEntry { url, inbox, .. }, reached, problems) in looked {
        match reached {
            Ok(_) if inbox && !problems.is_empty() => {
                report.weak("relay", format!("{url} cannot serve: {}", problems.join("; ")));
            }
            Ok(took) => {
                inboxes += usize::from(inbox);
                report.good("relay", format!("{url} answers within {} ms", took.as_millis()));
            }
            Err(reason) => {
                let remedy = "if it stays away, replace it in relays.toml";
                report.weak("relay", format!("{url} cannot be reached ({reason}); {remedy}"));
            }
        }
    }
    if inboxes == 0 {
        let text =
            "no relay with the role \"inbox\" works, so nobody reaches the bot; look at the network, or name others";
        report.broken("relays", text);
    }
}

/// Checks a running bot. `up`: the time since it was ready.
pub(super) async fn check_running(bot: &Handles, up: Duration) -> Vec<Finding> {
    let (mut report, vault) = (Report::default(), &bot.context.vault);
    check_program(&mut report, std::env::current_exe().ok().as_deref(), up);
    check_search(&mut report, &bot.scheduler.devices(), bot.scheduler.is_paused());
    #[cfg(feature = "fleet")]
    bot.fleet_status().iter().for_each(|fleet| super::workers::check(&mut report, fleet));
    check_connections(&mut report, &bot.relays.figures().await);
    check_clock(&mut report, bot.relays.clock_behind().unwrap_or(0));
    walls::missing().iter().for_each(|(process, missing)| check_walls(&mut report, process, missing));
    check_vault(&mut report, vault.trouble(), vault.refusals());
    let dropped = causes_text(&vault.dropped(), bot.context.pulse.denied());
    report.good("messages", format!("not answered since the start: {dropped}"));
    check_restarts(&mut report, &bot.restarts(), log_writer::lost_lines());
    check_disk(&mut report, bot.context.ledger.free_bytes());
    check_ledger(&mut report, bot);
    report.0
}

/// The version and uptime of the process, and whether its program was replaced since its start:
/// Linux appends ` (deleted)` to the path of such a program.
fn check_program(report: &mut Report, path: Option<&Path>, up: Duration) {
    let about = format!("npubbot {} is up {}", env!("CARGO_PKG_VERSION"), humanize(up));
    match path.is_some_and(|path| path.to_string_lossy().ends_with(" (deleted)")) {
        true => {
            let text = format!("{about}; its program was replaced since, so restart it to run the new one");
            report.weak("running bot", text);
        }
        false => report.good("running bot", about),
    }
}

/// The devices, and whether they search.
fn check_search(report: &mut Report, devices: &[DeviceStatus], is_paused: bool) {
    let works = |device: &DeviceStatus| device.health == Health::Working;
    let out = if devices.iter().any(works) { Severity::Weak } else { Severity::Broken };
    for device in devices {
        let id = &device.id;
        match (&device.health, &device.rest, device.rate) {
            (Health::Out(reason), ..) => {
                let remedy = "the bot tries it again by itself; if it stays out, restart the bot";
                report.add("search", out, format!("{id} is out of use: {reason}; {remedy}"));
            }
            // Rest outside the hours or on the battery is as the operator wants it.
            (Health::Working, Some(rest @ Rest::Heat { .. }), _) => report.weak("search", format!("{id} rests {rest}")),
            (Health::Working, Some(rest), _) => report.good("search", format!("{id} rests {rest}")),
            (Health::Working, None, Some(rate)) if !is_paused => {
                let part = 100.0 * device.part;
                let share = if part < 99.5 { format!(", {part:.0} % of the time") } else { String::new() };
                report.good("search", format!("{id} searches at {rate}{share}"));
            }
            (Health::Working, ..) => report.good("search", format!("{id} is ready")),
        }
        device.warnings.iter().for_each(|text| report.weak("search", format!("{id}: {text}")));
    }
    if is_paused {
        report.weak("search", "the search is paused, so no job ends; `npubbot resume` goes on with it");
    }
}

/// The connections to the bot's own relays.
fn check_connections(report: &mut Report, relays: &[RelayFigures]) {
    for relay in relays {
        match (&relay.said, relay.is_connected()) {
            (Some(said), _) => report.weak("connections", format!("{} says: {}", relay.url, said.text)),
            (None, false) => {
                let text = format!("the bot is not connected to {}; it tries again", relay.url);
                report.weak("connections", text);
            }
            (None, true) => {}
        }
    }
    match relays.iter().filter(|relay| relay.is_connected()).count() {
        0 => report.broken("connections", "the bot is connected to no relay, so nobody reaches it"),
        _ if !relays.iter().any(RelayFigures::serves) => {
            let text = "every connected relay refuses to show the bot its messages, so nobody reaches it";
            report.broken("connections", text);
        }
        connected => report.good("connections", format!("{connected} of {} relays are connected", relays.len())),
    }
}

/// A clock that differs from those of others, by how many seconds it is `behind`.
pub(super) fn check_clock(report: &mut Report, behind: i64) {
    let off = behind.unsigned_abs();
    let verdict = match off {
        ..CLOCK_OFF_SECONDS => return,
        CLOCK_OFF_SECONDS..CLOCK_WRONG_SECONDS => Severity::Weak,
        CLOCK_WRONG_SECONDS.. => Severity::Broken,
    };
    let side = if behind > 0 { "behind" } else { "ahead of" };
    let text = format!(
        "this machine's clock is {} {side} those of relays and askers, so messages are refused on both sides; set it, \
         for example with `timedatectl set-ntp true`",
        humanize(Duration::from_secs(off))
    );
    report.add("clock", verdict, text);
}

/// The walls that a process lacks.
fn check_walls(report: &mut Report, process: &str, missing: &[MissingWall]) {
    for MissingWall { loss, is_sandbox } in missing {
        match is_sandbox {
            true => report.broken("walls", format!("a sandbox is missing around {process}: {loss}")),
            false => report.weak("walls", format!("a protection is missing around {process}: {loss}")),
        }
    }
}

/// The vault process. `trouble` says why it does not work; `refusals` counts the signatures that it
/// refused.
fn check_vault(report: &mut Report, trouble: Option<String>, refusals: u64) {
    if refusals > 0 {
        let text = format!("it refused {refusals} signatures: a bug, or the bot's process is captured; see the log");
        report.broken("vault", text);
    }
    match trouble {
        None => report.good("vault", "the vault answers"),
        Some(reason) => report.broken("vault", format!("no message is opened and no key found: {reason}")),
    }
}

/// Tasks and threads that were started again, and lines of the log that were lost.
fn check_restarts(report: &mut Report, restarts: &[(String, u64)], lost_lines: u64) {
    for (part, count) in restarts.iter().filter(|(_, count)| *count > 0) {
        report.weak("running bot", format!("{part} ended {count} times and was started again; the log says why"));
    }
    if lost_lines > 0 {
        let why = "is its disk full, or its reader gone?";
        report.weak("running bot", format!("{lost_lines} lines of the log could not be written: {why}"));
    }
}

/// The open ledger.
fn check_ledger(report: &mut Report, bot: &Handles) {
    let ledger = &bot.context.ledger;
    let mut read = || -> Result<(), LedgerError> {
        let totals = ledger.totals()?;
        check_rows(report, &ledger.quarantined()?, &ledger.sizes()?, ledger.restored_at()?);
        let unsent = format!("{} messages that no relay of their receivers has yet", totals.unsent_messages);
        report.good("ledger", format!("{} open jobs; {unsent}", totals.accepted));
        Ok(())
    };
    if let Err(error) = read() {
        report.broken("ledger", format!("it cannot be read: {error}"));
    }
    if let Some(damage) = ledger.damage() {
        report.broken("ledger", damage);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::pattern::Rate;
    use crate::search::DeviceId;

    fn device(health: Health, rate: Option<f64>) -> DeviceStatus {
        DeviceStatus {
            health,
            rate: rate.map(Rate),
            ..DeviceStatus::new(DeviceId::Cpu, "test".to_owned(), "test".to_owned(), 1)
        }
    }

    /// The worst verdict of a check, and its texts.
    fn found(check: impl FnOnce(&mut Report)) -> (Option<Severity>, String) {
        let mut report = Report::default();
        check(&mut report);
        let texts: Vec<&str> = report.0.iter().map(|finding| finding.text.as_str()).collect();
        (report.0.iter().map(|finding| finding.verdict).max(), texts.join("\n"))
    }

    #[test]
    fn a_device_that_is_out_or_rests_and_a_cap_that_does_not_hold_are_named() {
        let (works, out) = (device(Health::Working, Some(1e6)), device(Health::Out("it lies".to_owned()), None));
        let hot = Rest::Heat { celsius: Some(91.0), limit: 85.0 };
        let by_day = Rest::Hours { until: Some(1), local_time: "22:00 CET".to_owned() };
        let warnings = vec!["its power is not capped at 250 W: no".to_owned()];
        for (devices, verdict, text) in [
            (vec![works.clone()], Severity::Good, "searches at"),
            (vec![works.clone(), out.clone()], Severity::Weak, "it lies"),
            (vec![out], Severity::Broken, "it lies"),
            (vec![DeviceStatus { rest: Some(hot), ..works.clone() }], Severity::Weak, "91 °C"),
            (vec![DeviceStatus { rest: Some(by_day), ..works.clone() }], Severity::Good, "rests until 22:00 CET"),
            (vec![DeviceStatus { part: 0.5, warnings, ..works }], Severity::Weak, ", 50 % of the time\n"),
        ] {
            let (worst, texts) = found(|report| check_search(report, &devices, false));
            assert!(worst == Some(verdict) && texts.contains(text), "{texts}");
        }
    }

    #[test]
    fn a_disk_that_fills_and_a_clock_that_differs_are_named_before_anybody_is_lost() {
        let verdict = |free| found(|report| check_disk(report, Some(free))).0;
        let expected = [Some(Severity::Broken), Some(Severity::Weak), Some(Severity::Weak), None];
        assert_eq!([FULL_DISK_BYTES - 1, FULL_DISK_BYTES, LOW_DISK_BYTES - 1, LOW_DISK_BYTES].map(verdict), expected);
        let clock = |behind| found(|report| check_clock(report, behind));
        assert_eq!([0, 59, -59, -60].map(|behind| clock(behind).0), [None, None, None, Some(Severity::Weak)]);
        let late = clock(43_200);
        assert!(late.0 == Some(Severity::Broken) && late.1.contains("12 h behind"), "{late:?}");
    }

    #[test]
    fn a_vault_a_missing_sandbox_a_restart_a_lost_line_and_a_new_program_are_named() {
        let vault =
            |trouble: Option<&str>, refusals| found(|report| check_vault(report, trouble.map(str::to_owned), refusals));
        assert_eq!((vault(None, 0).0, vault(None, 1).0), (Some(Severity::Good), Some(Severity::Broken)));
        let gone = vault(Some("wrong passphrase; try again"), 0);
        assert!(gone.0 == Some(Severity::Broken) && gone.1.contains("wrong passphrase"), "{gone:?}");
        let missing = |is_sandbox| {
            let wall = MissingWall { loss: "its memory may be swapped to disk".to_owned(), is_sandbox };
            found(|report| check_walls(report, "vault", &[wall]))
        };
        assert_eq!((missing(true).0, missing(false).0), (Some(Severity::Broken), Some(Severity::Weak)));
        let restarts = |count, lost| found(|report| check_restarts(report, &[("inbox".to_owned(), count)], lost));
        assert_eq!(restarts(0, 0).0, None);
        let (_, texts) = restarts(2, 3);
        assert!(texts.contains("inbox ended 2 times") && texts.contains("3 lines"), "{texts}");
        let program = |path: &str| found(|report| check_program(report, Some(Path::new(path)), Duration::ZERO)).0;
        assert_eq!(program("/usr/bin/npubbot"), Some(Severity::Good));
        assert_eq!(program("/usr/bin/npubbot (deleted)"), Some(Severity::Weak));
    }
}
