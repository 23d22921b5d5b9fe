//! Messages to askers, before and after they are sealed, and the work that a flood costs.

pub use npubbot_vault::message::{Answered, GiftWrap, OutgoingMessage};

use std::time::Duration;

/// Proof of work (NIP-13) that a first-time asker's gift wrap needs during a flood.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct WorkWanted {
    /// Leading zero bits of the wrap's id.
    pub bits: u32,
    /// Time until no work is needed any more, if the flood stops now.
    pub ends_in: Duration,
}
