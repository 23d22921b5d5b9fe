//! Quick tests of whole keys, one key at a time.

use super::field::{FOLD, Fe};
use super::formula::Products;
use super::quick::{Equal, MOST_GROUPS, MOST_VALUES, PARITIES, QuickTests, WORDS};
use super::text::passes_a_test;
use super::whole::factors_of_keys;
use crate::pattern::TextTests;
use bytemuck::Zeroable;

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
