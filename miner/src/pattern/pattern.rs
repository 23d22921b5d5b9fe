//! One pattern: a description of keys, its kind, and what it is made of: a prefix, or shapes, which
//! are descriptions of a key's text.

use super::chance::{Effort, chance_of_any};
use super::characters::{CharacterSet, LAST_OF_DATA, NPUB_CHARACTERS, nearest, value_of};
use super::difficulty::Difficulty;
use super::error::PatternError;
use super::set::Intervals;
use crate::key::Npub;
use bech32::primitives::iter::{ByteIterExt, Checksummed};
use bech32::{Bech32, Hrp};
use std::fmt;
use std::hash::{Hash, Hasher};
use std::sync::Arc;

/// The largest share of keys that a filter by intervals may pass to a full check: the share that
/// begins with four given characters. A pattern with a larger share is searched by comparing whole
/// keys.
const MAX_FULL_CHECK_SHARE: f64 = 1.0 / (1 << 20) as f64;

/// Description of keys, in the grammar of `docs/askers/patterns.md`. At least one npub
/// fits: every value of this type is valid. Copies share their tables.
#[derive(Clone)]
pub struct Pattern {
    text: String,
    form: Definition,
}

#[derive(Clone)]
enum Definition {
    /// A prefix: the smallest and largest x-coordinate that match, big-endian, both included.
    Range([u8; 32], [u8; 32]),
    /// The shapes of a pattern of any other kind.
    Shapes(Arc<Shapes>),
}

/// The alternatives of a pattern other than a prefix, with values computed from them.
struct Shapes {
    kind: PatternKind,
    list: Vec<KeyShape>,
    intervals: Intervals,
    chance: f64,
}

impl Pattern {
    /// Reads a prefix as a person writes it. Upper case, a leading `nostr:`, `npub1` or `/`, and
    /// spaces around it are accepted. `FromStr` reads patterns of every kind.
    ///
    /// Errors: [`PatternError`].
    pub fn parse(written: &str) -> Result<Pattern, PatternError> {
        let text = bare(written);
        let (first, last) = range_of(&text)?;
        Ok(Pattern { text, form: Definition::Range(first, last) })
    }

    /// A pattern of the alternatives in `list`. Impossible alternatives are left out.
    ///
    /// Errors: no alternative is possible, every key matches, or computing the difficulty takes
    /// more than `effort`.
    pub(super) fn from_shapes(
        text: String,
        kind: PatternKind,
        mut list: Vec<KeyShape>,
        effort: &mut Effort,
    ) -> Result<Pattern, PatternError> {
        let mut possible = 0;
        list.retain_mut(|shape| {
            let fits = shape.respect_padding() && is_possible(&shape.start);
            possible = if fits { possible } else { possible.max(possible_characters(&shape.start)) };
            fits
        });
        if list.is_empty() {
            return Err(PatternError::Impossible(possible));
        }
        let chance = chance_of_any(&list, effort).ok_or(PatternError::TooIntricate)?;
        if chance >= 1.0 {
            return Err(PatternError::Anything);
        }
        let intervals = Intervals::of(&list);
        Ok(Pattern { text, form: Definition::Shapes(Arc::new(Shapes { kind, list, intervals, chance })) })
    }

    /// The pattern in its normal spelling: without `npub1`, in lower case and without spaces.
    pub fn as_str(&self) -> &str {
        &self.text
    }

    /// The characters after `npub1` if the pattern is a plain prefix.
    pub fn prefix(&self) -> Option<&str> {
        matches!(self.form, Definition::Range(..)).then_some(&self.text)
    }

    /// The kind of the pattern.
    pub fn kind(&self) -> &PatternKind {
        match &self.form {
            Definition::Range(..) => &PatternKind::Prefix,
            Definition::Shapes(shapes) => &shapes.kind,
        }
    }

