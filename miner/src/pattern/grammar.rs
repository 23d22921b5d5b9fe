//! The grammar: reads a person's text as a [`Pattern`]. `docs/askers/patterns.md` has the table.
//!
//! No text can be read both as a plain prefix and as another kind: every keyword has a character
//! that cannot occur in an npub.

use super::chance::Effort;
use super::character_set::CharacterSet;
use super::error::{GrammarError, HEX_DIGITS, nearest_number};
use super::kind::Kind;
use super::parts;
use super::pattern::Pattern;
use super::prefix::{PatternError, bare, is_possible};
use super::shape::Shape;
use super::words::{LONGEST_WORD, SHORTEST_WORD, shapes_of_built_in};
use std::ops::RangeInclusive;
use std::str::FromStr;
use std::sync::OnceLock;

/// Numbers of equal characters that `=` may ask for: at the start, and anywhere.
const EQUAL: RangeInclusive<usize> = 2..=51;
const EQUAL_ANYWHERE: RangeInclusive<usize> = 2..=12;
/// The number of bits that `zeros:` may ask for.
const ZEROS: RangeInclusive<usize> = 1..=255;
/// The default number of letters of `words`.
const LETTERS: usize = 5;

impl FromStr for Pattern {
    type Err = GrammarError;

    /// Reads a pattern of any kind, as a person writes it.
    fn from_str(written: &str) -> Result<Pattern, GrammarError> {
        Pattern::read_within(written, &mut Effort::full())
    }
}

impl Pattern {
    /// Reads a pattern of any kind, like `FromStr`, with a bound on the time. For texts of
    /// strangers.
    ///
    /// Errors: [`GrammarError`]; `TooIntricate` once the effort is used up.
    pub fn read_within(written: &str, effort: &mut Effort) -> Result<Pattern, GrammarError> {
        read(&bare(written), effort)
    }
}

/// Reads a pattern in lower case, without `npub1`.
fn read(text: &str, effort: &mut Effort) -> Result<Pattern, GrammarError> {
    if let Some(digits) = text.strip_prefix("hex:") {
        return hex(digits, effort);
    }
    if let Some(number) = text.strip_prefix("zeros:") {
        return zeros(number, effort);
    }
    if let Some(number) = text.strip_prefix('=') {
        return equal(number);
    }
    match text {
        "words" => return words(LETTERS),
        // `Best` reads these before single words are read.
        "best" | "surprise" => return Err(GrammarError::Best),
        _ => {}
    }
    if let Some(count) = text.strip_prefix("words:") {
        return words(number("words:", count, SHORTEST_WORD..=LONGEST_WORD, 8, "")?);
    }
    if text.contains(['?', '[', ']', '*', '~', '@']) {
        return parts::read(text, effort);
    }
    Pattern::parse(text).map_err(|error| {
        let look_alike = format!("~{text}");
        let is_letters = matches!(error, PatternError::Forbidden { .. });
        let works = is_letters && parts::read(&look_alike, effort).is_ok();
        GrammarError::Prefix { error, look_alike: works.then_some(look_alike) }
    })
}

/// Parses a number in a range. For the error, `example` is a number that works, and `after` is the
/// text behind the number.
fn number(
    keyword: &'static str,
    text: &str,
    range: RangeInclusive<usize>,
    example: usize,
    after: &str,
) -> Result<usize, GrammarError> {
    let (least, most) = (*range.start(), *range.end());
    let nearest = nearest_number(text, least, most);
    nearest.filter(|number| text == number.to_string()).ok_or_else(|| {
        let written = |number: usize| format!("{keyword}{number}{after}");
        GrammarError::Number { keyword, least, most, nearest: nearest.map(written), example: written(example) }
    })
}

fn hex(text: &str, effort: &mut Effort) -> Result<Pattern, GrammarError> {
    let (is_end, digits) = text.strip_prefix('*').map_or((false, text), |digits| (true, digits));
    let Some(values) = digits.chars().map(|c| c.to_digit(16)).collect::<Option<Vec<u32>>>() else {
        return Err(GrammarError::Hex(probable_hex(text, effort)));
    };
    match values.len() {
        0 => return Err(GrammarError::Hex(None)),
        1..=HEX_DIGITS => {}
        more => return Err(GrammarError::HexTooLong(more)),
    }
    let skipped = if is_end { HEX_DIGITS - values.len() } else { 0 };
    let bit = |bit: usize| values.get((bit / 4).checked_sub(skipped)?).map(|value| value >> (3 - bit % 4) & 1 == 1);
    let sets = |digits: usize| sets_of_bits(4 * digits, |at| bit(at).filter(|_| at < 4 * digits));
    let start = sets(skipped + values.len());
    if !is_possible(&start) {
        // Every x with these digits is p or more, so no key has them.
        let possible = (0..HEX_DIGITS).rev().find(|&digits| is_possible(&sets(digits))).unwrap_or(0);
        return Err(GrammarError::Prefix { error: PatternError::Impossible(possible), look_alike: None });
    }
    let kind = if is_end { Kind::HexEnd(digits.to_owned()) } else { Kind::HexStart(digits.to_owned()) };
    Pattern::from_shapes(format!("hex:{text}"), kind, vec![Shape::starting(start)], effort)
}

