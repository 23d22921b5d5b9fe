//! The workers on other machines, and their descriptions for the operator.

use super::devices::state_of;
use super::doctor::finding;
use super::monitor::metrics::{MetricsError, Page};
use crate::config::Config;
use crate::control::{Finding, FleetStatus, Verdict, WorkerDeviceStatus, WorkerStatus};
use crate::duration::humanize;
use crate::fleet::{BOT_CREDENTIALS, FOLDER, RemoteView};
use crate::os::kernel::MemoryFile;
use crate::pattern::Rate;
use crate::scheduler::DeviceView;
use crate::search::DeviceId;
use crate::search::WorkerName;
use std::collections::BTreeMap;
use std::path::Path;
use std::time::Duration;

pub use crate::fleet::{Credentials, CredentialsError, Fleet, FleetView};

/// Difference between two clocks, in seconds, above which the operator is told.
const CLOCKS_AGREE: f64 = 60.0;
/// Round trip, in seconds, above which the operator is told.
const SLOW: f64 = 1.0;
/// The text about a worker that is sometimes turned away.
const TOO_OFTEN: &str = "it is started too often, or two machines share its credentials";

/// The fleet of the configuration and the bot's credentials there; `None` without one.
pub(super) fn open(config: &Config, data: &Path) -> Result<Option<(Fleet, Credentials)>, CredentialsError> {
    let Some(fleet) = &config.fleet else { return Ok(None) };
    let file = fleet.credentials.clone().unwrap_or_else(|| data.join(FOLDER).join(BOT_CREDENTIALS));
    Ok(Some((Fleet::new(&fleet.server), credentials(&file)?)))
}

/// Reads credentials. Where the system has files in memory, their file may be gone afterwards.
pub(crate) fn credentials(file: &Path) -> Result<Credentials, CredentialsError> {
    let credentials = Credentials::read(file)?;
    Ok(match MemoryFile::with(credentials.certificate()) {
        Ok(memory) => credentials.with_certificate_in(memory.path(), memory),
        Err(_) => credentials,
    })
}

/// The state of all workers. `devices`: the scheduler's devices, which have the proven figures.
pub(super) fn status_of(fleet: FleetView, devices: &[DeviceView], is_paused: bool) -> FleetStatus {
    let mut workers: BTreeMap<WorkerName, Vec<RemoteView>> = BTreeMap::new();
    for device in fleet.devices {
        workers.entry(device.id.worker).or_default().push(device);
    }
    let refused: BTreeMap<WorkerName, String> = fleet.refused.into_iter().collect();
    for name in refused.keys() {
        workers.entry(*name).or_default();
    }
    let record = |of: &RemoteView| devices.iter().find(|device| device.id == DeviceId::Remote(of.id));
    let worker = |(name, views): (WorkerName, Vec<RemoteView>)| {
        let devices: Vec<WorkerDeviceStatus> =
            views.iter().map(|view| device_status(view, record(view), is_paused)).collect();
        let refusal = refused.get(&name);
        let away = views.iter().find_map(|view| view.away.as_deref());
        let connected = refusal.is_none() && views.iter().any(|view| view.away.is_none());
        let state = match (refusal, away) {
            (Some(reason), _) => format!("gets no orders: {reason}"),
            (None, Some(reason)) if !connected => format!("away: {reason}"),
            _ if views.iter().any(|view| view.comes_too_often) => TOO_OFTEN.to_owned(),
            _ => devices.iter().find(|device| device.connected).map_or_else(String::new, |device| device.state.clone()),
        };
        let working = devices.iter().filter(|device| device.connected);
        WorkerStatus {
            name: name.to_string(),
            connected,
            proven_rate: working.map(|device| device.proven_rate).sum(),
            hits: devices.iter().map(|device| device.hits).sum(),
            hits_wrong: devices.iter().map(|device| device.hits_wrong).sum(),
            errors: devices.iter().map(|device| device.errors).sum(),
            state,
            devices,
        }
    };
    FleetStatus { server: fleet.server, connected: fleet.connected, workers: workers.into_iter().map(worker).collect() }
}

fn device_status(view: &RemoteView, record: Option<&DeviceView>, is_paused: bool) -> WorkerDeviceStatus {
    let state = match (&view.away, record) {
        (Some(reason), _) => format!("away: {reason}"),
        (None, Some(record)) => state_of(record, is_paused),
        (None, None) => "comes".to_owned(),
    };
    WorkerDeviceStatus {
        id: view.id.to_string(),
        name: view.name.clone(),
        kernel: view.kernel.clone(),
        version: view.program.clone(),
        connected: view.away.is_none(),
        proven_rate: record.and_then(|record| record.rate).map_or(0.0, |Rate(rate)| rate),
        hits: record.map_or(0, |record| record.hits),
        hits_wrong: view.hits_wrong,
        errors: view.errors,
        round_trip: view.echo.map(|echo| echo.round_trip.as_secs_f64()),
        clock_ahead: view.echo.map(|echo| echo.clock_ahead as f64 / 1e3),
        state,
    }
}

