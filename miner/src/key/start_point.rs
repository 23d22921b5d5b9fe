//! The public point that a search starts from.

use secp256k1::PublicKey;
use serde::{Deserialize, Serialize};
use std::fmt;

/// Start point `P = s·G` of a search. Only the holder of `s` can turn a hit into a key.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub struct StartPoint(PublicKey);

impl StartPoint {
    /// A start point from a point of libsecp256k1, which is on the curve and not infinity.
    pub fn new(point: PublicKey) -> StartPoint {
        StartPoint(point)
    }

    /// The point in libsecp256k1's form.
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
