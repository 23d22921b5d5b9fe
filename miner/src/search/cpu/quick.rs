//! Quick tests of whole keys: conditions on the bits of a key, derived from the tests of its text.
//! A key whose text passes a test also passes the quick tests, and few other keys do.
//!
//! An **end** is a set of bits of a key, with the values that they have in a key that passes. It
//! comes from the characters that a pattern fixes, usually the last ones.

use super::field::{FOLD, Fe};
use super::formula::Products;
use super::text::passes_a_test;
use super::whole::factors_of_keys;
use crate::pattern::TextTests;
use crate::search::conditions::{Bits, Conditions, DATA_CHARACTERS, LEAST_BITS, parities_of_groups};
use bytemuck::Zeroable;
use std::cmp::Reverse;

/// The most groups of parities.
pub const MOST_GROUPS: usize = 2;
/// The most parities of a group.
pub const PARITIES: usize = 16;
/// The most values that a word of 16 bits is compared with.
pub const MOST_VALUES: usize = 4;
/// Number of words of 16 bits in a key.
pub const WORDS: usize = 16;

/// The most ends that are tried as the first end of [`QuickTests::low`].
const MOST_LOW_TESTS: usize = 8;
/// Number of lowest bits of a key that [`QuickTests::low`] may read.
const LOW_BITS: usize = 52;
/// The fewest equal characters whose differences, all zero, fill a word of 16 bits that begins at
/// an even byte, except for the word's lowest bit.
const EVEN_EQUAL: usize = 7;
/// The fewest equal characters whose differences fill a word of 16 bits that begins at any byte.
const LEAST_EQUAL: usize = 6;

/// Tests of the bits of a key, derived from tests of texts. If the text of a key passes one of
/// those, the key passes one of these.
#[derive(Clone, Default, Debug)]
pub struct QuickTests {
    /// Mask and value of the lowest 52 bits.
    pub low: Option<(u64, u64)>,
    /// Groups of masks, each of four words of 64 bits, the lowest first. A key passes a group if
    /// the parity of the bits under each of its masks is even.
    pub parities: Vec<[[u64; 4]; PARITIES]>,
    /// Values of the words of 16 bits that begin at an even byte of the key, the lowest first. A
    /// key passes if one word has one of its values.
    pub even: Vec<[u16; WORDS]>,
    /// Values of the words that begin at an odd byte: word n begins at byte `2n + 1`. Only half of
    /// the last word is in the key.
    pub odd: Vec<[u16; WORDS]>,
    /// Equal characters anywhere.
    pub equal: Equal,
}

/// The words that are compared to find equal characters anywhere. They are taken from the exclusive
/// or of the key and the key moved by one character, which is zero where two neighbours are equal.
#[derive(Clone, Copy, PartialEq, Eq, Default, Debug)]
pub enum Equal {
    /// No words.
    #[default]
    None,
    /// The words that begin at an even byte. One passes if it is zero, except for its lowest bit.
    Even,
    /// The words that begin at an even byte, and those that begin at an odd byte.
    EvenAndOdd,
}

impl QuickTests {
    /// Whether words of 16 bits are compared.
    pub fn compares_words(&self) -> bool {
        !self.even.is_empty() || !self.odd.is_empty() || self.equal != Equal::None
    }

    /// The quick tests of a set of tests. `None` if there are too many tests, or if too many
    /// keys would pass.
    pub fn new(tests: &TextTests) -> Option<QuickTests> {
        let mut conditions = Conditions::new(tests)?;
        let [even, odd] = values_of(&conditions.runs)?;
        let mut equal = Equal::None;
        for count in std::mem::take(&mut conditions.equal) {
            equal = match count {
                EVEN_EQUAL.. if equal != Equal::EvenAndOdd => Equal::Even,
                LEAST_EQUAL.. => Equal::EvenAndOdd,
                _ => return None,
            };
            // Before the checksum, the differences of neighbouring characters are zero. They end
            // with bit 0, because the key has one bit of its last character. Where they fill the
            // lowest word, that word finds the run.
            let fill_lowest_word = |place: usize| (0..(251usize).saturating_sub(5 * place)).contains(&15);
            conditions.add_equal(count, DATA_CHARACTERS - count, fill_lowest_word)?;
        }
        let ends = &conditions.ends;
        let low_tests = ends.iter().filter_map(low_test).take(MOST_LOW_TESTS);
        let ways = low_tests.map(Some).chain([None]).filter_map(|first| arranged(first, ends));
        let (low, groups) =
            ways.min_by_key(|(low, groups)| (groups.len(), Reverse(low.map_or(0, |(mask, _)| mask.count_ones()))))?;
        Some(QuickTests { low, parities: groups.iter().map(|group| masks_of(group)).collect(), even, odd, equal })
    }
}

