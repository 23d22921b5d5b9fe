//! The oracle: reads a pattern's text without the parser, and compares it with the key's text.

use super::super::words::shapes_of_built_in;
use super::*;

/// Whether a key matches a pattern, decided by the texts only.
pub fn naive(pattern: &str, npub: &Npub) -> bool {
    Naive::read(pattern).has(npub)
}

/// A pattern as the oracle reads it.
enum Naive {
    HexStart(String),
    HexEnd(String),
    Zeros(usize),
    Equal(usize),
    EqualAnywhere(usize),
    /// For each word, the characters of each of its places.
    Words(Vec<Vec<String>>),
    /// The characters of each place, `None` for a star; and the number behind `@`, if there is one.
    Places(Vec<Option<String>>, Option<usize>),
}

impl Naive {
    fn read(pattern: &str) -> Naive {
        if let Some(digits) = pattern.strip_prefix("hex:") {
            let end = digits.strip_prefix('*').map(|end| Naive::HexEnd(end.to_owned()));
            return end.unwrap_or_else(|| Naive::HexStart(digits.to_owned()));
        }
        if let Some(count) = pattern.strip_prefix("zeros:") {
            return Naive::Zeros(count.parse().unwrap());
        }
        if let Some(count) = pattern.strip_prefix('=') {
            let anywhere = count.strip_suffix('*').map(|count| Naive::EqualAnywhere(count.parse().unwrap()));
            return anywhere.unwrap_or_else(|| Naive::Equal(count.parse().unwrap()));
        }
        if let Some(letters) = pattern.strip_prefix("words:") {
            let shapes = shapes_of_built_in(letters.parse().unwrap());
            let places = |shape: &super::super::pattern::KeyShape| {
                shape.start.iter().map(|set| set.characters().into_iter().collect()).collect()
            };
            return Naive::Words(shapes.iter().map(places).collect());
        }
        let (body, within) = match pattern.split_once('@') {
            Some((body, count)) => (body, Some(count.parse().unwrap())),
            None => (pattern, None),
        };
        let (is_alike, body) = body.strip_prefix('~').map_or((false, body), |body| (true, body));
        Naive::Places(places(body, is_alike), within)
    }

    fn has(&self, npub: &Npub) -> bool {
        let characters: &[char] = &text_of(npub).chars().collect::<Vec<_>>();
        let hex: String = npub.0.iter().map(|byte| format!("{byte:02x}")).collect();
        let equal = |run: &[char]| run.iter().all(|&c| c == run[0]);
        match self {
            Naive::HexStart(digits) => hex.starts_with(digits),
            Naive::HexEnd(digits) => hex.ends_with(digits),
            Naive::Zeros(count) => {
                let bits = hex.chars().flat_map(|digit| {
                    let value = digit.to_digit(16).unwrap();
                    [8, 4, 2, 1].map(|bit| value & bit != 0)
                });
                bits.take(*count).all(|bit| !bit)
            }
            Naive::Equal(count) => equal(&characters[..*count]),
            Naive::EqualAnywhere(count) => characters.windows(*count).any(equal),
            Naive::Words(words) => {
                words.iter().any(|word| word.iter().zip(characters).all(|(set, &c)| set.contains(c)))
            }
            Naive::Places(places, None) => fits(places, characters, !places.contains(&None)),
            // All places before the last star are within the first `within` characters.
            Naive::Places(places, Some(within)) => {
                (0..=*within).any(|end| fits(trimmed(places), &characters[..end], false))
            }
        }
    }
}

/// Removes a star at the end.
fn trimmed(places: &[Option<String>]) -> &[Option<String>] {
    match places {
        [before @ .., None] => before,
        all => all,
    }
}

/// The characters of each place, `None` for a star.
fn places(body: &str, is_alike: bool) -> Vec<Option<String>> {
    let (mut places, mut rest) = (Vec::new(), body.chars());
    let alike = |c: char| if is_alike { super::super::look_alikes(c).to_owned() } else { c.to_string() };
    while let Some(c) = rest.next() {
        places.push(match c {
            '*' => None,
            '?' => Some(ALPHABET.iter().map(|&c| char::from(c)).collect()),
            '[' => Some(rest.by_ref().take_while(|&c| c != ']').map(alike).collect()),
            c => Some(alike(c)),
        });
    }
    places
}

/// Whether the characters fit these places from the first to the last. With `open_end`, more
/// characters may follow.
fn fits(places: &[Option<String>], text: &[char], open_end: bool) -> bool {
    match places {
        [] => open_end || text.is_empty(),
        [None, rest @ ..] => (0..=text.len()).any(|skipped| fits(rest, &text[skipped..], open_end)),
        [Some(set), rest @ ..] => text.first().is_some_and(|c| set.contains(*c)) && fits(rest, &text[1..], open_end),
    }
}
