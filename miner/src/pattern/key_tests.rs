//! What a device is given to test keys beyond the intervals of a pattern set: exact checks as flat
//! tables, the checksum of an npub as tables, and tests of a key's whole text.
//!
//! Bech32's checksum (BIP-173) is an affine function of the data bits. The checksum of a key is the
//! exclusive or of the constant [`ChecksumTables::zero`] and one entry for each byte of the key.
//! The tables are made from npubs that a library encodes, one for each single bit, so there is no
//! second encoder that could disagree.
//!
//! A text that fails every text test of a set matches none of its patterns; one that passes a test
//! may match. The tests are arranged so that few keys need their checksum.

use super::characters::{CharacterSet, NPUB_CHARACTERS};
use super::pattern::{KeyShape, Pattern, PatternKind, values_of};
use crate::key::Npub;
use std::sync::OnceLock;

/// The most words of all shapes of a set: 64 MiB on a device. The host checks the keys of larger
/// sets.
const MAX_WORDS: usize = 1 << 24;

/// Further conditions on keys inside the intervals of a [`super::PatternSet`].
///
/// The words of a pattern are the number of its shapes, then each shape: its lengths, then its
/// character sets. The lengths are one word, `start | parts << 8 | end << 16 | within << 24`; the
/// sets are those of the start, those of the end, then for each part its length and its sets.
#[derive(Clone, Debug, Default)]
pub struct Checks {
    /// The index of the first member of each interval; then the number of members.
    pub first_member: Vec<u32>,
    /// Intervals of single patterns, sorted within each interval.
    pub members: Vec<Member>,
    /// The words of all patterns.
    pub words: Vec<u32>,
}

/// An interval of one pattern.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Member {
    /// The smallest value of the upper 64 bits of x.
    pub first: u64,
    /// The largest value of the upper 64 bits of x.
    pub last: u64,
    /// Index of the pattern's first word; [`Member::ALL`] if every key of the interval matches.
    pub words: u32,
}

impl Member {
    /// Value of [`Member::words`] if every key of the interval matches.
    pub const ALL: u32 = u32::MAX;
}

impl Checks {
    /// The checks of `patterns`. `members` are the patterns' intervals: the first and the last
    /// value, and the index of the pattern. `None` if there are too many words.
    pub(super) fn new(patterns: &[Pattern], members: &[(u64, u64, u32)], first_member: &[u32]) -> Option<Checks> {
        let mut words = Vec::new();
        let mut at = Vec::with_capacity(patterns.len());
        for pattern in patterns {
            if pattern.is_exact() {
                at.push(Member::ALL);
                continue;
            }
            at.push(words.len() as u32);
            let shapes = pattern.shapes();
            words.push(shapes.len() as u32);
            shapes.iter().for_each(|shape| add_words(shape, &mut words));
            if words.len() > MAX_WORDS {
                return None;
            }
        }
        let member = |&(first, last, pattern): &(u64, u64, u32)| Member { first, last, words: at[pattern as usize] };
        Some(Checks { first_member: first_member.to_vec(), members: members.iter().map(member).collect(), words })
    }
}

/// Adds the words of a shape.
fn add_words(shape: &KeyShape, words: &mut Vec<u32>) {
    let lengths = [shape.start.len(), shape.middle.len(), shape.end.len(), shape.within];
    words.push(lengths.iter().enumerate().fold(0, |all, (at, &length)| all | (length as u32) << (8 * at)));
    words.extend(shape.start.iter().chain(&shape.end).map(|set| set.0));
    for part in &shape.middle {
        words.push(part.len() as u32);
        words.extend(part.iter().map(|set| set.0));
    }
}

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

/// The text of a key in words of [`WORD_CHARACTERS`] characters. A character has 5 bits, and the
/// first one of a word is uppermost. The four bits above it are zero, and so is the end of the last
/// word.
pub type TextWords<W> = [W; 5];

/// Characters of a text word.
pub const WORD_CHARACTERS: usize = 12;

/// Bits of a text word.
pub const WORD_BITS: u32 = 60;

/// Bits of the last text word below the checksum, which are zero.
pub const UNUSED_BITS: u32 = 10;

/// The lowest bit of every character of a word.
pub const LOWEST_BITS: u64 = 0x0084_2108_4210_8421;

