//! The text of one key at a time.

use super::field::Fe;
use super::text::{LOWER, TextField};
use crate::pattern::{ChecksumTables, TextWords, UNUSED_BITS, WORD_BITS};

impl<const ADX: bool> TextField for Fe<ADX> {
    type Key = Self;
    type Word = u64;
    /// No tables of its own: those of `pattern` serve one key at a time.
    type Tables = ();

    fn tables() {}

    #[inline(always)]
    fn plus(a: Self, b: Self) -> Self {
        a.add(b)
    }

    #[inline(always)]
    fn key(self) -> Self {
        self.canonical()
    }

    #[inline(always)]
    fn key_less(self, a: Self, b: Self) -> Self {
        Fe::sub(Fe::sub(self, a), b).canonical()
    }

    #[inline(always)]
    fn key_of_negative(a: Self, b: Self) -> Self {
        Fe::sub(Fe::ZERO, a.add(b)).canonical()
    }

    #[inline(always)]
    fn from_key(key: Self) -> Self {
        key
    }

    #[inline(always)]
    fn text(Fe([a, b, c, d]): Self) -> TextWords<u64> {
        [d >> 4, (d << 56 | c >> 8) & WORD, (c << 52 | b >> 12) & WORD, (b << 48 | a >> 16) & WORD, (a & 0xffff) << 44]
    }

    #[inline(always)]
    fn whole_text(key: Self, (): &()) -> TextWords<u64> {
        let [t0, t1, t2, t3, last] = Self::text(key);
        [t0, t1, t2, t3, last | u64::from(checksum(&key.0)) << UNUSED_BITS]
    }

    #[inline(always)]
    fn agree(word: u64, mask: u64, value: u64) -> u8 {
        u8::from((word ^ value) & mask == 0)
    }

    #[inline(always)]
    fn differences(so_far: u64, word: u64, mask: u64, value: u64) -> u64 {
        so_far | (word ^ value) & mask
    }

    #[inline(always)]
    fn unequal(so_far: u64, a: u64, b: u64) -> u64 {
        so_far | a ^ b
    }

    #[inline(always)]
    fn next_character(word: u64, next: u64) -> u64 {
        (word << 5 | next >> (WORD_BITS - 5)) & WORD
    }

    #[inline(always)]
    fn zero_characters(word: u64, places: u64) -> u8 {
        u8::from(!(((word & LOWER) + LOWER) | word) & places != 0)
    }

    #[inline(always)]
    fn no_word() -> u64 {
        0
    }
}

/// The bits of a text word.
const WORD: u64 = (1 << WORD_BITS) - 1;

/// The checksum of a key, by one lookup for each byte.
#[inline(always)]
fn checksum(limbs: &[u64; 4]) -> u32 {
    let tables = ChecksumTables::get();
    let mut sum = tables.zero;
    for (limb, tables) in limbs.iter().rev().zip(tables.bytes.chunks_exact(8)) {
        for (at, table) in tables.iter().enumerate() {
            sum ^= table[(limb >> (56 - 8 * at)) as usize & 255];
        }
    }
    sum
}
