//! Messages that are decided but not recorded yet.

use crate::job::{Asker, JobId, RumorId, Ticket};
use crate::language::Language;
use crate::ledger::Effect;
use crate::message::OutgoingMessage;

/// A message that is decided but not yet answered.
pub(super) struct Decided {
    pub asker: Asker,
    pub rumor: RumorId,
    pub seen_on: Vec<String>,
    pub ticket: Option<Ticket>,
    pub effect: Effect,
    pub reply: Option<OutgoingMessage>,
    /// The asker's language, if this message changes it.
    pub language: Option<Language>,
    /// Messages that this one deletes.
    pub taken_back: Vec<RumorId>,
    /// The asker's open jobs before this message.
    pub open: Vec<JobId>,
}
