//! The public key as Nostr shows it: 32 bytes, bech32 with the human part `npub` (NIP-19).

use bech32::{Bech32, Hrp};
use std::fmt;

/// The 32-byte x-coordinate of a public key, big-endian. `P` and `-P` are one npub.
#[derive(Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct Npub(pub [u8; 32]);

impl fmt::Display for Npub {
    /// `npub1` and 58 characters: 52 of data, 6 of checksum.
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
