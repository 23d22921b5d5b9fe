//! The 32 characters of bech32 (BIP-173), and replacements for the four that cannot occur.

/// Characters of bech32, indexed by their 5-bit value.
pub const ALPHABET: &[u8; 32] = b"qpzry9x8gf2tvdw0s3jn54khce6mua7l";

/// The 5-bit value of a character; `None` if it is not in the alphabet.
pub(super) fn value_of(character: char) -> Option<u8> {
    ALPHABET.iter().position(|&c| char::from(c) == character).map(|at| at as u8)
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
