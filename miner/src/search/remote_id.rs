//! Names of workers and of their devices.

use serde::{Deserialize, Serialize};
use std::fmt;
use std::str::FromStr;
use thiserror::Error;

/// Longest name of a worker, bytes.
const LONGEST: usize = 24;
/// The most devices of one worker.
pub const MOST_DEVICES: u8 = 16;

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
    /// The number of its device, below [`MOST_DEVICES`].
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
    use crate::search::DeviceId;

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
