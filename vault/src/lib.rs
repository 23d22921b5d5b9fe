//! Every secret: the identity in its age file, the open start secrets, and derived keys until they
//! are sealed.
//!
//! A secret leaves this package only sealed to its asker, or, for `npubbot mine`, `split` and
//! `combine`, once as text for the person at this machine. The types that hold a bot's are private
//! to the package, so no other code can name them:
//!
//! ```compile_fail,E0603
//! use npubbot_vault::secret::Start;
//! ```
//!
//! A bot and `mine` keep these secrets in a separate process (`npubbot vault`), which [`answer`]s
//! requests. [`Vault`] is the handle to it. The commands of askers use a [`Half`].
//!
//! One start point yields at most one key: two keys of one start secret reveal each other.
//! `secrets` removes the start point from the table before it derives anything, so there is
//! no second try if a later step fails.

mod age_file;
mod answering;
mod error;
mod half;
mod identity;
pub mod message;
#[doc(hidden)]
pub mod os;
mod process;
mod public;
mod random;
mod request;
mod seal;
mod secret;
mod secrets;
mod spawner;
mod start_points;
#[cfg(any(test, feature = "test-util"))]
#[path = "tests/testing.rs"]
mod testing;
mod ticket;
mod unwrap;
mod vault;

#[cfg(test)]
mod tests;

use npubbot_miner::{clock, frame, key, pattern};
use std::sync::{Mutex, MutexGuard, PoisonError};

pub use age_file::{BackupKey, decrypt, encrypt};
pub use answering::answer;
pub use error::{UnwrapError, VaultError};
pub use half::Half;
pub use identity::{IdentityFile, NEEDS_PERSON, PassphraseSource, Unlock, inspect as inspect_identity, relock};
pub use message::{ANNOUNCEMENT, Announcement, Claim, Opened, Rumor, VerifiedEvent};
pub use os::MissingWall;
pub use public::{BotSigner, PublicRelay, PublicSettings};
pub use request::MAX_FRAME;
pub use spawner::{DirectSpawner, Process, ProcessEnd, ProcessRequest, Spawned, Spawner, log_lines};
pub use start_points::StartId;
pub use ticket::{Asked, Order, Reader, Wanted};
pub use unwrap::GIFT_WRAPS;
pub use vault::Vault;

/// Locks a mutex. A poisoned lock is accepted, because no holder leaves its data half changed.
fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}
