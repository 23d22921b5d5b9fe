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
//! A job without a target keeps the sealed result of its best key so far while it is accepted. The
//! result of a rarer key replaces it (`keep_best`). Only `deliver_best` sends the kept result.
//!
//! | state | meaning | after a crash |
//! | --- | --- | --- |
//! | accepted | promised and being searched | searched again: the search has no memory |
//! | found | the sealed result is in the outbox | the same wrap is sent again |
//! | delivered | a relay of the asker has the result | nothing |
//! | cancelled, expired | given up, the asker was told | nothing |

mod align;
mod answer;
mod asker;
mod best;
mod budget;
mod clean;
mod copy;
mod days;
mod disk;
mod error;
mod halves;
mod job;
mod jobs;
mod lock;
mod look;
mod meta;
mod open;
mod outbox;
mod posts;
mod quarantine;
mod report;
mod restore;
mod retention;
mod rows;
mod rules;
mod schema;
#[cfg(test)]
mod tests;
mod used_halves;

pub use answer::{Answer, Effect, Recorded};
pub use budget::{Budget, Sizes};
pub use copy::{copy, is_present, restore, used_halves};
pub use days::DayFigures;
pub use error::LedgerError;
pub use halves::HalfUse;
pub use job::{AskerView, Job, JobState, Totals};
pub use look::{Look, look};
pub use open::Ledger;
pub use outbox::{Attempt, DueMessage, MessageId, Next};
pub use posts::{DuePost, Post};
pub use quarantine::Quarantined;
pub use rules::{AskerRule, AskerTotals};
