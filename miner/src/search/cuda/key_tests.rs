//! Tests of whole keys in the device's layout: of their texts, and quick tests, which are what the
//! tests of texts say about limbs and parities.

use super::abi::{DeviceScreen, DeviceTextTest, WholeSearch};
use super::constants::{
    ACCEPTED_WORDS, FIRST_BITS, LOW_TESTS, MASKED_ROUNDS, MAX_RUN, PARITIES, PARITY_GROUPS, RUN_ROUNDS, TEXT_WORDS,
};
use crate::pattern::{self, Anywhere, ChecksumTest, PatternSet, Run, TextTests, TextWords};
use crate::search::conditions::{Bits, Conditions, DATA_CHARACTERS, KEY_BITS, LEAST_BITS, mask_of, parities_of_groups};

/// The tests of a pattern set in the device's layout, and the argument that counts them, without
/// addresses.
pub fn for_device(patterns: &PatternSet) -> (Vec<DeviceTextTest>, WholeSearch) {
    let Some(tests) = patterns.text_tests() else { return (Vec::new(), WholeSearch::default()) };
    let TextTests { of_keys, of_checksums, first } = tests;
    let (first_bits, accepted) = first_bits(first.as_ref());
    let search = WholeSearch {
        key_tests: of_keys.len() as u32,
        checksum_tests: of_checksums.len() as u32,
        has_first_bits: u32::from(first.is_some()),
        first_bits,
        accepted,
        ..WholeSearch::default()
    };
    (of_keys.iter().chain(&of_checksums).map(flat).collect(), search)
}

/// [`WholeSearch::first_bits`] and [`WholeSearch::accepted`] of a test. Bits that it does not
/// compare are parities of no bits, so they are zero.
fn first_bits(test: Option<&ChecksumTest>) -> ([[u32; 8]; FIRST_BITS as usize], [u32; ACCEPTED_WORDS as usize]) {
    let (mut bits, mut accepted) = ([[0; 8]; FIRST_BITS as usize], [0; ACCEPTED_WORDS as usize]);
    let Some(ChecksumTest { bytes, mask, sums }) = test else { return (bits, accepted) };
    let compared: Vec<(usize, usize)> = (0..2)
        .flat_map(|byte| (0..8).map(move |bit| (byte, bit)))
        .filter(|&(byte, bit)| mask[byte] >> bit & 1 == 1)
        .take(FIRST_BITS as usize)
        .collect();
    for (parts, &(byte, bit)) in bits.iter_mut().zip(&compared) {
        *parts = mask_of(KEY_BITS + 8 * bytes[byte] + bit);
    }
    for sum in sums {
        let value = |at: usize| compared.get(at).map_or(0, |&(byte, bit)| u32::from(sum[byte]) >> bit & 1);
        let value = (0..FIRST_BITS as usize).fold(0, |all, at| 2 * all + value(at));
        accepted[value as usize / 32] |= 1 << (value % 32);
    }
    (bits, accepted)
}

/// The bits of a device's text word: half of one of [`TextWords`].
const HALF: u64 = (1 << 30) - 1;

/// Splits words of twelve characters into words of six.
fn halves(words: &TextWords<u64>) -> [u32; TEXT_WORDS as usize] {
    std::array::from_fn(|at| (words[at / 2] >> (30 * (1 - at % 2)) & HALF) as u32)
}

/// A test in the device's layout. The device compares only the first characters of a run.
fn flat(test: &pattern::TextTest) -> DeviceTextTest {
    let (mut masks, mut values) = ([0; 5], [0; 5]);
    for &(word, mask, value) in &test.fixed {
        (masks[word], values[word]) = (mask, value);
    }
    let mut flat = DeviceTextTest { mask: halves(&masks), value: halves(&values), ..DeviceTextTest::default() };
    flat.words = flat.mask.iter().enumerate().fold(0, |words, (at, &mask)| words | u32::from(mask != 0) << at);
    if let Some(Anywhere { run, places }) = &test.anywhere {
        flat.places = halves(places);
        let characters = match run {
            Run::Characters(characters) => characters.clone(),
            Run::Equal(count) => {
                flat.is_equal = 1;
                vec![(HALF, 0); count - 1]
            }
        };
        for (at, &(mask, value)) in characters.iter().take(MAX_RUN as usize).enumerate() {
            (flat.run_mask[at], flat.run_value[at]) = ((mask & HALF) as u32, (value & HALF) as u32);
            flat.run = at as u32 + 1;
        }
    }
    flat
}