/// Sixteen neighbouring bits of a key: whether the word begins at an odd byte, and its number.
type Word = (bool, usize);

/// The words that lie within a run, with their values. A comparison with one of these finds the run.
fn words_of(run: &Bits) -> Vec<(Word, u16)> {
    (0..2 * WORDS - 1)
        .map(|byte| ((byte % 2 == 1, byte / 2), run.word(8 * byte, 16)))
        .filter(|(_, (mask, _))| *mask == 0xffff)
        .map(|(word, (_, value))| (word, value as u16))
        .collect()
}

/// Mask and value of the lowest bits that an end restricts; `None` if these are too few.
fn low_test(end: &Bits) -> Option<(u64, u64)> {
    let (mask, value) = end.word(0, LOW_BITS);
    (mask.count_ones() >= LEAST_BITS as u32).then_some((mask, value))
}

/// A test of the lowest bits, and the even parities of groups of ends.
type Arrangement = (Option<(u64, u64)>, Vec<Vec<[u32; 8]>>);

/// Arranges ends. One test of the lowest bits finds those that have enough bits in common with
/// `low`; groups of parities find the others. Returns the test and the groups, or `None` if there
/// are too many groups.
fn arranged(mut low: Option<(u64, u64)>, ends: &[Bits]) -> Option<Arrangement> {
    let mut others = Vec::new();
    for end in ends {
        let common = low.zip(low_test(end)).map(|((mask, value), (other_mask, other))| {
            let common = mask & other_mask & !(value ^ other);
            (common, value & common)
        });
        match common.filter(|(mask, _)| mask.count_ones() >= LEAST_BITS as u32) {
            Some(common) => low = Some(common),
            None => others.push(end),
        }
    }
    parities_of_groups(others, MOST_GROUPS).map(|groups| (low, groups))
}

/// Chooses for each place of a run the word that finds the run there, so that few values must be
/// compared. Returns the values of even and of odd words, or `None` if there are too many.
fn values_of(runs: &[Bits]) -> Option<[Vec<[u16; WORDS]>; 2]> {
    let mut values: [[Vec<u16>; WORDS]; 2] = Default::default();
    let mut places: Vec<Vec<(Word, u16)>> = runs.iter().map(words_of).collect();
    places.sort_by_key(Vec::len);
    for options in places {
        let has = |&((is_odd, at), value): &(Word, u16)| values[usize::from(is_odd)][at].contains(&value);
        if options.iter().any(has) {
            continue;
        }
        // Odd words count double: a run of five characters has two places for each even word, and
        // one for each odd word.
        let load =
            |&((is_odd, at), _): &(Word, u16)| (1 + values[usize::from(is_odd)][at].len()) << usize::from(is_odd);
        let ((is_odd, at), value) = options.iter().copied().min_by_key(load)?;
        values[usize::from(is_odd)][at].push(value);
    }
    let mut rounds = [Vec::new(), Vec::new()];
    for (rounds, values) in rounds.iter_mut().zip(&values) {
        let count = values.iter().map(Vec::len).max().unwrap_or(0);
        if count > MOST_VALUES {
            return None;
        }
        // A word with fewer values repeats its first one. A word without values gets an arbitrary
        // one.
        let value = |at: usize, round: usize| values[at].get(round).or(values[at].first()).copied().unwrap_or(0x5a5a);
        rounds.extend((0..count).map(|round| std::array::from_fn(|at| value(at, round))));
    }
    Some(rounds)
}

/// The first even parities of a group, as masks of words of 64 bits.
fn masks_of(parities: &[[u32; 8]]) -> [[u64; 4]; PARITIES] {
    let mut masks = [[0; 4]; PARITIES];
    for (mask, halves) in masks.iter_mut().zip(parities) {
        *mask = std::array::from_fn(|at| u64::from(halves[2 * at]) | u64::from(halves[2 * at + 1]) << 32);
    }
    masks
}

/// Number of parities that are computed together.
const TOGETHER: usize = 4;

