//! Split keys. The asker keeps a secret half `h`, we search at its point `h·G`, and only the tweak
//! is sent.

use super::point::StartPoint;
use super::tweak::{Offset, Rotation, Tweak};
use bech32::primitives::decode::CheckedHrpstring;
use bech32::{Bech32, Hrp};
use bitcoin_hashes::{Hash, sha256};
use secp256k1::{Parity, PublicKey, SECP256K1, Scalar, XOnlyPublicKey};
use serde::{Deserialize, Serialize};
use std::fmt;
use std::str::FromStr;
use thiserror::Error;

/// Human-readable part of a tweak's bech32 text.
const NTWEAK: Hrp = Hrp::parse_unchecked("ntweak");
/// Version of the payload layout; the only one so far.
const VERSION: u8 = 1;
/// Bytes of the payload: version, rotation, offset, fingerprint.
const PAYLOAD: usize = 1 + 1 + 32 + 8;

/// Public point `h·G` of an asker's half. Not a secret.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub struct HalfPoint(PublicKey);

/// Reason why a text is not a point, with advice on what would work.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Error)]
pub enum HalfPointError {
    /// Neither 66 hexadecimal digits nor an npub.
    #[error("a point is 66 hexadecimal digits that start with 02 or 03, or an npub")]
    NotAPoint,
    /// The number is not the x-coordinate of a point on the curve.
    #[error("these digits are no point of the curve, so part of them is missing or mistyped; copy all of it")]
    NotOnCurve,
    /// The npub's checksum is wrong.
    #[error("the npub's checksum is wrong, so part of it is missing or mistyped; copy all of it")]
    Damaged,
    /// The text is an nsec or a secret half.
    #[error("this is a secret key. Never send it to anybody; make a half with: npubbot split new")]
    Secret,
}

impl HalfPoint {
    /// A half point from a point of libsecp256k1, which is on the curve and not infinity.
    pub fn new(point: PublicKey) -> HalfPoint {
        HalfPoint(point)
    }

    /// Whether a word was probably meant to be a point, even if it is mistyped.
    pub fn is_meant(word: &str) -> bool {
        let word = word.strip_prefix("nostr:").unwrap_or(word);
        let is_long_hex = word.len() >= 60 && word.bytes().all(|byte| byte.is_ascii_hexdigit());
        let is_key = ["npub1", "nsec1", "nhalf1"].iter().any(|kind| word.starts_with(kind));
        is_long_hex || (is_key && word.len() >= 58)
    }

    /// The point in libsecp256k1's form.
    pub fn public_key(&self) -> &PublicKey {
        &self.0
    }

    /// The compressed point (SEC 1), 33 bytes: the parity of y, then x big-endian.
    pub fn serialize(&self) -> [u8; 33] {
        self.0.serialize()
    }

    /// Reads the bytes of [`HalfPoint::serialize`].
    pub fn from_bytes(bytes: &[u8]) -> Option<HalfPoint> {
        (bytes.len() == 33).then(|| PublicKey::from_slice(bytes).ok()).flatten().map(HalfPoint)
    }

    /// The start point of a search for this half, `h·G + r·G`. `None` if the sum is infinity.
    pub fn blinded(&self, r: &Scalar) -> Option<StartPoint> {
        self.0.add_exp_tweak(SECP256K1, r).ok().map(StartPoint::new)
    }

    /// An identifier that is the same for all related points: those that differ by a rotation or a
    /// sign. It is the smallest x-coordinate of the three points `λ^k·P`. Two requests at related
    /// points must not both be served, because one key would reveal the other
    /// (`docs/askers/split-keys.md`).
    pub fn family(&self) -> [u8; 32] {
        let x_of = |rotation: Rotation| {
            let turned = self.0.mul_tweak(SECP256K1, &rotation.scalar()).expect("λ is not zero");
            turned.x_only_public_key().0.serialize()
        };
        Rotation::ALL.map(x_of).into_iter().min().expect("there are three rotations")
    }

