//! The table of small multiples `I = i·G`, computed before any search.

use super::field::Fe;
use super::scratch::HugePage;
use super::simd::SimdField;
use bytemuck::Zeroable;
use secp256k1::{PublicKey, SECP256K1, Scalar};

/// Number of table entries: the multiples 1 to 512 of the generator. The table and the prefix
/// products of a round together fit into the L2 cache.
pub const ENTRIES: usize = 512;

/// Distance between neighbouring centres, in multiples of the generator. Their stretches touch
/// without overlapping.
pub const STEP: u64 = 2 * ENTRIES as u64 + 1;

/// Points other than infinity, one in each lane.
#[derive(Clone, Copy, Debug)]
pub struct Affine<F> {
    /// The x-coordinate.
    pub x: F,
    /// The y-coordinate.
    pub y: F,
}

impl Affine<Fe> {
    /// The coordinates of a point.
    pub fn from_point(point: &PublicKey) -> Affine<Fe> {
        let bytes = point.serialize_uncompressed();
        let coordinate = |at: usize| Fe::from_be_bytes(bytes[at..at + 32].try_into().expect("32 bytes"));
        Affine { x: coordinate(1), y: coordinate(33) }
    }
}

/// The constants of one entry, named as in [`super::formula`].
#[derive(Clone, Copy)]
pub struct Entry<F: SimdField> {
    /// -xi³
    pub minus_u: F::Constant,
    /// -β·xi³
    pub minus_beta_u: F::Constant,
    /// s·xi/2
    pub e1: F::ConstantFactor,
    /// 2·yi
    pub y_2: F::ConstantFactor,
    /// 2β·yi
    pub beta_y_2: F::ConstantFactor,
    /// The top words of xi and βxi, exact.
    pub x_top_words: [u64; 2],
    /// xi
    pub x: Fe,
}

/// The table of a field type, for rounds of a fixed number of centres.
pub struct Table<F: SimdField> {
    /// The entries, in a huge page.
    pub entries: Box<HugePage<[Entry<F>; ENTRIES]>>,
    /// `c·STEP·G` for the centres c = 1, 2, … of a round.
    pub centres: Vec<PublicKey>,
    /// The step from the centres of one round to those of the next.
    pub step: Affine<Fe>,
}

impl<F: SimdField> Table<F> {
    /// Computes the table. `centres` is the number of centres of a round.
    pub fn new(centres: usize) -> Table<F> {
        let points: Vec<Affine<Fe>> =
            (1..=ENTRIES as u64).map(|i| Affine::from_point(&multiple_of_generator(i))).collect();
        let mut entries = HugePage::<[Entry<F>; ENTRIES]>::zeroed();
        entries.0.iter_mut().zip(&points).for_each(|(entry, point)| *entry = Entry::new(point));
        Table {
            entries,
            centres: (1..centres as u64).map(|centre| multiple_of_generator(centre * STEP)).collect(),
            step: Affine::from_point(&multiple_of_generator(centres as u64 * STEP)),
        }
    }
}

// SAFETY: every field is `Zeroable`: `SimdField` requires it of its constants, and the others are
// integers.
unsafe impl<F: SimdField> Zeroable for Entry<F> {}

impl<F: SimdField> Entry<F> {
    fn new(point: &Affine<Fe>) -> Entry<F> {
        let (x, y) = (point.x, point.y);
        let minus_u = Fe::ZERO.sub(x.square().mul(x));
        let beta_x = x.mul(Fe::BETA);
        Entry {
            minus_u: F::constant(minus_u),
            minus_beta_u: F::constant(minus_u.mul(Fe::BETA)),
            e1: F::constant_factor(x.mul(Fe::HALF_ROOT)),
            y_2: F::constant_factor(y.double()),
            beta_y_2: F::constant_factor(y.double().mul(Fe::BETA)),
            x_top_words: [x, beta_x].map(|value| value.canonical().top()),
            x,
        }
    }
}

/// `multiple·G`, by libsecp256k1.
pub fn multiple_of_generator(multiple: u64) -> PublicKey {
    let mut bytes = [0; 32];
    bytes[24..].copy_from_slice(&multiple.to_be_bytes());
    let secret = secp256k1::SecretKey::from_slice(&bytes).expect("a multiple from 1 on is below n");
    PublicKey::from_secret_key(SECP256K1, &secret)
}

/// `point + multiple·G`, by libsecp256k1. `None` for infinity.
pub fn moved(point: &PublicKey, multiple: u64) -> Option<PublicKey> {
    let mut bytes = [0; 32];
    bytes[24..].copy_from_slice(&multiple.to_be_bytes());
    let scalar = Scalar::from_be_bytes(bytes).expect("64 bits are below n");
    point.add_exp_tweak(SECP256K1, &scalar).ok()
}
