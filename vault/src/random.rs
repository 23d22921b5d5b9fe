//! Randomness, from the operating system only. If its generator fails, the caller fails too.

use super::error::VaultError;
use secp256k1::rand::{CryptoRng, Error, RngCore};

/// Function that fills a buffer with random bytes or fails. Tests replace it by a failing one.
pub(super) type Source = fn(&mut [u8]) -> Result<(), VaultError>;

/// The operating system's generator.
pub(super) fn system(bytes: &mut [u8]) -> Result<(), VaultError> {
    getrandom::fill(bytes).map_err(|_| VaultError::NoRandomness)
}

/// Adapter of a [`Source`] for libraries that cannot take an error from a generator and would
/// panic. On failure it returns zeros and remembers the failure; [`Generator::checked`] then
/// discards the value made from them.
pub(super) struct Generator {
    source: Source,
    failed: bool,
}

impl Generator {
    pub(super) fn new(source: Source) -> Generator {
        Generator { source, failed: false }
    }

    /// Returns `made`, or an error if the source failed at any time.
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
