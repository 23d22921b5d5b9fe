//! Names and descriptions of devices and workers.

use serde::{Deserialize, Serialize};
use std::fmt;
use std::str::FromStr;
use thiserror::Error;

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

/// Longest name of a worker, bytes.
const LONGEST: usize = 24;
/// The most devices of one worker.
pub const MAX_DEVICES: u8 = 16;

/// The name of a worker: 1 to 24 of `a` to `z`, `0` to `9` and `-`. It is one token of a NATS
/// subject.
#[derive(Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct WorkerName {
    /// The name, padded with zeros.
    text: [u8; LONGEST],
}

/// Error for a text that is not a [`WorkerName`].
#[derive(Clone, Copy, PartialEq, Eq, Debug, Error)]
#[error("a worker's name has 1 to {LONGEST} characters: a to z, 0 to 9 and -, and is not `bot`")]
pub struct NoName;

impl WorkerName {
    /// The name as text.
    pub fn as_str(&self) -> &str {
        let length = self.text.iter().position(|&byte| byte == 0).unwrap_or(LONGEST);
        // The name is ASCII.
        std::str::from_utf8(&self.text[..length]).unwrap_or_default()
    }
}

impl FromStr for WorkerName {
    type Err = NoName;

    fn from_str(text: &str) -> Result<WorkerName, NoName> {
        let is_allowed = |byte: u8| byte.is_ascii_lowercase() || byte.is_ascii_digit() || byte == b'-';
        // The bot's own user of the NATS server has the name `bot`.
        if text.is_empty() || text.len() > LONGEST || text == "bot" || !text.bytes().all(is_allowed) {
            return Err(NoName);
        }
        let mut padded = [0; LONGEST];
        padded[..text.len()].copy_from_slice(text.as_bytes());
        Ok(WorkerName { text: padded })
    }
}

impl fmt::Display for WorkerName {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.as_str())
    }
}

impl fmt::Debug for WorkerName {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.as_str())
    }
}

/// One device of a worker.
#[derive(Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord, Debug, Serialize, Deserialize)]
#[serde(into = "String", try_from = "String")]
pub struct RemoteId {
    /// The worker.
    pub worker: WorkerName,
    /// The number of its device, below [`MAX_DEVICES`].
    pub device: u8,
}

impl fmt::Display for RemoteId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}:{}", self.worker, self.device)
    }
}

impl From<RemoteId> for String {
    fn from(id: RemoteId) -> String {
        id.to_string()
    }
}

impl TryFrom<String> for RemoteId {
    type Error = String;

    fn try_from(text: String) -> Result<RemoteId, String> {
        let parts =
            text.split_once(':').and_then(|(worker, device)| Some((worker.parse().ok()?, device.parse().ok()?)));
        let (worker, device) = parts.ok_or_else(|| format!("`{text}` is not a device of a worker"))?;
        Ok(RemoteId { worker, device })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_device_is_read_from_its_name() {
        let id = RemoteId { worker: "ann".parse().unwrap(), device: 7 };
        for id in [DeviceId::Cpu, DeviceId::Cuda(3), DeviceId::Remote(id)] {
            assert_eq!(DeviceId::try_from(String::from(id)), Ok(id));
        }
        for wrong in ["worker ann", "worker ann:x", "worker A:1", "ann:7"] {
            assert!(DeviceId::try_from(wrong.to_owned()).is_err(), "{wrong}");
        }
    }

    #[test]
    fn a_name_is_one_token_of_a_subject() {
        for good in ["a", "gpu-7", "0", &"x".repeat(LONGEST)] {
            assert_eq!(good.parse::<WorkerName>().unwrap().as_str(), good);
        }
        for bad in ["", "A", "a.b", "a b", ">", "*", "é", "a\0", "bot", &"x".repeat(LONGEST + 1)] {
            assert_eq!(bad.parse::<WorkerName>(), Err(NoName), "{bad:?}");
        }
    }
}
