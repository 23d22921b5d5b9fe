//! An asker's half, kept by the test itself, because the library shows secret halves to no other
//! room.

use npubbot::key::{HalfPoint, SplitTweak};
use secp256k1::{Keypair, PublicKey, SECP256K1, SecretKey};

/// A small number as a secret.
pub fn small(number: u64) -> SecretKey {
    let mut bytes = [0; 32];
    bytes[24..].copy_from_slice(&number.to_be_bytes());
    SecretKey::from_slice(&bytes).unwrap()
}

/// A secret half.
pub struct Half(pub SecretKey);

impl Half {
    pub fn draw() -> Half {
        Half(SecretKey::from_slice(&rand::random::<[u8; 32]>()).expect("less than the order, but for 2^-127"))
    }

    /// The public point.
    pub fn point(&self) -> HalfPoint {
        HalfPoint::new(PublicKey::from_secret_key(SECP256K1, &self.0))
    }

    /// The half as text.
    pub fn text(&self) -> String {
        let bytes: Vec<u8> = std::iter::once(1).chain(self.0.secret_bytes()).collect();
        bech32::encode::<bech32::Bech32>(bech32::Hrp::parse("nhalf").unwrap(), &bytes).unwrap()
    }

    /// The key `λ^rotation · (h + offset)` that the half makes with a tweak, by hand.
    pub fn combine(&self, split: &SplitTweak) -> Keypair {
        assert_eq!(split.fingerprint, self.point().fingerprint(), "the tweak is for this half");
        let moved = self.0.add_tweak(split.tweak.offset.scalar()).unwrap();
        Keypair::from_secret_key(SECP256K1, &moved.mul_tweak(&split.tweak.rotation.scalar()).unwrap())
    }
}
