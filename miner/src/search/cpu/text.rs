//! The texts of keys, and the tests of `pattern::TextTests` on them.

use super::field::Fe;
use super::simd::SimdField;
use crate::pattern::{
    Anywhere, ChecksumTables, ChecksumTest, LOWEST_BITS, Run, TextTest, TextTests, TextWords, UNUSED_BITS, WORD_BITS,
};
use bytemuck::Zeroable;

/// Number of characters that are compared before the kernel checks whether the run is still
/// possible at any place.
const FIRST_CHARACTERS: usize = 3;

/// The lower four bits of each character. Adding them to the lower four bits of a character carries
/// into its fifth bit unless those bits are all zero. The sum never carries farther.
pub const LOWER: u64 = LOWEST_BITS * 15;

/// Operations of a field type that the comparison of whole keys needs beyond those of the walk.
pub trait TextField: SimdField {
    /// A number below p in each lane, except with a probability of 2^-100.
    type Key: Copy;

    /// A word of 64 bits in each lane.
    type Word: Copy;

    /// Tables of the checksum.
    type Tables: Zeroable;

    /// Computes the tables.
    fn tables() -> Self::Tables;

    /// `a + b`. At most one of the two is a sum or a product with a prepared factor. The result may
    /// only be multiplied, or added once more.
    fn plus(a: Self, b: Self) -> Self;

    /// The number, reduced.
    fn key(self) -> Self::Key;

    /// `self - a - b`, reduced. Each of the three is below p or a product.
    fn key_less(self, a: Self, b: Self) -> Self::Key;

    /// `-a - b`, reduced.
    fn key_of_negative(a: Self::Key, b: Self::Key) -> Self::Key;

    /// The reduced number as a field element.
    fn from_key(key: Self::Key) -> Self;

    /// The text of keys, without the checksum.
    fn text(key: Self::Key) -> TextWords<Self::Word>;

    /// The text of keys.
    fn whole_text(key: Self::Key, tables: &Self::Tables) -> TextWords<Self::Word>;

    /// For each of two keys, bits of the lanes whose checksum may pass a test. The default sets all
    /// bits.
    #[inline(always)]
    fn checksums_may_pass(_keys: [Self::Key; 2], _test: &ChecksumTest, _tables: &Self::Tables) -> [u8; 2] {
        [u8::MAX; 2]
    }

    /// Bits of the lanes in which `(word ^ value) & mask` is zero.
    fn agree(word: Self::Word, mask: u64, value: u64) -> u8;

    /// `so_far | (word ^ value) & mask`
    fn differences(so_far: Self::Word, word: Self::Word, mask: u64, value: u64) -> Self::Word;

    /// `so_far | a ^ b`
    fn unequal(so_far: Self::Word, a: Self::Word, b: Self::Word) -> Self::Word;

    /// `word` without its first character, followed by the first character of `next`.
    fn next_character(word: Self::Word, next: Self::Word) -> Self::Word;

    /// Bits of the lanes in which a character at one of these places is zero.
    fn zero_characters(word: Self::Word, places: u64) -> u8;

    /// Zero in every lane.
    fn no_word() -> Self::Word;
}

/// Whether the text of a key passes one of the tests. Called for the few keys that passed quick
/// tests.
#[cold]
#[inline(never)]
pub fn passes_a_test(tests: &TextTests, key: Fe) -> bool {
    passing::<Fe>(tests, [key; 2], &())[0] & 1 == 1
}

/// For each of two keys, bits of the lanes that pass one of the tests. The tests of checksums come
/// last because most keys fail the cheaper ones.
#[inline(always)]
pub fn passing<F: TextField>(tests: &TextTests, keys: [F::Key; 2], tables: &F::Tables) -> [u8; 2] {
    let mut lanes = [0; 2];
    if !tests.of_keys.is_empty() {
        for n in 0..2 {
            lanes[n] = passes::<F>(&tests.of_keys, &F::text(keys[n]));
        }
    }
    if tests.need_checksum() {
        let may_pass = match &tests.first {
            Some(first) => F::checksums_may_pass(keys, first, tables),
            None => [u8::MAX; 2],
        };
        if may_pass != [0; 2] {
            for n in 0..2 {
                lanes[n] |= passes::<F>(&tests.of_checksums, &F::whole_text(keys[n], tables));
            }
        }
    }
    lanes
}

/// Bits of the lanes whose text passes a test.
#[inline(always)]
pub fn passes<F: TextField>(tests: &[TextTest], text: &TextWords<F::Word>) -> u8 {
    let mut passing = 0;
    for test in tests {
        let mut lanes = u8::MAX;
        for &(word, mask, value) in &test.fixed {
            lanes &= F::agree(text[word], mask, value);
        }
        if let Some(anywhere) = &test.anywhere
            && lanes != 0
        {
            lanes &= has_run::<F>(anywhere, text);
        }
        passing |= lanes;
    }
    passing
}

/// Bits of the lanes whose text has the run at one of its places.
#[inline(always)]
fn has_run<F: TextField>(anywhere: &Anywhere, text: &TextWords<F::Word>) -> u8 {
    let mut unlike = [F::no_word(); 5];
    let mut moved = *text;
    let mut lanes = 0;
    match &anywhere.run {
        Run::Characters(characters) => {
            for (at, &(mask, value)) in characters.iter().enumerate() {
                if at > 0 {
                    moved = next_characters::<F>(&moved);
                }
                for word in 0..5 {
                    unlike[word] = F::differences(unlike[word], moved[word], mask, value);
                }
                if at + 1 == characters.len() || at + 1 == FIRST_CHARACTERS {
                    lanes = zero_characters::<F>(&unlike, &anywhere.places);
                    if lanes == 0 {
                        break;
                    }
                }
            }
        }
        Run::Equal(count) => {
            let neighbours = next_characters::<F>(text);
            for word in 0..5 {
                moved[word] = F::unequal(F::no_word(), text[word], neighbours[word]);
            }
            for at in 1..*count {
                if at > 1 {
                    moved = next_characters::<F>(&moved);
                }
                for word in 0..5 {
                    unlike[word] = F::differences(unlike[word], moved[word], u64::MAX, 0);
                }
                if at + 1 == *count || at == FIRST_CHARACTERS {
                    lanes = zero_characters::<F>(&unlike, &anywhere.places);
                    if lanes == 0 {
                        break;
                    }
                }
            }
        }
    }
    lanes
}

/// The text without its first character.
#[inline(always)]
fn next_characters<F: TextField>(text: &TextWords<F::Word>) -> TextWords<F::Word> {
    let [a, b, c, d, e] = *text;
    [
        F::next_character(a, b),
        F::next_character(b, c),
        F::next_character(c, d),
        F::next_character(d, e),
        F::next_character(e, F::no_word()),
    ]
}

#[inline(always)]
fn zero_characters<F: TextField>(text: &TextWords<F::Word>, places: &TextWords<u64>) -> u8 {
    let mut lanes = 0;
    for word in 0..5 {
        lanes |= F::zero_characters(text[word], places[word]);
    }
    lanes
}

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
