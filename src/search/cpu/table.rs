//! What is known of the small multiples `I = i·G` before any search.

use super::field::Fe;
use secp256k1::{PublicKey, SECP256K1, Scalar};
use std::sync::OnceLock;

/// Entries of the table: multiples 1 to this of the generator on either side of a centre.
/// 512 entries of 248 bytes fit the second cache; more would save little of the inversion (2 % of the work).
pub const ENTRIES: usize = 512;

/// Centres are this many multiples of the generator apart, so that their stretches touch and do not overlap.
pub const STEP: u64 = 2 * ENTRIES as u64 + 1;

/// A point that is not infinity.
#[derive(Clone, Copy, Debug)]
pub struct Affine {
    pub x: Fe,
    pub y: Fe,
}

impl Affine {
    pub fn of(point: &PublicKey) -> Affine {
        let bytes = point.serialize_uncompressed();
        let coordinate = |at: usize| Fe::from_be_bytes(bytes[at..at + 32].try_into().expect("32 bytes"));
        Affine { x: coordinate(1), y: coordinate(33) }
    }
}

/// The constants of one entry, as `docs/search.md` names them.
#[derive(Clone, Copy, Debug)]
pub struct Entry {
    /// xi³
    pub u: Fe,
    /// 3·xi³
    pub u3: Fe,
    /// β·xi³
    pub beta_u: Fe,
    pub x: Fe,
    /// 3·xi²
    pub x2_3: Fe,
    /// 2·yi
    pub y_2: Fe,
    /// 2β·yi
    pub beta_y_2: Fe,
    /// The tops of xi, βxi, β²xi, exact.
    pub x_tops: [u64; 3],
}

#[derive(Debug)]
pub struct Table {
    pub entries: Vec<Entry>,
    /// `STEP·G`: from one centre to the next.
    pub step: Affine,
}

/// The one table of this process, made at first use (some 10 ms).
pub fn table() -> &'static Table {
    static TABLE: OnceLock<Table> = OnceLock::new();
    TABLE.get_or_init(Table::new)
}

impl Table {
    fn new() -> Table {
        let entries = (1..=ENTRIES as u64).map(|i| Entry::new(&Affine::of(&multiple_of_generator(i)))).collect();
        Table { entries, step: Affine::of(&multiple_of_generator(STEP)) }
    }
}

impl Entry {
    fn new(point: &Affine) -> Entry {
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
