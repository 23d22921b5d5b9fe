//! Quick tests of whole keys for the device: what the tests of texts say about limbs and parities.

use super::abi::Screen;
use super::constants::{LOW_TESTS, MASKED_ROUNDS, PARITIES, PARITY_GROUPS, RUN_ROUNDS};
use crate::pattern::TextTests;
use crate::search::conditions::{CHARACTERS, Condition, DATA_CHARACTERS, LEAST_BITS, conditions_of};
use crate::search::functionals::{Bits, even_parities};

/// The fewest even parities that the ends of a group must have in common. A single end has more,
/// but a further group of tests costs more than the additional keys that pass.
const LEAST_COMMON: usize = 10;
/// Bits that a test of the lowest limb compares at least.
const LEAST_LOW_BITS: u32 = 16;
/// The least number of equal characters whose differences fill half a limb.
const LEAST_EQUAL: usize = 7;
/// Limbs for which the device compares a further value ([`Screen::extra`]).
const EXTRA_LIMBS: [usize; 3] = [0, 2, 5];
/// Number of half limbs of a key, 16 bits each.
const HALVES: usize = 16;
/// Mask and value of a test of the lowest limb that no key passes.
const NO_LOW_TEST: [u32; 2] = [0, 1];
/// Minus the value 0x8000, which a half with the mask 0 never has.
const NEVER: u16 = 0x8000;

/// The forms of the kernel, named by the tests of a screen that they make.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Tests {
    /// All tests.
    Any,
    /// One group of parities.
    Ends,
    /// Runs of characters at any place, and one group of parities.
    Runs,
}

impl Tests {
    /// The tests that a screen needs.
    pub fn of(screen: &Screen) -> Tests {
        let others = screen.low != [NO_LOW_TEST; LOW_TESTS as usize]
            || screen.has_differences + screen.masked_rounds > 0
            || screen.parity_groups != 1;
        match screen.has_runs {
            _ if others => Tests::Any,
            0 => Tests::Ends,
            _ => Tests::Runs,
        }
    }
}

/// Arranges tests of texts as quick tests: a key that passes one of the tests passes the screen.
/// `None` if they do not fit, or would let too many keys pass.
pub fn screen_of(tests: &TextTests) -> Option<Screen> {
    let mut parts = Parts::default();
    for condition in tests.of_keys.iter().chain(&tests.of_checksums).flat_map(conditions_of) {
        parts.add(condition)?;
    }
    parts.arrange()
}

/// The conditions of the tests, before they are arranged.
#[derive(Default)]
struct Parts {
    /// Each entry is bits with their values. A key that has all bits of an entry passes.
    ends: Vec<Bits>,
    /// For each half of a limb, the lowest first, that is compared as a whole: masks and values.
    halves: [Vec<(u16, u16)>; HALVES],
    /// For each half of a limb that is compared in some of its bits: masks and values.
    masked: [Vec<(u16, u16)>; HALVES],
    has_differences: bool,
}

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

    /// Adds a run of neighbouring bits, as a test of one half limb in it.
    fn add_run(&mut self, bits: &Bits) -> Option<()> {
        // A half of which all but the lowest bit are known is compared like a whole one: the
        // device lets the next larger value pass, too.
        let halves = bits.halves();
        let room = |half: usize| if EXTRA_LIMBS.contains(&(half / 2)) { RUN_ROUNDS + 1 } else { RUN_ROUNDS } as usize;
        let whole = (0..HALVES).filter(|&half| halves[half].0 | 1 == 0xffff);
        let whole = whole.filter(|&half| {
            self.halves[half].len() < room(half) || self.halves[half].contains(&(0xffff, halves[half].1))
        });
        if let Some(half) = whole.min_by_key(|&half| self.halves[half].len()) {
            add_once(&mut self.halves[half], (0xffff, halves[half].1));
            return Some(());
        }
        let free = (0..HALVES).filter(|&half| self.masked[half].len() < MASKED_ROUNDS as usize);
        let half = free.max_by_key(|&half| (halves[half].0.count_ones(), HALVES - self.masked[half].len()))?;
        let enough = halves[half].0.count_ones() as usize >= LEAST_BITS;
        enough.then(|| add_once(&mut self.masked[half], halves[half]))
    }

    /// Adds `count` equal characters anywhere. Before the checksum, a run is found by the
    /// differences of neighbouring characters, which are zero. For each place that reaches the
    /// checksum, ends are added, one per possible character. If the last character of the data is
    /// in the run, only `q` and `s` are possible, because four of its bits are zero.
    fn add_equal(&mut self, count: usize) -> Option<()> {
        if count < LEAST_EQUAL {
            return None;
        }
        self.has_differences = true;
        for place in (DATA_CHARACTERS + 1).saturating_sub(count)..=CHARACTERS.checked_sub(count)? {
            let only_checksum = place >= DATA_CHARACTERS;
            for value in (0..32).step_by(if only_checksum { 1 } else { 16 }) {
                let bits = Bits::of_characters((place..place + count).map(|place| (place, 31, value)))?;
                self.add_end(bits)?;
            }
        }
        Some(())
    }

    fn arrange(mut self) -> Option<Screen> {
        let mut screen = Screen { low: [NO_LOW_TEST; LOW_TESTS as usize], ..Screen::default() };
        screen.has_differences = u32::from(self.has_differences);
        self.arrange_low_tests(&mut screen);
        screen.parity_groups = arrange_parities(self.ends, &mut screen)?;
        screen.has_runs = u32::from(self.halves.iter().any(|values| !values.is_empty()));
        for (half, values) in self.halves.iter().enumerate() {
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
        Some(screen)
    }

    /// Turns the ends that fix enough bits of the lowest limb into tests of that limb, if a few
    /// tests suffice.
    fn arrange_low_tests(&mut self, screen: &mut Screen) {
        let is_low = |bits: &Bits| bits.lowest_limb().0.count_ones() >= LEAST_LOW_BITS;
        let mut low: Vec<(u32, u32)> = self.ends.iter().filter(|bits| is_low(bits)).map(Bits::lowest_limb).collect();
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
            self.ends.retain(|bits| !is_low(bits));
        }
    }
}

/// Distributes ends to groups that have enough even parities in common. Returns the number of
/// groups; `None` if the ends do not fit.
fn arrange_parities(ends: Vec<Bits>, screen: &mut Screen) -> Option<u32> {
    let mut groups: Vec<Vec<Bits>> = Vec::new();
    for bits in ends {
        let fits = |group: &&mut Vec<Bits>| {
            let with: Vec<&Bits> = group.iter().chain([&bits]).collect();
            even_parities(&with).len() >= LEAST_COMMON
        };
        match groups.iter_mut().find(fits) {
            Some(group) => group.push(bits),
            None => groups.push(vec![bits]),
        }
    }
    if groups.len() > PARITY_GROUPS as usize {
        return None;
    }
    for (group, lanes) in groups.iter().zip(&mut screen.parities) {
        let parities = even_parities(&group.iter().collect::<Vec<_>>());
        if parities.len() < LEAST_COMMON {
            return None;
        }
        for (at, limbs) in parities.iter().take(PARITIES as usize).enumerate() {
            for (limb, &bits) in limbs.iter().enumerate() {
                lanes[at % 8 * 4 + limb % 4][at / 8 * 2 + limb / 4] = bits;
            }
        }
    }
    Some(groups.len() as u32)
}

fn add_once(tests: &mut Vec<(u16, u16)>, test: (u16, u16)) {
    if !tests.contains(&test) {
        tests.push(test);
    }
}
