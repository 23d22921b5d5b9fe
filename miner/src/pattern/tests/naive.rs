//! The oracle: reads a pattern's text on its own, and compares it with the key's text.

use super::super::words::shapes_of_built_in;
use super::*;

/// Whether a key matches a pattern, decided by the texts only.
pub fn naive(pattern: &str, npub: &Npub) -> bool {
    let (text, hex) = (text_of(npub), npub.0.iter().map(|byte| format!("{byte:02x}")).collect::<String>());
    let characters: Vec<char> = text.chars().collect();
    let equal = |run: &[char]| run.iter().all(|&c| c == run[0]);
    if let Some(digits) = pattern.strip_prefix("hex:") {
        return digits.strip_prefix('*').map_or(hex.starts_with(digits), |end| hex.ends_with(end));
    }
    if let Some(count) = pattern.strip_prefix("zeros:") {
        let bits: String = npub.0.iter().map(|byte| format!("{byte:08b}")).collect();
        return bits.starts_with(&"0".repeat(count.parse().unwrap()));
    }
    if let Some(count) = pattern.strip_prefix('=') {
        return match count.strip_suffix('*') {
            Some(count) => characters.windows(count.parse().unwrap()).any(equal),
            None => equal(&characters[..count.parse().unwrap()]),
        };
    }
    if let Some(letters) = pattern.strip_prefix("words:") {
        return shapes_of_built_in(letters.parse().unwrap())
            .iter()
            .any(|shape| shape.start.iter().zip(&characters).all(|(set, c)| set.characters().contains(c)));
    }
    let (body, within) = match pattern.split_once('@') {
        Some((body, count)) => (body, count.parse().unwrap()),
        None => (pattern, characters.len()),
    };
    let (is_alike, body) = body.strip_prefix('~').map_or((false, body), |body| (true, body));
    let places = places(body, is_alike);
    // With `@`, a star at the end begins after `within` characters at most.
    (0..=within).any(|end| {
        let whole = within == characters.len();
        let (seen, places) =
            if whole { (&characters[..], &places[..]) } else { (&characters[..end], trimmed(&places)) };
        fits(places, seen, whole && !pattern.contains('*'))
    })
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

/// Whether the characters have these places from the first to the last; or to any with `open_end`.
fn fits(places: &[Option<String>], text: &[char], open_end: bool) -> bool {
    match places {
        [] => open_end || text.is_empty(),
        [None, rest @ ..] => (0..=text.len()).any(|skipped| fits(rest, &text[skipped..], open_end)),
        [Some(set), rest @ ..] => text.first().is_some_and(|c| set.contains(*c)) && fits(rest, &text[1..], open_end),
    }
}
