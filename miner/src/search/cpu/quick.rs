//! Quick tests of whole keys: conditions on the bits of a key, derived from the tests of its text.
//! A key whose text passes a test also passes the quick tests, and few other keys do.
//!
//! An **end** is a set of bits of a key, with the values that they have in a key that passes. It
//! comes from the characters that a pattern fixes, usually the last ones.

use crate::pattern::TextTests;
use crate::search::conditions::{CHARACTERS, Condition, DATA_CHARACTERS, LEAST_BITS, conditions_of};
use crate::search::functionals::{Bits, even_parities};
use std::cmp::Reverse;

/// The most groups of parities.
pub const MOST_GROUPS: usize = 2;
/// The most parities of a group.
pub const PARITIES: usize = 16;
/// The most values that a word of 16 bits is compared with.
pub const MOST_VALUES: usize = 4;
/// Number of words of 16 bits in a key.
pub const WORDS: usize = 16;

/// The fewest parities that the ends of a group have in common.
const LEAST_COMMON: usize = 10;
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
        let mut parts = Parts::default();
        for condition in tests.of_keys.iter().chain(&tests.of_checksums).flat_map(conditions_of) {
            parts.add(condition)?;
        }
        parts.arrange()
    }
}

/// The conditions of the tests, before they are arranged.
#[derive(Default)]
struct Parts {
    /// The ends. A key that passes has one of them, or meets a condition below.
    ends: Vec<Bits>,
    /// For each place where a run may be, the words that lie within the run, with their values. A
    /// comparison with one of these words finds the run.
    places: Vec<Vec<(Word, u16)>>,
    equal: Equal,
}

/// Sixteen neighbouring bits of a key: whether the word begins at an odd byte, and its number.
type Word = (bool, usize);

impl Parts {
    fn add(&mut self, condition: Condition) -> Option<()> {
        match condition {
            Condition::End(bits) => self.add_end(bits),
            Condition::Run(bits) => self.add_run(&bits),
            Condition::Equal(count) => self.add_equal(count),
        }
    }

    fn add_end(&mut self, bits: Bits) -> Option<()> {
        (bits.len() >= LEAST_BITS).then(|| self.ends.push(bits))
    }

    /// Adds a run: neighbouring bits at one place.
    fn add_run(&mut self, bits: &Bits) -> Option<()> {
        let words: Vec<(Word, u16)> = (0..2 * WORDS - 1)
            .map(|byte| ((byte % 2 == 1, byte / 2), bits.word(8 * byte, 16)))
            .filter(|(_, (mask, _))| *mask == 0xffff)
            .map(|(word, (_, value))| (word, value as u16))
            .collect();
        (!words.is_empty()).then(|| self.places.push(words))
    }

    /// Adds `count` equal characters anywhere. Before the checksum, a run is found by the
    /// differences of neighbouring characters, which are zero. For each later place, where these
    /// fill no word, ends are added, one per possible character. If the last character of the data
    /// is in the run, only `q` and `s` are possible, because four of its bits are zero.
    fn add_equal(&mut self, count: usize) -> Option<()> {
        let equal = match count {
            EVEN_EQUAL.. => Equal::Even,
            LEAST_EQUAL => Equal::EvenAndOdd,
            _ => return None,
        };
        if self.equal != Equal::EvenAndOdd {
            self.equal = equal;
        }
        for place in (DATA_CHARACTERS - count)..=CHARACTERS.checked_sub(count)? {
            // The bits of the differences that are zero. They end with bit 0, because the key has
            // one bit of its last character. If they fill the lowest word, that word finds the run.
            let zeros = 0..(251usize).saturating_sub(5 * place);
            if zeros.contains(&15) {
                continue;
            }
            let only_checksum = place >= DATA_CHARACTERS;
            for value in (0..32).step_by(if only_checksum { 1 } else { 16 }) {
                let bits = Bits::of_characters((place..place + count).map(|place| (place, 31, value)))?;
                self.add_end(bits)?;
            }
        }
        Some(())
    }

    fn arrange(self) -> Option<QuickTests> {
        let [even, odd] = values_of(self.places)?;
        let low_tests = self.ends.iter().filter_map(low_test).take(MOST_LOW_TESTS);
        let ways = low_tests.map(Some).chain([None]).filter_map(|first| arranged(first, &self.ends));
        let (low, groups) =
            ways.min_by_key(|(low, groups)| (groups.len(), Reverse(low.map_or(0, |(mask, _)| mask.count_ones()))))?;
        let parities = groups.iter().map(|group| masks_of(group)).collect::<Option<_>>()?;
        Some(QuickTests { low, parities, even, odd, equal: self.equal })
    }
}

/// Mask and value of the lowest bits that an end restricts; `None` if these are too few.
fn low_test(end: &Bits) -> Option<(u64, u64)> {
    let (mask, value) = end.word(0, LOW_BITS);
    (mask.count_ones() >= LEAST_BITS as u32).then_some((mask, value))
}

/// Groups of ends. The ends of a group are found by the even parities that they have in common.
type Groups<'a> = Vec<Vec<&'a Bits>>;

/// Arranges ends. One test of the lowest bits finds those that have enough bits in common with
/// `low`; groups of parities find the others. Returns the test and the groups, or `None` if there
/// are too many groups.
fn arranged(mut low: Option<(u64, u64)>, ends: &[Bits]) -> Option<(Option<(u64, u64)>, Groups<'_>)> {
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
    groups_of(others).map(|groups| (low, groups))
}

/// Chooses for each place of a run the word that finds the run there, so that few values must be
/// compared. Returns the values of even and of odd words, or `None` if there are too many.
fn values_of(mut places: Vec<Vec<(Word, u16)>>) -> Option<[Vec<[u16; WORDS]>; 2]> {
    let mut values: [[Vec<u16>; WORDS]; 2] = Default::default();
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

/// Distributes ends to groups that have enough even parities in common. `None` if that takes too
/// many groups.
fn groups_of(ends: Vec<&Bits>) -> Option<Groups<'_>> {
    let mut groups = Groups::new();
    for end in ends {
        let fits = |group: &Vec<&Bits>| {
            let with: Vec<&Bits> = group.iter().copied().chain([end]).collect();
            even_parities(&with).len() >= LEAST_COMMON
        };
        match groups.iter().position(fits) {
            Some(at) => groups[at].push(end),
            None if groups.len() == MOST_GROUPS => return None,
            None => groups.push(vec![end]),
        }
    }
    Some(groups)
}

/// The masks of a group's even parities; `None` if there are too few.
fn masks_of(group: &[&Bits]) -> Option<[[u64; 4]; PARITIES]> {
    let parities = even_parities(group);
    let mut masks = [[0; 4]; PARITIES];
    for (mask, halves) in masks.iter_mut().zip(&parities) {
        *mask = std::array::from_fn(|at| u64::from(halves[2 * at]) | u64::from(halves[2 * at + 1]) << 32);
    }
    (parities.len() >= LEAST_COMMON).then_some(masks)
}
