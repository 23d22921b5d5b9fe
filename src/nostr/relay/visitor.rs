//! The visitors of external relays, and the ranks of their connections.

use crate::job::Asker;

/// The asker on whose behalf an external relay is visited.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(in crate::nostr) struct Visitor {
    /// The receiver of the message.
    pub asker: Asker,
    /// Whether the message is a result, or its asker has an open job.
    pub urgent: bool,
    /// Whether the message was tried before, and no relay accepted it.
    pub retries: bool,
}

impl Visitor {
    /// No asker: the bot itself.
    pub(super) const NOBODY: Visitor = Visitor { asker: Asker([0; 32]), urgent: false, retries: false };
}

/// The rank of a connection. Connections of a higher rank are kept first.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub(super) enum Rank {
    /// A connection to another relay of the asker, or for another attempt.
    Further,
    /// A further connection for an asker with a job.
    UrgentFurther,
    /// The first relay of the asker, at the first attempt.
    First,
    /// A first connection for an asker with a job.
    UrgentFirst,
}

impl Rank {
    /// The rank of a new connection. `others`: number of the asker's connections that have not
    /// answered.
    pub fn of(visitor: Visitor, others: usize) -> Rank {
        match (visitor.retries || others > 0, visitor.urgent) {
            (true, false) => Rank::Further,
            (true, true) => Rank::UrgentFurther,
            (false, false) => Rank::First,
            (false, true) => Rank::UrgentFirst,
        }
    }

    /// Whether the asker has a job.
    pub fn is_urgent(self) -> bool {
        matches!(self, Rank::UrgentFurther | Rank::UrgentFirst)
    }
}