/// Metrics of the workers on other machines. The rates and hits of their devices are among those of
/// all devices.
pub(super) fn metrics(page: &Page, fleet: &FleetView) -> Result<(), MetricsError> {
    let connected = f64::from(u8::from(fleet.connected));
    page.gauge("fleet_connected", "Whether the server of the workers is connected.", connected)?;
    let there = fleet.devices.iter().filter(|device| device.away.is_none()).count();
    page.gauge("fleet_devices", "Devices of workers that are there.", there as f64)?;
    page.gauge(
        "fleet_refused_workers",
        "Workers that get no orders, dropped or unreadable.",
        fleet.refused.len() as f64,
    )?;
    let ids: Vec<String> = fleet.devices.iter().map(|device| DeviceId::Remote(device.id).to_string()).collect();
    let each = || ids.iter().map(String::as_str).zip(&fleet.devices);
    let errors = each().map(|(id, device)| ([id], device.errors));
    let help = "Times that a worker's device did nothing with its orders, failed or lied.";
    page.counters("fleet_device_errors_total", help, ["device"], errors)?;
    // The label is this bot's version or `other`. So a device has at most two series, whatever
    // versions its worker reports.
    let own = env!("CARGO_PKG_VERSION");
    let versions = each().filter(|(_, device)| device.away.is_none()).map(|(id, device)| {
        let version = if device.program == own { own } else { "other" };
        ([id, version], 1.0)
    });
    page.gauges("fleet_device_info", "Version of a worker; always 1.", ["device", "version"], versions)?;
    let echoes = || each().filter_map(|(id, device)| Some((id, device.echo?)));
    let times = echoes().map(|(id, echo)| ([id], echo.round_trip.as_secs_f64()));
    page.gauges("fleet_device_round_trip_seconds", "Time of a message to a worker and back.", ["device"], times)?;
    let clocks = echoes().map(|(id, echo)| ([id], echo.clock_ahead as f64 / 1e3));
    page.gauges("fleet_device_clock_ahead_seconds", "A worker's clock minus the bot's.", ["device"], clocks)
}

/// The state of the server and of every worker, with their faults.
pub(super) fn findings(fleet: FleetView, devices: &[DeviceView], is_paused: bool) -> Vec<Finding> {
    let (refused, views) = (fleet.refused.clone(), fleet.devices.clone());
    let FleetStatus { server, connected, workers } = status_of(fleet, devices, is_paused);
    let mut findings = vec![match connected {
        true => finding("workers", Verdict::Good, format!("their server {server} is connected")),
        false => {
            let text = format!("their server {server} is away; they get no orders until it is back");
            finding("workers", Verdict::Weak, text)
        }
    }];
    for worker in workers.iter().filter(|worker| worker.connected) {
        let WorkerStatus { name, proven_rate, hits, hits_wrong, errors, .. } = worker;
        let (rate, count) = (Rate(*proven_rate), worker.devices.iter().filter(|device| device.connected).count());
        let text =
            format!("{name} has {count} devices: {rate} proven, {hits} hits, {hits_wrong} wrong, {errors} errors");
        findings.push(finding("workers", Verdict::Good, text));
        findings.extend(worker.devices.iter().filter(|device| device.connected).flat_map(about));
    }
    for (worker, reason) in &refused {
        findings.push(finding("workers", Verdict::Weak, format!("{worker} gets no orders: {reason}")));
    }
    for device in views.iter().filter(|device| device.comes_too_often) {
        findings.push(finding("workers", Verdict::Weak, format!("{}: {TOO_OFTEN}", device.id)));
    }
    findings
}

