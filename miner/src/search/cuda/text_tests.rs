//! Tests of whole keys' texts, in the device's layout.

use super::abi::{Screen, TextTest, WholeSearch};
use super::buffers::Buffer;
use super::constants::{ACCEPTED_WORDS, FIRST_BITS, MOST_RUN, TEXT_WORDS};
use super::screen::screen_of;
use crate::pattern::{self, Anywhere, ChecksumTables, ChecksumTest, PatternSet, Run, TextWords};
use cudarc::driver::{CudaSlice, CudaStream, DevicePtr, DriverError};
use std::sync::Arc;

/// The tests of the current pattern set.
pub struct TextTests {
    tests: CudaSlice<TextTest>,
    /// The argument of the kernel that tests texts, without addresses.
    search: WholeSearch,
    /// Quick tests; `None` if quick tests cannot express the tests.
    pub screen: Option<Screen>,
}

impl TextTests {
    /// No tests.
    pub fn new(stream: &Arc<CudaStream>) -> Result<TextTests, DriverError> {
        Ok(TextTests { tests: stream.alloc_zeros(1)?, search: WholeSearch::default(), screen: None })
    }

    /// Queues the change to `patterns` on the stream. Launches in flight keep their tests: the
    /// driver frees memory in the order of the stream.
    pub fn set(&mut self, stream: &Arc<CudaStream>, patterns: &PatternSet) -> Result<(), DriverError> {
        let (tests, search) = for_device(patterns);
        self.search = search;
        self.screen = patterns.text_tests().as_ref().and_then(screen_of);
        if !tests.is_empty() {
            self.tests = stream.clone_htod(&tests)?;
        }
        Ok(())
    }

    /// Whether whole keys must be compared.
    pub fn are_needed(&self) -> bool {
        self.search.key_tests + self.search.checksum_tests > 0
    }

    /// The argument of the kernel that tests texts. `checksums` is the address of the tables of the
    /// checksum.
    pub fn argument(&self, stream: &Arc<CudaStream>, checksums: u64) -> WholeSearch {
        WholeSearch { tests: self.tests.device_ptr(stream).0, checksums, ..self.search }
    }

    /// All buffers. Destructures every field: a new buffer cannot be forgotten here.
    pub fn buffers(&self) -> Vec<Buffer<'_>> {
        let TextTests { tests, search: _, screen: _ } = self;
        vec![Buffer::on_device("tests of texts", tests)]
    }
}

/// The tests of a pattern set in the device's layout, and the argument that counts them, without
/// addresses.
pub fn for_device(patterns: &PatternSet) -> (Vec<TextTest>, WholeSearch) {
    let Some(tests) = patterns.text_tests() else { return (Vec::new(), WholeSearch::default()) };
    let pattern::TextTests { of_keys, of_checksums, first } = tests;
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
        for place in 0..256 {
            // The contribution of this bit of x to the checksum. Bits are counted from the lowest.
            let part = ChecksumTables::get().bytes[31 - place / 8][1 << (place % 8)];
            parts[place / 32] |= (part >> (8 * bytes[byte] + bit) & 1) << (place % 32);
        }
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
fn flat(test: &pattern::TextTest) -> TextTest {
    let (mut masks, mut values) = ([0; 5], [0; 5]);
    for &(word, mask, value) in &test.fixed {
        (masks[word], values[word]) = (mask, value);
    }
    let mut flat = TextTest { mask: halves(&masks), value: halves(&values), ..TextTest::default() };
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
        for (at, &(mask, value)) in characters.iter().take(MOST_RUN as usize).enumerate() {
            (flat.run_mask[at], flat.run_value[at]) = ((mask & HALF) as u32, (value & HALF) as u32);
            flat.run = at as u32 + 1;
        }
    }
    flat
}

const _: () = assert!(ACCEPTED_WORDS * 32 == 1 << FIRST_BITS && MOST_RUN as usize == pattern::RUN_CHARACTERS);
