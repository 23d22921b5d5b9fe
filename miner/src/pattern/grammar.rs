//! The grammar: reads a person's text as a [`Pattern`]. `docs/askers/patterns.md` has the table.
//!
//! No text can be read both as a plain prefix and as another kind: every keyword has a character
//! that cannot occur in an npub.

use super::chance::Effort;
use super::characters::{CharacterSet, LAST_OF_DATA, MAX_CHOSEN, NPUB_CHARACTERS, look_alikes, value_of};
use super::error::{HEX_DIGITS, PatternError, nearest_number};
use super::pattern::{KeyShape, MAX_CHARACTERS, MAX_NAMED, Pattern, PatternKind, bare, is_possible, spellings};
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
    type Err = PatternError;

    /// Reads a pattern of any kind, as a person writes it.
    fn from_str(written: &str) -> Result<Pattern, PatternError> {
        Pattern::read_within(written, &mut Effort::full())
    }
}

impl Pattern {
    /// Reads a pattern of any kind, like `FromStr`, with a bound on the time. For texts of
    /// strangers.
    ///
    /// Errors: [`PatternError`]; `TooIntricate` once the effort is used up.
    pub fn read_within(written: &str, effort: &mut Effort) -> Result<Pattern, PatternError> {
        read(&bare(written), effort)
    }
}

