//! The operating system's generator, and nothing else. When it fails, whatever needed it fails too.

use super::VaultError;
use secp256k1::rand::{CryptoRng, Error, RngCore};

/// Fills a buffer with random bytes, or says that there are none. Tests put a failing one in its place.
pub(super) type Source = fn(&mut [u8]) -> Result<(), VaultError>;

/// The operating system's.
pub(super) fn system(bytes: &mut [u8]) -> Result<(), VaultError> {
    getrandom::fill(bytes).map_err(|_| VaultError::NoRandomness)
}

/// A source in the shape libraries ask for. Their interface knows no failure and would have us panic; this one gives
/// zeros and remembers, and [`Generator::checked`] throws away what was made of them.
pub(super) struct Generator {
    source: Source,
    failed: bool,
}

impl Generator {
    pub(super) fn new(source: Source) -> Generator {
        Generator { source, failed: false }
    }

    /// `made`, unless any of the randomness in it was missing.
    pub(super) fn checked<T>(self, made: T) -> Result<T, VaultError> {
        if self.failed { Err(VaultError::NoRandomness) } else { Ok(made) }
    }
}

impl RngCore for Generator {
    fn next_u32(&mut self) -> u32 {
        let mut bytes = [0; 4];
        self.fill_bytes(&mut bytes);
        u32::from_le_bytes(bytes)
    }

    fn next_u64(&mut self) -> u64 {
        let mut bytes = [0; 8];
        self.fill_bytes(&mut bytes);
        u64::from_le_bytes(bytes)
    }

    fn fill_bytes(&mut self, bytes: &mut [u8]) {
        if (self.source)(bytes).is_err() {
            bytes.fill(0);
            self.failed = true;
        }
    }

    fn try_fill_bytes(&mut self, bytes: &mut [u8]) -> Result<(), Error> {
        self.fill_bytes(bytes);
        Ok(())
    }
}

impl CryptoRng for Generator {}