    /// First 8 bytes of the SHA-256 of [`HalfPoint::serialize`]. It tells which point a tweak
    /// belongs to.
    pub fn fingerprint(&self) -> [u8; 8] {
        let hash = sha256::Hash::hash(&self.serialize());
        let mut first = [0; 8];
        first.copy_from_slice(&hash.as_byte_array()[..8]);
        first
    }
}

impl FromStr for HalfPoint {
    type Err = HalfPointError;

    /// Reads 66 hexadecimal digits (SEC 1, compressed), or an npub, which means the point with an
    /// even y.
    fn from_str(text: &str) -> Result<HalfPoint, HalfPointError> {
        let text = text.trim().to_lowercase();
        let text = text.strip_prefix("nostr:").unwrap_or(&text);
        if text.starts_with("nsec1") || text.starts_with("nhalf1") {
            return Err(HalfPointError::Secret);
        }
        if text.starts_with("npub1") {
            let checked = CheckedHrpstring::new::<Bech32>(text).map_err(|_| HalfPointError::Damaged)?;
            let bytes: Vec<u8> = checked.byte_iter().collect();
            let x = XOnlyPublicKey::from_slice(&bytes).map_err(|_| HalfPointError::NotOnCurve)?;
            return Ok(HalfPoint(x.public_key(Parity::Even)));
        }
        if text.len() != 66 || !(text.starts_with("02") || text.starts_with("03")) {
            return Err(HalfPointError::NotAPoint);
        }
        if !text.bytes().all(|byte| byte.is_ascii_hexdigit()) {
            return Err(HalfPointError::NotAPoint);
        }
        text.parse().map(HalfPoint).map_err(|_| HalfPointError::NotOnCurve)
    }
}

impl fmt::Display for HalfPoint {
    /// Writes 66 hexadecimal digits.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}", self.0)
    }
}

/// Hides the point, because a log must not link it with its asker.
impl fmt::Debug for HalfPoint {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("HalfPoint")
    }
}

/// Answer to a split request: a tweak and the fingerprint of its half point. Useless without the
/// half.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub struct SplitTweak {
    /// Offset and rotation to apply to the half.
    pub tweak: Tweak,
    /// [`HalfPoint::fingerprint`] of the point the tweak is for.
    pub fingerprint: [u8; 8],
}

/// Reason why a text is not a tweak, with advice on what would work.
#[derive(Clone, PartialEq, Eq, Debug, Error)]
#[error("{0}")]
pub struct SplitTweakError(String);

impl From<&str> for SplitTweakError {
    fn from(reason: &str) -> SplitTweakError {
        SplitTweakError(reason.to_owned())
    }
}

const NOT_A_TWEAK: &str = "a tweak starts with ntweak1; copy the whole word from the bot's message";
const DAMAGED_TWEAK: &str =
    "the tweak is damaged: its checksum is wrong. Copy the whole word from the bot's message once more";
const MALFORMED_TWEAK: &str = "the tweak is malformed although its checksum is right; ask the operator";

impl fmt::Display for SplitTweak {
    /// Writes bech32 (BIP 173) with the human-readable part `ntweak`. The payload is version,
    /// rotation, offset (32 bytes, big-endian) and fingerprint.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let mut payload = Vec::with_capacity(PAYLOAD);
        payload.extend([VERSION, self.tweak.rotation.power()]);
        payload.extend(self.tweak.offset.scalar().to_be_bytes());
        payload.extend(self.fingerprint);
        f.write_str(&bech32::encode::<Bech32>(NTWEAK, &payload).map_err(|_| fmt::Error)?)
    }
}

impl FromStr for SplitTweak {
    type Err = SplitTweakError;

