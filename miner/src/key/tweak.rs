//! The result of a search: an offset and a rotation. The key is `λ^rotation · (s + offset) mod n`.
//! And a result that was recomputed, so that nobody need trust the device that claimed it.

use super::point::{Npub, StartPoint};
use secp256k1::{SECP256K1, Scalar, SecretKey};
use serde::{Deserialize, Serialize};
use std::fmt;

/// `λ`, a cube root of 1 modulo the group order n, big-endian: `λ·(x, y) = (βx, y)`
/// (`docs/developers/search.md`).
const LAMBDA: [u8; 32] = [
    0x53, 0x63, 0xad, 0x4c, 0xc0, 0x5c, 0x30, 0xe0, 0xa5, 0x26, 0x1c, 0x02, 0x88, 0x12, 0x64, 0x5a, //
    0x12, 0x2e, 0x22, 0xea, 0x20, 0x81, 0x66, 0x78, 0xdf, 0x02, 0x96, 0x7c, 0x1b, 0x23, 0xbd, 0x72,
];

/// `λ² = -1 - λ mod n`, big-endian.
const LAMBDA_SQUARED: [u8; 32] = [
    0xac, 0x9c, 0x52, 0xb3, 0x3f, 0xa3, 0xcf, 0x1f, 0x5a, 0xd9, 0xe3, 0xfd, 0x77, 0xed, 0x9b, 0xa4, //
    0xa8, 0x80, 0xb9, 0xfc, 0x8e, 0xc7, 0x39, 0xc2, 0xe0, 0xcf, 0xc8, 0x10, 0xb5, 0x12, 0x83, 0xce,
];

/// A power of the endomorphism: 0, 1 or 2 for `λ^0`, `λ^1`, `λ^2`.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug, Serialize, Deserialize)]
#[serde(into = "u8", try_from = "u8")]
pub struct Rotation(u8);

impl Rotation {
    /// All three rotations, by power.
    pub const ALL: [Rotation; 3] = [Rotation(0), Rotation(1), Rotation(2)];

    /// The rotation `λ^power`; `None` if `power` is above 2.
    pub fn new(power: u8) -> Option<Rotation> {
        (power < 3).then_some(Rotation(power))
    }

    /// The power of λ: 0, 1 or 2.
    pub fn power(self) -> u8 {
        self.0
    }

    /// `λ^power mod n`.
    pub fn scalar(self) -> Scalar {
        match self.0 {
            0 => Scalar::ONE,
            1 => Scalar::from_be_bytes(LAMBDA).expect("λ is below n"),
            _ => Scalar::from_be_bytes(LAMBDA_SQUARED).expect("λ² is below n"),
        }
    }
}

/// Scalar modulo n that is added to the start secret. Public, because it is useless without that
/// secret.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(into = "[u8; 32]", try_from = "[u8; 32]")]
pub struct Offset(Scalar);

impl From<Rotation> for u8 {
    fn from(rotation: Rotation) -> u8 {
        rotation.0
    }
}

impl TryFrom<u8> for Rotation {
    type Error = &'static str;

    fn try_from(power: u8) -> Result<Rotation, &'static str> {
        Rotation::new(power).ok_or("a rotation is 0, 1 or 2")
    }
}

impl From<Offset> for [u8; 32] {
    fn from(offset: Offset) -> [u8; 32] {
        offset.0.to_be_bytes()
    }
}

impl TryFrom<[u8; 32]> for Offset {
    type Error = &'static str;

    fn try_from(bytes: [u8; 32]) -> Result<Offset, &'static str> {
        Scalar::from_be_bytes(bytes).map(Offset).map_err(|_| "an offset is below the group order")
    }
}

impl Offset {
    /// `centre ± step·λ^turn mod n`, the offset of one of the six points of a table entry
    /// (`docs/developers/search.md`). The sign of `step` is the sign of the point; 0 is the centre
    /// itself.
    pub fn of_point(centre: u64, step: i64, turn: Rotation) -> Offset {
        let small = |value: u64| {
            let mut bytes = [0; 32];
            bytes[24..].copy_from_slice(&value.to_be_bytes());
            bytes
        };
        let centre = Scalar::from_be_bytes(small(centre)).expect("64 bits are below n");
        let Ok(size) = SecretKey::from_slice(&small(step.unsigned_abs())) else {
            return Offset(centre);
        };
        let size = size.mul_tweak(&turn.scalar()).expect("a product of units modulo the prime n is not zero");
        let signed = if step < 0 { size.negate() } else { size };
        // libsecp256k1 refuses only one sum: zero.
        Offset(signed.add_tweak(&centre).map_or(Scalar::ZERO, Scalar::from))
    }

