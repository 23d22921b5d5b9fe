//! Eight numbers modulo p side by side: five limbs of 52 bits, with AVX-512 IFMA (`vpmadd52luq`,
//! `vpmadd52huq`).
//!
//! **The contract of every `unsafe` in this module:** the processor has AVX-512 F, DQ, BW, IFMA,
//! VBMI, VBMI2 and VPOPCNTDQ, GFNI, POPCNT, BMI and LZCNT. The kernel is chosen only where
//! [`is_supported`] is true, and only its walks use [`Fe8`]. Everything in the loops is inlined into the
//! functions of the walk for a round and a confirmation.
//!
//! **Limbs.** A number is `l0 + l1·2^52 + … + l4·2^208`. Of l0…l3 only the low 52 bits count: the
//! bits above have already been carried into the next limb. The multiply instructions read only 52
//! bits of a limb, so they need no masks. Sums need them, hence `Summand`. l4 counts as a whole and
//! must stay below 2^52:
//!
//! | from | l4 below | value below |
//! | --- | --- | --- |
//! | a constant, a product, a square, a difference | 2^48 + 2^6 | 2^256 + 2^214 |
//! | a product with a prepared factor | 2^51 + 2^6 | 2^259 + 2^214 |
//! | a sum, one of the two at most being of the second kind | 2^51 + 2^49 | 2^259 + 2^257 |
//!
//! So a product is below 2^519, and its uppermost column below 2^52.

mod field;
pub(super) mod keys;
mod lookup;
mod marks;
pub(super) mod quick;
mod reduce;
pub(super) mod text;
mod vector;

pub use field::Fe8;
pub use vector::is_supported;

/// Vectors of eight centres a round.
pub const VECTORS: usize = 2;
