//! The checks of `npubbot doctor`: everything that the bot needs, with the remedy if it is missing.

use crate::compiled_kernels;
use crate::config::{Config, RelayEntry};
use crate::control::{self, Command, ControlError, Finding, Reply, Verdict};
use crate::ledger::{self, Inspection, Quarantined, Sizes};
use crate::nostr::{nip11, reach};
use crate::os::files::{self, free_bytes};
use crate::os::kernel;
use crate::search::cpu::describe_kernel;
use crate::search::cuda::probe;
use crate::search::{self, DeviceChoice, DeviceId, SearchOptions};
use crate::vault;
use std::borrow::Cow;
use std::io::ErrorKind;
use std::net::SocketAddr;
use std::path::Path;
use std::time::Duration;

/// A finding of a check.
pub(super) fn finding(what: &'static str, verdict: Verdict, text: impl Into<String>) -> Finding {
    Finding { what: Cow::Borrowed(what), verdict, text: text.into() }
}

/// Time limit for a relay.
const PATIENCE: Duration = Duration::from_secs(7);
/// Bytes on the disk below which SQLite may fail at any moment.
pub const FULL: u64 = 1 << 20;
/// Name of the check of the disk.
const DISK: &str = "disk";
/// Bytes on the disk below which the operator is warned.
const LITTLE: u64 = 256 << 20;
/// Time limit for a relay through a proxy: Tor takes long to make a circuit to an onion service.
const PATIENCE_OF_PROXIES: Duration = Duration::from_secs(60);

/// Runs every check. If a bot runs with the data folder, its own checks are included. Changes
/// nothing, and opens no identity.
pub async fn doctor(config: &Path, data: &Path, identity: &Path) -> Vec<Finding> {
    let config = Config::load(config);
    let mut findings = devices(config.as_ref().ok().map(|config| &config.search), data);
    findings.extend(folder(data, identity));
    let of_bot = running(data);
    // A running bot looks at its disk itself.
    if !of_bot.iter().any(|found| found.what == DISK) {
        findings.extend(free_bytes(data).and_then(disk));
    }
    findings.extend(of_bot);
    match config {
        Ok(config) => {
            let relays = config.relays.len();
            findings.push(finding("configuration", Verdict::Good, format!("it is in order, with {relays} relays")));
            if config.allow_private_relays {
                let text = "`allow_private_relays` is on, so askers can make the bot connect to addresses in your own \
                            network; remove it outside test networks";
                findings.push(finding("private relays", Verdict::Weak, text));
            }
            findings.extend(relay_findings(config.relays, config.network.proxy).await);
        }
        Err(error) => findings.push(finding("configuration", Verdict::Broken, error.to_string())),
    }
    findings
}

