//! The SQLite database of everything that must survive a restart: jobs, messages seen, the outbox.
//! It holds no secret in the clear.
//!
//! Three transactions change it:
//!
//! ```text
//! T1  answer        seen + (job accepted | jobs cancelled | result sent again) + the answer's wrap
//! T2  found         accepted → found (compare and set) + the one wrap of the result
//!     deliver_best  accepted → found (compare and set) + the wrap kept for a job without a target
//!     expire        accepted → expired (compare and set) + the wrap of the notice
//! T3  acknowledge   a relay said OK; found → delivered
//! ```
//!
//! A wrap that is sealed to somebody other than the asker is refused
//! ([`LedgerError::Misaddressed`]), and its transaction changes nothing.
//!
//! A job without a target keeps the sealed result of its best key so far while it is accepted. The
//! result of a rarer key replaces it (`keep_best`). Only `deliver_best` sends the kept result.
//!
//! | state | meaning | after a crash |
//! | --- | --- | --- |
//! | accepted | promised and being searched | searched again: the search has no memory |
//! | found | the sealed result is in the outbox | the same wrap is sent again |
//! | delivered | a relay of the asker has the result | nothing |
//! | cancelled, expired | given up, the asker was told | nothing |

mod answer;
mod askers;
mod budget;
mod jobs;
mod open;
mod outbox;
mod restore;
mod rows;
#[cfg(test)]
mod tests;

pub use answer::{AnsweredMessage, Effect, Recorded};
pub use askers::{AskerTotals, Standing};
pub use budget::{LedgerBudget, Sizes};
pub use jobs::{AskerView, HalfUse, Job, JobState, Totals};
pub use open::{FolderLock, Inspection, Ledger, folder, inspect, lock};
pub use outbox::{Attempt, DayFigures, DueMessage, DuePost, MessageId, Post};
pub use restore::{copy, is_present, restore, used_halves};
pub use rows::{LedgerError, Quarantined};