    /// Binary logarithm of the difficulty, rounded. For a prefix, the number of leading bits of x
    /// that it fixes, 5 to 256.
    pub fn bits(&self) -> u32 {
        match &self.form {
            Definition::Range(..) => (self.text.len() as u32 * 5).min(256),
            Definition::Shapes(shapes) => -shapes.chance.log2().round() as u32,
        }
    }

    /// Expected number of candidates until one matches.
    pub fn difficulty(&self) -> Difficulty {
        match &self.form {
            Definition::Range(..) => Difficulty::from_bits(self.bits()),
            Definition::Shapes(shapes) => Difficulty::from_chance(shapes.chance),
        }
    }

    /// Whether the key matches.
    pub fn matches(&self, npub: &Npub) -> bool {
        match &self.form {
            Definition::Range(first, last) => *first <= npub.0 && npub.0 <= *last,
            Definition::Shapes(shapes) => {
                let values = values_of(npub);
                shapes.list.iter().any(|shape| shape.matches(&values))
            }
        }
    }

    /// The characters of a key that match, such as the word or the spelling; parts are joined by
    /// `…`. `None` if the key does not match.
    pub fn met_by(&self, npub: &Npub) -> Option<String> {
        let Definition::Shapes(shapes) = &self.form else { return self.matches(npub).then(|| self.text.clone()) };
        let (values, text) = (values_of(npub), npub.to_string());
        let met = shapes.list.iter().filter_map(|shape| Some((shape.len(), shape.met_by(&values)?)));
        let (_, parts) = met.max_by_key(|(length, _)| *length)?;
        Some(parts.iter().map(|&(first, next)| &text[5 + first..5 + next]).collect::<Vec<_>>().join("…"))
    }

    /// Intervals of the upper 64 bits of x that can match: sorted, disjoint, both ends included.
    pub(super) fn intervals(&self) -> Vec<(u64, u64)> {
        match &self.form {
            Definition::Range(first, last) => vec![(top_of(first), top_of(last))],
            Definition::Shapes(shapes) => shapes.intervals.list.clone(),
        }
    }

    /// Number of intervals that a device's filter needs for the pattern.
    pub fn interval_count(&self) -> usize {
        match &self.form {
            Definition::Range(..) => 1,
            Definition::Shapes(shapes) => shapes.intervals.list.len(),
        }
    }

    /// Number of alternatives of the pattern.
    pub(super) fn shape_count(&self) -> usize {
        match &self.form {
            Definition::Range(..) => 1,
            Definition::Shapes(shapes) => shapes.list.len(),
        }
    }

    /// The share of keys, 0 to 1, that pass a filter by the pattern's intervals and need a full
    /// check. Zero if the intervals are exact, or too wide for such a filter.
    pub fn full_check_share(&self) -> f64 {
        match &self.form {
            Definition::Shapes(shapes) if !shapes.intervals.is_exact && self.begins_selectively() => {
                shapes.intervals.share()
            }
            _ => 0.0,
        }
    }

    /// Whether every key within [`Pattern::intervals`] matches.
    pub(super) fn is_exact(&self) -> bool {
        match &self.form {
            Definition::Range(..) => self.bits() <= 64,
            Definition::Shapes(shapes) => shapes.intervals.is_exact,
        }
    }

    /// The alternatives of the pattern, each a shape.
    pub(super) fn shapes(&self) -> Vec<KeyShape> {
        match &self.form {
            Definition::Range(..) => {
                let mut shape = KeyShape::starting(self.text.chars().filter_map(CharacterSet::from_char).collect());
                shape.respect_padding();
                vec![shape]
            }
            Definition::Shapes(shapes) => shapes.list.clone(),
        }
    }

    /// Whether the fast kernel, which filters by the first 32 bits of x, can search for the
    /// pattern: every key in the pattern's intervals matches, or the intervals hold no more keys
    /// than four given characters do.
    pub fn begins_selectively(&self) -> bool {
        match &self.form {
            Definition::Range(..) => true,
            Definition::Shapes(shapes) => shapes.intervals.is_exact || shapes.intervals.share() <= MAX_FULL_CHECK_SHARE,
        }
    }
}