/// The devices, and whether they are the ones the configuration asks for. Opens every GPU and runs
/// a launch on it.
fn devices(wanted: Option<&SearchOptions>, data: &Path) -> Vec<Finding> {
    // What is compiled for the check is kept for the bot, or for this user if there is no bot yet.
    let kernels = if data.is_dir() { compiled_kernels::in_folder(data) } else { compiled_kernels::of_user() };
    let options = SearchOptions { kernels, ..wanted.cloned().unwrap_or_default() };
    let found = probe::findings(&options);
    let mut findings = Vec::new();
    let broken = |ordinal| match options.devices {
        DeviceChoice::Cuda => Verdict::Broken,
        DeviceChoice::CudaOrdinal(wanted) if wanted == ordinal => Verdict::Broken,
        // The CPU or another GPU searches.
        DeviceChoice::All | DeviceChoice::Cpu | DeviceChoice::CudaOrdinal(_) => Verdict::Weak,
    };
    match &found.driver {
        Ok(version) => findings.push(finding("driver", Verdict::Good, format!("it serves CUDA {version}"))),
        Err(reason) => findings.push(finding("driver", Verdict::Weak, reason.clone())),
    }
    for gpu in &found.gpus {
        let name = format!("cuda:{} is {}", gpu.ordinal, if gpu.name.is_empty() { "a GPU" } else { &gpu.name });
        findings.push(match &gpu.check {
            Ok((kernel, keys)) => finding(
                "GPU",
                Verdict::Good,
                format!("{name}; a launch found the same {keys} keys as the CPU ({kernel})"),
            ),
            Err(reason) => finding("GPU", broken(gpu.ordinal), format!("{name} and cannot search: {reason}")),
        });
    }
    let has_gpus = !found.gpus.is_empty();
    let kernels = match (found.built_for, found.compilers.as_slice()) {
        (Some(built), _) => finding("kernels", Verdict::Good, format!("this build has them for {built}")),
        (None, [first, ..]) => {
            finding("kernels", Verdict::Good, format!("{first} compiles them at the first start, in a minute or two"))
        }
        (None, []) if !has_gpus => {
            finding("kernels", Verdict::Good, "this build has none for GPUs, and there is no GPU")
        }
        (None, []) => finding(
            "kernels",
            Verdict::Weak,
            "this build has none for GPUs, and NVRTC 12.1 or newer is not there: take a release of npubbot, or install \
             NVRTC 12.9 (`pip install nvidia-cuda-nvrtc-cu12==12.9.86`) and name its libnvrtc.so.12 in NPUBBOT_NVRTC",
        ),
    };
    findings.push(kernels);
    findings.push(finding("CPU", Verdict::Good, describe_kernel()));
    findings.extend(kernel::is_in_windows().then(|| within_windows(has_gpus)));
    let gpus: Vec<usize> = found.gpus.iter().filter(|gpu| gpu.check.is_ok()).map(|gpu| gpu.ordinal).collect();
    findings.extend(wanted.into_iter().flat_map(|options| choice(options, &gpus)));
    findings
}

/// The finding about a Linux within Windows (WSL).
fn within_windows(has_gpu: bool) -> Finding {
    match has_gpu {
        true => {
            let text = "this Linux runs within Windows, where launches on a GPU take longer to start; \
                        npubbot.exe on Windows itself is faster";
            finding("WSL", Verdict::Weak, text)
        }
        false => finding(
            "WSL",
            Verdict::Good,
            "this Linux runs within Windows; for a GPU the driver of Windows is enough, install none here",
        ),
    }
}

/// Whether the devices that the configuration asks for are among these GPUs and the CPU.
fn choice(options: &SearchOptions, gpus: &[usize]) -> Vec<Finding> {
    let there = match gpus {
        [] => "no GPU can be used".to_owned(),
        gpus => format!("these GPUs can be used: {}", gpus.iter().map(usize::to_string).collect::<Vec<_>>().join(", ")),
    };
    let (verdict, text) = match options.devices {
        DeviceChoice::Cuda if gpus.is_empty() => (
            Verdict::Broken,
            format!("`device` is \"cuda\", but {there}; write \"all\" to search on the CPU until one is there"),
        ),
        DeviceChoice::CudaOrdinal(ordinal) if !gpus.contains(&ordinal) => {
            (Verdict::Broken, format!("`device` is \"cuda:{ordinal}\", but {there}; name another, or write \"all\""))
        }
        DeviceChoice::Cpu => (Verdict::Good, "the CPU searches, as `device` says".to_owned()),
        DeviceChoice::All if gpus.is_empty() => (Verdict::Good, format!("the CPU searches, for {there}")),
        DeviceChoice::All | DeviceChoice::Cuda => (Verdict::Good, format!("{} GPUs search", gpus.len())),
        DeviceChoice::CudaOrdinal(ordinal) => (Verdict::Good, format!("cuda:{ordinal} searches")),
    };
    let mut findings = vec![finding("search", verdict, text)];
    let one_thread = SearchOptions { threads: Some(1), ..options.clone() };
    if let Err(error) = search::open(DeviceId::Cpu, &one_thread) {
        let gpus_do = !gpus.is_empty() && options.devices != DeviceChoice::Cpu;
        let verdict = if gpus_do { Verdict::Weak } else { Verdict::Broken };
        findings.push(finding("search", verdict, format!("`cpu_kernel`: {error}, or write \"auto\" in its place")));
    }
    findings
}

