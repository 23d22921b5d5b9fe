//! How a launch is spread over a GPU: which thread searches which stretch around which start point.
//!
//! Threads share a start point. Thread t of a start point walks up to `CENTRES` centres from `P + (t + 1)·STRIDE·G`.
//! Each covers `TABLE` multiples of G on both sides, so that no two centres of a start point touch.

use super::abi::Point;
pub use super::constants::{GROUP, MOST_STEPS, TABLE};
use crate::key::StartPoint;
use secp256k1::{PublicKey, SECP256K1, SecretKey};

/// Threads of a launch for each multiprocessor, whatever the variant of the search.
pub const THREADS_PER_MULTIPROCESSOR: u32 = 512;
/// Centres a thread may stand on in one launch. The first one is cut short for most threads, so that warps stand at different
/// stages, and one more makes up for it.
pub const CENTRES: u32 = MOST_STEPS + 1;
/// From one centre of a thread to its next, in multiples of G.
pub const STEP: u64 = 2 * TABLE as u64 + 1;
const STRIDE: u64 = CENTRES as u64 * STEP;
const THREADS_PER_BASE: u32 = 3072;

pub struct Geometry {
    pub multiprocessors: u32,
}

impl Geometry {
    pub fn threads(&self) -> u32 {
        self.multiprocessors * THREADS_PER_MULTIPROCESSOR
    }

    pub fn starts(&self) -> u32 {
        self.threads().div_ceil(THREADS_PER_BASE)
    }

    pub fn threads_per_start(&self) -> u32 {
        THREADS_PER_BASE
    }
}

/// Where thread `t` of a start point begins, relative to the start point.
pub fn stretch_start(t: u32) -> u64 {
    (u64::from(t) + 1) * STRIDE
}

/// `k·G`, k not zero.
pub fn multiple_of_generator(k: u64) -> StartPoint {
    let mut bytes = [0; 32];
    bytes[24..].copy_from_slice(&k.to_be_bytes());
    let scalar = SecretKey::from_slice(&bytes).expect("not zero and below n");
    StartPoint::new(PublicKey::from_secret_key(SECP256K1, &scalar))
}

pub fn multiple(k: u64) -> Point {
    Point::of(&multiple_of_generator(k))
}
