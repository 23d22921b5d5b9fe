//! Bits of a text as linear functions of the bits of its key.

use crate::pattern::ChecksumTables;
use std::collections::BTreeMap;

/// Number of bits of a key. The bits of the checksum are numbered after them.
const KEY_BITS: usize = 256;
/// The most bits that a group of tests compares.
const MOST_COMMON: usize = 64;

/// Bits of a text with their values. Bits 0 to 255 are those of the key, the lowest first, and 256
/// to 285 those of the checksum.
#[derive(Clone, Default, Debug)]
pub struct Bits(BTreeMap<usize, bool>);

impl Bits {
    /// The bits of characters, each given by place, mask and value. `None` if no text has them,
    /// because four bits of the last character before the checksum are zero.
    pub fn of_characters(characters: impl Iterator<Item = (usize, u8, u8)>) -> Option<Bits> {
        let mut bits = BTreeMap::new();
        for (place, mask, value) in characters {
            for bit in (0..5).filter(|bit| mask >> bit & 1 == 1) {
                let is_set = value >> bit & 1 == 1;
                match place {
                    0..51 => bits.insert(251 - 5 * place + bit, is_set),
                    51 if bit == 4 => bits.insert(0, is_set),
                    51 if is_set => return None,
                    51 => None,
                    _ => bits.insert(KEY_BITS + 5 * (57 - place) + bit, is_set),
                };
            }
        }
        Some(Bits(bits))
    }

    pub fn len(&self) -> usize {
        self.0.len()
    }

    /// Mask and value of `count` bits of the key, at most 64, from bit `from` upwards. Bits above
    /// the key are not in the mask.
    pub fn word(&self, from: usize, count: usize) -> (u64, u64) {
        let range = self.0.range(from..(from + count).min(KEY_BITS));
        range.fold((0, 0), |(mask, value), (bit, &is_set)| {
            (mask | 1 << (bit - from), value | u64::from(is_set) << (bit - from))
        })
    }

    /// Mask and value of the lowest limb (32 bits) of the key.
    pub fn lowest_limb(&self) -> (u32, u32) {
        self.0.range(..32).fold((0, 0), |(mask, all), (bit, &is_set)| (mask | 1 << bit, all | u32::from(is_set) << bit))
    }

    /// Mask and value of each half limb of the key, the lowest first.
    pub fn halves(&self) -> [(u16, u16); 16] {
        let mut halves = [(0, 0); 16];
        for (bit, &is_set) in self.0.range(..KEY_BITS) {
            let (mask, value) = &mut halves[bit / 16];
            *mask |= 1 << (bit % 16);
            *value |= u16::from(is_set) << (bit % 16);
        }
        halves
    }
}

/// Masks of bits of a key, as limbs. In every key that has one of `tests`, the bits of each mask
/// have even parity. The masks are linearly independent.
pub fn even_parities(tests: &[&Bits]) -> Vec<[u32; 8]> {
    let Some((first, others)) = tests.split_first() else { return Vec::new() };
    let has_all = |bit: &usize| others.iter().all(|test| test.0.contains_key(bit));
    let common: Vec<usize> = first.0.keys().copied().filter(has_all).take(MOST_COMMON).collect();
    let zero = ChecksumTables::get().zero;
    // The values of the common bits, each combined with the checksum of the key zero by exclusive
    // or, which makes them linear in the key.
    let value = |test: &Bits, bit: usize| test.0[&bit] != (bit >= KEY_BITS && zero >> (bit - KEY_BITS) & 1 == 1);
    // Gaussian elimination: each pivot is set in only one of the rows.
    let mut rows: Vec<(usize, u64)> = Vec::new();
    for test in tests {
        let row = common.iter().enumerate().fold(0, |row, (at, &bit)| row | u64::from(value(test, bit)) << at);
        let row = rows.iter().fold(row, |row, &(pivot, other)| if row >> pivot & 1 == 1 { row ^ other } else { row });
        if row != 0 {
            let pivot = row.trailing_zeros() as usize;
            rows.iter_mut().filter(|(_, other)| *other >> pivot & 1 == 1).for_each(|(_, other)| *other ^= row);
            rows.push((pivot, row));
        }
    }
    let is_free = |at: &usize| rows.iter().all(|&(pivot, _)| pivot != *at);
    (0..common.len())
        .filter(is_free)
        .map(|free| {
            let pivots = rows.iter().filter(|(_, row)| row >> free & 1 == 1).map(|&(pivot, _)| pivot);
            pivots.chain([free]).fold([0; 8], |sum, at| {
                let part = mask_of(common[at]);
                std::array::from_fn(|limb| sum[limb] ^ part[limb])
            })
        })
        .collect()
}

/// The bits of the key whose parity is this bit of the text, up to a constant.
fn mask_of(bit: usize) -> [u32; 8] {
    let mut mask = [0; 8];
    if bit < KEY_BITS {
        mask[bit / 32] = 1 << (bit % 32);
        return mask;
    }
    for place in 0..KEY_BITS {
        let part = ChecksumTables::get().bytes[31 - place / 8][1 << (place % 8)];
        mask[place / 32] |= (part >> (bit - KEY_BITS) & 1) << (place % 32);
    }
    mask
}
