//! Types that hold a secret. None of them can be printed, cloned or serialised, and each clears its
//! memory on drop.
//!
//! A secret stays in one heap allocation, so moving its owner leaves no copy behind. libsecp256k1
//! and the NIP-44 code work on the stack, which is cleared after each request
//! ([`clear_stack_below`]). We cannot clear copies in registers, nor those of `age`, which buffers
//! the identity while it encrypts its file.

use super::error::VaultError;
use super::random::{Generator, Source};
use crate::key::{HalfPoint, Npub, Offset, SplitTweak, StartPoint, Tweak, VerifiedHit, candidate};
use bech32::primitives::decode::CheckedHrpstring;
use bech32::{Bech32, ByteIterExt, Fe32IterExt, Hrp};
use nostr::hashes::{Hash, HashEngine, Hmac, HmacEngine, sha256};
use nostr::nips::nip49::{EncryptedSecretKey, KeySecurity};
use nostr::{Keys, ToBech32};
use secp256k1::{PublicKey, SECP256K1, Scalar, SecretKey};
use std::io::{self, Read};
use zeroize::{Zeroize, Zeroizing};

/// Human-readable part of an nsec (NIP-19).
const NSEC: Hrp = Hrp::parse_unchecked("nsec");
/// Human-readable part of a half's text.
const NHALF: Hrp = Hrp::parse_unchecked("nhalf");
/// Version of the layout of a half's text; the only one so far.
const HALF_VERSION: u8 = 1;
/// Room for the text of a secret, which has 65 characters at most.
const TEXT_ROOM: usize = 128;

/// Scrypt cost of NIP-49 as a power of two: takes 64 MiB and some tenths of a second.
const NCRYPTSEC_WORK: u8 = 16;

/// Overwrites 64 KiB of the stack below the caller, where calls that have ended left copies of
/// secrets.
#[inline(never)]
pub(super) fn clear_stack_below() {
    let mut left = [0_u8; 64 * 1024];
    left.zeroize();
    std::hint::black_box(&left);
}

/// Text with a secret. It is cleared on drop, and its capacity is chosen so that it never grows,
/// because growing would leave a copy behind.
pub(super) type SecretText = Zeroizing<String>;

/// Reads a text of at most `most` bytes to its end.
///
/// Errors: those of `reader`; the text is longer, or not UTF-8.
pub(super) fn read_text(reader: impl Read, most: usize) -> io::Result<SecretText> {
    // A reader that ends before the capacity makes the vector never grow.
    let mut text = Zeroizing::new(String::with_capacity(most + 64));
    reader.take(most as u64 + 1).read_to_string(&mut text)?;
    if text.len() > most { Err(io::ErrorKind::FileTooLarge.into()) } else { Ok(text) }
}

/// Secret number from 1 to n-1, where n is the order of secp256k1: a derived key, a half, or what a
/// start point is made of.
pub(super) struct Secret(Box<SecretKey>);

impl Drop for Secret {
    fn drop(&mut self) {
        self.0.non_secure_erase();
    }
}

impl Secret {
    /// Draws 256 bits, and draws again if they are 0 or at least n. After 64 tries the source
    /// counts as broken.
    pub(super) fn draw(source: Source) -> Result<Secret, VaultError> {
        let mut bytes = Zeroizing::new([0; 32]);
        for _ in 0..64 {
            source(bytes.as_mut_slice())?;
            if let Ok(key) = SecretKey::from_slice(bytes.as_slice()) {
                return Ok(Secret::take(key));
            }
        }
        Err(VaultError::NoRandomness)
    }

    /// Moves a key to the heap and clears the original.
    fn take(mut key: SecretKey) -> Secret {
        let secret = Secret(Box::new(key));
        key.non_secure_erase();
        secret
    }

    /// Reads bech32 of this kind, whose bytes are `first` and the number.
    fn read(text: &str, kind: Hrp, first: &[u8]) -> Option<Secret> {
        let checked = CheckedHrpstring::new::<Bech32>(text).ok().filter(|checked| checked.hrp() == kind)?;
        let mut bytes = Zeroizing::new(Vec::with_capacity(text.len()));
        bytes.extend(checked.byte_iter());
        SecretKey::from_slice(bytes.strip_prefix(first)?).ok().map(Secret::take)
    }

    /// Reads `nhalf1…`.
    pub(super) fn read_half(text: &str) -> Option<Secret> {
        Secret::read(text, NHALF, &[HALF_VERSION])
    }

    /// The text of a half, `nhalf1…`.
    pub(super) fn nhalf(&self) -> SecretText {
        bech32(NHALF, std::iter::once(HALF_VERSION).chain(self.0.secret_bytes()))
    }

    /// The nsec of a key.
    pub(super) fn nsec(&self) -> SecretText {
        bech32(NSEC, self.0.secret_bytes().into_iter())
    }

    /// A key as text, encrypted with a password (NIP-49).
    pub(super) fn ncryptsec(&self, password: &str, source: Source) -> Result<String, VaultError> {
        let (mut generator, key) = (Generator::new(source), (*self.0).into());
        let locked =
            EncryptedSecretKey::new_with_rng(&mut generator, &key, password, NCRYPTSEC_WORK, KeySecurity::Unknown)
                .map_err(|_| VaultError::Unsealable)?;
        generator.checked(locked)?.to_bech32().map_err(|_| VaultError::Unsealable)
    }

    pub(super) fn public_key(&self) -> PublicKey {
        self.0.public_key(SECP256K1)
    }