/// Reads a pattern in lower case, without `npub1`.
fn read(text: &str, effort: &mut Effort) -> Result<Pattern, PatternError> {
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
        "best" | "surprise" => return Err(PatternError::Best),
        _ => {}
    }
    if let Some(count) = text.strip_prefix("words:") {
        return words(number("words:", count, SHORTEST_WORD..=LONGEST_WORD, 8, "")?);
    }
    if text.contains(['?', '[', ']', '*', '~', '@']) {
        return read_parts(text, effort);
    }
    Pattern::parse(text).map_err(|mut error| {
        if let PatternError::Forbidden { look_alike, .. } = &mut error {
            *look_alike = Some(format!("~{text}")).filter(|text| read_parts(text, effort).is_ok());
        }
        error
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
) -> Result<usize, PatternError> {
    let (least, most) = (*range.start(), *range.end());
    let nearest = nearest_number(text, least, most);
    nearest.filter(|number| text == number.to_string()).ok_or_else(|| {
        let written = |number: usize| format!("{keyword}{number}{after}");
        PatternError::Number { keyword, least, most, nearest: nearest.map(written), example: written(example) }
    })
}

fn hex(text: &str, effort: &mut Effort) -> Result<Pattern, PatternError> {
    let (is_end, digits) = text.strip_prefix('*').map_or((false, text), |digits| (true, digits));
    let Some(values) = digits.chars().map(|c| c.to_digit(16)).collect::<Option<Vec<u32>>>() else {
        return Err(PatternError::Hex(probable_hex(text, effort)));
    };
    match values.len() {
        0 => return Err(PatternError::Hex(None)),
        1..=HEX_DIGITS => {}
        more => return Err(PatternError::HexTooLong(more)),
    }
    let skipped = if is_end { HEX_DIGITS - values.len() } else { 0 };
    let bit = |bit: usize| values.get((bit / 4).checked_sub(skipped)?).map(|value| value >> (3 - bit % 4) & 1 == 1);
    let sets = |digits: usize| sets_of_bits(4 * digits, |at| bit(at).filter(|_| at < 4 * digits));
    let start = sets(skipped + values.len());
    if !is_possible(&start) {
        // Every x with these digits is p or more, so no key has them.
        let possible = (0..HEX_DIGITS).rev().find(|&digits| is_possible(&sets(digits))).unwrap_or(0);
        return Err(PatternError::Impossible(possible));
    }
    let kind = if is_end { PatternKind::HexEnd(digits.to_owned()) } else { PatternKind::HexStart(digits.to_owned()) };
    Pattern::from_shapes(format!("hex:{text}"), kind, vec![KeyShape::starting(start)], effort)
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

fn zeros(text: &str, effort: &mut Effort) -> Result<Pattern, PatternError> {
    let count = number("zeros:", text, ZEROS, 40, "")?;
    let start = sets_of_bits(count, |bit| (bit < count).then_some(false));
    Pattern::from_shapes(format!("zeros:{count}"), PatternKind::Zeros(count), vec![KeyShape::starting(start)], effort)
}

fn equal(text: &str) -> Result<Pattern, PatternError> {
    static ANYWHERE: [Made; *EQUAL_ANYWHERE.end() + 1] = [const { OnceLock::new() }; *EQUAL_ANYWHERE.end() + 1];
    static AT_THE_START: [Made; *EQUAL.end() + 1] = [const { OnceLock::new() }; *EQUAL.end() + 1];
    let each = (0..32).map(|value| CharacterSet(1 << value));
    if let Some(text) = text.strip_suffix('*') {
        let count = number("=", text, EQUAL_ANYWHERE, 7, "*")?;
        let anywhere = |set| KeyShape { middle: vec![vec![set; count]], ..KeyShape::starting(Vec::new()) };
        let shapes = || each.map(anywhere).collect();
        return once(&ANYWHERE[count], format!("={count}*"), PatternKind::EqualAnywhere(count), shapes);
    }
    let count = number("=", text, EQUAL, 7, "")?;
    let shapes = || each.map(|set| KeyShape::starting(vec![set; count])).collect();
    once(&AT_THE_START[count], format!("={count}"), PatternKind::Equal(count), shapes)
}

fn words(letters: usize) -> Result<Pattern, PatternError> {
    static MADE: [Made; LONGEST_WORD + 1] = [const { OnceLock::new() }; LONGEST_WORD + 1];
    once(&MADE[letters], format!("words:{letters}"), PatternKind::Words(letters), || shapes_of_built_in(letters))
}

/// A pattern of many shapes, made at its first use.
type Made = OnceLock<Result<Pattern, PatternError>>;

/// The pattern of some shapes. It is made at the first call, and copies share its tables.
fn once(
    made: &Made,
    text: String,
    kind: PatternKind,
    shapes: impl FnOnce() -> Vec<KeyShape>,
) -> Result<Pattern, PatternError> {
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

/// The most places at which a part may begin for its pattern to be split into one alternative per
/// place. An alternative restricts characters at the start only.
const FEW_PLACES: usize = 3;

/// A part as it is written, and the character set of each of its places.
struct WrittenPart {
    text: String,
    sets: Vec<CharacterSet>,
}

/// Reads a pattern of parts, divided by stars. After a leading `~` every letter also matches its
/// look-alikes.
fn read_parts(text: &str, effort: &mut Effort) -> Result<Pattern, PatternError> {
    let (is_alike, body) = text.strip_prefix('~').map_or((false, text), |body| (true, body));
    let (body, limit) = body.split_once('@').map_or((body, None), |(body, limit)| (body, Some(limit)));
    if limit.is_some() && !(body.ends_with('*') && body.matches('*').count() >= 2) {
        return Err(PatternError::Within(None));
    }
    let mut parts = Vec::new();
    for part in body.split('*') {
        parts.push(read_part(part, is_alike, text, effort)?);
    }
    let start = parts.remove(0);
    let end = parts.pop().unwrap_or(WrittenPart { text: String::new(), sets: Vec::new() });
    let middle: Vec<WrittenPart> = parts.into_iter().filter(|part| !part.sets.is_empty()).collect();
    let mark = if is_alike { "~" } else { "" };
    if middle.is_empty() && end.sets.is_empty() {
        return if limit.is_some() { Err(PatternError::Within(None)) } else { starting(mark, &start, effort) };
    }
    let least = start.sets.len() + middle.iter().map(|part| part.sets.len()).sum::<usize>();
    let within = match limit {
        Some(limit) => Some(number_within(limit, least).map_err(|nearest| {
            let nearest = nearest.map(|count| format!("{mark}{body}@{count}"));
            PatternError::Within(nearest.filter(|nearest| read(nearest, effort).is_ok()))
        })?),
        None => None,
    };
    let shape = KeyShape {
        start: start.sets,
        middle: middle.iter().map(|part| part.sets.clone()).collect(),
        within: within.unwrap_or(NPUB_CHARACTERS),
        end: end.sets,
    };
    let between: String = middle.iter().map(|part| format!("*{}", part.text)).collect();
    let limit = within.map_or_else(String::new, |count| format!("@{count}"));
    let before = format!("{mark}{}{between}*", start.text);
    check(&shape, &before, &end.text, effort)?;
    let written = format!("{before}{}{limit}", end.text);
    let named = |text: &str| if text.is_empty() { String::new() } else { format!("{mark}{text}") };
    let kind = PatternKind::Parts {
        start: named(&start.text),
        middle: middle.iter().map(|part| named(&part.text)).collect(),
        within,
        end: named(&end.text),
    };
    Pattern::from_shapes(written, kind, alternatives(shape), effort)
}

/// Parses the number of characters behind `@`, which must be at least `least`.
///
/// Errors: the text is not a possible number. The error is the nearest possible number, if any.
fn number_within(text: &str, least: usize) -> Result<usize, Option<usize>> {
    let count = nearest_number(text, least, NPUB_CHARACTERS).filter(|_| least <= NPUB_CHARACTERS);
    count.filter(|count| text == count.to_string()).ok_or(count)
}

/// A pattern of characters at the start only.
fn starting(mark: &str, start: &WrittenPart, effort: &mut Effort) -> Result<Pattern, PatternError> {
    if start.sets.is_empty() {
        return Err(if mark.is_empty() { PatternError::Anything } else { PatternError::Empty });
    }
    if start.sets.len() > MAX_CHARACTERS {
        return Err(PatternError::TooLong(start.sets.len()));
    }
    if mark.is_empty() && start.text.chars().all(|c| value_of(c).is_some()) {
        return Pattern::parse(&start.text);
    }
    let kind = if mark.is_empty() { PatternKind::Open } else { PatternKind::LookAlike };
    Pattern::from_shapes(format!("{mark}{}", start.text), kind, vec![KeyShape::starting(start.sets.clone())], effort)
}

/// Reads the places of a part. `whole` is the whole pattern, for the error.
fn read_part(text: &str, is_alike: bool, whole: &str, effort: &mut Effort) -> Result<WrittenPart, PatternError> {
    let mut set_of = |character: char| {
        let set = if is_alike {
            let alike = look_alikes(character).chars().filter_map(CharacterSet::from_char);
            alike.fold(CharacterSet::NONE, CharacterSet::union)
        } else {
            CharacterSet::from_char(character).unwrap_or(CharacterSet::NONE)
        };
        if set == CharacterSet::NONE { Err(forbidden(character, is_alike, whole, effort)) } else { Ok(set) }
    };
    let (mut sets, mut written) = (Vec::new(), String::new());
    let mut rest = text.chars();
    while let Some(character) = rest.next() {
        let (set, own) = match character {
            '?' => (CharacterSet::ANY, "?".to_owned()),
            '[' => {
                let (class, after) = rest.as_str().split_once(']').ok_or(PatternError::Class)?;
                rest = after.chars();
                if class.is_empty() || class.contains(['[', '?', '*']) {
                    return Err(PatternError::Class);
                }
                let mut set = CharacterSet::NONE;
                for character in class.chars() {
                    set = set.union(set_of(character)?);
                }
                (set, if is_alike { format!("[{class}]") } else { set.to_string() })
            }
            ']' => return Err(PatternError::Class),
            _ => (set_of(character)?, character.to_string()),
        };
        sets.push(set);
        written += &own;
    }
    Ok(WrittenPart { text: written, sets })
}

/// The error for a character that cannot stand in a pattern. It names only patterns that can be
/// read.
fn forbidden(character: char, is_alike: bool, whole: &str, effort: &mut Effort) -> PatternError {
    let mut suggestion = |text: String| match read(&text, effort) {
        Ok(_) => Some(text),
        Err(error) => error.suggestions().first().map(ToString::to_string),
    };
    // The number behind `@` stays as it is.
    let (body, limit) = whole.split_at(whole.find('@').unwrap_or(whole.len()));
    let respelled = spellings(body, |c| value_of(c).is_some() || "?[]*".contains(c));
    let respelled = respelled.filter(|_| !is_alike).map(|body| format!("{body}{limit}"));
    let nearest = respelled.filter_map(&mut suggestion).take(MAX_NAMED).collect();
    let look_alike = format!("~{whole}");
    let works =
        !is_alike && character.is_ascii_alphanumeric() && !whole.contains('~') && read(&look_alike, effort).is_ok();
    PatternError::Forbidden { character, nearest, look_alike: works.then_some(look_alike) }
}

/// Checks the number of characters and, in a long ending, the character that holds the padding.
/// `before` is the text before the ending `end`.
fn check(shape: &KeyShape, before: &str, end: &str, effort: &mut Effort) -> Result<(), PatternError> {
    if shape.len() > MAX_CHOSEN {
        return Err(PatternError::TooMany(shape.len()));
    }
    let padding = LAST_OF_DATA.checked_sub(shape.end_from()).and_then(|at| shape.end.get(at).map(|set| (at, set)));
    match padding {
        Some((at, set)) if set.intersection(CharacterSet::PADDED) == CharacterSet::NONE => {
            // A class like `[s5]` takes one place but several characters of the text, so the
            // character to replace is not known and no spelling is suggested.
            let is_plain = end.chars().count() == shape.end.len();
            let respelled: String = end.chars().enumerate().map(|(n, c)| if n == at { 's' } else { c }).collect();
            let nearest = format!("{before}{respelled}");
            Err(PatternError::Ending((is_plain && read(&nearest, effort).is_ok()).then_some(nearest)))
        }
        _ => Ok(()),
    }
}

/// Splits a shape into one alternative for each place at which its only part may begin, if these
/// are at most [`FEW_PLACES`]. Otherwise returns the shape alone.
fn alternatives(shape: KeyShape) -> Vec<KeyShape> {
    let [part] = shape.middle.as_slice() else { return vec![shape] };
    let places = shape.within + 1 - shape.start.len() - part.len();
    if !shape.end.is_empty() || places > FEW_PLACES {
        return vec![shape];
    }
    let at = |open: usize| {
        let open = std::iter::repeat_n(CharacterSet::ANY, open);
        KeyShape::starting(shape.start.iter().copied().chain(open).chain(part.iter().copied()).collect())
    };
    (0..places).map(at).collect()
}
