//! Texts that might hold a secret key. The vault seals no key except those it has derived itself.
//!
//! A possible key is replaced; the message is not refused. An answer may repeat 64 digits that its
//! asker sent. It is sealed together with the answers to other askers, and a refusal would stop all
//! of them.

use std::borrow::Cow;

/// Characters of an nsec after `nsec1`.
const NSEC_DATA: usize = 58;
/// Digits of a secret key in hexadecimal.
const HEX_DIGITS: usize = 64;
/// The mark in place of a text that might be a key.
const PLACE: &str = "…";

/// The text without possible keys: an nsec, or 64 or more hexadecimal digits in a row, in upper or
/// lower case.
pub(super) fn without_keys(text: &str) -> Cow<'_, str> {
    let mut rest = text;
    let mut kept = String::new();
    while let Some((at, length)) = first_key(rest) {
        kept.push_str(&rest[..at]);
        kept.push_str(PLACE);
        rest = &rest[at + length..];
    }
    if kept.is_empty() { Cow::Borrowed(rest) } else { Cow::Owned(kept + rest) }
}

/// Place and length, in bytes, of the first run of letters and digits that might hold a key.
fn first_key(text: &str) -> Option<(usize, usize)> {
    let mut at = 0;
    for word in text.split(|character: char| !character.is_ascii_alphanumeric()) {
        if may_hold_a_key(word) {
            return Some((at, word.len()));
        }
        at += word.len();
        at += text[at..].chars().next().map_or(0, char::len_utf8);
    }
    None
}

/// Whether a run of letters and digits holds an nsec or enough hexadecimal digits.
fn may_hold_a_key(word: &str) -> bool {
    let word = word.to_ascii_lowercase();
    let mut digits = 0;
    let has_hex = word.bytes().any(|byte| {
        digits = if byte.is_ascii_hexdigit() { digits + 1 } else { 0 };
        digits >= HEX_DIGITS
    });
    has_hex || word.find("nsec1").is_some_and(|at| word.len() - at >= "nsec1".len() + NSEC_DATA)
}

#[cfg(test)]
mod tests {
    use super::*;
    use nostr::{Keys, ToBech32};

    #[test]
    fn keys_are_left_out_wherever_they_stand_and_public_texts_stay() {
        let keys = Keys::generate();
        let (nsec, hex) = (keys.secret_key().to_bech32().unwrap(), keys.secret_key().to_secret_hex());
        for key in [nsec.clone(), nsec.to_uppercase(), hex.clone(), hex.to_uppercase(), hex.repeat(3)] {
            for (text, expected) in [
                (key.clone(), "…"),
                (format!("Your key:\n{key}\n"), "Your key:\n…\n"),
                (format!("{key} x{key}x, {key}"), "… …, …"),
                (format!("é{key}é {key}é"), "é…é …é"),
            ] {
                assert_eq!(without_keys(&text), expected, "{text}");
            }
        }
        let npub = keys.public_key().to_bech32().unwrap();
        let tweak = format!("ntweak1{}", "q".repeat(73));
        let dashed = format!("{}-{}", &hex[..40], &hex[40..]);
        for text in [&npub, &tweak, &dashed, "The nsec1 follows. é", &nsec[..62], &hex[..63], ""] {
            assert_eq!(without_keys(text), text);
        }
    }
}