/// The most tests of a pattern for the kernel that compares whole texts.
const MAX_TESTS: usize = 64;

/// The largest share of keys that a pattern's tests may let pass. Confirming a key takes as long as
/// testing some thousands.
const MAX_PASSING_SHARE: f64 = 1.0 / (1 << 16) as f64;

/// The most keys that may pass per match. Tests of a frequent pattern may let so many pass, even if
/// they exceed [`MAX_PASSING_SHARE`]. Confirming them takes less than a tenth of a second.
const PASSING_A_MATCH: f64 = 4096.0;

/// Number of characters of a run that every device compares: the first ones.
pub const RUN_CHARACTERS: usize = 8;

/// A condition on a text. All of its parts must hold.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct TextTest {
    /// Words of which some bits are fixed: the word's index, the mask of the bits, and their value.
    pub fixed: Vec<(usize, u64, u64)>,
    /// A run of characters that may begin at several places.
    pub anywhere: Option<Anywhere>,
}

/// A run of characters at any of some places.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Anywhere {
    /// The characters.
    pub run: Run,
    /// Places at which the run may begin: the uppermost bit of each character.
    pub places: TextWords<u64>,
}

/// Neighbouring characters.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum Run {
    /// For each character a mask and a value, repeated in every character of a word.
    Characters(Vec<(u64, u64)>),
    /// This number of equal characters, 2 or more.
    Equal(usize),
}

impl TextTest {
    /// The tests of a pattern.
    pub(super) fn of(pattern: &Pattern) -> Vec<TextTest> {
        if let PatternKind::EqualAnywhere(count) = pattern.kind() {
            let places = places(0, NPUB_CHARACTERS - count);
            let anywhere = Anywhere { run: Run::Equal(*count), places };
            return vec![TextTest { fixed: Vec::new(), anywhere: Some(anywhere) }];
        }
        pattern.shapes().iter().map(of_shape).collect()
    }

    /// The approximate share of random keys that pass.
    fn share(&self) -> f64 {
        let fixed: u32 = self.fixed.iter().map(|(_, mask, _)| mask.count_ones()).sum();
        let anywhere = self.anywhere.as_ref().map_or(1.0, |Anywhere { run, places }| {
            let bits = match run {
                Run::Characters(characters) => {
                    let compared = characters.iter().take(RUN_CHARACTERS);
                    compared.map(|(mask, _)| (mask & 31).count_ones()).sum()
                }
                Run::Equal(count) => 5 * (*count as u32 - 1),
            };
            let places: u32 = places.iter().map(|places| places.count_ones()).sum();
            (f64::from(places) / f64::from(bits).exp2()).min(1.0)
        });
        anywhere / f64::from(fixed).exp2()
    }

    /// Whether the test reads a part of the checksum.
    pub fn needs_checksum(&self) -> bool {
        let is_read = |word: usize, mask: u64| word == 4 && mask & ((1 << 40) - 1) != 0;
        let length = self.anywhere.as_ref().map_or(0, |anywhere| match &anywhere.run {
            Run::Characters(characters) => characters.len(),
            Run::Equal(count) => *count,
        });
        let last_places = self.anywhere.as_ref().map_or([0; 5], |anywhere| anywhere.places);
        let reaches = |place: usize| place + length > 52 && last_places[place / WORD_CHARACTERS] & top_bit(place) != 0;
        self.fixed.iter().any(|&(word, mask, _)| is_read(word, mask)) || (0..NPUB_CHARACTERS).any(reaches)
    }
}

impl Pattern {
    /// Whether one of the two kernels can search for the pattern. The kernel that compares whole
    /// texts takes patterns with few alternatives, whose tests let few keys pass that do not match.
    pub fn is_searchable(&self) -> bool {
        if self.begins_selectively() {
            return true;
        }
        if self.text_test_count() > MAX_TESTS {
            return false;
        }
        let passing: f64 = TextTest::of(self).iter().map(TextTest::share).sum();
        passing <= MAX_PASSING_SHARE.max(PASSING_A_MATCH / self.difficulty().candidates())
    }

