//! What is known of the small multiples `I = i·G` before any search.

use super::field::Fe;
use super::lanes::Lanes;
use secp256k1::{PublicKey, SECP256K1, Scalar};

/// Entries of the table: multiples 1 to this of the generator on either side of a centre. The table and the prefix
/// products of 512 entries fit the second cache; more would save little of the inversion (2 to 3 % of the work).
pub const ENTRIES: usize = 512;

/// Centres are this many multiples of the generator apart, so that their stretches touch and do not overlap.
pub const STEP: u64 = 2 * ENTRIES as u64 + 1;

/// A point that is not infinity; one in each lane.
#[derive(Clone, Copy, Debug)]
pub struct Affine<F> {
    pub x: F,
    pub y: F,
}

impl Affine<Fe> {
    pub fn of(point: &PublicKey) -> Affine<Fe> {
        let bytes = point.serialize_uncompressed();
        let coordinate = |at: usize| Fe::from_be_bytes(bytes[at..at + 32].try_into().expect("32 bytes"));
        Affine { x: coordinate(1), y: coordinate(33) }
    }
}

/// The constants of one entry, as `docs/search.md` names them.
#[derive(Clone, Copy, Debug)]
pub struct Entry<C> {
    /// xi³
    pub u: C,
    /// 3·xi³
    pub u3: C,
    /// β·xi³
    pub beta_u: C,
    pub x: C,
    /// 3·xi²
    pub x2_3: C,
    /// 2·yi
    pub y_2: C,
    /// 2β·yi
    pub beta_y_2: C,
    /// The tops of xi, βxi, β²xi, exact.
    pub x_tops: [u64; 3],
}

/// The table of a field type.
#[derive(Debug)]
pub struct Table<F: Lanes> {
    pub entries: Vec<Entry<F::Constant>>,
    /// The same for one number at a time, to confirm hits.
    pub plain: Vec<Entry<Fe>>,
    /// From the centres of one round to those of the next: `LANES·STEP·G`, in plain numbers.
    pub step: Affine<Fe>,
}

impl<F: Lanes> Table<F> {
    pub fn new() -> Table<F> {
        let plain: Vec<Entry<Fe>> =
            (1..=ENTRIES as u64).map(|i| Entry::new(&Affine::of(&multiple_of_generator(i)))).collect();
        let step = Affine::of(&multiple_of_generator(F::LANES as u64 * STEP));
        Table { entries: plain.iter().map(Entry::convert::<F>).collect(), plain, step }
    }
}

impl Entry<Fe> {
    fn new(point: &Affine<Fe>) -> Entry<Fe> {
        let (x, y) = (point.x, point.y);
        let u = x.square().mul(x);
        let beta_x = x.mul(Fe::BETA);
        Entry {
            u,
            u3: u.double().add(u),
            beta_u: u.mul(Fe::BETA),
            x,
            x2_3: x.square().mul(Fe::from_small(3)),
            y_2: y.double(),
            beta_y_2: y.double().mul(Fe::BETA),
            x_tops: [x, beta_x, beta_x.mul(Fe::BETA)].map(|value| value.canonical().top()),
        }
    }

    fn convert<F: Lanes>(&self) -> Entry<F::Constant> {
        Entry {
            u: F::constant(self.u),
            u3: F::constant(self.u3),
            beta_u: F::constant(self.beta_u),
            x: F::constant(self.x),
            x2_3: F::constant(self.x2_3),
            y_2: F::constant(self.y_2),
            beta_y_2: F::constant(self.beta_y_2),
            x_tops: self.x_tops,
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
