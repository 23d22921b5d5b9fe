//! The tests of all patterns of a set, arranged so that few keys need their checksum.

use super::checksum::{CHECKSUM_BITS, ChecksumTables};
use super::text_test::{TextTest, UNUSED_BITS};

/// The fewest bits that a [`ChecksumTest`] compares: with these, one key in 256 passes.
const LEAST_BITS: u32 = 8;

/// The most values of a [`ChecksumTest`].
const MOST_VALUES: usize = 8;

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
    /// [`LEAST_BITS`] such bits, or more than [`MOST_VALUES`] values.
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
        let is_worthwhile = count(bytes[0]) + count(bytes[1]) >= LEAST_BITS && sums.len() <= MOST_VALUES;
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