/// [`QuickTests`] in the form that the portable kernel reads.
#[derive(Zeroable)]
pub struct QuickFe {
    /// Mask and value of the lowest bits. With a mask of zero and a value of one no key passes.
    low: [u64; 2],
    groups: usize,
    parities: [[[[u64; 4]; TOGETHER]; PARITIES / TOGETHER]; MOST_GROUPS],
    /// Numbers of values for even and for odd words.
    counts: [usize; 2],
    values: [[[u16; WORDS]; MOST_VALUES]; 2],
    equal: [bool; 2],
}

impl QuickFe {
    /// Prepares quick tests.
    pub fn new(tests: &QuickTests) -> QuickFe {
        let mut quick = QuickFe::zeroed();
        quick.low = tests.low.map_or([0, 1], |(mask, value)| [mask, value]);
        quick.groups = tests.parities.len();
        for (group, masks) in quick.parities.iter_mut().zip(&tests.parities) {
            group.as_flattened_mut().copy_from_slice(masks);
        }
        for (n, values) in [&tests.even, &tests.odd].into_iter().enumerate() {
            quick.counts[n] = values.len();
            quick.values[n][..values.len()].copy_from_slice(values);
        }
        quick.equal = [tests.equal != Equal::None, tests.equal == Equal::EvenAndOdd];
        quick
    }

    /// Whether one of these keys passes a quick test and a test of its text. A key whose upper 64
    /// bits are all ones counts as passed: it may be p or more, or a wrong [`negative_sum`].
    #[inline(always)]
    pub fn passes_one(&self, keys: &WholeKeys, tests: &TextTests) -> bool {
        let compares_words = self.counts != [0; 2];
        for at in 0..18 {
            let key = &keys.key(at);
            let mut passes = key.0[0] & self.low[0] == self.low[1];
            for group in &self.parities[..self.groups] {
                passes |= group.iter().all(|masks| are_even(key, masks));
            }
            if compares_words {
                passes |= self.has_word(keys, at);
            }
            if self.equal[0] {
                passes |= has_equal(key, self.equal[1]);
            }
            if key.top() == u64::MAX || passes && passes_a_test(tests, *key) {
                return true;
            }
        }
        false
    }

    /// Whether a word of 16 bits of this key has one of the values that the word is compared with.
    #[inline(always)]
    fn has_word(&self, keys: &WholeKeys, at: usize) -> bool {
        let mut any = [0; WORDS];
        for n in 0..2 {
            let words = keys.words(at, n);
            for values in &self.values[n][..self.counts[n]] {
                for at in 0..WORDS {
                    any[at] |= if words[at] == values[at] { u16::MAX } else { 0 };
                }
            }
        }
        bytemuck::cast::<[u16; WORDS], [u64; WORDS / 4]>(any) != [0; WORDS / 4]
    }
}

/// The keys of an entry in little-endian bytes. A row of zeros follows them, because the last word
/// of a key is read beyond its end.
#[derive(Zeroable)]
pub struct WholeKeys([[u64; 4]; 19]);

impl WholeKeys {
    /// The keys of an entry around a centre with this x. `turned` is `β^k·xi`.
    #[inline(always)]
    pub fn new<const ADX: bool>(products: &Products<Fe<ADX>>, x: Fe<ADX>, turned: [Fe<ADX>; 3]) -> WholeKeys {
        let (sum, difference, s) = factors_of_keys(products, &Fe::BETA);
        // Each step is taken for all points before the next, because a product is a long chain.
        let (mut first, mut second) = ([x; 6], [x; 6]);
        for k in 0..3 {
            let less = Fe::sub(Fe::ZERO, x.add(turned[k]));
            first[2 * k] = sum.mul_plus(s[k], less);
            first[2 * k + 1] = difference.mul_plus(s[k], less);
        }
        for n in 0..6 {
            second[n] = first[n].mul(Fe::BETA);
        }
        let mut keys = WholeKeys::zeroed();
        for n in 0..6 {
            keys.set(3 * n, first[n]);
            keys.set(3 * n + 1, second[n]);
            keys.set(3 * n + 2, negative_sum(first[n], second[n]));
        }
        keys
    }

    /// Sets the key `β^j·x(A ± λ^k·I)`, which has the number `3·(2k + sign) + j`.
    #[inline(always)]
    pub fn set<const ADX: bool>(&mut self, at: usize, key: Fe<ADX>) {
        self.0[at] = key.0.map(u64::to_le);
    }

