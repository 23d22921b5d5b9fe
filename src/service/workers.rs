//! The workers on other machines, for the operator.

use super::devices::state_of;
use super::doctor::finding;
use crate::control::{Finding, FleetStatus, Verdict, WorkerDeviceStatus, WorkerStatus};
use crate::pattern::Rate;
use crate::remote::{FleetView, RemoteView};
use crate::scheduler::DeviceView;
use crate::search::DeviceId;
use crate::search::WorkerName;
use std::collections::BTreeMap;

/// Words for a worker that is turned away now and then.
const TOO_OFTEN: &str = "it is started too often, or two machines share its credentials";

/// The state of all workers. `devices`: those of the scheduler, with the proven figures.
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
        hits_wrong: record.map_or(0, |record| record.hits_wrong),
        state,
    }
}

/// The state of the server, and every worker that something is wrong with.
pub(super) fn findings(fleet: &FleetView) -> Vec<Finding> {
    let server = &fleet.server;
    let mut findings = vec![match fleet.connected {
        true => finding("workers", Verdict::Good, format!("their server {server} is connected")),
        false => {
            let text = format!("their server {server} is away; they get no orders until it is back");
            finding("workers", Verdict::Weak, text)
        }
    }];
    for (worker, reason) in &fleet.refused {
        findings.push(finding("workers", Verdict::Weak, format!("{worker} gets no orders: {reason}")));
    }
    for device in fleet.devices.iter().filter(|device| device.comes_too_often) {
        findings.push(finding("workers", Verdict::Weak, format!("{}: {TOO_OFTEN}", device.id)));
    }
    findings
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::scheduler::Health;
    use crate::search::RemoteId;

    fn view(worker: &str, device: u8, away: Option<&str>) -> RemoteView {
        RemoteView {
            id: RemoteId { worker: worker.parse().unwrap(), device },
            name: "NVIDIA H200".to_owned(),
            kernel: "sm_90".to_owned(),
            program: "0.1.0".to_owned(),
            away: away.map(str::to_owned),
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
            hits_wrong: 1,
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
        assert_eq!(status.workers[0].devices[1].state, "away: no sign of life for 7 s");
    }

    #[test]
    fn a_server_that_is_away_and_a_worker_that_is_turned_away_are_named() {
        let mut fleet = fleet(vec![view("ann", 0, None)], &[("bob", "it speaks version 9")]);
        fleet.devices[0].comes_too_often = true;
        assert!(findings(&fleet)[0].verdict == Verdict::Good && findings(&fleet).len() == 3);
        assert_eq!(status_of(fleet.clone(), &[], false).workers[0].state, TOO_OFTEN);
        fleet.connected = false;
        let all = findings(&fleet);
        assert!(all.iter().all(|finding| finding.verdict == Verdict::Weak), "{all:?}");
        for (finding, text) in all.iter().zip(["is away", "bob gets no orders: it speaks version 9", "ann:0"]) {
            assert!(finding.text.contains(text), "{finding:?}");
        }
    }
}