fn folder(data: &Path, identity: &Path) -> Vec<Finding> {
    let mut findings = Vec::new();
    match std::fs::metadata(data) {
        Err(error) if error.kind() == ErrorKind::NotFound => {
            findings.push(finding("data folder", Verdict::Good, "`npubbot init` makes it"));
        }
        Err(error) => {
            let text = format!("{} cannot be read ({error}); ask as its user, or as root", data.display());
            findings.push(finding("data folder", Verdict::Broken, text));
        }
        Ok(meta) if !meta.is_dir() => {
            let text = format!("{} is no folder; name another with --data", data.display());
            findings.push(finding("data folder", Verdict::Broken, text));
        }
        Ok(_) => {
            let writable = tempfile::Builder::new().prefix(".doctor").tempfile_in(data);
            findings.push(match (writable, files::is_open_to_others(data)) {
                (Err(error), _) => finding(
                    "data folder",
                    Verdict::Broken,
                    format!("nothing can be written there ({error}); make it yours, or name another with --data"),
                ),
                (Ok(_), Ok(false)) => finding("data folder", Verdict::Good, "it is writable, and nobody else reads it"),
                (Ok(_), _) => finding(
                    "data folder",
                    Verdict::Weak,
                    format!("others on this machine can look into it: {}", files::closing_command(data)),
                ),
            });
        }
    }
    findings.push(identity_finding(data, identity));
    let ledger = match ledger::inspect(data) {
        Ok(Inspection::Absent) => finding("ledger", Verdict::Good, "there is none yet; the first start makes it"),
        Ok(Inspection::InUse) => finding("ledger", Verdict::Good, "a running npubbot has it"),
        Ok(Inspection::Sound { schema, open_jobs, quarantined, sizes, restored_at, is_older }) => {
            findings.extend(ledger_findings(&quarantined, &sizes, restored_at));
            if is_older {
                let text = "it is older than the file used-halves beside it: a backup was put back, or that file is \
                            missing or cut; the next start gives open split jobs up and refuses older requests";
                findings.push(finding("ledger", Verdict::Weak, text));
            }
            finding("ledger", Verdict::Good, format!("it is sound (schema {schema}), with {open_jobs} open jobs"))
        }
        Err(error) => finding("ledger", Verdict::Broken, error.to_string()),
    };
    findings.push(ledger);
    findings
}

fn identity_finding(data: &Path, identity: &Path) -> Finding {
    let broken = |text: String| finding("identity", Verdict::Broken, text);
    match identity.metadata() {
        Err(error) if error.kind() != ErrorKind::NotFound => {
            let path = identity.display();
            broken(format!("{path} cannot be read ({error}); ask as the user that runs the bot, or as root"))
        }
        // A new identity would be another bot, with the jobs of this one.
        Err(_) if ledger::is_present(data) => {
            let path = identity.display();
            broken(format!("it is lost, but its ledger is there: restore {path} from your copy or a backup"))
        }
        Err(_) => broken("there is none, and `serve` makes none; run `npubbot init`".to_owned()),
        Ok(_) => match (vault::inspect_identity(identity), files::is_open_to_others(identity)) {
            (Err(error), _) => broken(error.to_string()),
            (Ok(()), Ok(true)) => {
                let text = format!("others on this machine can copy it: {}", files::closing_command(identity));
                finding("identity", Verdict::Weak, text)
            }
            (Ok(()), _) => finding("identity", Verdict::Good, "it is there; keep a copy elsewhere"),
        },
    }
}

