//! Tests of a key's whole text, for kernels that compare all of it. A text that fails every test of
//! a set matches none of its patterns; one that passes a test may match.

use super::character_set::{CharacterSet, NPUB_CHARACTERS};
use super::kind::Kind;
use super::pattern::Pattern;
use super::shape::Shape;

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
const MOST_TESTS: usize = 64;

/// The largest share of keys that a pattern's tests may let pass. Confirming a key takes as long as
/// testing some thousands.
const MOST_PASSING: f64 = 1.0 / (1 << 16) as f64;

/// The most keys that may pass per match. Tests of a frequent pattern may let so many pass, even if
/// they exceed [`MOST_PASSING`]. Confirming them takes less than a tenth of a second.
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
        if let Kind::EqualAnywhere(count) = pattern.kind() {
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
        if self.text_test_count() > MOST_TESTS {
            return false;
        }
        let passing: f64 = TextTest::of(self).iter().map(TextTest::share).sum();
        passing <= MOST_PASSING.max(PASSING_A_MATCH / self.difficulty().candidates())
    }

    /// Number of tests of texts that the pattern adds to a launch; zero if the fast kernel takes
    /// it.
    pub fn text_test_count(&self) -> usize {
        match self.kind() {
            _ if self.begins_selectively() => 0,
            Kind::EqualAnywhere(_) => 1,
            _ => self.shape_count(),
        }
    }
}

fn of_shape(shape: &Shape) -> TextTest {
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
