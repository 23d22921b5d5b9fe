//! Public keys as Nostr shows them: bech32 with the human-readable part `npub` (NIP-19).

use bech32::{Bech32, Hrp};
use serde::{Deserialize, Serialize};
use std::fmt;

/// x-coordinate of a public key, 32 bytes, big-endian. `P` and `-P` have the same npub.
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
