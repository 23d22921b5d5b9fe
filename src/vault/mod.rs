//! Every secret: the identity in its age file, the open start secrets, and derived keys until they
//! are sealed.
//!
//! A secret leaves this room only sealed to its asker, or, for `npubbot mine`, `split` and
//! `combine`, written once to the caller's output. The types that hold one are in private modules,
//! so no other room can name them:
//!
//! ```compile_fail,E0603
//! use npubbot::vault::secret::Start;
//! ```
//!
//! ```compile_fail,E0603
//! use npubbot::vault::half::Half;
//! ```
//!
//! Every command keeps these secrets in a separate process (`npubbot vault`), which [`answer`]s
//! requests. [`Vault`] is the handle to it; the commands of askers use [`HalfVault`].
//!
//! One start point yields at most one key: two keys of one start secret reveal each other.
//! `secrets` removes the start point from the table before it derives anything, so there is
//! no second try if a later step fails.

mod age_file;
mod announcement;
mod answering;
mod claim;
mod error;
mod frame;
mod half;
mod half_vault;
mod held_half;
mod identity;
mod link;
mod no_key;
mod opening;
mod process;
mod public_events;
mod random;
mod request;
mod rumor;
mod seal;
mod secret;
mod secrets;
mod signer;
mod start_points;
mod stream;
#[cfg(any(test, feature = "test-util"))]
mod testing;
mod ticket;
mod unwrap;
#[expect(clippy::module_inception, reason = "the room and its main type have one name")]
mod vault;
mod verified;

#[cfg(test)]
mod tests;

pub use announcement::{ANNOUNCEMENT, Announcement};
pub use answering::answer;
pub use claim::{Claim, Opened};
pub use error::{CombineError, UnwrapError, VaultError};
pub use half_vault::HalfVault;
pub use identity::inspect as inspect_identity;
pub use opening::{Means, Opening, Unlock};
#[cfg(any(test, feature = "test-util"))]
pub use request::BreakOut;
pub use rumor::Rumor;
pub use signer::BotSigner;
pub use start_points::StartId;
pub use stream::{Lock, decrypt, encrypt};
pub use ticket::{Asked, Order, Reader, Wanted};
pub use vault::Vault;
pub use verified::VerifiedEvent;