/// The finding about a disk with few bytes left.
pub(super) fn disk(free: u64) -> Option<Finding> {
    let left = format!("{:.1} MiB are left on the disk of the data folder", free as f64 / f64::from(1 << 20));
    if free < FULL {
        let text = format!(
            "{left}, so nothing is accepted and no key is recorded; free some space: the bot goes on by itself"
        );
        return Some(finding(DISK, Verdict::Broken, text));
    }
    (free < LITTLE).then(|| finding(DISK, Verdict::Weak, format!("{left}; free some space soon")))
}

/// Weaknesses of a ledger.
pub(super) fn ledger_findings(quarantined: &[Quarantined], sizes: &Sizes, restored_at: Option<u64>) -> Vec<Finding> {
    let weak = |text: String| finding("ledger", Verdict::Weak, text);
    let mut findings: Vec<Finding> = quarantined
        .iter()
        .map(|row| {
            weak(format!(
                "{} cannot be read ({}) and is skipped; mend or delete the row, then its row in `quarantine`",
                row.place, row.reason
            ))
        })
        .collect();
    if restored_at.is_some() {
        let text = "a backup was restored: open split jobs were given up, older requests are refused";
        findings.push(weak(text.to_owned()));
    }
    if sizes.dropped > 0 {
        findings
            .push(weak(format!("{} unsent answers were dropped, because they were over the budget", sizes.dropped)));
    }
    findings
}

/// The findings of the running bot itself.
fn running(data: &Path) -> Vec<Finding> {
    let mut findings = Vec::new();
    let asked = control::ask(data, Command::Doctor, |reply| match reply {
        Reply::Finding(found) => findings.push(found),
        Reply::Refused(reason) => findings.push(finding("running bot", Verdict::Weak, reason)),
        _ => {}
    });
    match asked {
        Ok(()) => {}
        Err(ControlError::NothingRuns { .. }) => {
            findings.push(finding("running bot", Verdict::Good, "none answers on the local socket"))
        }
        Err(error @ ControlError::NotYours { .. }) => {
            findings.push(finding("running bot", Verdict::Weak, error.to_string()));
        }
        Err(error) => findings.push(finding("running bot", Verdict::Broken, error.to_string())),
    }
    findings
}

async fn relay_findings(entries: Vec<RelayEntry>, proxy: Option<SocketAddr>) -> Vec<Finding> {
    let mut looking = tokio::task::JoinSet::new();
    for entry in entries.iter().cloned() {
        looking.spawn(async move {
            let patience = if proxy.is_some() { PATIENCE_OF_PROXIES } else { PATIENCE };
            // Relays' descriptions are read without the proxy. That would show the operator's
            // address, so none is read where a proxy is set.
            let description = async { if proxy.is_some() { None } else { nip11::read(&entry.url).await } };
            let (reached, document) = tokio::join!(reach(&entry.url, proxy, patience), description);
            let problems = document.map(|document| nip11::problems(&document)).unwrap_or_default();
            (entry, reached, problems)
        });
    }
    let mut findings = Vec::new();
    let mut inboxes = 0;
    for (entry, reached, problems) in looking.join_all().await {
        let url = &entry.url;
        match reached {
            Ok(took) if entry.inbox && !problems.is_empty() => {
                let _ = took;
                findings.push(finding("relay", Verdict::Weak, format!("{url} cannot serve: {}", problems.join("; "))));
            }
            Ok(took) => {
                inboxes += usize::from(entry.inbox);
                findings.push(finding("relay", Verdict::Good, format!("{url} answers within {} ms", took.as_millis())));
            }
            Err(reason) => {
                let text = format!("{url} cannot be reached ({reason}); if it stays away, replace it in relays.toml");
                findings.push(finding("relay", Verdict::Weak, text));
            }
        }
    }
    findings.sort_by(|a, b| a.text.cmp(&b.text));
    if inboxes == 0 {
        let text =
            "no relay with the role \"inbox\" works, so nobody reaches the bot; look at the network, or name others";
        findings.push(finding("relays", Verdict::Broken, text));
    }
    findings
}
