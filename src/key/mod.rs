//! secp256k1 for this project, public mathematics only. Nothing in here knows a secret.
//!
//! A search starts from a [`StartPoint`] `P` and answers with a [`Tweak`]; [`candidate`] computes the npub they lead to,
//! with libsecp256k1 and nothing of ours, so that it can judge what a device claims.

mod hit;
mod npub;
mod split;
mod tweak;

pub use hit::VerifiedHit;
pub use npub::Npub;
pub use split::{HalfPoint, HalfPointError, SplitTweak, SplitTweakError};
pub use tweak::{Offset, Rotation, Tweak, candidate};

use secp256k1::PublicKey;
use std::fmt;

/// `P = s·G`: where a search starts. Whoever holds `s` can redeem what is found; nobody else can.
#[derive(Clone, Copy, PartialEq, Eq, Hash)]
pub struct StartPoint(PublicKey);

impl StartPoint {
    /// Any point of the curve except infinity, as libsecp256k1 accepted it.
    pub fn new(point: PublicKey) -> StartPoint {
        StartPoint(point)
    }

    /// The point for libsecp256k1.
    pub fn public_key(&self) -> &PublicKey {
        &self.0
    }

    /// The affine coordinates `(x, y)`, 32 bytes each, big-endian, both below p.
    pub fn coordinates(&self) -> ([u8; 32], [u8; 32]) {
        let bytes = self.0.serialize_uncompressed();
        let (mut x, mut y) = ([0; 32], [0; 32]);
        x.copy_from_slice(&bytes[1..33]);
        y.copy_from_slice(&bytes[33..]);
        (x, y)
    }
}

impl fmt::Debug for StartPoint {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "StartPoint({})", self.0)
    }
}
