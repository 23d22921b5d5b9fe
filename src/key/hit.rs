//! A hit nobody has to take on trust.

use super::{Npub, StartPoint, Tweak, candidate};

/// A tweak whose npub was recomputed with libsecp256k1. There is no other way to make one.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct VerifiedHit {
    point: StartPoint,
    tweak: Tweak,
    npub: Npub,
}

impl VerifiedHit {
    /// Recomputes the npub of `tweak` from `point`. `None` where the tweak leads to the point at infinity.
    /// Whether the npub is one that somebody requested is the caller's to ask.
    pub fn recompute(point: StartPoint, tweak: Tweak) -> Option<VerifiedHit> {
        let npub = candidate(&point, &tweak)?;
        Some(VerifiedHit { point, tweak, npub })
    }

    pub fn point(&self) -> &StartPoint {
        &self.point
    }

    pub fn tweak(&self) -> &Tweak {
        &self.tweak
    }

    pub fn npub(&self) -> Npub {
        self.npub
    }
}