const _: () = assert!(ACCEPTED_WORDS * 32 == 1 << FIRST_BITS && MAX_RUN as usize == pattern::RUN_CHARACTERS);

/// Bits that a test of the lowest limb compares at least.
const LEAST_LOW_BITS: u32 = 16;
/// The least number of equal characters whose differences fill half a limb.
const LEAST_EQUAL: usize = 7;
/// Limbs for which the device compares a further value ([`DeviceScreen::extra`]).
const EXTRA_LIMBS: [usize; 3] = [0, 2, 5];
/// Number of half limbs of a key, 16 bits each.
const HALVES: usize = 16;
/// Mask and value of a test of the lowest limb that no key passes.
const NO_LOW_TEST: [u32; 2] = [0, 1];
/// Minus the value 0x8000, which a half with the mask 0 never has.
const NEVER: u16 = 0x8000;

/// The forms of the kernel, named by the tests of a screen that they make.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum ScreenForm {
    /// All tests.
    Any,
    /// One group of parities.
    Ends,
    /// Runs of characters at any place, and one group of parities.
    Runs,
}

impl ScreenForm {
    /// The tests that a screen needs.
    pub fn of(screen: &DeviceScreen) -> ScreenForm {
        let others = screen.low != [NO_LOW_TEST; LOW_TESTS as usize]
            || screen.has_differences + screen.masked_rounds > 0
            || screen.parity_groups != 1;
        match screen.has_runs {
            _ if others => ScreenForm::Any,
            0 => ScreenForm::Ends,
            _ => ScreenForm::Runs,
        }
    }
}

/// Arranges tests of texts as quick tests: a key that passes one of the tests passes the screen.
/// `None` if they do not fit, or would let too many keys pass.
pub fn screen_of(tests: &TextTests) -> Option<DeviceScreen> {
    let mut conditions = Conditions::new(tests)?;
    let mut halves = HalfLimbTests::default();
    conditions.runs.iter().try_for_each(|run| halves.add_run(run))?;
    let mut screen = DeviceScreen { low: [NO_LOW_TEST; LOW_TESTS as usize], ..DeviceScreen::default() };
    for count in std::mem::take(&mut conditions.equal) {
        if count < LEAST_EQUAL {
            return None;
        }
        // Before the checksum, the differences of neighbouring characters are zero.
        screen.has_differences = 1;
        conditions.add_equal(count, (DATA_CHARACTERS + 1).saturating_sub(count), |_| false)?;
    }
    arrange_low_tests(&mut conditions.ends, &mut screen);
    let groups = parities_of_groups(&conditions.ends, PARITY_GROUPS as usize)?;
    screen.parity_groups = groups.len() as u32;
    for (parities, lanes) in groups.iter().zip(&mut screen.parities) {
        for (at, limbs) in parities.iter().take(PARITIES as usize).enumerate() {
            for (limb, &bits) in limbs.iter().enumerate() {
                lanes[at % 8 * 4 + limb % 4][at / 8 * 2 + limb / 4] = bits;
            }
        }
    }
    halves.write_to(&mut screen);
    Some(screen)
}

/// Tests of the halves of a key's limbs, the lowest first: masks and values.
#[derive(Default)]
struct HalfLimbTests {
    /// Of halves that are compared as a whole.
    whole: [Vec<(u16, u16)>; HALVES],
    /// Of halves that are compared in some of their bits.
    masked: [Vec<(u16, u16)>; HALVES],
}

