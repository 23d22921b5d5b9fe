//! The types that hold a secret. None can be printed, cloned or serialised, and each clears its memory when it goes.
//!
//! A secret sits in one heap cell that never moves, so no table or stack keeps a copy when it is passed on. What remains
//! is beyond our reach: libsecp256k1 and the NIP-44 code work on copies in registers and on the stack, and `age` buffers
//! the identity while it encrypts its file.

use super::VaultError;
use super::random::{Generator, Source};
use crate::key::{HalfPoint, Npub, Offset, SplitTweak, StartPoint, Tweak};
use bech32::primitives::decode::CheckedHrpstring;
use bech32::{Bech32, ByteIterExt, Fe32IterExt, Hrp};
use nostr::nips::nip49::{EncryptedSecretKey, KeySecurity};
use nostr::{Keys, ToBech32};
use secp256k1::{Keypair, PublicKey, SECP256K1, SecretKey};
use std::{fmt, io};
use zeroize::{Zeroize, Zeroizing};

/// The human part of a secret key's text (NIP-19).
const NSEC: Hrp = Hrp::parse_unchecked("nsec");

/// Characters of an nsec: `nsec1`, 52 of data, 6 of checksum.
pub(super) const NSEC_LENGTH: usize = 63;

/// The human part of a half's text, the only layout there is so far, and its characters: `nhalf1`, 53 of data, 6 of
/// checksum.
const NHALF: Hrp = Hrp::parse_unchecked("nhalf");
const HALF_VERSION: u8 = 1;
pub(super) const NHALF_LENGTH: usize = 65;

/// NIP-49's scrypt cost as a power of two: 64 MiB and some tenths of a second.
const NCRYPTSEC_WORK: u8 = 16;

/// A number from 1 to n-1.
struct Scalar(Box<[u8; 32]>);

impl Drop for Scalar {
    fn drop(&mut self) {
        self.0.zeroize();
    }
}

impl Scalar {
    /// 256 random bits; 0 and n or above are drawn again. A source that gives nothing else is not one.
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

    /// Lends libsecp256k1 a copy and clears it. `None` if this is 0 or not below n.
    fn with_key<T>(&self, work: impl FnOnce(&SecretKey) -> T) -> Option<T> {
        let mut key = SecretKey::from_slice(self.0.as_slice()).ok()?;
        let done = work(&key);
        key.non_secure_erase();
        Some(done)
    }

    /// Takes a key over and clears where it was.
    fn take(mut key: SecretKey) -> Scalar {
        let mut scalar = Scalar(Box::new([0; 32]));
        scalar.0.copy_from_slice(key.as_ref());
        key.non_secure_erase();
        scalar
    }
}

/// The secret `s` of a start point `P = s·G`. It gives at most one key: [`Start point::derive`] consumes it.
pub(super) struct Start(Scalar);

impl Start {
    /// 256 bits from the source.
    pub(super) fn draw(source: Source) -> Result<Start, VaultError> {
        Scalar::draw(source).map(Start)
    }

    /// `P`. `None` never happens to a drawn start point.
    pub(super) fn point(&self) -> Option<StartPoint> {
        self.0.with_key(|key| StartPoint::new(PublicKey::from_secret_key(SECP256K1, key)))
    }

    /// `λ^rotation · (s + offset) mod n`; `None` where that is zero.
    pub(super) fn derive(self, tweak: &Tweak) -> Option<DerivedKey> {
        let mut moved = self.0.with_key(|key| key.add_tweak(tweak.offset.scalar()).ok())??;
        let turned = moved.mul_tweak(&tweak.rotation.scalar());
        moved.non_secure_erase();
        Some(DerivedKey(Scalar::take(turned.ok()?)))
    }
}

/// A start point on an asker's own point: `P = h·G + r·G`. The asker holds `h`; the `r` is ours, so that nobody can choose a
/// point that makes a search stumble. It gives at most one tweak: [`SplitStart::tweak`] consumes it.
pub(super) struct SplitStart {
    r: Scalar,
    half: HalfPoint,
}

impl SplitStart {
    /// 256 bits from the source.
    pub(super) fn draw(half: HalfPoint, source: Source) -> Result<SplitStart, VaultError> {
        Ok(SplitStart { r: Scalar::draw(source)?, half })
    }

    /// `P`. `None` where the sum is infinity.
    pub(super) fn point(&self) -> Option<StartPoint> {
        self.r.with_key(|r| self.half.blinded(&(*r).into()))?
    }

    /// What turns `h` itself into the key: `r` added to the offset. Not a secret to anybody without `h`.
    pub(super) fn tweak(self, found: &Tweak) -> Option<SplitTweak> {
        let offset = self.r.with_key(|r| {
            // The one sum libsecp256k1 refuses is zero.
            r.add_tweak(found.offset.scalar()).map_or(secp256k1::Scalar::ZERO, secp256k1::Scalar::from)
        })?;
        let tweak = Tweak { offset: Offset::from_scalar(offset), rotation: found.rotation };
        Some(SplitTweak { tweak, fingerprint: self.half.fingerprint() })
    }

    pub(super) fn half(&self) -> &HalfPoint {
        &self.half
    }
}

/// An asker's half `h` of a split key.
pub(super) struct HalfKey(Scalar);

impl HalfKey {
    pub(super) fn draw(source: Source) -> Result<HalfKey, VaultError> {
        Scalar::draw(source).map(HalfKey)
    }