    /// Number of tests of texts that the pattern adds to a launch; zero if the fast kernel takes
    /// it.
    pub fn text_test_count(&self) -> usize {
        match self.kind() {
            _ if self.begins_selectively() => 0,
            PatternKind::EqualAnywhere(_) => 1,
            _ => self.shape_count(),
        }
    }
}

fn of_shape(shape: &KeyShape) -> TextTest {
    let (mut masks, mut values) = ([0u64; 5], [0u64; 5]);
    let mut fix = |place: usize, set: CharacterSet| {
        let (mask, value) = common_bits(set);
        let shift = WORD_BITS as usize - 5 - place % WORD_CHARACTERS * 5;
        masks[place / WORD_CHARACTERS] |= mask << shift;
        values[place / WORD_CHARACTERS] |= value << shift;
    };
    shape.start.iter().enumerate().for_each(|(at, &set)| fix(at, set));
    shape.end.iter().enumerate().for_each(|(at, &set)| fix(shape.end_from() + at, set));
    let fixed = (0..5).filter(|&word| masks[word] != 0).map(|word| (word, masks[word], values[word])).collect();
    // Only the part that is hardest to match is compared. The full check tests the other parts.
    let bits = |part: &[CharacterSet]| part.iter().map(|&set| common_bits(set).0.count_ones()).sum::<u32>();
    let anywhere = shape.middle.iter().max_by_key(|part| bits(part)).map(|part| {
        let repeated = |&set: &CharacterSet| {
            let (mask, value) = common_bits(set);
            (mask * LOWEST_BITS, value * LOWEST_BITS)
        };
        let last = shape.within.min(shape.end_from()) - part.len();
        Anywhere { run: Run::Characters(part.iter().map(repeated).collect()), places: places(shape.start.len(), last) }
    });
    TextTest { fixed, anywhere }
}

/// The bits in which all characters of a set agree, and their value.
fn common_bits(set: CharacterSet) -> (u64, u64) {
    let values = || (0..32u8).filter(|&value| set.contains(value)).map(u64::from);
    let (all, any) = (values().fold(31, |all, value| all & value), values().fold(0, |any, value| any | value));
    (31 & !(all ^ any), all)
}

/// The uppermost bits of the characters from `first` to `last`.
fn places(first: usize, last: usize) -> TextWords<u64> {
    (first..=last).fold([0; 5], |mut places, place| {
        places[place / WORD_CHARACTERS] |= top_bit(place);
        places
    })
}

/// The uppermost bit of a character in its word.
fn top_bit(place: usize) -> u64 {
    1 << (WORD_BITS as usize - 1 - place % WORD_CHARACTERS * 5)
}

/// The fewest bits that a [`ChecksumTest`] compares: with these, one key in 256 passes.
const LEAST_CHECKSUM_BITS: u32 = 8;

/// The most values of a [`ChecksumTest`].
const MAX_CHECKSUM_VALUES: usize = 8;

/// The tests of a pattern set. A key that fails all of them matches no pattern.
#[derive(Clone, Debug)]
pub struct TextTests {
    /// Tests that read no part of the checksum.
    pub of_keys: Vec<TextTest>,
    /// Tests that read a part of the checksum.
    pub of_checksums: Vec<TextTest>,
    /// A quick test for [`TextTests::of_checksums`]: every text that passes one of those tests
    /// passes this one.
    pub first: Option<ChecksumTest>,
}

/// A test of two bytes of the checksum: some of their bits must have one of a few values.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct ChecksumTest {
    /// The bytes, counted from the lowest of the checksum's 30 bits.
    pub bytes: [usize; 2],
    /// The bits that are compared, in each of the two bytes.
    pub mask: [u8; 2],
    /// The allowed values, each combined with the checksum of the key zero by exclusive or, which
    /// makes them linear in the bits of the key. They are distinct, and bits that are not compared
    /// are zero.
    pub sums: Vec<[u8; 2]>,
}

impl TextTests {
    /// Arranges the tests of a set's patterns.
    pub fn new(tests: Vec<TextTest>) -> TextTests {
        let (of_checksums, of_keys): (Vec<_>, Vec<_>) = tests.into_iter().partition(TextTest::needs_checksum);
        let first = ChecksumTest::common(&of_checksums);
        TextTests { of_keys, of_checksums, first }
    }

