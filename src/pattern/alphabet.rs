//! The 32 characters of bech32 (BIP-173), and what to write instead of the four that cannot occur.

/// Character of each 5-bit value, in order.
pub const ALPHABET: &[u8; 32] = b"qpzry9x8gf2tvdw0s3jn54khce6mua7l";

/// The 5-bit value of a character of the alphabet.
pub(super) fn value_of(character: char) -> Option<u8> {
    ALPHABET.iter().position(|&c| char::from(c) == character).map(|at| at as u8)
}

/// Characters of the alphabet that look or sound like one that cannot occur, the nearest first.
/// Empty for anything that is not an ASCII letter or digit.
pub fn nearest(character: char) -> &'static [char] {
    match character.to_ascii_lowercase() {
        '1' => &['l', '7', 'j'],
        'b' => &['8', '6', 'd'],
        'i' => &['l', 'j', 'y'],
        'o' => &['0', 'q', 'u'],
        _ => &[],
    }
}
