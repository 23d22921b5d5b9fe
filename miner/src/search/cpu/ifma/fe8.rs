//! The numbers of the IFMA kernel. The table of `super` has the bounds of their limbs.

use bytemuck::Zeroable;
use std::arch::x86_64::__m512i;

/// Eight numbers modulo p.
#[derive(Clone, Copy, Debug, Zeroable)]
pub struct Fe8(pub(super) [__m512i; 5]);

/// A prepared factor: a number times `2^(52·i)` modulo p, for i = 0…4. So most of the folding of a
/// product with it is done in advance.
#[derive(Clone, Copy, Debug)]
pub struct Factor8(pub(super) [[__m512i; 5]; 5]);

#[cfg(test)]
impl Fe8 {
    /// The same limbs in every lane.
    pub fn from_limbs(limbs: [u64; 5]) -> Fe8 {
        assert!(super::vector::is_supported());
        Fe8(limbs.map(|limb| super::vector::load(&[limb; 8])))
    }
}
