//! Quick tests of whole keys: conditions on the bits of a key, derived from the tests of its text.
//! A key whose text passes a test also passes the quick tests, and few other keys do.
//!
//! An **end** is a set of bits of a key, with the values that they have in a key that passes. It
//! comes from the characters that a pattern fixes, usually the last ones.

use super::text::Lanes;
use super::whole::WordField;
use crate::pattern::TextTests;
use crate::search::conditions::{Bits, Conditions, DATA_CHARACTERS, LEAST_BITS, parities_of_groups};
use bytemuck::Zeroable;
use std::cmp::Reverse;

/// The most groups of parities.
pub const MAX_GROUPS: usize = 2;
/// The most parities of a group.
pub const PARITIES: usize = 16;
/// The most values that a word of 16 bits is compared with.
pub const MAX_VALUES: usize = 4;
/// Number of words of 16 bits in a key.
pub const WORDS: usize = 16;

/// The most ends that are tried as the first end of [`QuickTests::low`].
const MAX_LOW_TESTS: usize = 8;
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
        let low_tests = ends.iter().filter_map(low_test).take(MAX_LOW_TESTS);
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
    parities_of_groups(others, MAX_GROUPS).map(|groups| (low, groups))
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
        if count > MAX_VALUES {
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
    masks.iter_mut().zip(parities).for_each(|(mask, limbs)| *mask = wide(limbs));
    masks
}

/// Limbs of 32 bits as words of 64.
pub fn wide(limbs: &[u32; 8]) -> [u64; 4] {
    std::array::from_fn(|at| u64::from(limbs[2 * at]) | u64::from(limbs[2 * at + 1]) << 32)
}

/// Number of parities of [`QuickWords`] that are computed together.
const TOGETHER: usize = 4;

/// [`QuickTests`] in the form that kernels with keys in words of 64 bits read.
#[derive(Zeroable)]
pub struct QuickWords {
    /// Mask and value of the lowest bits. With a mask of zero and a value of one no key passes.
    low: [u64; 2],
    groups: usize,
    parities: [[[[u64; 4]; TOGETHER]; PARITIES / TOGETHER]; MAX_GROUPS],
    /// Numbers of values for even and for odd words.
    counts: [usize; 2],
    values: [[[u64; 4]; MAX_VALUES]; 2],
    equal: [usize; 2],
}

impl QuickWords {
    /// Prepares quick tests.
    pub fn new(tests: &QuickTests) -> QuickWords {
        let mut quick = QuickWords::zeroed();
        quick.low = tests.low.map_or([0, 1], |(mask, value)| [mask, value]);
        quick.groups = tests.parities.len();
        for (group, masks) in quick.parities.iter_mut().zip(&tests.parities) {
            group.as_flattened_mut().copy_from_slice(masks);
        }
        for (n, rounds) in [&tests.even, &tests.odd].into_iter().enumerate() {
            quick.counts[n] = rounds.len();
            for (to, values) in quick.values[n].iter_mut().zip(rounds) {
                for (at, &value) in values.iter().enumerate() {
                    to[at / 4] |= u64::from(value) << (16 * (at % 4));
                }
            }
        }
        quick.equal = [tests.equal != Equal::None, tests.equal == Equal::EvenAndOdd].map(usize::from);
        quick
    }

    /// Bits of the lanes whose key passes a quick test.
    #[inline(always)]
    pub fn passing<F: WordField>(&self, key: &[F::Word; 4]) -> u8 {
        let mut lanes = key[0].and(F::Word::all(self.low[0])).xor(F::Word::all(self.low[1])).empty();
        for group in &self.parities[..self.groups] {
            let mut even = F::Word::every_lane();
            for masks in group {
                even &= are_even(key, masks);
                // Few keys pass the first parities.
                if even == 0 {
                    break;
                }
            }
            lanes |= even;
        }
        for values in &self.values[0][..self.counts[0]] {
            lanes |= F::have_equal_parts(key, values);
        }
        if self.counts[1] != 0 {
            let odd = moved(key, 8);
            for values in &self.values[1][..self.counts[1]] {
                lanes |= F::have_equal_parts(&odd, values);
            }
        }
        if self.equal[0] != 0 {
            lanes |= have_equal(key, self.equal[1] != 0);
        }
        lanes
    }
}

/// The key moved down by some bits.
#[inline(always)]
fn moved<V: Lanes>(&[a, b, c, d]: &[V; 4], bits: u32) -> [V; 4] {
    [
        a.right(bits).or(b.left(64 - bits)),
        b.right(bits).or(c.left(64 - bits)),
        c.right(bits).or(d.left(64 - bits)),
        d.right(bits),
    ]
}

/// Bits of the lanes whose key may have equal neighbouring characters: some word of 16 bits is zero,
/// except for its lowest bit, in the exclusive or of the key and the key moved by one character.
/// Words that begin at an odd byte count only with `odd`.
#[inline(always)]
fn have_equal<V: Lanes>(key: &[V; 4], odd: bool) -> u8 {
    let mut even = moved(key, 5);
    for at in 0..4 {
        even[at] = even[at].xor(key[at]);
    }
    let mut zeros = any_zero(&even);
    if odd {
        let mut odd = moved(&even, 8);
        // The bits above the key are unknown. Ones make sure that they do not count as zero.
        odd[3] = odd[3].or(V::all(0xff << 56));
        zeros = zeros.or(any_zero(&odd));
    }
    zeros.filled()
}

/// A number other than zero if one of the words of 16 bits is zero, except for its lowest bit. A word
/// above a zero word may be taken for zero, too, which does not change the result.
#[inline(always)]
fn any_zero<V: Lanes>(words: &[V; 4]) -> V {
    let mut any = V::all(0);
    for word in words {
        let upper = word.and(V::all(0xfffe_fffe_fffe_fffe));
        // Subtracting 2 sets the highest bit of an even word that has it clear only if the word is
        // zero.
        let less = upper.plus(V::all(0x0002_0002_0002_0002_u64.wrapping_neg()));
        any = any.or(less.and(upper.xor(V::all(u64::MAX))));
    }
    any.and(V::all(0x8000_8000_8000_8000))
}

/// Bits of the lanes in which the parities of the masked bits are all even.
#[inline(always)]
fn are_even<V: Lanes>(key: &[V; 4], masks: &[[u64; 4]; TOGETHER]) -> u8 {
    let [a, b, c, d] = *key;
    let mut words = [a; TOGETHER];
    for n in 0..TOGETHER {
        let mask = &masks[n];
        let (one, other) = (a.and(V::all(mask[0])).xor(b.and(V::all(mask[1]))), c.and(V::all(mask[2])));
        words[n] = one.xor(other.xor(d.and(V::all(mask[3]))));
    }
    // Folds each word to 32 bits, so that two share one word; then to 16 bits, so that all four do.
    for word in &mut words {
        *word = word.xor(word.right(32));
    }
    let lower = V::all(0xffff_ffff);
    let mut one = words[0].and(lower).or(words[1].left(32));
    let mut two = words[2].and(lower).or(words[3].left(32));
    one = one.xor(one.right(16)).and(V::all(0x0000_ffff_0000_ffff));
    two = two.xor(two.right(16)).and(V::all(0x0000_ffff_0000_ffff));
    let mut parities = one.or(two.left(16));
    for shift in [8, 4, 2, 1] {
        parities = parities.xor(parities.right(shift));
    }
    parities.and(V::all(0x0001_0001_0001_0001)).empty()
}
