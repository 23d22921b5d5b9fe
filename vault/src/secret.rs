//! Types that hold a secret. None of them can be printed, cloned or serialised, and each clears its
//! memory on drop.
//!
//! A secret stays in one heap allocation, so moving its owner leaves no copy behind. libsecp256k1
//! and the NIP-44 code work on the stack, which is cleared after each request
//! ([`clear_stack_below`]). We cannot clear copies in registers, nor those of `age`, which buffers
//! the identity while it encrypts its file.

use super::error::VaultError;
use super::random::{Generator, Source};
use super::request::SecretOutput;
use crate::key::{HalfPoint, Npub, Offset, SplitTweak, StartPoint, Tweak};
use bech32::primitives::decode::CheckedHrpstring;
use bech32::{Bech32, ByteIterExt, Fe32IterExt, Hrp};
use nostr::hashes::{Hash, HashEngine, Hmac, HmacEngine, sha256};
use nostr::nips::nip49::{EncryptedSecretKey, KeySecurity};
use nostr::{Keys, ToBech32};
use secp256k1::{Keypair, PublicKey, SECP256K1, SecretKey};
use std::{fmt, io};
use zeroize::{Zeroize, Zeroizing};

/// Human-readable part of an nsec (NIP-19).
const NSEC: Hrp = Hrp::parse_unchecked("nsec");

/// Characters of an nsec: `nsec1`, 52 of data, 6 of checksum.
pub(super) const NSEC_LENGTH: usize = 63;

/// Human-readable part of a half's text.
const NHALF: Hrp = Hrp::parse_unchecked("nhalf");
/// Version of the layout of a half's text; the only one so far.
const HALF_VERSION: u8 = 1;
/// Characters of a half: `nhalf1`, 53 of data, 6 of checksum.
pub(super) const NHALF_LENGTH: usize = 65;

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

/// Secret number from 1 to n-1, where n is the order of secp256k1.
struct Scalar(Box<[u8; 32]>);

impl Drop for Scalar {
    fn drop(&mut self) {
        self.0.zeroize();
    }
}

impl Scalar {
    /// Draws 256 bits, and draws again if they are 0 or at least n. After 64 tries the source
    /// counts as broken.
    fn draw(source: Source) -> Result<Scalar, VaultError> {
        let mut scalar = Scalar(Box::new([0; 32]));
        for _ in 0..64 {
            source(scalar.0.as_mut_slice())?;
            if scalar.with_key(|_| ()).is_some() {
                return Ok(scalar);
            }
        }
        Err(VaultError::NoRandomness)
    }

    /// Reads bech32 of this kind and length, whose bytes are `first` and the number.
    fn read(text: &str, kind: Hrp, length: usize, first: &[u8]) -> Option<Scalar> {
        let checked = CheckedHrpstring::new::<Bech32>(text).ok()?;
        let mut bytes = checked.byte_iter();
        let is_kind = checked.hrp() == kind && text.len() == length;
        if !is_kind || !first.iter().all(|expected| bytes.next() == Some(*expected)) {
            return None;
        }
        let mut scalar = Scalar(Box::new([0; 32]));
        for place in scalar.0.iter_mut() {
            *place = bytes.next()?;
        }
        Some(scalar)
    }

    /// Calls `work` with a copy in libsecp256k1's form, then clears the copy. `None` if the number
    /// is 0 or at least n.
    fn with_key<T>(&self, work: impl FnOnce(&SecretKey) -> T) -> Option<T> {
        let mut key = SecretKey::from_slice(self.0.as_slice()).ok()?;
        let done = work(&key);
        key.non_secure_erase();
        Some(done)
    }

    /// Moves a key into a `Scalar` and clears the original.
    fn take(mut key: SecretKey) -> Scalar {
        let mut scalar = Scalar(Box::new([0; 32]));
        scalar.0.copy_from_slice(key.as_ref());
        key.non_secure_erase();
        scalar
    }
}

/// Start secret `s` of a start point `P = s·G`. It yields at most one key: [`Start::derive`]
/// consumes it.
pub(super) struct Start(Scalar);

impl Start {
    /// Draws a start secret: 256 bits from the source.
    pub(super) fn draw(source: Source) -> Result<Start, VaultError> {
        Scalar::draw(source).map(Start)
    }

    /// The start point `P`. Never `None` for a start secret that was drawn.
    pub(super) fn point(&self) -> Option<StartPoint> {
        self.0.with_key(|key| StartPoint::new(PublicKey::from_secret_key(SECP256K1, key)))
    }

