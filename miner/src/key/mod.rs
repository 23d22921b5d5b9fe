//! secp256k1 for this project: public mathematics only, no secret.
//!
//! A search begins at a [`StartPoint`] `P` and returns a [`Tweak`]. [`candidate`] computes their
//! npub with libsecp256k1 only, to check the claims of a device.

mod hit;
mod npub;
mod split;

mod start_point;
mod tweak;
mod work;

pub use hit::VerifiedHit;
pub use npub::Npub;
pub use split::{HalfPoint, HalfPointError, SplitTweak, SplitTweakError};

pub use start_point::StartPoint;
pub use tweak::{Offset, Rotation, Tweak, candidate};
pub use work::{Work, WorkDay, WorkTarget};
