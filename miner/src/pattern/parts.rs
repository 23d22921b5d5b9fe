//! Patterns of characters: open places, several characters for one place, look-alikes, and parts
//! anywhere or at the end.

use super::alphabet::{look_alikes, value_of};
use super::chance::Effort;
use super::character_set::{CharacterSet, LAST_OF_DATA, MOST_CHOSEN, NPUB_CHARACTERS};
use super::error::{GrammarError, nearest_number};
use super::kind::Kind;
use super::pattern::Pattern;
use super::prefix::{MAX_CHARACTERS, MOST_NAMED, PatternError, spellings};
use super::shape::Shape;

/// The most places at which a part may begin for its pattern to be split into one alternative per
/// place. An alternative restricts characters at the start only.
const FEW_PLACES: usize = 3;

/// A part as it is written, and the character set of each of its places.
struct Part {
    text: String,
    sets: Vec<CharacterSet>,
}

/// Reads a pattern of parts, divided by stars. After a leading `~` every letter also matches its
/// look-alikes.
pub fn read(text: &str, effort: &mut Effort) -> Result<Pattern, GrammarError> {
    let (is_alike, body) = text.strip_prefix('~').map_or((false, text), |body| (true, body));
    let (body, limit) = body.split_once('@').map_or((body, None), |(body, limit)| (body, Some(limit)));
    if limit.is_some() && !(body.ends_with('*') && body.matches('*').count() >= 2) {
        return Err(GrammarError::Within(None));
    }
    let mut parts = Vec::new();
    for part in body.split('*') {
        parts.push(read_part(part, is_alike, text, effort)?);
    }
    let start = parts.remove(0);
    let end = parts.pop().unwrap_or(Part { text: String::new(), sets: Vec::new() });
    let middle: Vec<Part> = parts.into_iter().filter(|part| !part.sets.is_empty()).collect();
    let mark = if is_alike { "~" } else { "" };
    if middle.is_empty() && end.sets.is_empty() {
        return if limit.is_some() { Err(GrammarError::Within(None)) } else { starting(mark, &start, effort) };
    }
    let least = start.sets.len() + middle.iter().map(|part| part.sets.len()).sum::<usize>();
    let within = match limit {
        Some(limit) => Some(number_within(limit, least).map_err(|nearest| {
            let nearest = nearest.map(|count| format!("{mark}{body}@{count}"));
            GrammarError::Within(nearest.filter(|nearest| read(nearest, effort).is_ok()))
        })?),
        None => None,
    };
    let shape = Shape {
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
    let kind = Kind::Parts {
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
fn starting(mark: &str, start: &Part, effort: &mut Effort) -> Result<Pattern, GrammarError> {
    let plain = |error| GrammarError::Prefix { error, look_alike: None };
    if start.sets.is_empty() {
        return Err(if mark.is_empty() { GrammarError::Anything } else { plain(PatternError::Empty) });
    }
    if start.sets.len() > MAX_CHARACTERS {
        return Err(plain(PatternError::TooLong(start.sets.len())));
    }
    if mark.is_empty() && start.text.chars().all(|c| value_of(c).is_some()) {
        return Pattern::parse(&start.text).map_err(plain);
    }
    let kind = if mark.is_empty() { Kind::Open } else { Kind::LookAlike };
    Pattern::from_shapes(format!("{mark}{}", start.text), kind, vec![Shape::starting(start.sets.clone())], effort)
}

/// Reads the places of a part. `whole` is the whole pattern, for the error.
fn read_part(text: &str, is_alike: bool, whole: &str, effort: &mut Effort) -> Result<Part, GrammarError> {
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
                let (class, after) = rest.as_str().split_once(']').ok_or(GrammarError::Class)?;
                rest = after.chars();
                if class.is_empty() || class.contains(['[', '?', '*']) {
                    return Err(GrammarError::Class);
                }
                let mut set = CharacterSet::NONE;
                for character in class.chars() {
                    set = set.union(set_of(character)?);
                }
                (set, if is_alike { format!("[{class}]") } else { set.to_string() })
            }
            ']' => return Err(GrammarError::Class),
            _ => (set_of(character)?, character.to_string()),
        };
        sets.push(set);
        written += &own;
        if sets.len() > NPUB_CHARACTERS {
            return Err(GrammarError::TooMany(sets.len()));
        }
    }
    Ok(Part { text: written, sets })
}

/// The error for a character that cannot stand in a pattern. It names only patterns that can be
/// read.
fn forbidden(character: char, is_alike: bool, whole: &str, effort: &mut Effort) -> GrammarError {
    let mut suggestion = |text: String| match read(&text, effort) {
        Ok(_) => Some(text),
        Err(error) => error.suggestions().first().map(ToString::to_string),
    };
    // The number behind `@` stays as it is.
    let (body, limit) = whole.split_at(whole.find('@').unwrap_or(whole.len()));
    let respelled = spellings(body, |c| value_of(c).is_some() || "?[]*".contains(c));
    let respelled = respelled.filter(|_| !is_alike).map(|body| format!("{body}{limit}"));
    let nearest = respelled.filter_map(&mut suggestion).take(MOST_NAMED).collect();
    let look_alike = format!("~{whole}");
    let works =
        !is_alike && character.is_ascii_alphanumeric() && !whole.contains('~') && read(&look_alike, effort).is_ok();
    GrammarError::Prefix {
        error: PatternError::Forbidden { character, nearest },
        look_alike: works.then_some(look_alike),
    }
}

/// Checks the number of characters and, in a long ending, the character that holds the padding.
/// `before` is the text before the ending `end`.
fn check(shape: &Shape, before: &str, end: &str, effort: &mut Effort) -> Result<(), GrammarError> {
    if shape.len() > MOST_CHOSEN {
        return Err(GrammarError::TooMany(shape.len()));
    }
    let padding = LAST_OF_DATA.checked_sub(shape.end_from()).and_then(|at| shape.end.get(at).map(|set| (at, set)));
    match padding {
        Some((at, set)) if set.intersection(CharacterSet::PADDED) == CharacterSet::NONE => {
            // A class like `[s5]` takes one place but several characters of the text, so the
            // character to replace is not known and no spelling is suggested.
            let is_plain = end.chars().count() == shape.end.len();
            let respelled: String = end.chars().enumerate().map(|(n, c)| if n == at { 's' } else { c }).collect();
            let nearest = format!("{before}{respelled}");
            Err(GrammarError::Ending((is_plain && read(&nearest, effort).is_ok()).then_some(nearest)))
        }
        _ => Ok(()),
    }
}

/// Splits a shape into one alternative for each place at which its only part may begin, if these
/// are at most [`FEW_PLACES`]. Otherwise returns the shape alone.
fn alternatives(shape: Shape) -> Vec<Shape> {
    let [part] = shape.middle.as_slice() else { return vec![shape] };
    let places = shape.within + 1 - shape.start.len() - part.len();
    if !shape.end.is_empty() || places > FEW_PLACES {
        return vec![shape];
    }
    let at = |open: usize| {
        let open = std::iter::repeat_n(CharacterSet::ANY, open);
        Shape::starting(shape.start.iter().copied().chain(open).chain(part.iter().copied()).collect())
    };
    (0..places).map(at).collect()
}