/// The upper 64 bits of x.
pub(super) fn top_of(x: &[u8; 32]) -> u64 {
    u64::from_be_bytes(x[..8].try_into().expect("eight bytes"))
}

impl PartialEq for Pattern {
    fn eq(&self, other: &Pattern) -> bool {
        self.text == other.text
    }
}

impl Eq for Pattern {}

impl Hash for Pattern {
    fn hash<H: Hasher>(&self, state: &mut H) {
        self.text.hash(state);
    }
}

impl fmt::Display for Pattern {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.text)
    }
}

impl fmt::Debug for Pattern {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Pattern({})", self.text)
    }
}

/// The kind of a pattern, with the values that a description needs.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum PatternKind {
    /// Characters after `npub1`: `m0ctane`.
    Prefix,
    /// Characters after `npub1`, with places that accept any or several characters: `m0?tane`,
    /// `[s5]at`.
    Open,
    /// A word after `npub1` in any spelling that looks like it: `~alice`.
    LookAlike,
    /// Parts at the start, anywhere, or at the end: `alice*cafe`, `*alice*@12`. A part that is
    /// absent is empty.
    Parts {
        /// Characters after `npub1`.
        start: String,
        /// Parts that follow anywhere, in this order.
        middle: Vec<String>,
        /// If given, the whole middle is within this many characters after `npub1`.
        within: Option<usize>,
        /// Characters at the end of the npub, checksum included.
        end: String,
    },
    /// Equal characters after `npub1`: `=7`.
    Equal(usize),
    /// Equal characters anywhere: `=7*`.
    EqualAnywhere(usize),
    /// The first digits of the key in hex: `hex:0000c0de`.
    HexStart(String),
    /// The last digits of the key in hex: `hex:*beef`.
    HexEnd(String),
    /// Leading zero bits: `zeros:40`.
    Zeros(usize),
    /// A word of the built-in list, of at least this many letters: `words:8`.
    Words(usize),
}

/// Characters of an npub that encode the key. The six after them are a checksum.
pub const MAX_CHARACTERS: usize = 52;

/// The most spellings that an error names.
pub(super) const MAX_NAMED: usize = 2;

/// Removes spaces, capitals, `nostr:`, `npub1` and `/` around a pattern.
pub(super) fn bare(written: &str) -> String {
    let lower = written.trim().to_lowercase();
    let bare = lower.strip_prefix("nostr:").unwrap_or(&lower).trim_start_matches('/');
    bare.strip_prefix("npub1").unwrap_or(bare).to_owned()
}

/// Smallest and largest x-coordinate of a prefix, big-endian, both included.
pub(super) fn range_of(text: &str) -> Result<([u8; 32], [u8; 32]), PatternError> {
    let length = text.chars().count();
    if length == 0 {
        return Err(PatternError::Empty);
    }
    if length > MAX_CHARACTERS {
        return Err(PatternError::TooLong(length));
    }
    let Some(values) = text.chars().map(value_of).collect::<Option<Vec<u8>>>() else {
        let character = text.chars().find(|&c| value_of(c).is_none()).unwrap_or_default();
        let respelled = spellings(text, |c| value_of(c).is_some());
        let nearest = respelled.filter(|text| range_of(text).is_ok()).take(MAX_NAMED).collect();
        return Err(PatternError::Forbidden { character, nearest, look_alike: None });
    };
    let possible = || (0..length).rev().find(|&count| range(&values[..count]).is_some()).unwrap_or(0);
    range(&values).ok_or_else(|| PatternError::Impossible(possible()))
}

