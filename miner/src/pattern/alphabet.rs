//! The 32 characters of bech32 (BIP-173), replacements for the four that cannot occur, and
//! look-alikes.

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

/// Characters of the alphabet that people read as this letter or digit, the most similar first. In
/// a pattern after `~`, each of them may stand for it. Empty if there is none.
/// `docs/askers/patterns.md` has the same table.
pub fn look_alikes(character: char) -> &'static str {
    match character {
        '0' | 'o' => "0",
        '1' => "l",
        '2' => "2z",
        '3' => "3e",
        '4' => "4a",
        '5' => "5s",
        '6' => "6",
        '7' => "7t",
        '8' => "8",
        '9' => "9g",
        'a' => "a4",
        'b' => "86",
        'c' => "c",
        'd' => "d",
        'e' => "e3",
        'f' => "f",
        'g' => "g9",
        'h' => "h",
        'i' => "lj",
        'j' => "j",
        'k' => "k",
        'l' => "l",
        'm' => "m",
        'n' => "n",
        'p' => "p",
        'q' => "q",
        'r' => "r",
        's' => "s5",
        't' => "t7",
        'u' => "uv",
        'v' => "vu",
        'w' => "w",
        'x' => "x",
        'y' => "y",
        'z' => "z2",
        _ => "",
    }
}
