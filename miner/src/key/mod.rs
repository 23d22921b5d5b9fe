//! secp256k1 for this project: public mathematics only, no secret.
//!
//! A search begins at a [`StartPoint`] `P` and returns a [`Tweak`]. [`candidate`] computes their
//! npub with libsecp256k1 only, to check the claims of a device.

mod point;
mod split;
mod tweak;
mod work;

pub use point::{Npub, StartPoint};
pub use split::{HalfPoint, HalfPointError, SplitTweak, SplitTweakError};
pub use tweak::{Offset, Rotation, Tweak, VerifiedHit, candidate};
pub use work::{Work, WorkDay, WorkTarget};
