//! The state of the workers, as the operator sees it.

use npubbot_miner::pattern::Rate;
use npubbot_miner::search::{RemoteId, WorkerName};
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;

/// The text about a worker that is sometimes turned away.
const TOO_OFTEN: &str = "it is started too often, or two machines share its credentials";

/// The figures of a device in the scheduler that its orders come from.
#[derive(Clone, PartialEq, Debug, Default)]
pub struct ProvenFigures {
    /// Candidates a second that its canaries prove.
    pub rate: Rate,
    /// Hits that verified.
    pub hits: u64,
    /// State of the device in words.
    pub state: String,
}

/// The workers on other machines.
#[derive(Clone, PartialEq, Debug, Default, Serialize, Deserialize)]
pub struct FleetStatus {
    /// Address of their server.
    pub server: String,
    /// Whether the bot is connected to the server.
    pub connected: bool,
    /// The workers that have come since the start, by name.
    pub workers: Vec<WorkerStatus>,
}

/// The state of a worker. Its figures are sums over its devices.
#[derive(Clone, PartialEq, Debug, Default, Serialize, Deserialize)]
pub struct WorkerStatus {
    /// The worker's name.
    pub name: String,
    /// Whether one of its devices is connected and gets orders.
    pub connected: bool,
    /// Candidates a second that its canaries prove, of all connected devices; 0 before the first
    /// measurement.
    pub proven_rate: Rate,
    /// Hits that verified, since the start.
    pub hits: u64,
    /// Hits that did not verify.
    pub hits_wrong: u64,
    /// Times since the start that the worker ignored its orders, failed or lied.
    pub errors: u64,
    /// `working`, `paused` by the operator, `rests ` and until when, `away: `, `gets no orders: `
    /// or `out: ` and the reason, or that it is started too often.
    pub state: String,
    /// Why the worker gets no orders, if so.
    #[serde(skip)]
    pub refused: Option<String>,
    /// The worker's devices.
    pub devices: Vec<WorkerDeviceStatus>,
}

/// The state of a worker's device. Name, kernel and version are as the worker says.
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize)]
pub struct WorkerDeviceStatus {
    /// `ann:0`, …
    pub id: RemoteId,
    /// The maker's name.
    pub name: String,
    /// The kernel that the device runs.
    pub kernel: String,
    /// Version of the worker's program.
    pub version: String,
    /// Whether the device is connected.
    pub connected: bool,
    /// As in [`WorkerStatus::proven_rate`].
    pub proven_rate: Rate,
    /// As in [`WorkerStatus::hits`].
    pub hits: u64,
    /// As in [`WorkerStatus::hits_wrong`].
    pub hits_wrong: u64,
    /// As in [`WorkerStatus::errors`].
    pub errors: u64,
    /// Time of a message to the device and back, seconds; `None` before the first one and while the
    /// device is away.
    pub round_trip: Option<f64>,
    /// The device's clock minus the bot's, seconds, with an error of up to half the round trip;
    /// `None` whenever `round_trip` is.
    pub clock_ahead: Option<f64>,
    /// As in [`WorkerStatus::state`].
    pub state: String,
    /// Whether the device's worker was recently started more often than is allowed.
    #[serde(skip)]
    pub comes_too_often: bool,
}

impl FleetStatus {
    /// All devices.
    pub fn devices(&self) -> impl Iterator<Item = &WorkerDeviceStatus> {
        self.workers.iter().flat_map(|worker| &worker.devices)
    }

    /// The devices as workers, and the workers that get no orders for a reason.
    pub(crate) fn of(devices: Vec<WorkerDeviceStatus>, refused: Vec<(WorkerName, String)>) -> FleetStatus {
        let mut workers: BTreeMap<WorkerName, (Vec<WorkerDeviceStatus>, Option<String>)> = BTreeMap::new();
        for device in devices {
            workers.entry(device.id.worker).or_default().0.push(device);
        }
        for (worker, reason) in refused {
            workers.entry(worker).or_default().1 = Some(reason);
        }
        let workers = workers.into_iter().map(|(name, (devices, refused))| WorkerStatus::of(name, devices, refused));
        FleetStatus { workers: workers.collect(), ..FleetStatus::default() }
    }
}