    /// The key with this number. If its upper 64 bits are all ones, it may be wrong.
    #[inline(always)]
    pub fn key(&self, at: usize) -> Fe {
        Fe(self.0[at].map(u64::from_le))
    }

    /// The words of 16 bits of a key from this byte on. The uppermost may reach into the next key.
    #[inline(always)]
    fn words(&self, at: usize, byte: usize) -> [u16; WORDS] {
        let bytes: &[u8; 19 * 32] = bytemuck::cast_ref(&self.0);
        let from = 32 * at + byte;
        bytemuck::pod_read_unaligned::<[u16; WORDS]>(&bytes[from..from + 32]).map(u16::from_le)
    }
}

/// Whether the key may have equal neighbouring characters: some word of 16 bits is zero, except for
/// its lowest bit, in the exclusive or of the key and the key moved by one character. Words that
/// begin at an odd byte count only with `odd`.
///
/// Compares four words at a time, in one of 64 bits. A word above a zero word may be taken for
/// zero, too, which does not change the result.
#[inline(always)]
fn has_equal(key: &Fe, odd: bool) -> bool {
    let [a, b, c, d] = key.0;
    let even = [a ^ (a >> 5 | b << 59), b ^ (b >> 5 | c << 59), c ^ (c >> 5 | d << 59), d ^ d >> 5];
    let mut zeros = any_zero(even);
    if odd {
        let [a, b, c, d] = even;
        // The bits above the key are unknown. Ones make sure that they do not count as zero.
        zeros |= any_zero([a >> 8 | b << 56, b >> 8 | c << 56, c >> 8 | d << 56, d >> 8 | 0xff << 56]);
    }
    zeros != 0
}

/// A number other than zero if one of the words of 16 bits is zero, except for its lowest bit.
#[inline(always)]
fn any_zero(words: [u64; 4]) -> u64 {
    let mut any = 0;
    for word in words {
        let upper = word & 0xfffe_fffe_fffe_fffe;
        // Subtracting 2 sets the highest bit of an even word that has it clear only if the word is
        // zero.
        any |= upper.wrapping_sub(0x0002_0002_0002_0002) & !upper & 0x8000_8000_8000_8000;
    }
    any
}

/// Whether the parities of the masked bits are all even.
#[inline(always)]
fn are_even(Fe([a, b, c, d]): &Fe, masks: &[[u64; 4]; TOGETHER]) -> bool {
    let mut words = [0; TOGETHER];
    for (word, mask) in words.iter_mut().zip(masks) {
        *word = a & mask[0] ^ b & mask[1] ^ c & mask[2] ^ d & mask[3];
    }
    // Folds each word to 32 bits, so that two share one word; then to 16 bits, so that all four do.
    let [one, two, three, four] = words.map(|word| word ^ word >> 32);
    let (one, two) = (one & 0xffff_ffff | two << 32, three & 0xffff_ffff | four << 32);
    let (one, two) = (one ^ one >> 16, two ^ two >> 16);
    let mut all = one & 0x0000_ffff_0000_ffff | (two & 0x0000_ffff_0000_ffff) << 16;
    for shift in [8, 4, 2, 1] {
        all ^= all >> shift;
    }
    all & 0x0001_0001_0001_0001 == 0
}

/// `-a - b`. If the upper 64 bits of the result are all ones, it may be wrong.
///
/// With s the lower 256 bits of the sum a + b, and c its carry: `-(s + c·2^256) = (2^256 - 1 - s) +
/// 1 - (1 + c)·2^256`. There `2^256 - 1 - s` is s with its bits inverted, and 2^256 is [`FOLD`].
#[inline(always)]
fn negative_sum<const ADX: bool>(a: Fe<ADX>, b: Fe<ADX>) -> Fe<ADX> {
    let mut carry = 0u128;
    let mut sum = [0; 4];
    for (sum, (a, b)) in sum.iter_mut().zip(a.0.into_iter().zip(b.0)) {
        carry += u128::from(a) + u128::from(b);
        *sum = carry as u64;
        carry >>= 64;
    }
    let less = (1 + carry as u64) * FOLD - 1;
    let (low, mut borrow) = (!sum[0]).overflowing_sub(less);
    let mut negative = [low, 0, 0, 0];
    for at in 1..4 {
        (negative[at], borrow) = (!sum[at]).overflowing_sub(u64::from(borrow));
    }
    Fe(negative)
}
