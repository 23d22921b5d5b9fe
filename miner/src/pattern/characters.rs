//! The 32 characters of bech32 (BIP-173), replacements for the four that cannot occur, look-alikes,
//! and sets of characters that may stand at one place of an npub.

use std::fmt;

/// Characters of bech32, indexed by their 5-bit value.
pub const ALPHABET: &[u8; 32] = b"qpzry9x8gf2tvdw0s3jn54khce6mua7l";

/// The 5-bit value of each byte; [`NO_VALUE`] for those that are not in the alphabet.
const VALUES: [u8; 256] = {
    let mut values = [NO_VALUE; 256];
    let mut at = 0;
    while at < ALPHABET.len() {
        values[ALPHABET[at] as usize] = at as u8;
        at += 1;
    }
    values
};
const NO_VALUE: u8 = 255;

/// The 5-bit value of a character; `None` if it is not in the alphabet.
pub(super) fn value_of(character: char) -> Option<u8> {
    let value = VALUES[usize::from(u8::try_from(character).ok()?)];
    (value != NO_VALUE).then_some(value)
}

/// Characters of the alphabet that look or sound like one that cannot occur, the most similar
/// first. Empty for all characters but `1`, `b`, `i` and `o`, in either case.
pub fn nearest(character: char) -> &'static [char] {
    match character.to_ascii_lowercase() {
        '1' => &['l', '7', 'j'],
        'b' => &['8', '6', 'd'],
        'i' => &['l', 'j', 'y'],
        'o' => &['0', 'q', 'u'],
        _ => &[],
    }
}

/// Letters and digits, each with the characters of the alphabet that people read as it, the most
/// similar first. `docs/askers/patterns.md` has the same table.
const LOOK_ALIKES: &str = "00 o0 1l 22z 33e 44a 55s 66 77t 88 99g aa4 b86 cc dd ee3 ff gg9 hh ilj jj kk ll mm \
                           nn pp qq rr ss5 tt7 uuv vvu ww xx yy zz2";

/// Characters of the alphabet that people read as this letter or digit. In a pattern after `~`, each
/// of them may stand for it. Empty if there is none.
pub fn look_alikes(character: char) -> &'static str {
    LOOK_ALIKES.split(' ').find_map(|entry| entry.strip_prefix(character)).unwrap_or_default()
}

/// Characters after `npub1`: 52 of data, 6 of checksum.
pub const NPUB_CHARACTERS: usize = 58;
/// Index of the last character of the data. It holds one bit of the key, and four bits of padding,
/// which are zero.
pub const LAST_OF_DATA: usize = 51;
/// The most characters that a pattern with parts behind its start can choose: the 52 of the data
/// less six. Then all checksums are still equally likely (`chance.rs`).
pub const MAX_CHOSEN: usize = 46;

/// Characters that may stand at one place, a bit for each 5-bit value.
#[derive(Clone, Copy, PartialEq, Eq, Hash)]
pub struct CharacterSet(pub u32);

impl CharacterSet {
    /// Every character.
    pub const ANY: CharacterSet = CharacterSet(u32::MAX);
    /// No character.
    pub const NONE: CharacterSet = CharacterSet(0);
    /// The values 0 and 16, `q` and `s`: the only ones at [`LAST_OF_DATA`].
    pub const PADDED: CharacterSet = CharacterSet(1 | 1 << 16);

    /// The set of one character; `None` if it is not in the alphabet.
    pub fn from_char(character: char) -> Option<CharacterSet> {
        value_of(character).map(|value| CharacterSet(1 << value))
    }

    /// Whether the set has this 5-bit value.
    pub fn contains(self, value: u8) -> bool {
        self.0 >> value & 1 == 1
    }

    /// Number of characters.
    pub fn len(self) -> u32 {
        self.0.count_ones()
    }

    /// The value at index `at` of the set's 5-bit values in ascending order. `at` is below the
    /// length.
    pub fn nth(self, at: u32) -> u8 {
        let rest = (0..at).fold(self.0, |rest, _| rest & rest.wrapping_sub(1));
        rest.trailing_zeros() as u8
    }

    /// The characters of either set.
    pub fn union(self, other: CharacterSet) -> CharacterSet {
        CharacterSet(self.0 | other.0)
    }

    /// The characters that both sets have.
    pub fn intersection(self, other: CharacterSet) -> CharacterSet {
        CharacterSet(self.0 & other.0)
    }

    /// Runs of neighbouring values, `(first, last)`, ascending.
    pub fn runs(self) -> impl Iterator<Item = (u64, u64)> {
        let mut rest = u64::from(self.0);
        std::iter::from_fn(move || {
            if rest == 0 {
                return None;
            }
            let first = rest.trailing_zeros();
            let length = (rest >> first).trailing_ones();
            rest &= !(((1 << length) - 1) << first);
            Some((u64::from(first), u64::from(first + length - 1)))
        })
    }

    /// The characters of the set, sorted.
    pub fn characters(self) -> Vec<char> {
        let all = ALPHABET.iter().enumerate();
        let mut own: Vec<char> = all.filter(|(at, _)| self.0 >> at & 1 == 1).map(|(_, &c)| char::from(c)).collect();
        own.sort_unstable();
        own
    }
}

impl fmt::Display for CharacterSet {
    /// Writes one character as it is, all as `?`, several as `[s5]`.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.characters().as_slice() {
            [only] => write!(f, "{only}"),
            all if all.len() == 32 => f.write_str("?"),
            several => write!(f, "[{}]", several.iter().collect::<String>()),
        }
    }
}

impl fmt::Debug for CharacterSet {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(self, f)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn runs_cover_exactly_the_values() {
        for set in [0, 1, 1 << 31, u32::MAX, 0b1011_0110, 0xf000_000f, 0xaaaa_aaaa] {
            let rebuilt =
                CharacterSet(set).runs().flat_map(|(first, last)| first..=last).fold(0, |all, v| all | 1 << v);
            assert_eq!(rebuilt, set, "{set:b}");
        }
    }

    #[test]
    fn a_set_is_written_as_in_a_pattern() {
        let texts = [CharacterSet(0b11), CharacterSet::ANY, CharacterSet(1)].map(|set| set.to_string());
        assert_eq!(texts, ["[pq]", "?", "q"]);
        assert_eq!(CharacterSet::from_char('b'), None);
    }
}
