//! The texts of keys, and the tests of `pattern::TextTests` on them.

use crate::pattern::{
    Anywhere, ChecksumTables, ChecksumTest, LOWEST_BITS, Run, TextTest, TextTests, TextWords, UNUSED_BITS, WORD_BITS,
};
use bytemuck::Zeroable;

/// Number of characters that are compared before the kernel checks whether the run is still
/// possible at any place.
const FIRST_CHARACTERS: usize = 3;

/// The lower four bits of each character. Adding them to the lower four bits of a character carries
/// into its fifth bit unless those bits are all zero. The sum never carries farther.
const LOWER: u64 = LOWEST_BITS * 15;
/// The bits of a text word.
const WORD: u64 = (1 << WORD_BITS) - 1;

/// A word of 64 bits in each lane.
pub trait Lanes: Copy {
    /// Tables of the checksum.
    type Tables: Zeroable;

    /// The same word in every lane.
    fn all(word: u64) -> Self;

    /// `self & other`
    fn and(self, other: Self) -> Self;

    /// `self | other`
    fn or(self, other: Self) -> Self;

    /// `self ^ other`
    fn xor(self, other: Self) -> Self;

    /// `self + other`, modulo 2^64.
    fn plus(self, other: Self) -> Self;

    /// `self << bits`
    fn left(self, bits: u32) -> Self;

    /// `self >> bits`
    fn right(self, bits: u32) -> Self;

    /// Bits of the lanes that are not zero.
    fn filled(self) -> u8;

    /// A bit for each lane.
    fn every_lane() -> u8;

    /// Bits of the lanes that are zero.
    #[inline(always)]
    fn empty(self) -> u8 {
        self.filled() ^ Self::every_lane()
    }

    /// Computes the tables.
    fn tables() -> Self::Tables;

    /// The checksums of keys of four words, the lowest first.
    fn checksums(key: &[Self; 4], tables: &Self::Tables) -> Self;

    /// For each of two keys, bits of the lanes whose checksum may pass a test. The default sets all
    /// bits.
    #[inline(always)]
    fn checksums_may_pass(_keys: [&[Self; 4]; 2], _test: &ChecksumTest, _tables: &Self::Tables) -> [u8; 2] {
        [u8::MAX; 2]
    }
}

impl Lanes for u64 {
    /// No tables of its own: those of `pattern` serve one key at a time.
    type Tables = ();

    #[inline(always)]
    fn all(word: u64) -> u64 {
        word
    }

    #[inline(always)]
    fn and(self, other: u64) -> u64 {
        self & other
    }

    #[inline(always)]
    fn or(self, other: u64) -> u64 {
        self | other
    }

    #[inline(always)]
    fn xor(self, other: u64) -> u64 {
        self ^ other
    }

    #[inline(always)]
    fn plus(self, other: u64) -> u64 {
        self.wrapping_add(other)
    }

    #[inline(always)]
    fn left(self, bits: u32) -> u64 {
        self << bits
    }

    #[inline(always)]
    fn right(self, bits: u32) -> u64 {
        self >> bits
    }

    #[inline(always)]
    fn filled(self) -> u8 {
        u8::from(self != 0)
    }

    #[inline(always)]
    fn every_lane() -> u8 {
        1
    }

    fn tables() {}

    #[inline(always)]
    fn checksums(key: &[u64; 4], (): &()) -> u64 {
        u64::from(checksum(key))
    }
}

/// The text of keys, without the checksum.
#[inline(always)]
fn text<V: Lanes>([a, b, c, d]: &[V; 4]) -> TextWords<V> {
    let mask = V::all(WORD);
    [
        d.right(4),
        d.left(56).or(c.right(8)).and(mask),
        c.left(52).or(b.right(12)).and(mask),
        b.left(48).or(a.right(16)).and(mask),
        a.and(V::all(0xffff)).left(44),
    ]
}

/// The text of keys.
#[inline(always)]
pub fn whole_text<V: Lanes>(key: &[V; 4], tables: &V::Tables) -> TextWords<V> {
    let [t0, t1, t2, t3, last] = text(key);
    [t0, t1, t2, t3, last.or(V::checksums(key, tables).left(UNUSED_BITS))]
}

