//! The grammar: what people write becomes a [`Pattern`]. `docs/askers/patterns.md` is its table.
//!
//! No word is both a plain prefix and of another kind: every keyword has a character that cannot
//! occur in an npub.

use super::character_set::CharacterSet;
use super::error::GrammarError;
use super::kind::Kind;
use super::parts;
use super::pattern::Pattern;
use super::prefix::{PatternError, bare};
use super::shape::Shape;
use super::words::{LONGEST_WORD, SHORTEST_WORD, shapes_of_built_in};
use std::ops::RangeInclusive;
use std::str::FromStr;

/// Numbers of equal characters at the start, and anywhere.
const EQUAL: RangeInclusive<usize> = 2..=51;
const EQUAL_ANYWHERE: RangeInclusive<usize> = 2..=12;
/// Leading zero bits.
const ZEROS: RangeInclusive<usize> = 1..=255;
/// Least number of letters of `words` alone.
const LETTERS: usize = 5;

impl FromStr for Pattern {
    type Err = GrammarError;

    /// Reads a pattern of any kind, as a person writes it.
    fn from_str(written: &str) -> Result<Pattern, GrammarError> {
        read(&bare(written))
    }
}

/// Reads a pattern in lower case, without `npub1`.
fn read(text: &str) -> Result<Pattern, GrammarError> {
    if let Some(digits) = text.strip_prefix("hex:") {
        return hex(digits);
    }
    if let Some(number) = text.strip_prefix("zeros:") {
        return zeros(number);
    }
    if let Some(number) = text.strip_prefix('=') {
        return equal(number);
    }
    match text {
        "words" => return words(LETTERS),
        "best" => return Err(GrammarError::NotYet("best")),
        "surprise" => return Err(GrammarError::NotYet("surprise")),
        _ => {}
    }
    if let Some(count) = text.strip_prefix("words:") {
        return words(number("words:", count, SHORTEST_WORD..=LONGEST_WORD, 8)?);
    }
    if text.contains(['?', '[', ']', '*', '~', '@']) {
        return parts::read(text);
    }
    Pattern::parse(text).map_err(|error| {
        let look_alike = format!("~{text}");
        let is_letters = matches!(error, PatternError::Forbidden { .. });
        let works = is_letters && parts::read(&look_alike).is_ok();
        GrammarError::Prefix { error, look_alike: works.then_some(look_alike) }
    })
}

/// A number in a range.
fn number(
    keyword: &'static str,
    text: &str,
    range: RangeInclusive<usize>,
    example: usize,
) -> Result<usize, GrammarError> {
    let is_plain = text.chars().all(|c| c.is_ascii_digit()) && !text.starts_with('0');
    let number = text.parse().ok().filter(|number| is_plain && range.contains(number));
    number.ok_or(GrammarError::Number { keyword, least: *range.start(), most: *range.end(), example })
}

fn hex(text: &str) -> Result<Pattern, GrammarError> {
    let (is_end, digits) = text.strip_prefix('*').map_or((false, text), |digits| (true, digits));
    let values: Option<Vec<u32>> = digits.chars().map(|c| c.to_digit(16)).collect();
    let values = values.filter(|values| (1..=64).contains(&values.len())).ok_or(GrammarError::Hex)?;
    let skipped = if is_end { 64 - values.len() } else { 0 };
    let bit = |bit: usize| values.get((bit / 4).checked_sub(skipped)?).map(|value| value >> (3 - bit % 4) & 1 == 1);
    let kind = if is_end { Kind::HexEnd(digits.to_owned()) } else { Kind::HexStart(digits.to_owned()) };
    Pattern::from_shapes(
        format!("hex:{text}"),
        kind,
        vec![Shape::starting(sets_of_bits(4 * (skipped + values.len()), bit))],
    )
}

fn zeros(text: &str) -> Result<Pattern, GrammarError> {
    let count = number("zeros:", text, ZEROS, 40)?;
    let start = sets_of_bits(count, |bit| (bit < count).then_some(false));
    Pattern::from_shapes(format!("zeros:{count}"), Kind::Zeros(count), vec![Shape::starting(start)])
}

fn equal(text: &str) -> Result<Pattern, GrammarError> {
    let each = (0..32).map(|value| CharacterSet(1 << value));
    if let Some(text) = text.strip_suffix('*') {
        let count = number("=", text, EQUAL_ANYWHERE, 7)?;
        let anywhere = |set| Shape { middle: vec![vec![set; count]], ..Shape::starting(Vec::new()) };
        return Pattern::from_shapes(format!("={count}*"), Kind::EqualAnywhere(count), each.map(anywhere).collect());
    }
    let count = number("=", text, EQUAL, 7)?;
    Pattern::from_shapes(
        format!("={count}"),
        Kind::Equal(count),
        each.map(|set| Shape::starting(vec![set; count])).collect(),
    )
}

fn words(letters: usize) -> Result<Pattern, GrammarError> {
    Pattern::from_shapes(format!("words:{letters}"), Kind::Words(letters), shapes_of_built_in(letters))
}

/// The characters of which some of the first `count` bits are fixed.
fn sets_of_bits(count: usize, bit: impl Fn(usize) -> Option<bool>) -> Vec<CharacterSet> {
    let fits = |at: usize, value: u32| {
        (0..5).all(|place| bit(5 * at + place).is_none_or(|set| set == (value >> (4 - place) & 1 == 1)))
    };
    let set = |at| CharacterSet((0..32).filter(|&value| fits(at, value)).fold(0, |all, value| all | 1 << value));
    (0..count.div_ceil(5)).map(set).collect()
}
