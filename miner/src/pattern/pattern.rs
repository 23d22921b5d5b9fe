//! One pattern: a description of keys.

use super::chance::{Effort, chance_of_any};
use super::character_set::CharacterSet;
use super::difficulty::Difficulty;
use super::error::GrammarError;
use super::intervals::Intervals;
use super::kind::Kind;
use super::prefix::{PatternError, bare, is_possible, possible_characters, range_of};
use super::shape::{Shape, values_of};
use crate::key::Npub;
use std::fmt;
use std::hash::{Hash, Hasher};
use std::sync::Arc;

/// The largest share of keys that a filter by intervals may pass to a full check: the share that
/// begins with four given characters. A pattern with a larger share is searched by comparing whole
/// keys.
const MOST_HANDED_ON: f64 = 1.0 / (1 << 20) as f64;

/// Description of keys, in the grammar of `docs/askers/patterns.md`. At least one npub
/// fits: every value of this type is valid. Copies share their tables.
#[derive(Clone)]
pub struct Pattern {
    text: String,
    form: Form,
}

#[derive(Clone)]
enum Form {
    /// A prefix: the smallest and largest x-coordinate that match, big-endian, both included.
    Range([u8; 32], [u8; 32]),
    /// The shapes of a pattern of any other kind.
    Shapes(Arc<Shapes>),
}

/// The alternatives of a pattern other than a prefix, with values computed from them.
struct Shapes {
    kind: Kind,
    list: Vec<Shape>,
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
        Ok(Pattern { text, form: Form::Range(first, last) })
    }

    /// A pattern of the alternatives in `list`. Impossible alternatives are left out.
    ///
    /// Errors: no alternative is possible, every key matches, or computing the difficulty takes
    /// more than `effort`.
    pub(super) fn from_shapes(
        text: String,
        kind: Kind,
        mut list: Vec<Shape>,
        effort: &mut Effort,
    ) -> Result<Pattern, GrammarError> {
        let mut possible = 0;
        list.retain_mut(|shape| {
            let fits = shape.respect_padding() && is_possible(&shape.start);
            possible = if fits { possible } else { possible.max(possible_characters(&shape.start)) };
            fits
        });
        if list.is_empty() {
            return Err(GrammarError::Prefix { error: PatternError::Impossible(possible), look_alike: None });
        }
        let chance = chance_of_any(&list, effort).ok_or(GrammarError::TooIntricate)?;
        if chance >= 1.0 {
            return Err(GrammarError::Anything);
        }
        let intervals = Intervals::of(&list);
        Ok(Pattern { text, form: Form::Shapes(Arc::new(Shapes { kind, list, intervals, chance })) })
    }

    /// The pattern in its normal spelling: without `npub1`, in lower case and without spaces.
    pub fn as_str(&self) -> &str {
        &self.text
    }

    /// The characters after `npub1` if the pattern is a plain prefix.
    pub fn prefix(&self) -> Option<&str> {
        matches!(self.form, Form::Range(..)).then_some(&self.text)
    }

    /// The kind of the pattern.
    pub fn kind(&self) -> &Kind {
        match &self.form {
            Form::Range(..) => &Kind::Prefix,
            Form::Shapes(shapes) => &shapes.kind,
        }
    }

    /// Binary logarithm of the difficulty, rounded. For a prefix, the number of leading bits of x
    /// that it fixes, 5 to 256.
    pub fn bits(&self) -> u32 {
        match &self.form {
            Form::Range(..) => (self.text.len() as u32 * 5).min(256),
            Form::Shapes(shapes) => -shapes.chance.log2().round() as u32,
        }
    }

    /// Expected number of candidates until one matches.
    pub fn difficulty(&self) -> Difficulty {
        match &self.form {
            Form::Range(..) => Difficulty::from_bits(self.bits()),
            Form::Shapes(shapes) => Difficulty::from_chance(shapes.chance),
        }
    }

    /// Whether the key matches.
    pub fn matches(&self, npub: &Npub) -> bool {
        match &self.form {
            Form::Range(first, last) => *first <= npub.0 && npub.0 <= *last,
            Form::Shapes(shapes) => {
                let values = values_of(npub);
                shapes.list.iter().any(|shape| shape.matches(&values))
            }
        }
    }

    /// The characters of a key that match, such as the word or the spelling; parts are joined by
    /// `…`. `None` if the key does not match.
    pub fn met_by(&self, npub: &Npub) -> Option<String> {
        if !self.matches(npub) {
            return None;
        }
        let Form::Shapes(shapes) = &self.form else { return Some(self.text.clone()) };
        let (values, text) = (values_of(npub), npub.to_string());
        let shape = shapes.list.iter().filter(|shape| shape.matches(&values)).max_by_key(|shape| shape.len())?;
        let parts = shape.met_by(&values);
        Some(parts.iter().map(|&(first, next)| &text[5 + first..5 + next]).collect::<Vec<_>>().join("…"))
    }

    /// Intervals of the upper 64 bits of x that can match: sorted, disjoint, both ends included.
    pub(super) fn intervals(&self) -> Vec<(u64, u64)> {
        match &self.form {
            Form::Range(first, last) => vec![(top_of(first), top_of(last))],
            Form::Shapes(shapes) => shapes.intervals.list.clone(),
        }
    }

    /// Number of intervals that a device's filter needs for the pattern.
    pub fn interval_count(&self) -> usize {
        match &self.form {
            Form::Range(..) => 1,
            Form::Shapes(shapes) => shapes.intervals.list.len(),
        }
    }

    /// Number of alternatives of the pattern.
    pub(super) fn shape_count(&self) -> usize {
        match &self.form {
            Form::Range(..) => 1,
            Form::Shapes(shapes) => shapes.list.len(),
        }
    }

    /// The share of keys, 0 to 1, that pass a filter by the pattern's intervals and need a full
    /// check. Zero if the intervals are exact, or too wide for such a filter.
    pub fn handed_on(&self) -> f64 {
        match &self.form {
            Form::Shapes(shapes) if !shapes.intervals.is_exact && self.begins_selectively() => shapes.intervals.share(),
            _ => 0.0,
        }
    }

    /// Whether every key within [`Pattern::intervals`] matches.
    pub(super) fn is_exact(&self) -> bool {
        match &self.form {
            Form::Range(..) => self.bits() <= 64,
            Form::Shapes(shapes) => shapes.intervals.is_exact,
        }
    }

    /// The alternatives of the pattern, each a shape.
    pub(super) fn shapes(&self) -> Vec<Shape> {
        match &self.form {
            Form::Range(..) => {
                let mut shape = Shape::starting(self.text.chars().filter_map(CharacterSet::from_char).collect());
                shape.respect_padding();
                vec![shape]
            }
            Form::Shapes(shapes) => shapes.list.clone(),
        }
    }

    /// Whether the fast kernel, which filters by the first 32 bits of x, can search for the
    /// pattern: every key in the pattern's intervals matches, or the intervals hold no more keys
    /// than four given characters do.
    pub fn begins_selectively(&self) -> bool {
        match &self.form {
            Form::Range(..) => true,
            Form::Shapes(shapes) => shapes.intervals.is_exact || shapes.intervals.share() <= MOST_HANDED_ON,
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
