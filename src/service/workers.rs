//! The workers on other machines: the bot's connection to them, their metrics and their faults.

use super::Handles;
use super::doctor::Report;
use super::monitor::metrics::Page;
use crate::config::Config;
use crate::fleet::{
    BOT_CREDENTIALS, Credentials, FOLDER, Fleet, FleetError, FleetStatus, WorkerDeviceStatus, WorkerFigures,
    WorkerStatus,
};
use crate::search::{DeviceId, Searcher};
use crate::shutdown::Shutdown;
use std::path::{Path, PathBuf};
use std::sync::Arc;

/// The fleet of the configuration and the bot's credentials there; `None` without one.
pub(super) fn open(config: &Config, data: &Path) -> Result<Option<(Fleet, Arc<Credentials>)>, FleetError> {
    let (Some(fleet), Some(file)) = (&config.fleet, credentials_file(config, data)) else { return Ok(None) };
    Ok(Some((Fleet::new(&fleet.server), Arc::new(Credentials::read(&file)?))))
}

/// The file of the bot's credentials; `None` without a fleet.
pub(super) fn credentials_file(config: &Config, data: &Path) -> Option<PathBuf> {
    let fleet = config.fleet.as_ref()?;
    Some(fleet.credentials.clone().unwrap_or_else(|| data.join(FOLDER).join(BOT_CREDENTIALS)))
}

impl Handles {
    /// The state of all workers, with the figures that the scheduler has proven; `None` if the
    /// configuration has no server for them.
    pub fn fleet_status(&self) -> Option<FleetStatus> {
        let (fleet, _) = self.context.fleet.as_ref()?;
        let devices = self.scheduler.devices();
        Some(fleet.status(|id| {
            let device = devices.iter().find(|device| device.id == DeviceId::Remote(id))?;
            Some((device.rate.unwrap_or_default(), device.hits, device.state.clone()))
        }))
    }
}

/// Serves the workers until the shutdown. A server that cannot be used is in the log, and the bot
/// serves without it.
pub(super) async fn serve(bot: Handles, mut stop: Shutdown) {
    if let Some((fleet, credentials)) = bot.context.fleet.clone() {
        // A weak handle, so that a session that outlasts the stop does not keep the scheduler alive.
        let scheduler = Arc::downgrade(&bot.scheduler);
        let attach = move |searcher: Box<dyn Searcher>| {
            if let Some(scheduler) = scheduler.upgrade() {
                scheduler.attach(searcher);
            }
        };
        let mut stopped = stop.clone();
        fleet.run(credentials, attach, async move { stopped.stopped().await }).await;
    }
    stop.stopped().await;
}

/// Metrics of the workers on other machines. The rates and hits of their devices are among those of
/// all devices.
pub(super) fn add_metrics(page: &mut Page, fleet: &FleetStatus) {
    page.one("fleet_connected", "Whether the server of the workers is connected.", fleet.connected);
    let there = fleet.devices().filter(|device| device.figures.connected).count();
    page.one("fleet_devices", "Devices of workers that are there.", there as f64);
    let refused = fleet.workers.iter().filter(|worker| worker.refused.is_some()).count();
    page.one("fleet_refused_workers", "Workers that get no orders, dropped or unreadable.", refused as f64);
    let each = || fleet.devices().map(|device| (DeviceId::Remote(device.id).to_string(), device));
    let errors = each().map(|(id, device)| ([id], device.figures.errors as f64));
    let help = "Times that a worker's device did nothing with its orders, failed or lied.";
    page.each("fleet_device_errors_total", help, ["device"], errors);
    // The label is this bot's version or `other`. So a device has at most two series, whatever
    // versions its worker reports.
    let own = env!("CARGO_PKG_VERSION");
    let versions = each().filter(|(_, device)| device.figures.connected).map(|(id, device)| {
        let version = if device.version == own { own } else { "other" };
        ([id, version.to_owned()], 1.0)
    });
    page.each("fleet_device_info", "Version of a worker; always 1.", ["device", "version"], versions);
}