impl HalfLimbTests {
    /// Adds a run of neighbouring bits, as a test of one half limb in it.
    fn add_run(&mut self, bits: &Bits) -> Option<()> {
        // A half of which all but the lowest bit are known is compared like a whole one: the
        // device lets the next larger value pass, too.
        let halves: [(u16, u16); HALVES] = std::array::from_fn(|half| {
            let (mask, value) = bits.word(16 * half, 16);
            (mask as u16, value as u16)
        });
        let room = |half: usize| if EXTRA_LIMBS.contains(&(half / 2)) { RUN_ROUNDS + 1 } else { RUN_ROUNDS } as usize;
        let whole = (0..HALVES).filter(|&half| halves[half].0 | 1 == 0xffff);
        let whole = whole.filter(|&half| {
            self.whole[half].len() < room(half) || self.whole[half].contains(&(0xffff, halves[half].1))
        });
        if let Some(half) = whole.min_by_key(|&half| self.whole[half].len()) {
            add_once(&mut self.whole[half], (0xffff, halves[half].1));
            return Some(());
        }
        let free = (0..HALVES).filter(|&half| self.masked[half].len() < MASKED_ROUNDS as usize);
        let half = free.max_by_key(|&half| (halves[half].0.count_ones(), HALVES - self.masked[half].len()))?;
        let enough = halves[half].0.count_ones() as usize >= LEAST_BITS;
        enough.then(|| add_once(&mut self.masked[half], halves[half]))
    }

    fn write_to(&self, screen: &mut DeviceScreen) {
        screen.has_runs = u32::from(self.whole.iter().any(|values| !values.is_empty()));
        for (half, values) in self.whole.iter().enumerate() {
            let (limb, shift) = (half / 2, 16 * (half % 2));
            let minus = |at: usize| {
                let value = values.get(at).or(values.first()).map_or(NEVER, |&(_, value)| value.wrapping_neg());
                u32::from(value) << shift
            };
            (0..RUN_ROUNDS as usize).for_each(|round| screen.run[round][limb] |= minus(round));
            if let Some(extra) = EXTRA_LIMBS.iter().position(|&extra| extra == limb) {
                screen.extra[extra] |= minus(RUN_ROUNDS as usize);
            }
        }
        for (half, tests) in self.masked.iter().enumerate() {
            let (limb, shift) = (half / 2, 16 * (half % 2));
            screen.masked_rounds = screen.masked_rounds.max(tests.len() as u32);
            for (round, masked) in screen.masked.iter_mut().enumerate() {
                let (mask, minus) = tests.get(round).map_or((0, NEVER), |&(mask, value)| (mask, value.wrapping_neg()));
                masked[0][limb] |= u32::from(mask) << shift;
                masked[1][limb] |= u32::from(minus) << shift;
            }
        }
    }
}

/// Turns the ends that fix enough bits of the lowest limb into tests of that limb, if a few tests
/// suffice.
fn arrange_low_tests(ends: &mut Vec<Bits>, screen: &mut DeviceScreen) {
    let lowest_limb = |bits: &Bits| {
        let (mask, value) = bits.word(0, 32);
        (mask as u32, value as u32)
    };
    let is_low = |bits: &Bits| lowest_limb(bits).0.count_ones() >= LEAST_LOW_BITS;
    let mut low: Vec<(u32, u32)> = ends.iter().filter(|bits| is_low(bits)).map(lowest_limb).collect();
    let common = low.iter().fold(!0, |common, &(mask, _)| common & mask);
    low.sort_unstable();
    low.dedup();
    if low.len() > LOW_TESTS as usize && common.count_ones() >= LEAST_LOW_BITS {
        low = low.iter().map(|&(_, value)| (common, value & common)).collect();
        low.sort_unstable();
        low.dedup();
    }
    if low.len() <= LOW_TESTS as usize {
        low.iter().zip(&mut screen.low).for_each(|(&(mask, value), to)| *to = [mask, value]);
        ends.retain(|bits| !is_low(bits));
    }
}

fn add_once(tests: &mut Vec<(u16, u16)>, test: (u16, u16)) {
    if !tests.contains(&test) {
        tests.push(test);
    }
}