    /// The key `λ^rotation · (s + offset) mod n`; `None` if it is zero.
    pub(super) fn derive(self, tweak: &Tweak) -> Option<DerivedKey> {
        let mut moved = self.0.with_key(|key| key.add_tweak(tweak.offset.scalar()).ok())??;
        let turned = moved.mul_tweak(&tweak.rotation.scalar());
        moved.non_secure_erase();
        Some(DerivedKey(Scalar::take(turned.ok()?)))
    }
}

/// Secret `r` of a split start point `P = h·G + r·G`, where the asker holds `h`. Because `r` is
/// random, an asker cannot choose where the search starts. It yields at most one tweak:
/// [`SplitStart::tweak`] consumes it.
pub(super) struct SplitStart {
    r: Scalar,
    half: HalfPoint,
}

impl SplitStart {
    /// Draws a blinding secret: 256 bits from the source.
    pub(super) fn draw(half: HalfPoint, source: Source) -> Result<SplitStart, VaultError> {
        Ok(SplitStart { r: Scalar::draw(source)?, half })
    }

    /// `P`; `None` if the sum is infinity.
    pub(super) fn point(&self) -> Option<StartPoint> {
        self.r.with_key(|r| self.half.blinded(&(*r).into()))?
    }

    /// The tweak that turns `h` into the key: `r` is added to the offset. Useless without `h`.
    pub(super) fn tweak(self, found: &Tweak) -> Option<SplitTweak> {
        let offset = self.r.with_key(|r| {
            // libsecp256k1 refuses only a sum of zero.
            r.add_tweak(found.offset.scalar()).map_or(secp256k1::Scalar::ZERO, secp256k1::Scalar::from)
        })?;
        let tweak = Tweak { offset: Offset::from_scalar(offset), rotation: found.rotation };
        Some(SplitTweak { tweak, fingerprint: self.half.fingerprint() })
    }

    /// The asker's half point.
    pub(super) fn half(&self) -> &HalfPoint {
        &self.half
    }
}

/// Half `h` of a split key.
pub(super) struct HalfKey(Scalar);

impl HalfKey {
    pub(super) fn draw(source: Source) -> Result<HalfKey, VaultError> {
        Scalar::draw(source).map(HalfKey)
    }

    /// Reads `nhalf1…`; `None` for anything else. The number may be 0 or at least n.
    pub(super) fn parse(text: &str) -> Option<HalfKey> {
        Scalar::read(text, NHALF, NHALF_LENGTH, &[HALF_VERSION]).map(HalfKey)
    }

    /// `h·G`; `None` if `h` is 0 or at least n. Never `None` for a drawn half.
    pub(super) fn point(&self) -> Option<HalfPoint> {
        self.0.with_key(|key| HalfPoint::new(PublicKey::from_secret_key(SECP256K1, key)))
    }

    /// Writes the half in its text form, `nhalf1…`, to a text that is cleared on drop.
    pub(super) fn write_text(&self, text: &mut SecretText) -> fmt::Result {
        let bytes = std::iter::once(HALF_VERSION).chain(self.0.0.iter().copied());
        write_bech32(text, NHALF, bytes)
    }

    /// The key `λ^rotation · (±h + offset) mod n`; `None` if it is zero. `opposite` selects the
    /// minus sign: the tweak belongs to `-h·G`, which happens if the point was sent as an npub.
    pub(super) fn combine(&self, tweak: &Tweak, opposite: bool) -> Option<DerivedKey> {
        let mut half = self.0.with_key(|key| if opposite { key.negate() } else { *key })?;
        let start = Start(Scalar::take(half));
        half.non_secure_erase();
        start.derive(tweak)
    }
}

/// A derived key. It lives until it is written into its one message.
pub(super) struct DerivedKey(Scalar);

impl DerivedKey {
    /// The npub of the key.
    pub(super) fn npub(&self) -> Option<Npub> {
        self.0.with_key(|key| {
            let mut pair = Keypair::from_secret_key(SECP256K1, key);
            let npub = Npub(pair.x_only_public_key().0.serialize());
            pair.non_secure_erase();
            npub
        })
    }

    /// The nsec, in a text that is cleared on drop.
    pub(super) fn nsec(&self) -> Result<SecretText, VaultError> {
        let mut text = SecretText::with_capacity(NSEC_LENGTH);
        write_bech32(&mut text, NSEC, self.0.0.iter().copied()).map_err(|_| VaultError::Unsealable)?;
        Ok(text)
    }