/// The state of the server and of every worker, with their faults.
pub(super) fn check(report: &mut Report, fleet: &FleetStatus) {
    let (server, own) = (&fleet.server, env!("CARGO_PKG_VERSION"));
    match fleet.connected {
        true => report.good("workers", format!("their server {server} is connected")),
        false => {
            let text = format!("their server {server} is away; they get no orders until it is back");
            report.weak("workers", text);
        }
    }
    for worker in fleet.workers.iter().filter(|worker| worker.figures.connected) {
        let (name, WorkerFigures { proven_rate, hits, hits_wrong, errors, .. }) = (&worker.name, &worker.figures);
        let connected = || worker.devices.iter().filter(|device| device.figures.connected);
        let figures = format!("{proven_rate} proven, {hits} hits, {hits_wrong} wrong, {errors} errors");
        report.good("workers", format!("{name} has {} devices: {figures}", connected().count()));
        for WorkerDeviceStatus { id, version, .. } in connected().filter(|device| device.version != own) {
            report.weak("workers", format!("{id} runs npubbot {version}, and the bot {own}"));
        }
    }
    fleet.workers.iter().flat_map(WorkerStatus::faults).for_each(|text| report.weak("workers", text));
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::control::{Finding, Severity};
    use crate::pattern::Rate;

    fn device() -> WorkerDeviceStatus {
        let (proven_rate, state) = (Rate(1e9), "working".to_owned());
        let figures = WorkerFigures { connected: true, proven_rate, hits: 5, hits_wrong: 1, errors: 2, state };
        let [name, kernel, version] = ["NVIDIA H200", "sm_90", env!("CARGO_PKG_VERSION")].map(str::to_owned);
        let id = "ann:0".to_owned().try_into().unwrap();
        WorkerDeviceStatus { id, name, kernel, version, figures, comes_too_often: false }
    }

    fn fleet(device: WorkerDeviceStatus) -> FleetStatus {
        let figures = WorkerFigures { connected: true, ..Default::default() };
        let ann = WorkerStatus { name: "ann".to_owned(), figures, devices: vec![device], ..Default::default() };
        FleetStatus { server: "tls://nats.example:4222".to_owned(), connected: true, workers: vec![ann] }
    }

    fn findings(fleet: &FleetStatus) -> Vec<Finding> {
        let mut report = Report::default();
        check(&mut report, fleet);
        report.0
    }

    #[test]
    fn a_server_that_is_away_and_a_worker_that_is_turned_away_are_named() {
        let mut fleet = fleet(WorkerDeviceStatus { comes_too_often: true, ..device() });
        let refused = Some("it speaks version 9".to_owned());
        fleet.workers.push(WorkerStatus { name: "bob".to_owned(), refused, ..Default::default() });
        assert!(findings(&fleet)[0].verdict == Severity::Good && findings(&fleet).len() == 4);
        fleet.connected = false;
        let mut all = findings(&fleet);
        assert!(all.remove(1).text.contains("ann has 1 devices"));
        assert!(all.iter().all(|finding| finding.verdict == Severity::Weak), "{all:?}");
        for (finding, text) in all.iter().zip(["is away", "ann:0", "bob gets no orders: it speaks version 9"]) {
            assert!(finding.text.contains(text), "{finding:?}");
        }
    }

    #[test]
    fn a_worker_with_another_version_is_named() {
        let said = |device: WorkerDeviceStatus| findings(&fleet(device)).pop().unwrap();
        assert!(said(device()).verdict == Severity::Good);
        let old = said(WorkerDeviceStatus { version: "9.9.9".to_owned(), ..device() });
        assert!(old.verdict == Severity::Weak && old.text.contains("ann:0 runs npubbot 9.9.9"), "{old:?}");
    }
}