/// The pattern that is probably meant by digits as people write them elsewhere: `0xdead`, `de:ad`,
/// `c0ffee` with an `o`. `None` for a whole key, because no answer of a bot repeats one.
fn probable_hex(text: &str, effort: &mut Effort) -> Option<String> {
    let (star, digits) = text.strip_prefix('*').map_or(("", text), |digits| ("*", digits));
    let digits = digits.strip_suffix('*').unwrap_or(digits);
    let digits = digits.strip_prefix("0x").unwrap_or(digits);
    let digit = |c: char| match c {
        'o' => Some('0'),
        'i' | 'l' => Some('1'),
        c => Some(c).filter(char::is_ascii_hexdigit),
    };
    let digits: String = digits.chars().filter(|c| !"_-:.".contains(*c)).map(digit).collect::<Option<_>>()?;
    let nearest = format!("{star}{digits}");
    (digits.len() < HEX_DIGITS && hex(&nearest, effort).is_ok()).then(|| format!("hex:{nearest}"))
}

fn zeros(text: &str, effort: &mut Effort) -> Result<Pattern, GrammarError> {
    let count = number("zeros:", text, ZEROS, 40, "")?;
    let start = sets_of_bits(count, |bit| (bit < count).then_some(false));
    Pattern::from_shapes(format!("zeros:{count}"), Kind::Zeros(count), vec![Shape::starting(start)], effort)
}

fn equal(text: &str) -> Result<Pattern, GrammarError> {
    static ANYWHERE: [Made; *EQUAL_ANYWHERE.end() + 1] = [const { OnceLock::new() }; *EQUAL_ANYWHERE.end() + 1];
    static AT_THE_START: [Made; *EQUAL.end() + 1] = [const { OnceLock::new() }; *EQUAL.end() + 1];
    let each = (0..32).map(|value| CharacterSet(1 << value));
    if let Some(text) = text.strip_suffix('*') {
        let count = number("=", text, EQUAL_ANYWHERE, 7, "*")?;
        let anywhere = |set| Shape { middle: vec![vec![set; count]], ..Shape::starting(Vec::new()) };
        let shapes = || each.map(anywhere).collect();
        return once(&ANYWHERE[count], format!("={count}*"), Kind::EqualAnywhere(count), shapes);
    }
    let count = number("=", text, EQUAL, 7, "")?;
    let shapes = || each.map(|set| Shape::starting(vec![set; count])).collect();
    once(&AT_THE_START[count], format!("={count}"), Kind::Equal(count), shapes)
}

fn words(letters: usize) -> Result<Pattern, GrammarError> {
    static MADE: [Made; LONGEST_WORD + 1] = [const { OnceLock::new() }; LONGEST_WORD + 1];
    once(&MADE[letters], format!("words:{letters}"), Kind::Words(letters), || shapes_of_built_in(letters))
}

/// A pattern of many shapes, made at its first use.
type Made = OnceLock<Result<Pattern, GrammarError>>;

/// The pattern of some shapes. It is made at the first call, and copies share its tables.
fn once(made: &Made, text: String, kind: Kind, shapes: impl FnOnce() -> Vec<Shape>) -> Result<Pattern, GrammarError> {
    made.get_or_init(|| Pattern::from_shapes(text, kind, shapes(), &mut Effort::full())).clone()
}

/// The character sets of a text of which `bit` fixes some of the first `count` bits.
fn sets_of_bits(count: usize, bit: impl Fn(usize) -> Option<bool>) -> Vec<CharacterSet> {
    let fits = |at: usize, value: u32| {
        (0..5).all(|place| bit(5 * at + place).is_none_or(|set| set == (value >> (4 - place) & 1 == 1)))
    };
    let set = |at| CharacterSet((0..32).filter(|&value| fits(at, value)).fold(0, |all, value| all | 1 << value));
    (0..count.div_ceil(5)).map(set).collect()
}