/// Faults of a connected device: its version, its clock, its network.
fn about(device: &WorkerDeviceStatus) -> Vec<Finding> {
    let WorkerDeviceStatus { id, version, round_trip, clock_ahead, .. } = device;
    let mut texts = Vec::new();
    if version != env!("CARGO_PKG_VERSION") {
        texts.push(format!("{id} runs npubbot {version}, and the bot {}", env!("CARGO_PKG_VERSION")));
    }
    if let Some(ahead) = clock_ahead.filter(|ahead| ahead.abs() > CLOCKS_AGREE) {
        let which = if ahead > 0.0 { "ahead of" } else { "behind" };
        let time = humanize(Duration::from_secs_f64(ahead.abs().min(1e12)));
        texts.push(format!("the clock of {id} is {time} {which} the bot's; the times in its log are wrong"));
    }
    if let Some(time) = round_trip.filter(|time| *time > SLOW) {
        texts.push(format!("a message to {id} and back takes {time:.1} s; new jobs reach it late"));
    }
    texts.into_iter().map(|text| finding("workers", Verdict::Weak, text)).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::fleet::Echo;
    use crate::scheduler::Health;
    use crate::search::RemoteId;

    fn view(worker: &str, device: u8, away: Option<&str>) -> RemoteView {
        RemoteView {
            id: RemoteId { worker: worker.parse().unwrap(), device },
            name: "NVIDIA H200".to_owned(),
            kernel: "sm_90".to_owned(),
            program: "0.1.0".to_owned(),
            away: away.map(str::to_owned),
            hits_wrong: 1,
            errors: 2,
            echo: Some(Echo { round_trip: Duration::from_millis(12), clock_ahead: -3 }),
            comes_too_often: false,
        }
    }

    fn record(of: &RemoteView, rate: f64, hits: u64) -> DeviceView {
        DeviceView {
            id: DeviceId::Remote(of.id),
            name: of.name.clone(),
            kernel: of.kernel.clone(),
            threads: 1,
            health: of.away.clone().map_or(Health::Working, Health::Out),
            rate: Some(Rate(rate)),
            candidates: 0,
            hits,
            hits_wrong: 0,
            rest: None,
            part: 1.0,
            warnings: Vec::new(),
        }
    }

    fn fleet(devices: Vec<RemoteView>, refused: &[(&str, &str)]) -> FleetView {
        let refused = refused.iter().map(|(name, reason)| (name.parse().unwrap(), (*reason).to_owned())).collect();
        FleetView { server: "tls://nats.example:4222".to_owned(), connected: true, devices, refused }
    }

    #[test]
    fn a_worker_is_the_sum_of_its_devices_that_are_there() {
        let devices = vec![view("ann", 0, None), view("ann", 1, Some("no sign of life for 7 s")), view("bob", 0, None)];
        let records = [record(&devices[0], 1e9, 5), record(&devices[1], 2e9, 7), record(&devices[2], 4e9, 1)];
        let status = status_of(fleet(devices, &[("liar", "3 of its hits were wrong")]), &records, false);
        let told = |at: usize| {
            let WorkerStatus { name, connected, proven_rate, hits, state, .. } = &status.workers[at];
            (name.as_str(), *connected, *proven_rate, *hits, state.as_str())
        };
        assert_eq!(told(0), ("ann", true, 1e9, 12, "working"));
        assert_eq!(told(1), ("bob", true, 4e9, 1, "working"));
        assert_eq!(told(2), ("liar", false, 0.0, 0, "gets no orders: 3 of its hits were wrong"));
        let ann = &status.workers[0];
        assert_eq!(ann.devices[1].state, "away: no sign of life for 7 s");
        assert_eq!((ann.hits_wrong, ann.errors), (2, 4));
        assert_eq!((ann.devices[0].round_trip, ann.devices[0].clock_ahead), (Some(0.012), Some(-0.003)));
    }

    #[test]
    fn a_server_that_is_away_and_a_worker_that_is_turned_away_are_named() {
        let mut fleet = fleet(vec![view("ann", 0, None)], &[("bob", "it speaks version 9")]);
        fleet.devices[0].comes_too_often = true;
        let findings = |fleet: &FleetView| super::findings(fleet.clone(), &[], false);
        assert!(findings(&fleet)[0].verdict == Verdict::Good && findings(&fleet).len() == 4);
        assert_eq!(status_of(fleet.clone(), &[], false).workers[0].state, TOO_OFTEN);
        fleet.connected = false;
        let mut all = findings(&fleet);
        assert!(all.remove(1).text.contains("ann has 1 devices"));
        assert!(all.iter().all(|finding| finding.verdict == Verdict::Weak), "{all:?}");
        for (finding, text) in all.iter().zip(["is away", "bob gets no orders: it speaks version 9", "ann:0"]) {
            assert!(finding.text.contains(text), "{finding:?}");
        }
    }

    #[test]
    fn a_worker_with_another_version_a_wrong_clock_or_a_slow_network_is_named() {
        let mut device = view("ann", 0, None);
        device.program = env!("CARGO_PKG_VERSION").to_owned();
        let said = |device: &RemoteView| -> Vec<String> {
            let all = findings(fleet(vec![device.clone()], &[]), &[record(device, 1e9, 5)], false);
            let weak = all.into_iter().filter(|finding| finding.verdict == Verdict::Weak);
            weak.map(|finding| finding.text).collect()
        };
        let at = |millis, clock_ahead| Some(Echo { round_trip: Duration::from_millis(millis), clock_ahead });
        for fine in [None, at(999, -59_999), at(0, 60_000)] {
            assert!(said(&RemoteView { echo: fine, ..device.clone() }).is_empty(), "{fine:?}");
        }
        for (echo, text) in [(at(1, 7_200_000), "2 h ahead of"), (at(1, -90_000), "behind"), (at(1_500, 0), "1.5 s")] {
            assert!(said(&RemoteView { echo, ..device.clone() })[0].contains(text), "{echo:?}");
        }
        assert_eq!(said(&RemoteView { echo: at(0, i64::MIN), ..device.clone() }).len(), 1);
        device.program = "9.9.9".to_owned();
        assert!(said(&device)[0].contains("ann:0 runs npubbot 9.9.9"));
    }
}
