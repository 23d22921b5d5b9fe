//! The conditions that a test of texts sets on the bits of a key, for quick tests on a CPU and on a
//! GPU.

use super::functionals::Bits;
use crate::pattern::{Anywhere, Run, TextTest};

/// The fewest bits that a quick test compares. Fewer would let too many keys pass.
pub const LEAST_BITS: usize = 12;
/// Characters of a text.
pub const CHARACTERS: usize = 58;
/// Characters of a text before its checksum.
pub const DATA_CHARACTERS: usize = 52;

/// One of the conditions of a test. A key whose text passes the test meets at least one of them.
pub enum Condition {
    /// Bits of the key and of its checksum have these values.
    End(Bits),
    /// Neighbouring bits of the key (not of its checksum) have these values.
    Run(Bits),
    /// This many equal characters are somewhere in the text.
    Equal(usize),
}

/// The conditions of a test; empty if no key passes it.
pub fn conditions_of(test: &TextTest) -> Vec<Condition> {
    let characters = test.fixed.iter().flat_map(|&(word, mask, value)| {
        let part = move |bits: u64, at: usize| (bits >> (55 - 5 * at) & 31) as u8;
        (0..12).map(move |at| (12 * word + at, part(mask, at), part(value, at)))
    });
    let Some(fixed) = Bits::of_characters(characters.filter(|&(place, ..)| place < CHARACTERS)) else {
        return Vec::new();
    };
    match &test.anywhere {
        Some(Anywhere { run, places }) if fixed.len() < LEAST_BITS => match run {
            Run::Equal(count) => vec![Condition::Equal(*count)],
            Run::Characters(run) => {
                let is_place = |&place: &usize| places[place / 12] >> (59 - 5 * (place % 12)) & 1 == 1;
                (0..CHARACTERS).filter(is_place).filter_map(|place| run_at(run, place)).collect()
            }
        },
        _ => vec![Condition::End(fixed)],
    }
}

/// The condition for a run that begins at a place. A run that reaches into the checksum is an
/// `End`.
fn run_at(run: &[(u64, u64)], place: usize) -> Option<Condition> {
    let part = |bits: u64| (bits & 31) as u8;
    let characters = run.iter().enumerate().map(|(at, &(mask, value))| (place + at, part(mask), part(value)));
    let bits = Bits::of_characters(characters)?;
    Some(if place + run.len() > DATA_CHARACTERS { Condition::End(bits) } else { Condition::Run(bits) })
}