/// Up to three spellings of `text` in characters that can occur. Characters for which `stays` is
/// true are kept. The caller checks that a spelling is a pattern.
pub(super) fn spellings(text: &str, stays: impl Fn(char) -> bool) -> impl Iterator<Item = String> {
    let respell = move |choice: usize| {
        text.chars()
            .map(|c| if stays(c) { Some(c) } else { nearest(c).get(choice).copied() })
            .collect::<Option<String>>()
    };
    (0..3).filter_map(respell)
}

/// Smallest and largest x-coordinate whose leading 5-bit groups are `values`; `None` if no key has
/// them. The 52nd group is one bit of the key and four bits of padding, which are zero, and x is
/// below p.
fn range(values: &[u8]) -> Option<([u8; 32], [u8; 32])> {
    let fill = |fill_bit: u8| {
        let mut bytes = [0u8; 32];
        for bit in 0..256 {
            let value = values.get(bit / 5).map_or(fill_bit, |v| v >> (4 - bit % 5) & 1);
            bytes[bit / 8] |= value << (7 - bit % 8);
        }
        bytes
    };
    if values.get(51).is_some_and(|last| last & 0x0f != 0) {
        return None;
    }
    let (first, last) = (fill(0), fill(1));
    (first < FIELD_PRIME).then_some((first, last))
}

/// Whether some x-coordinate below p has these characters at its start.
pub(super) fn is_possible(start: &[CharacterSet]) -> bool {
    let smallest: Vec<u8> = start.iter().map(|set| set.0.trailing_zeros() as u8).collect();
    start.len() <= MAX_CHARACTERS && range(&smallest).is_some()
}

/// The length of the longest start of these characters, shorter than all of them, that some key
/// has.
pub(super) fn possible_characters(start: &[CharacterSet]) -> usize {
    (0..start.len()).rev().find(|&count| is_possible(&start[..count])).unwrap_or(0)
}

/// p = 2^256 - 2^32 - 977, big-endian.
const FIELD_PRIME: [u8; 32] = {
    let mut bytes = [0xff; 32];
    (bytes[27], bytes[28], bytes[29]) = (0xfe, 0xff, 0xff);
    (bytes[30], bytes[31]) = (0xfc, 0x2f);
    bytes
};

/// The 5-bit values of the characters after `npub1`.
pub type Values = [u8; NPUB_CHARACTERS];

/// A shape: characters at the start, then parts anywhere but in this order, then characters at the
/// end.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct KeyShape {
    /// Characters from the first on. A set of all characters stands for `?`.
    pub start: Vec<CharacterSet>,
    /// Parts after the start, in this order and without overlap, each as early as possible.
    pub middle: Vec<Vec<CharacterSet>>,
    /// The middle ends within this many characters after `npub1`.
    pub within: usize,
    /// The last characters, checksum included.
    pub end: Vec<CharacterSet>,
}

impl KeyShape {
    /// The shape of characters at the start only.
    pub fn starting(start: Vec<CharacterSet>) -> KeyShape {
        KeyShape { start, middle: Vec::new(), within: NPUB_CHARACTERS, end: Vec::new() }
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
        self.met_by(values).is_some()
    }

    /// Ranges of the characters that match in a key with this shape, ascending: the first index,
    /// and the one after the last. `None` if the key does not have the shape.
    pub fn met_by(&self, values: &Values) -> Option<Vec<(usize, usize)>> {
        let fits =
            |part: &[CharacterSet], at: usize| part.iter().zip(&values[at..]).all(|(set, &value)| set.contains(value));
        if !fits(&self.start, 0) || !fits(&self.end, self.end_from()) {
            return None;
        }
        let (mut from, to) = (self.start.len(), self.within.min(self.end_from()));
        let mut met = vec![(0, from)];
        for part in &self.middle {
            let at = (from..=to.checked_sub(part.len())?).find(|&at| fits(part, at))?;
            from = at + part.len();
            met.push((at, from));
        }
        met.push((self.end_from(), NPUB_CHARACTERS));
        met.retain(|(first, next)| first < next);
        Some(met)
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
