//! The checksum of an npub as a linear map over GF(2), by tables.
//!
//! Bech32's checksum (BIP-173) is an affine function of the data bits. The checksum of a key is the
//! exclusive or of the constant [`ChecksumTables::zero`] and one entry for each byte of the key.
//! The tables are made from npubs that a library encodes, one for each single bit, so there is no
//! second encoder that could disagree.

use super::shape::values_of;
use crate::key::Npub;
use std::sync::OnceLock;

/// Bits of a checksum: six characters.
pub const CHECKSUM_BITS: u32 = 30;

/// Tables of the checksum.
pub struct ChecksumTables {
    /// The contribution of each value of each byte of a key, the most significant byte first.
    pub bytes: [[u32; 256]; 32],
    /// The checksum of the key zero.
    pub zero: u32,
}

impl ChecksumTables {
    /// The tables. Computed at their first use, which takes less than a millisecond.
    pub fn get() -> &'static ChecksumTables {
        static TABLES: OnceLock<Box<ChecksumTables>> = OnceLock::new();
        TABLES.get_or_init(|| {
            let zero = checksum_of_text(&Npub([0; 32]));
            let mut bytes = [[0; 256]; 32];
            for (at, table) in bytes.iter_mut().enumerate() {
                for bit in 0..8 {
                    let mut key = [0; 32];
                    key[at] = 1 << bit;
                    let part = checksum_of_text(&Npub(key)) ^ zero;
                    for (value, entry) in table.iter_mut().enumerate() {
                        *entry ^= if value >> bit & 1 == 1 { part } else { 0 };
                    }
                }
            }
            Box::new(ChecksumTables { bytes, zero })
        })
    }

    /// The checksum of a key: [`CHECKSUM_BITS`] bits, with its first character uppermost.
    pub fn checksum(&self, x: &[u8; 32]) -> u32 {
        x.iter().zip(&self.bytes).fold(self.zero, |sum, (&byte, table)| sum ^ table[usize::from(byte)])
    }
}

/// The checksum from the encoded text.
fn checksum_of_text(npub: &Npub) -> u32 {
    values_of(npub)[52..].iter().fold(0, |sum, &value| sum << 5 | u32::from(value))
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    proptest! {
        #[test]
        fn the_tables_agree_with_an_encoder(x in any::<[u8; 32]>()) {
            prop_assert_eq!(ChecksumTables::get().checksum(&x), checksum_of_text(&Npub(x)));
        }
    }

    #[test]
    fn the_tables_agree_on_keys_of_all_zeros_and_all_ones() {
        for x in [[0; 32], [0xff; 32]] {
            assert_eq!(ChecksumTables::get().checksum(&x), checksum_of_text(&Npub(x)));
        }
    }
}
