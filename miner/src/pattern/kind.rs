//! Kinds of patterns, for describing them in words.

/// The kind of a pattern, with the values that a description needs.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum Kind {
    /// Characters after `npub1`: `m0ctane`.
    Prefix,
    /// Characters after `npub1`, with places that accept any or several characters: `m0?tane`,
    /// `[s5]at`.
    Open,
    /// A word after `npub1` in any spelling that looks like it: `~alice`.
    LookAlike,
    /// Parts at the start, anywhere, or at the end: `alice*cafe`, `*alice*@12`. A part that is
    /// absent is empty.
    Parts {
        /// Characters after `npub1`.
        start: String,
        /// Parts that follow anywhere, in this order.
        middle: Vec<String>,
        /// If given, the whole middle is within this many characters after `npub1`.
        within: Option<usize>,
        /// Characters at the end of the npub, checksum included.
        end: String,
    },
    /// Equal characters after `npub1`: `=7`.
    Equal(usize),
    /// Equal characters anywhere: `=7*`.
    EqualAnywhere(usize),
    /// The first digits of the key in hex: `hex:0000c0de`.
    HexStart(String),
    /// The last digits of the key in hex: `hex:*beef`.
    HexEnd(String),
    /// Leading zero bits: `zeros:40`.
    Zeros(usize),
    /// A word of the built-in list, of at least this many letters: `words:8`.
    Words(usize),
}