    /// Reads `nhalf1…`. `None` if it is none.
    pub(super) fn parse(text: &str) -> Option<HalfKey> {
        let checked = CheckedHrpstring::new::<Bech32>(text).ok()?;
        if checked.hrp() != NHALF || text.len() != NHALF_LENGTH {
            return None;
        }
        let mut bytes = checked.byte_iter();
        if bytes.next()? != HALF_VERSION {
            return None;
        }
        let mut scalar = Scalar(Box::new([0; 32]));
        for place in scalar.0.iter_mut() {
            *place = bytes.next()?;
        }
        scalar.with_key(|_| ())?;
        Some(HalfKey(scalar))
    }

    /// `h·G`. `None` never happens to a drawn or read half.
    pub(super) fn point(&self) -> Option<HalfPoint> {
        self.0.with_key(|key| HalfPoint::new(PublicKey::from_secret_key(SECP256K1, key)))
    }

    /// Writes `nhalf1…` into a text that will be cleared.
    pub(super) fn write_text(&self, text: &mut SecretText) -> fmt::Result {
        let bytes = std::iter::once(HALF_VERSION).chain(self.0.0.iter().copied());
        write_bech32(text, NHALF, bytes)
    }

    /// `λ^rotation · (±h + offset) mod n`, with the minus where the tweak is for the opposite point, as it is where the
    /// point was given as an npub. `None` where that is zero.
    pub(super) fn combine(&self, tweak: &Tweak, opposite: bool) -> Option<DerivedKey> {
        let mut half = self.0.with_key(|key| if opposite { key.negate() } else { *key })?;
        let start = Start(Scalar::take(half));
        half.non_secure_erase();
        start.derive(tweak)
    }
}

/// The key somebody requested, on its way into its one message.
pub(super) struct DerivedKey(Scalar);

impl DerivedKey {
    /// What the world will see of it.
    pub(super) fn npub(&self) -> Option<Npub> {
        self.0.with_key(|key| {
            let mut pair = Keypair::from_secret_key(SECP256K1, key);
            let npub = Npub(pair.x_only_public_key().0.serialize());
            pair.non_secure_erase();
            npub
        })
    }

    /// Writes the nsec into a text that will be cleared.
    pub(super) fn write_nsec(&self, text: &mut SecretText) -> fmt::Result {
        write_bech32(text, NSEC, self.0.0.iter().copied())
    }

    /// NIP-49: the key locked with a password, as its text.
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

/// The bot's own key, or the one-time key of a wrap.
pub(super) struct Signing(Keys);

impl Signing {
    /// A new key.
    pub(super) fn draw(source: Source) -> Result<Signing, VaultError> {
        Scalar::draw(source)?.with_key(|key| Signing(keys(key))).ok_or(VaultError::NoRandomness)
    }

    /// Reads an nsec. `None` if it is none.
    pub(super) fn of_nsec(nsec: &str) -> Option<Signing> {
        let checked = CheckedHrpstring::new::<Bech32>(nsec).ok()?;
        if checked.hrp() != NSEC || nsec.len() != NSEC_LENGTH {
            return None;
        }
        let mut scalar = Scalar(Box::new([0; 32]));
        let mut bytes = checked.byte_iter();
        for place in scalar.0.iter_mut() {
            *place = bytes.next()?;
        }
        scalar.with_key(|key| Signing(keys(key)))
    }

    /// The nsec and a line break: what the identity file holds.
    pub(super) fn nsec_line(&self) -> Result<SecretText, fmt::Error> {
        let mut text = SecretText::with_capacity(NSEC_LENGTH + 1);
        write_bech32(&mut text, NSEC, self.0.secret_key().as_secret_bytes().iter().copied())?;
        fmt::Write::write_str(&mut text, "\n")?;
        Ok(text)
    }

    pub(super) fn public_key(&self) -> nostr::PublicKey {
        self.0.public_key()
    }

    /// For `nostr`'s signing and encryption. The keys clear themselves when the last of this goes.
    pub(super) fn keys(&self) -> &Keys {
        &self.0
    }
}

/// Character by character: `bech32`'s own encoding to a text goes through a buffer on the stack and leaves it there.
fn write_bech32(text: &mut SecretText, kind: Hrp, bytes: impl Iterator<Item = u8>) -> fmt::Result {
    let mut characters = bytes.bytes_to_fes().with_checksum::<Bech32>(&kind).chars();
    characters.try_for_each(|character| fmt::Write::write_char(text, character))
}

/// `nostr::Keys` clears its parts when it is dropped.
fn keys(key: &SecretKey) -> Keys {
    Keys::new((*key).into())
}

/// A text with a secret in it. Its room is set aside at once: growing would leave a copy behind, so it refuses to.
pub(super) struct SecretText(Zeroizing<Vec<u8>>);

impl SecretText {
    pub(super) fn with_capacity(bytes: usize) -> SecretText {
        SecretText(Zeroizing::new(Vec::with_capacity(bytes)))
    }

    pub(super) fn as_bytes(&self) -> &[u8] {
        &self.0
    }

    /// The text, if it is UTF-8 to the end.
    pub(super) fn as_str(&self) -> Option<&str> {
        std::str::from_utf8(&self.0).ok()
    }

    /// Reads all there is, as far as there is room.
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