/// Whether the text of a key passes one of the tests. Called for few keys.
#[cold]
#[inline(never)]
pub fn passes_a_test(tests: &TextTests, key: &[u64; 4]) -> bool {
    passing(tests, [key; 2], &())[0] & 1 == 1
}

/// For each of two keys, bits of the lanes that pass one of the tests. The tests of checksums come
/// last because most keys fail the cheaper ones.
#[inline(always)]
pub fn passing<V: Lanes>(tests: &TextTests, keys: [&[V; 4]; 2], tables: &V::Tables) -> [u8; 2] {
    let mut lanes = [0; 2];
    if !tests.of_keys.is_empty() {
        for n in 0..2 {
            lanes[n] = passes(&tests.of_keys, &text(keys[n]));
        }
    }
    if tests.need_checksum() {
        let may_pass = match &tests.first {
            Some(first) => V::checksums_may_pass(keys, first, tables),
            None => [u8::MAX; 2],
        };
        if may_pass != [0; 2] {
            for n in 0..2 {
                lanes[n] |= passes(&tests.of_checksums, &whole_text(keys[n], tables));
            }
        }
    }
    lanes
}

/// Bits of the lanes whose text passes a test.
#[inline(always)]
fn passes<V: Lanes>(tests: &[TextTest], text: &TextWords<V>) -> u8 {
    let mut passing = 0;
    for test in tests {
        let mut lanes = u8::MAX;
        for &(word, mask, value) in &test.fixed {
            lanes &= text[word].xor(V::all(value)).and(V::all(mask)).empty();
        }
        if let Some(anywhere) = &test.anywhere
            && lanes != 0
        {
            lanes &= has_run(anywhere, text);
        }
        passing |= lanes;
    }
    passing
}

/// Bits of the lanes whose text has the run at one of its places.
#[inline(always)]
fn has_run<V: Lanes>(anywhere: &Anywhere, text: &TextWords<V>) -> u8 {
    let mut unlike = [V::all(0); 5];
    let mut moved = *text;
    let mut lanes = 0;
    match &anywhere.run {
        Run::Characters(characters) => {
            for (at, &(mask, value)) in characters.iter().enumerate() {
                if at > 0 {
                    moved = next_characters(&moved);
                }
                for word in 0..5 {
                    let differences = moved[word].xor(V::all(value)).and(V::all(mask));
                    unlike[word] = unlike[word].or(differences);
                }
                if at + 1 == characters.len() || at + 1 == FIRST_CHARACTERS {
                    lanes = zero_characters(&unlike, &anywhere.places);
                    if lanes == 0 {
                        break;
                    }
                }
            }
        }
        Run::Equal(count) => {
            let neighbours = next_characters(text);
            for word in 0..5 {
                moved[word] = text[word].xor(neighbours[word]);
            }
            for at in 1..*count {
                if at > 1 {
                    moved = next_characters(&moved);
                }
                for word in 0..5 {
                    unlike[word] = unlike[word].or(moved[word]);
                }
                if at + 1 == *count || at == FIRST_CHARACTERS {
                    lanes = zero_characters(&unlike, &anywhere.places);
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
fn next_characters<V: Lanes>(text: &TextWords<V>) -> TextWords<V> {
    let mut next = *text;
    for word in 0..5 {
        next[word] = text[word].left(5);
        if word < 4 {
            next[word] = next[word].or(text[word + 1].right(WORD_BITS - 5));
        }
        next[word] = next[word].and(V::all(WORD));
    }
    next
}

/// Bits of the lanes in which a character at one of these places is zero.
#[inline(always)]
fn zero_characters<V: Lanes>(text: &TextWords<V>, places: &TextWords<u64>) -> u8 {
    let mut lanes = 0;
    for word in 0..5 {
        let (lower, places) = (V::all(LOWER), V::all(places[word]));
        let filled = text[word].and(lower).plus(lower).or(text[word]);
        lanes |= filled.and(places).xor(places).filled();
    }
    lanes
}

/// The checksum of a key, by one lookup for each byte.
#[inline(always)]
pub fn checksum(limbs: &[u64; 4]) -> u32 {
    let tables = ChecksumTables::get();
    let mut sum = tables.zero;
    for (limb, tables) in limbs.iter().rev().zip(tables.bytes.chunks_exact(8)) {
        for (at, table) in tables.iter().enumerate() {
            sum ^= table[(limb >> (56 - 8 * at)) as usize & 255];
        }
    }
    sum
}
