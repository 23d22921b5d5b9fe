//! secp256k1 for this project: public mathematics only, no secret.
//!
//! A search starts from a [`StartPoint`] `P` and answers with a [`Tweak`]. [`candidate`] computes
//! the npub of the two with libsecp256k1 alone, so it can check the claims of a device.

mod hit;
mod npub;
mod split;
mod start_point;
mod tweak;

pub use hit::VerifiedHit;
pub use npub::Npub;
pub use split::{HalfPoint, HalfPointError, SplitTweak, SplitTweakError};
pub use start_point::StartPoint;
pub use tweak::{Offset, Rotation, Tweak, candidate};
