//! Names and descriptions of devices.

use super::remote_id::RemoteId;
use serde::{Deserialize, Serialize};
use std::fmt;
use std::str::FromStr;

/// The name of a device: `cpu`, `cuda:0`, `worker alice:0`, …
#[derive(Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord, Debug, Serialize, Deserialize)]
#[serde(into = "String", try_from = "String")]
pub enum DeviceId {
    /// The processor, with all its threads.
    Cpu,
    /// The GPU of this number.
    Cuda(usize),
    /// A device of a worker on another machine.
    Remote(RemoteId),
}

impl fmt::Display for DeviceId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            DeviceId::Cpu => f.write_str("cpu"),
            DeviceId::Cuda(ordinal) => write!(f, "cuda:{ordinal}"),
            DeviceId::Remote(id) => write!(f, "worker {id}"),
        }
    }
}

impl FromStr for DeviceId {
    /// The error, in words for the operator.
    type Err = String;

    fn from_str(text: &str) -> Result<DeviceId, String> {
        let number = text.strip_prefix("cuda:").and_then(|number| number.parse().ok());
        match (text, number) {
            ("cpu", _) => Ok(DeviceId::Cpu),
            (_, Some(ordinal)) => Ok(DeviceId::Cuda(ordinal)),
            _ => Err(format!("`{text}` is no single device; say `cpu` or `cuda:N`")),
        }
    }
}

impl From<DeviceId> for String {
    fn from(id: DeviceId) -> String {
        id.to_string()
    }
}

impl TryFrom<String> for DeviceId {
    type Error = String;

    fn try_from(text: String) -> Result<DeviceId, String> {
        match text.strip_prefix("worker ") {
            Some(device) => RemoteId::try_from(device.to_owned()).map(DeviceId::Remote),
            None => text.parse(),
        }
    }
}

/// The description of a device.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct DeviceInfo {
    /// The name npubbot uses.
    pub id: DeviceId,
    /// The maker's name: `NVIDIA H200`, `AMD EPYC 9R14`.
    pub name: String,
    /// The kernel that runs on it: `portable`, `ifma`, `cuda sm_90`, …
    pub kernel: String,
    /// Threads that search; 1 for a GPU, whose thread only waits for it.
    pub threads: usize,
    /// A setting that cannot be applied, in words for the operator.
    pub warning: Option<String>,
}