    /// Whether a test reads the checksum.
    pub fn need_checksum(&self) -> bool {
        !self.of_checksums.is_empty()
    }
}

impl ChecksumTest {
    /// The test of the bits that all of these tests fix; `None` if there are fewer than
    /// [`LEAST_CHECKSUM_BITS`] such bits, or more than [`MAX_CHECKSUM_VALUES`] values.
    fn common(tests: &[TextTest]) -> Option<ChecksumTest> {
        let bits = tests.iter().map(fixed_bits).collect::<Vec<_>>();
        let mask = bits.iter().map(|&(mask, _)| mask).reduce(|all, mask| all & mask)?;
        let count = |byte: usize| (mask >> (8 * byte) & 0xff).count_ones();
        let mut by_count = [0, 1, 2, 3];
        by_count.sort_by_key(|&byte| std::cmp::Reverse(count(byte)));
        let bytes = [by_count[0], by_count[1]];
        let two = |bits: u32| bytes.map(|byte| (bits >> (8 * byte)) as u8);
        let zero = ChecksumTables::get().zero;
        let mut sums: Vec<[u8; 2]> = bits.iter().map(|&(_, value)| two((value ^ zero) & mask)).collect();
        sums.sort_unstable();
        sums.dedup();
        let is_worthwhile =
            count(bytes[0]) + count(bytes[1]) >= LEAST_CHECKSUM_BITS && sums.len() <= MAX_CHECKSUM_VALUES;
        is_worthwhile.then(|| ChecksumTest { bytes, mask: two(mask), sums })
    }
}

/// The bits of the checksum that a test fixes, and their values.
fn fixed_bits(test: &TextTest) -> (u32, u32) {
    let of_checksum = |bits: u64| (bits >> UNUSED_BITS) as u32 & ((1 << CHECKSUM_BITS) - 1);
    let last = test.fixed.iter().find(|&&(word, ..)| word == 4);
    last.map_or((0, 0), |&(_, mask, value)| (of_checksum(mask), of_checksum(value)))
}

#[cfg(test)]
mod tests {
    use super::super::{Pattern, PatternSet};
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn a_set_whose_intervals_say_all_needs_no_checks() {
        let set = |texts: &[&str]| PatternSet::new(texts.iter().map(|text| text.parse().unwrap()).collect());
        assert!(set(&["m0ct", "~alice", "=7"]).checks().is_none());
        assert!(set(&["m0ct", "m0ct*cafe"]).checks().is_some());
    }

    proptest! {
        #[test]
        fn the_tables_agree_with_an_encoder(x in any::<[u8; 32]>()) {
            for x in [x, [0; 32], [0xff; 32]] {
                prop_assert_eq!(ChecksumTables::get().checksum(&x), checksum_of_text(&Npub(x)));
            }
        }
    }

    fn tests_of(texts: &[&str]) -> TextTests {
        let patterns: Vec<Pattern> = texts.iter().map(|text| text.parse().unwrap()).collect();
        PatternSet::new(patterns).text_tests().unwrap()
    }

    #[test]
    fn tests_of_the_end_share_a_first_test_of_the_checksum() {
        let first = |texts: &[&str]| tests_of(texts).first.map(|first| (first.bytes, first.mask, first.sums.len()));
        assert_eq!(first(&["*cafe"]), Some(([0, 1], [0xff, 0xff], 1)));
        assert_eq!(first(&["*caf", "*al7ce", "qqqqqq"]), Some(([0, 1], [0xff, 0x7f], 2)));
        assert_eq!(first(&["*cafe??"]), Some(([2, 1], [0xff, 0xfc], 1)));
        assert_eq!(first(&["*e", "*cafe"]), None, "five bits in common");
        assert_eq!(first(&["*al7ce*", "*cafe"]), None, "one may be anywhere");
        assert_eq!(first(&["hex:*beef"]), None, "nothing of the checksum");
    }

    #[test]
    fn tests_without_a_part_of_the_checksum_are_apart() {
        let tests = tests_of(&["hex:*beef", "*cafe", "m0*q"]);
        assert_eq!((tests.of_keys.len(), tests.of_checksums.len()), (1, 2));
        assert!(!tests_of(&["hex:*beef", "m0ctane"]).need_checksum());
    }
}