    fn from_str(text: &str) -> Result<SplitTweak, SplitTweakError> {
        let text = text.trim().to_lowercase();
        let (kind, _) = text.rsplit_once('1').ok_or(NOT_A_TWEAK)?;
        if ["npub", "nsec", "nhalf", "note", "ncryptsec"].contains(&kind) {
            return Err(SplitTweakError(format!(
                "this starts with {kind}1, so it is not a tweak; copy the word that starts with ntweak1 from the bot's \
                 message"
            )));
        }
        if kind != NTWEAK.as_str() {
            return Err(NOT_A_TWEAK.into());
        }
        let checked = CheckedHrpstring::new::<Bech32>(&text).map_err(|_| DAMAGED_TWEAK)?;
        let payload: Vec<u8> = checked.byte_iter().collect();
        let version = *payload.first().ok_or(MALFORMED_TWEAK)?;
        if version != VERSION {
            return Err(SplitTweakError(format!(
                "the tweak is of version {version}, which this program does not know; use a newer one"
            )));
        }
        let payload: [u8; PAYLOAD] = payload.try_into().map_err(|_| MALFORMED_TWEAK)?;
        let rotation = Rotation::new(payload[1]).ok_or(MALFORMED_TWEAK)?;
        let (mut offset, mut fingerprint) = ([0; 32], [0; 8]);
        offset.copy_from_slice(&payload[2..34]);
        fingerprint.copy_from_slice(&payload[34..]);
        let offset = Scalar::from_be_bytes(offset).map_err(|_| MALFORMED_TWEAK)?;
        Ok(SplitTweak { tweak: Tweak { offset: Offset::from_scalar(offset), rotation }, fingerprint })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::key::candidate;
    use secp256k1::SecretKey;

    fn point(byte: u8) -> HalfPoint {
        HalfPoint(PublicKey::from_secret_key(SECP256K1, &SecretKey::from_slice(&[byte; 32]).unwrap()))
    }

    fn tweak(rotation: u8, offset: [u8; 32]) -> SplitTweak {
        let offset = Offset::from_scalar(Scalar::from_be_bytes(offset).unwrap());
        let tweak = Tweak { offset, rotation: Rotation::new(rotation).unwrap() };
        SplitTweak { tweak, fingerprint: point(7).fingerprint() }
    }

    fn refusal(read: Result<SplitTweak, SplitTweakError>) -> String {
        read.unwrap_err().to_string()
    }

    #[test]
    fn a_point_is_read_from_hex_and_from_an_npub() {
        for byte in [1, 2, 0x5a, 0xee] {
            let point = point(byte);
            assert_eq!(point.to_string().parse(), Ok(point));
            assert_eq!(point.to_string().to_uppercase().parse(), Ok(point));
            assert_eq!(HalfPoint::from_bytes(&point.serialize()), Some(point));
            let npub = crate::key::Npub(point.0.x_only_public_key().0.serialize());
            let even: HalfPoint = format!(" nostr:{npub}\n").parse().unwrap();
            assert_eq!(even.0.x_only_public_key(), (point.0.x_only_public_key().0, Parity::Even));
            assert!(HalfPoint::is_meant(&point.to_string()) && HalfPoint::is_meant(&npub.to_string()));
        }
    }

    #[test]
    fn a_text_that_is_no_point_is_refused_with_the_reason() {
        let good = point(1).to_string();
        let npub = crate::key::Npub([0xff; 32]).to_string();
        let flipped = crate::key::Npub([1; 32]).to_string().replace("qyqs", "qyqq");
        let cases = [
            ("", HalfPointError::NotAPoint),
            ("m0ctane", HalfPointError::NotAPoint),
            (&good[..65], HalfPointError::NotAPoint),
            (&good.replacen("03", "04", 1).replacen("02", "04", 1), HalfPointError::NotAPoint),
            (&format!("02{}", "f".repeat(64)), HalfPointError::NotOnCurve),
            (&format!("02{}", "0".repeat(64)), HalfPointError::NotOnCurve),
            // p + 1, whose remainder is the x-coordinate of a point.
            (&format!("02{}fffffffefffffc30", "f".repeat(48)), HalfPointError::NotOnCurve),
            (&good.repeat(2), HalfPointError::NotAPoint),
            (&"0".repeat(66), HalfPointError::NotAPoint),
            (&format!("04{}", "0".repeat(128)), HalfPointError::NotAPoint),
            (&npub, HalfPointError::NotOnCurve),
            (&flipped, HalfPointError::Damaged),
            ("nsec1vl029mgpspedva04g90vltkh6fvh240zqtv9k0t9af8935ke9laqsnlfe5", HalfPointError::Secret),
            ("nhalf1qxl029mgpspedva04g90vltkh6fvh240zqtv9k0t9af8935ke9laqsnlfe5", HalfPointError::Secret),
        ];
        for (text, expected) in cases {
            assert_eq!(text.parse::<HalfPoint>(), Err(expected), "{text}");
            // An asker who sends a secret instead of the point must be warned.
            assert!(expected != HalfPointError::Secret || HalfPoint::is_meant(text), "{text}");
        }
        // About 50 of 100 x-coordinates belong to no point of the curve.
        let refused = (0..100u8).filter(|&n| format!("02{}{n:02x}", "ab".repeat(31)).parse::<HalfPoint>().is_err());
        assert!((20..80).contains(&refused.count()));
    }

    #[test]
    fn a_family_is_all_rotations_and_signs_and_nothing_else() {
        let own = point(9);
        for rotation in Rotation::ALL {
            let turned = own.0.mul_tweak(SECP256K1, &rotation.scalar()).unwrap();
            assert_eq!(HalfPoint(turned).family(), own.family());
            assert_eq!(HalfPoint(turned.negate(SECP256K1)).family(), own.family());
        }
        assert_ne!(point(10).family(), own.family());
    }

    #[test]
    fn a_blinded_point_and_its_tweak_lead_to_the_same_npub() {
        let (half, r) = (point(3), Scalar::from_be_bytes([0x11; 32]).unwrap());
        let offset = Offset::of_point(1 << 33, -77, Rotation::ALL[1]);
        let found = candidate(&half.blinded(&r).unwrap(), &Tweak { offset, rotation: Rotation::ALL[2] });
        let sum = SecretKey::from_slice(&[0x11; 32]).unwrap().add_tweak(offset.scalar()).unwrap();
        let tweak = Tweak { offset: Offset::from_scalar(sum.into()), rotation: Rotation::ALL[2] };
        assert_eq!(candidate(&StartPoint::new(half.0), &tweak), found);
    }

    #[test]
    fn a_tweak_survives_its_text() {
        let mut largest = [0xff; 32];
        largest[15] = 0xfe;
        largest[16..].copy_from_slice(&[
            0xba, 0xae, 0xdc, 0xe6, 0xaf, 0x48, 0xa0, 0x3b, 0xbf, 0xd2, 0x5e, 0x8c, 0xd0, 0x36, 0x41, 0x40,
        ]);
        for rotation in 0..3 {
            for offset in [[0; 32], [1; 32], largest] {
                let tweak = tweak(rotation, offset);
                let text = tweak.to_string();
                assert!(text.starts_with("ntweak1") && text.len() <= 90, "{text}");
                assert_eq!(text.parse(), Ok(tweak));
                assert_eq!(format!("  {}\n", text.to_uppercase()).parse(), Ok(tweak));
            }
        }
    }

    #[test]
    fn a_damaged_tweak_is_never_read_as_another_tweak() {
        let text = tweak(1, [0x33; 32]).to_string();
        for at in 7..text.len() {
            let mut other = text.clone().into_bytes();
            other[at] = if other[at] == b'q' { b'p' } else { b'q' };
            let other = String::from_utf8(other).unwrap();
            assert_eq!(refusal(other.parse()), DAMAGED_TWEAK, "{other}");
        }
        assert_eq!(refusal(text[..40].parse()), DAMAGED_TWEAK);
        let with = |payload: &[u8]| refusal(bech32::encode::<Bech32>(NTWEAK, payload).unwrap().parse());
        assert_eq!([with(&[]), with(&[1; 41])], [MALFORMED_TWEAK; 2]);
        assert!(with(&[2; 42]).contains("version 2"));
        let mut payload = [1; 42];
        payload[1] = 3;
        assert_eq!(with(&payload), MALFORMED_TWEAK, "there are three rotations");
        payload[1] = 0;
        payload[2..34].fill(0xff);
        assert_eq!(with(&payload), MALFORMED_TWEAK, "an offset is below n");
        let other = "nsec1vl029mgpspedva04g90vltkh6fvh240zqtv9k0t9af8935ke9laqsnlfe5";
        assert!(refusal(other.parse()).starts_with("this starts with nsec1"));
        assert_eq!(refusal("hello".parse()), NOT_A_TWEAK);
    }
}
