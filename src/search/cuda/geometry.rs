//! How a launch is spread over a GPU: which thread searches which stretch around which base.
//!
//! Blocks share a base. Thread t of a base walks `MOST_STEPS` centres from `P + (t + 1)·STRIDE·G`, and each centre
//! covers `TABLE` multiples of G on both sides, so that no two centres of a base touch.

use super::abi::Point;
use crate::key::BasePoint;
use secp256k1::{PublicKey, SECP256K1, SecretKey};

pub const THREADS: u32 = 256;
pub const BLOCKS_PER_MULTIPROCESSOR: u32 = 2;
/// Table entries: i·G for i = 1…TABLE.
pub const TABLE: u32 = 1024;
/// The most centres a thread walks in one launch.
pub const MOST_STEPS: u32 = 16;
const STRIDE: u64 = MOST_STEPS as u64 * (2 * TABLE as u64 + 1);
const BLOCKS_PER_BASE: u32 = 12;

pub struct Geometry {
    blocks: u32,
    pub blocks_per_base: u32,
}

impl Geometry {
    pub fn of(multiprocessors: u32) -> Geometry {
        Geometry { blocks: multiprocessors * BLOCKS_PER_MULTIPROCESSOR, blocks_per_base: BLOCKS_PER_BASE }
    }

    pub fn blocks(&self) -> u32 {
        self.blocks
    }

    pub fn threads(&self) -> u32 {
        self.blocks * THREADS
    }

    pub fn bases(&self) -> u32 {
        self.blocks.div_ceil(self.blocks_per_base)
    }

    pub fn threads_per_base(&self) -> u32 {
        self.blocks_per_base * THREADS
    }
}

/// Where thread `t` of a base begins, relative to the base.
pub fn stretch_start(t: u32) -> u64 {
    (u64::from(t) + 1) * STRIDE
}

/// `k·G`, k not zero.
pub fn multiple_of_generator(k: u64) -> BasePoint {
    let mut bytes = [0; 32];
    bytes[24..].copy_from_slice(&k.to_be_bytes());
    let scalar = SecretKey::from_slice(&bytes).expect("not zero and below n");
    BasePoint::new(PublicKey::from_secret_key(SECP256K1, &scalar))
}

pub fn multiple(k: u64) -> Point {
    Point::of(&multiple_of_generator(k))
}