    /// The npub of a key.
    pub(super) fn npub(&self) -> Npub {
        Npub(self.public_key().x_only_public_key().0.serialize())
    }

    /// The key `λ^rotation · (±s + offset) mod n`; `None` if it is zero. `opposite` selects the
    /// minus sign: a tweak belongs to `-h·G` if the half's point was sent as an npub.
    pub(super) fn derive(&self, tweak: &Tweak, opposite: bool) -> Option<Secret> {
        let start = Secret::take(if opposite { self.0.negate() } else { *self.0 });
        let moved = Secret::take(start.0.add_tweak(tweak.offset.scalar()).ok()?);
        moved.0.mul_tweak(&tweak.rotation.scalar()).ok().map(Secret::take)
    }
}

/// The secret of a start point. It yields at most one key or tweak: [`Start::redeem`] consumes it.
///
/// Without a half it is `s` of the start point `s·G`. With an asker's half `h` it is the blinding
/// `r` of `h·G + r·G`: because `r` is random, an asker cannot choose where the search starts.
pub(super) struct Start {
    secret: Secret,
    half: Option<HalfPoint>,
}

/// What a start point yields.
pub(super) enum Redeemed {
    Key(Secret),
    /// Useless without the half.
    Tweak(SplitTweak),
}

impl Start {
    /// Draws 256 bits from the source.
    pub(super) fn draw(half: Option<HalfPoint>, source: Source) -> Result<Start, VaultError> {
        Ok(Start { secret: Secret::draw(source)?, half })
    }

    /// The start point; `None` if it is infinity, which is as probable as guessing a key.
    pub(super) fn point(&self) -> Option<StartPoint> {
        match &self.half {
            None => Some(StartPoint::new(self.secret.public_key())),
            Some(half) => half.blinded(&Scalar::from(*self.secret.0)),
        }
    }

    /// The half point of the asker, if the start point is for one.
    pub(super) fn half(&self) -> Option<&HalfPoint> {
        self.half.as_ref()
    }

    /// The key of a hit, or the tweak that turns the half into it; `None` if it is not a hit of this
    /// start point.
    pub(super) fn redeem(self, hit: &VerifiedHit) -> Option<Redeemed> {
        let Some(half) = self.half else {
            let key = self.secret.derive(hit.tweak(), false)?;
            return (key.npub() == hit.npub()).then_some(Redeemed::Key(key));
        };
        let Tweak { offset, rotation } = hit.tweak();
        // libsecp256k1 refuses only a sum of zero.
        let sum = self.secret.0.add_tweak(offset.scalar()).map_or(Scalar::ZERO, Scalar::from);
        let tweak = Tweak { offset: Offset::from_scalar(sum), rotation: *rotation };
        let is_right = candidate(&StartPoint::new(*half.public_key()), &tweak) == Some(hit.npub());
        is_right.then(|| Redeemed::Tweak(SplitTweak { tweak, fingerprint: half.fingerprint() }))
    }
}

impl Redeemed {
    /// The nsec or the tweak.
    pub(super) fn text(&self) -> SecretText {
        match self {
            Redeemed::Key(key) => key.nsec(),
            Redeemed::Tweak(tweak) => Zeroizing::new(tweak.to_string()),
        }
    }
}

/// Signing key: the identity of the bot, or the one-time key of a wrap.
pub(super) struct Signing(Keys);

impl Signing {
    /// Draws a new key.
    pub(super) fn draw(source: Source) -> Result<Signing, VaultError> {
        Secret::draw(source).map(|secret| Signing::of(&secret))
    }

    /// Reads an nsec; `None` for anything else.
    pub(super) fn from_nsec(nsec: &str) -> Option<Signing> {
        Secret::read(nsec, NSEC, &[]).map(|secret| Signing::of(&secret))
    }

    fn of(secret: &Secret) -> Signing {
        Signing(Keys::new((*secret.0).into()))
    }

    /// The content of the identity file: the nsec on one line.
    pub(super) fn nsec_line(&self) -> SecretText {
        let mut line = bech32(NSEC, self.0.secret_key().as_secret_bytes().iter().copied());
        line.push('\n');
        line
    }

    pub(super) fn public_key(&self) -> nostr::PublicKey {
        self.0.public_key()
    }

    /// HMAC-SHA256 of `bytes` under a key that is derived from this one and `label`.
    pub(super) fn mac(&self, label: &[u8], bytes: &[u8]) -> [u8; 32] {
        let hmac = |key: &[u8], bytes: &[u8]| {
            let mut engine = HmacEngine::<sha256::Hash>::new(key);
            engine.input(bytes);
            Hmac::from_engine(engine).to_byte_array()
        };
        let key = Zeroizing::new(hmac(self.0.secret_key().as_secret_bytes(), label));
        hmac(key.as_slice(), bytes)
    }

    /// The key in the form of `nostr`, for signing and encryption. It clears itself on drop.
    pub(super) fn keys(&self) -> &Keys {
        &self.0
    }
}

/// Bech32, written character by character. The encoder of the `bech32` crate would leave a copy in a
/// buffer on the stack.
fn bech32(kind: Hrp, bytes: impl Iterator<Item = u8>) -> SecretText {
    let mut text = Zeroizing::new(String::with_capacity(TEXT_ROOM));
    bytes.bytes_to_fes().with_checksum::<Bech32>(&kind).chars().for_each(|character| text.push(character));
    text
}