    /// An offset from any scalar below n.
    pub fn from_scalar(scalar: Scalar) -> Offset {
        Offset(scalar)
    }

    /// The offset in libsecp256k1's form.
    pub fn scalar(&self) -> &Scalar {
        &self.0
    }
}

impl fmt::Debug for Offset {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Offset(")?;
        self.0.to_be_bytes().iter().try_for_each(|b| write!(f, "{b:02x}"))?;
        f.write_str(")")
    }
}

/// An offset and a rotation that turn a start secret `s` into a key:
/// `λ^rotation · (s + offset) mod n`.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug, Serialize, Deserialize)]
pub struct Tweak {
    /// Added to the start secret first.
    pub offset: Offset,
    /// Power of λ by which the sum is multiplied.
    pub rotation: Rotation,
}

/// Computes the npub of `λ^rotation · (P + offset·G)` with libsecp256k1; `None` for the point at
/// infinity.
pub fn candidate(point: &StartPoint, tweak: &Tweak) -> Option<Npub> {
    let moved = point.public_key().add_exp_tweak(SECP256K1, tweak.offset.scalar()).ok()?;
    let turned = moved.mul_tweak(SECP256K1, &tweak.rotation.scalar()).ok()?;
    Some(Npub(turned.x_only_public_key().0.serialize()))
}

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

#[cfg(test)]
mod tests {
    use super::*;
    use secp256k1::PublicKey;

    fn point_of(secret: &SecretKey) -> StartPoint {
        StartPoint::new(PublicKey::from_secret_key(SECP256K1, secret))
    }

    fn secret(byte: u8) -> SecretKey {
        SecretKey::from_slice(&[byte; 32]).unwrap()
    }

    #[test]
    fn rotations_are_the_cube_roots_of_one() {
        let one = SecretKey::from_slice(&Scalar::ONE.to_be_bytes()).unwrap();
        for rotation in Rotation::ALL {
            let cube = (0..3).fold(one, |power, _| power.mul_tweak(&rotation.scalar()).unwrap());
            assert_eq!(cube, one, "{rotation:?}");
        }
        let square = one.mul_tweak(&Rotation(1).scalar()).unwrap().mul_tweak(&Rotation(1).scalar()).unwrap();
        assert_eq!(Scalar::from(square), Rotation(2).scalar());
        assert_eq!(Rotation::new(3), None);
    }

    #[test]
    fn a_tweak_applied_to_the_point_and_to_its_secret_gives_the_same_key() {
        let start = secret(0x5a);
        for (centre, step) in [(0, 1), (0, -1), (5, 0), (u64::MAX, 1024), (u64::MAX, -1024), (1 << 40, i64::MAX)] {
            for turn in Rotation::ALL {
                for rotation in Rotation::ALL {
                    let offset = Offset::of_point(centre, step, turn);
                    let key = start.add_tweak(offset.scalar()).unwrap().mul_tweak(&rotation.scalar()).unwrap();
                    let expected = point_of(&key).coordinates().0;
                    let found = candidate(&point_of(&start), &Tweak { offset, rotation });
                    assert_eq!(found, Some(Npub(expected)), "{centre} {step} {turn:?} {rotation:?}");
                }
            }
        }
    }

    #[test]
    fn an_offset_of_zero_is_the_point_itself_and_infinity_is_no_candidate() {
        let zero = Offset::of_point(7, -7, Rotation(0));
        assert_eq!(zero.scalar(), &Scalar::ZERO);
        let start = secret(3);
        let rotation = Rotation(0);
        let found = candidate(&point_of(&start), &Tweak { offset: zero, rotation });
        assert_eq!(found, Some(Npub(point_of(&start).coordinates().0)));
        let opposite = Offset::from_scalar(Scalar::from(start.negate()));
        assert_eq!(candidate(&point_of(&start), &Tweak { offset: opposite, rotation }), None);
    }
}
