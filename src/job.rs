//! Names of things that travel between rooms: who asks, which message, which job.

use std::fmt;

/// Who sent a request: the x-only public key that signed the seal. Replies go to this key and to no other.
#[derive(Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct Asker(pub [u8; 32]);

/// The id of a rumor, recomputed from its content (NIP-01), never taken from the sender.
#[derive(Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct RumorId(pub [u8; 32]);

/// The number of a job, counted from 1 for each ledger. Askers see it as `#12`.
#[derive(Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord, Debug)]
pub struct JobId(pub i64);

impl fmt::Display for JobId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "#{}", self.0)
    }
}

/// Eight hex digits: enough to tell two apart in a log, too few to look a person up.
fn short(bytes: &[u8; 32], f: &mut fmt::Formatter<'_>) -> fmt::Result {
    bytes[..4].iter().try_for_each(|b| write!(f, "{b:02x}"))
}

impl fmt::Debug for Asker {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        short(&self.0, f)
    }
}

impl fmt::Debug for RumorId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        short(&self.0, f)
    }
}