    /// The key as text, encrypted with a password (NIP-49).
    pub(super) fn ncryptsec(&self, password: &str, source: Source) -> Result<String, VaultError> {
        let mut generator = Generator::new(source);
        let locked = self
            .0
            .with_key(|key| {
                let key = nostr::SecretKey::from(*key);
                EncryptedSecretKey::new_with_rng(&mut generator, &key, password, NCRYPTSEC_WORK, KeySecurity::Unknown)
            })
            .and_then(Result::ok)
            .ok_or(VaultError::Unsealable)?;
        generator.checked(locked)?.to_bech32().map_err(|_| VaultError::Unsealable)
    }
}

/// Signing key: the identity of the bot, or the one-time key of a wrap.
pub(super) struct Signing(Keys);

impl Signing {
    /// Draws a new key.
    pub(super) fn draw(source: Source) -> Result<Signing, VaultError> {
        Scalar::draw(source)?.with_key(|key| Signing(keys(key))).ok_or(VaultError::NoRandomness)
    }

    /// Reads an nsec; `None` for anything else.
    pub(super) fn from_nsec(nsec: &str) -> Option<Signing> {
        Scalar::read(nsec, NSEC, NSEC_LENGTH, &[])?.with_key(|key| Signing(keys(key)))
    }

    /// The content of the identity file: the nsec on one line, then `line`.
    pub(super) fn nsec_line(&self) -> Result<SecretText, fmt::Error> {
        let mut text = SecretText::with_capacity(NSEC_LENGTH + 1);
        write_bech32(&mut text, NSEC, self.0.secret_key().as_secret_bytes().iter().copied())?;
        fmt::Write::write_str(&mut text, "\n")?;
        Ok(text)
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

/// Writes bech32 character by character. The encoder of the `bech32` crate would leave a copy in a
/// buffer on the stack.
fn write_bech32(text: &mut SecretText, kind: Hrp, bytes: impl Iterator<Item = u8>) -> fmt::Result {
    let mut characters = bytes.bytes_to_fes().with_checksum::<Bech32>(&kind).chars();
    characters.try_for_each(|character| fmt::Write::write_char(text, character))
}

/// The key in the form of `nostr`, which clears itself on drop.
fn keys(key: &SecretKey) -> Keys {
    Keys::new((*key).into())
}

/// Text that contains a secret. Its capacity is fixed, because growing would leave a copy behind.
pub(super) struct SecretText(Zeroizing<Vec<u8>>);

impl SecretText {
    /// An empty text with room for `bytes`.
    pub(super) fn with_capacity(bytes: usize) -> SecretText {
        SecretText(Zeroizing::new(Vec::with_capacity(bytes)))
    }

    pub(super) fn as_bytes(&self) -> &[u8] {
        &self.0
    }

    /// The text; `None` if it is not UTF-8.
    pub(super) fn as_str(&self) -> Option<&str> {
        std::str::from_utf8(&self.0).ok()
    }

    /// The text for the person at this machine.
    pub(super) fn to_output(&self) -> Result<SecretOutput, VaultError> {
        self.as_str().map(|text| SecretOutput(text.to_owned())).ok_or(VaultError::Failed)
    }

    /// Reads to the end of `reader`. Errors: `reader` fails, or has more bytes than the capacity
    /// allows.
    pub(super) fn fill_from(&mut self, mut reader: impl io::Read) -> io::Result<()> {
        let room = self.0.capacity() - self.0.len();
        let start = self.0.len();
        self.0.resize(start + room, 0);
        let mut end = start;
        let mut over = Zeroizing::new([0; 1]);
        loop {
            let place = if end < self.0.len() { &mut self.0[end..] } else { &mut over[..] };
            let full = end == start + room;
            match reader.read(place) {
                Ok(0) => break,
                Ok(_) if full => return Err(io::ErrorKind::FileTooLarge.into()),
                Ok(count) => end += count,
                Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                Err(error) => return Err(error),
            }
        }
        self.0.truncate(end);
        Ok(())
    }

    /// Appends `bytes`, or returns `false` if they do not fit.
    fn append(&mut self, bytes: &[u8]) -> bool {
        let fits = bytes.len() <= self.0.capacity() - self.0.len();
        if fits {
            self.0.extend_from_slice(bytes);
        }
        fits
    }
}

impl fmt::Write for SecretText {
    fn write_str(&mut self, text: &str) -> fmt::Result {
        if self.append(text.as_bytes()) { Ok(()) } else { Err(fmt::Error) }
    }
}

impl io::Write for SecretText {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        if self.append(bytes) { Ok(bytes.len()) } else { Err(io::ErrorKind::WriteZero.into()) }
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}