impl WorkerStatus {
    fn of(name: WorkerName, devices: Vec<WorkerDeviceStatus>, refused: Option<String>) -> WorkerStatus {
        let connected = || devices.iter().filter(|device| device.connected);
        let state = match (&refused, connected().next(), devices.first()) {
            (Some(reason), ..) => format!("gets no orders: {reason}"),
            (None, None, away) => away.map_or_else(String::new, |device| device.state.clone()),
            (None, Some(_), _) if devices.iter().any(|device| device.comes_too_often) => TOO_OFTEN.to_owned(),
            (None, Some(device), _) => device.state.clone(),
        };
        WorkerStatus {
            name: name.to_string(),
            connected: refused.is_none() && connected().next().is_some(),
            proven_rate: Rate(connected().map(|device| device.proven_rate.0).sum()),
            hits: devices.iter().map(|device| device.hits).sum(),
            hits_wrong: devices.iter().map(|device| device.hits_wrong).sum(),
            errors: devices.iter().map(|device| device.errors).sum(),
            state,
            refused,
            devices,
        }
    }

    /// The faults that the bot sees in the worker, for its operator.
    pub fn faults(&self) -> Vec<String> {
        let refused = self.refused.iter().map(|reason| format!("{} gets no orders: {reason}", self.name));
        let often = self.devices.iter().filter(|device| device.comes_too_often);
        refused.chain(often.map(|device| format!("{}: {TOO_OFTEN}", device.id))).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn device(worker: &str, device: u8, state: &str, rate: f64, hits: u64) -> WorkerDeviceStatus {
        WorkerDeviceStatus {
            id: RemoteId { worker: worker.parse().unwrap(), device },
            name: "NVIDIA H200".to_owned(),
            kernel: "sm_90".to_owned(),
            version: "0.1.0".to_owned(),
            connected: !state.starts_with("away"),
            proven_rate: Rate(rate),
            hits,
            hits_wrong: 1,
            errors: 2,
            round_trip: Some(0.012),
            clock_ahead: Some(-0.003),
            state: state.to_owned(),
            comes_too_often: false,
        }
    }

    #[test]
    fn a_worker_is_the_sum_of_its_devices_that_are_there() {
        let away = "away: no sign of life for 7 s";
        let devices = vec![
            device("ann", 0, "working", 1e9, 5),
            device("ann", 1, away, 2e9, 7),
            device("bob", 0, "paused", 4e9, 1),
        ];
        let refused = vec![("liar".parse().unwrap(), "3 of its hits were wrong".to_owned())];
        let status = FleetStatus::of(devices, refused);
        let told = |at: usize| {
            let WorkerStatus { name, connected, proven_rate, hits, state, .. } = &status.workers[at];
            (name.as_str(), *connected, proven_rate.0, *hits, state.as_str())
        };
        assert_eq!(told(0), ("ann", true, 1e9, 12, "working"));
        assert_eq!(told(1), ("bob", true, 4e9, 1, "paused"));
        assert_eq!(told(2), ("liar", false, 0.0, 0, "gets no orders: 3 of its hits were wrong"));
        assert_eq!((status.workers[0].hits_wrong, status.workers[0].errors), (2, 4));
        assert_eq!(status.workers[2].faults(), ["liar gets no orders: 3 of its hits were wrong"]);
        let mut alone = device("ann", 1, away, 2e9, 7);
        assert_eq!(FleetStatus::of(vec![alone.clone()], Vec::new()).workers[0].state, away);
        (alone.connected, alone.comes_too_often) = (true, true);
        let status = FleetStatus::of(vec![alone], Vec::new());
        assert_eq!((status.workers[0].state.as_str(), status.workers[0].faults().len()), (TOO_OFTEN, 1));
    }
}
