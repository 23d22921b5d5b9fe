//! A hit that was recomputed, so nobody need trust the device that claimed it.

use super::npub::Npub;
use super::start_point::StartPoint;
use super::tweak::{Tweak, candidate};

/// A tweak whose npub was recomputed with libsecp256k1. [`VerifiedHit::recompute`] is the only
/// constructor.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct VerifiedHit {
    point: StartPoint,
    tweak: Tweak,
    npub: Npub,
}

impl VerifiedHit {
    /// Recomputes the npub of `tweak` at `point`; `None` if the result is the point at infinity.
    /// The caller must check whether anybody asked for this npub.
    pub fn recompute(point: StartPoint, tweak: Tweak) -> Option<VerifiedHit> {
        let npub = candidate(&point, &tweak)?;
        Some(VerifiedHit { point, tweak, npub })
    }

    /// The start point of the search.
    pub fn point(&self) -> &StartPoint {
        &self.point
    }

    /// The claimed offset and rotation.
    pub fn tweak(&self) -> &Tweak {
        &self.tweak
    }

    /// The recomputed npub.
    pub fn npub(&self) -> Npub {
        self.npub
    }
}
