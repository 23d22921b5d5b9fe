//! Public points: where a search starts, and what it finds.

use bech32::{Bech32, Hrp};
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

/// x-coordinate of a public key, 32 bytes, big-endian, as Nostr shows it: bech32 with the
/// human-readable part `npub` (NIP-19). `P` and `-P` have the same npub.
#[derive(Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize)]
pub struct Npub(pub [u8; 32]);

impl fmt::Display for Npub {
    /// Writes `npub1` and 58 characters: 52 of data, 6 of checksum.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let hrp = Hrp::parse_unchecked("npub");
        let text = bech32::encode::<Bech32>(hrp, &self.0).map_err(|_| fmt::Error)?;
        f.write_str(&text)
    }
}

impl fmt::Debug for Npub {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(self, f)
    }
}
