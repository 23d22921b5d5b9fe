//! Shapes: descriptions of a key's text. A pattern is one shape or several alternatives.

use super::character_set::{CharacterSet, LAST_OF_DATA, NPUB_CHARACTERS};
use crate::key::Npub;
use bech32::primitives::iter::{ByteIterExt, Checksummed};
use bech32::{Bech32, Hrp};

/// The 5-bit values of the characters after `npub1`.
pub type Values = [u8; NPUB_CHARACTERS];

/// A shape: characters at the start, then parts anywhere but in this order, then characters at the
/// end.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Shape {
    /// Characters from the first on. A set of all characters stands for `?`.
    pub start: Vec<CharacterSet>,
    /// Parts after the start, in this order and without overlap, each as early as possible.
    pub middle: Vec<Vec<CharacterSet>>,
    /// The middle ends within this many characters after `npub1`.
    pub within: usize,
    /// The last characters, checksum included.
    pub end: Vec<CharacterSet>,
}

impl Shape {
    /// The shape of characters at the start only.
    pub fn starting(start: Vec<CharacterSet>) -> Shape {
        Shape { start, middle: Vec::new(), within: NPUB_CHARACTERS, end: Vec::new() }
    }

    /// Whether only the characters at the start are restricted.
    pub fn is_start_alone(&self) -> bool {
        self.middle.is_empty() && self.end.is_empty()
    }

    /// Index of the first character of the end.
    pub fn end_from(&self) -> usize {
        NPUB_CHARACTERS - self.end.len()
    }

    /// Number of characters that the shape names or leaves open by `?`.
    pub fn len(&self) -> usize {
        self.start.len() + self.middle.iter().map(Vec::len).sum::<usize>() + self.end.len()
    }

    /// Removes impossible values from the sets for the last character of the data. `false` if a set
    /// becomes empty.
    pub fn respect_padding(&mut self) -> bool {
        let end_from = self.end_from();
        if let Some(set) = self.start.get_mut(LAST_OF_DATA) {
            *set = set.intersection(CharacterSet::PADDED);
        }
        if let Some(set) = LAST_OF_DATA.checked_sub(end_from).and_then(|at| self.end.get_mut(at)) {
            *set = set.intersection(CharacterSet::PADDED);
        }
        let parts = self.start.iter().chain(self.middle.iter().flatten()).chain(&self.end);
        parts.clone().all(|&set| set != CharacterSet::NONE)
    }

    /// Whether a key of these characters has the shape.
    pub fn matches(&self, values: &Values) -> bool {
        let fits =
            |part: &[CharacterSet], at: usize| part.iter().zip(&values[at..]).all(|(set, &value)| set.contains(value));
        if !fits(&self.start, 0) || !fits(&self.end, self.end_from()) {
            return false;
        }
        let (mut from, to) = (self.start.len(), self.within.min(self.end_from()));
        for part in &self.middle {
            let last = to.checked_sub(part.len());
            let Some(at) = last.and_then(|last| (from..=last).find(|&at| fits(part, at))) else { return false };
            from = at + part.len();
        }
        true
    }

    /// Ranges of the characters that match in a key with this shape, ascending: the first index,
    /// and the one after the last.
    pub fn met_by(&self, values: &Values) -> Vec<(usize, usize)> {
        let fits =
            |part: &[CharacterSet], at: usize| part.iter().zip(&values[at..]).all(|(set, &value)| set.contains(value));
        let mut met = vec![(0, self.start.len())];
        let mut from = self.start.len();
        for part in &self.middle {
            let at = (from..=NPUB_CHARACTERS - part.len()).find(|&at| fits(part, at)).unwrap_or(from);
            met.push((at, at + part.len()));
            from = at + part.len();
        }
        met.push((self.end_from(), NPUB_CHARACTERS));
        met.retain(|(first, next)| first < next);
        met
    }
}

/// The 5-bit values of a key's text.
pub fn values_of(npub: &Npub) -> Values {
    let data = npub.0.iter().copied().bytes_to_fes();
    let all = Checksummed::<_, Bech32>::new_hrp(Hrp::parse_unchecked("npub"), data);
    let mut values = [0; NPUB_CHARACTERS];
    for (value, character) in values.iter_mut().zip(all) {
        *value = character.to_u8();
    }
    values
}
