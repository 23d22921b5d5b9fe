//! Quick tests of whole keys, as far as they are the same on a CPU and on a GPU: the conditions that
//! tests of texts set on the bits of a key, and the bits of a text as linear functions of those of
//! its key.

use crate::pattern::{Anywhere, ChecksumTables, Run, TextTest, TextTests};
use std::collections::BTreeMap;

/// The fewest bits that a quick test compares. Fewer would let too many keys pass.
pub const LEAST_BITS: usize = 12;
/// Characters of a text before its checksum.
pub const DATA_CHARACTERS: usize = 52;
/// Characters of a text.
const CHARACTERS: usize = 58;
/// The fewest even parities that the ends of a group have in common. A single end has more, but a
/// further group of tests costs more than the additional keys that pass.
const LEAST_COMMON: usize = 10;
/// Number of bits of a key. The bits of the checksum are numbered after them.
pub const KEY_BITS: usize = 256;
/// The most bits that a group of tests compares.
const MAX_COMMON: usize = 64;

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
}

/// The conditions of tests. A key whose text passes one of the tests meets at least one condition.
#[derive(Default)]
pub struct Conditions {
    /// Bits of the key and of its checksum have these values.
    pub ends: Vec<Bits>,
    /// Neighbouring bits of the key (not of its checksum) have these values.
    pub runs: Vec<Bits>,
    /// Numbers of equal characters that are somewhere in the text.
    pub equal: Vec<usize>,
}

impl Conditions {
    /// `None` if a condition restricts too few bits.
    pub fn new(tests: &TextTests) -> Option<Conditions> {
        let mut conditions = Conditions::default();
        tests.of_keys.iter().chain(&tests.of_checksums).for_each(|test| conditions.add(test));
        conditions.ends.iter().all(|bits| bits.len() >= LEAST_BITS).then_some(conditions)
    }

    fn add(&mut self, test: &TextTest) {
        let characters = test.fixed.iter().flat_map(|&(word, mask, value)| {
            let part = move |bits: u64, at: usize| (bits >> (55 - 5 * at) & 31) as u8;
            (0..12).map(move |at| (12 * word + at, part(mask, at), part(value, at)))
        });
        // Without bits no key passes the test.
        let Some(fixed) = Bits::of_characters(characters.filter(|&(place, ..)| place < CHARACTERS)) else { return };
        match &test.anywhere {
            Some(Anywhere { run, places }) if fixed.len() < LEAST_BITS => match run {
                Run::Equal(count) => self.equal.push(*count),
                Run::Characters(run) => {
                    let is_place = |&place: &usize| places[place / 12] >> (59 - 5 * (place % 12)) & 1 == 1;
                    (0..CHARACTERS).filter(is_place).for_each(|place| self.add_run(run, place));
                }
            },
            _ => self.ends.push(fixed),
        }
    }

    /// Adds a run that begins at a place. A run that reaches into the checksum is an end.
    fn add_run(&mut self, run: &[(u64, u64)], place: usize) {
        let part = |bits: u64| (bits & 31) as u8;
        let characters = run.iter().enumerate().map(|(at, &(mask, value))| (place + at, part(mask), part(value)));
        let Some(bits) = Bits::of_characters(characters) else { return };
        if place + run.len() > DATA_CHARACTERS { self.ends.push(bits) } else { self.runs.push(bits) }
    }

    /// Adds ends for `count` equal characters at each place from `first` on, unless it `is_found`
    /// otherwise: one for each character. If the last character of the data is among them, only `q`
    /// and `s` are possible, because four of its bits are zero. `None` if there is no such place.
    pub fn add_equal(&mut self, count: usize, first: usize, is_found: impl Fn(usize) -> bool) -> Option<()> {
        for place in (first..=CHARACTERS.checked_sub(count)?).filter(|&place| !is_found(place)) {
            let only_checksum = place >= DATA_CHARACTERS;
            for value in (0..32).step_by(if only_checksum { 1 } else { 16 }) {
                self.ends.push(Bits::of_characters((place..place + count).map(|place| (place, 31, value)))?);
            }
        }
        Some(())
    }
}

/// Distributes ends to at most `most` groups that have enough even parities in common. Returns the
/// [`even_parities`] of each; `None` if the ends do not fit.
pub fn parities_of_groups<'a>(ends: impl IntoIterator<Item = &'a Bits>, most: usize) -> Option<Vec<Vec<[u32; 8]>>> {
    let mut groups: Vec<Vec<&Bits>> = Vec::new();
    for end in ends {
        let fits = |group: &&mut Vec<&Bits>| {
            let with: Vec<&Bits> = group.iter().copied().chain([end]).collect();
            even_parities(&with).len() >= LEAST_COMMON
        };
        match groups.iter_mut().find(fits) {
            Some(group) => group.push(end),
            None => groups.push(vec![end]),
        }
        if groups.len() > most {
            return None;
        }
    }
    let parities: Vec<_> = groups.iter().map(|group| even_parities(group)).collect();
    parities.iter().all(|parities| parities.len() >= LEAST_COMMON).then_some(parities)
}

/// Masks of bits of a key, as limbs. In every key that has one of `tests`, the bits of each mask
/// have even parity. The masks are linearly independent.
fn even_parities(tests: &[&Bits]) -> Vec<[u32; 8]> {
    let Some((first, others)) = tests.split_first() else { return Vec::new() };
    let has_all = |bit: &usize| others.iter().all(|test| test.0.contains_key(bit));
    let common: Vec<usize> = first.0.keys().copied().filter(has_all).take(MAX_COMMON).collect();
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
pub fn mask_of(bit: usize) -> [u32; 8] {
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
