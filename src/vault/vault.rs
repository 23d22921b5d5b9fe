//! The interface of the vault to other rooms.

use super::announcement::Announcement;
use super::claim::{Claim, Opened};
use super::error::{UnwrapError, VaultError};
use super::random::{self, Source};
use super::rumor::Rumor;
use super::secret::{DerivedKey, NSEC_LENGTH, SecretText, Signing};
use super::signer::BotSigner;
use super::start_points::{StartId, StartPoints};
use super::unlock::Unlock;
use super::verified::VerifiedEvent;
use super::{identity, seal, unwrap};
use crate::clock::Clock;
use crate::key::{HalfPoint, SplitTweak, StartPoint, VerifiedHit, candidate};
use crate::message::{Channel, GiftWrap, OutgoingMessage};
use std::fmt::{self, Write as _};
use std::io::Write;
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

/// Owner of every secret: the identity and the open start points. Cheap to clone; clones share
/// both.
#[derive(Clone)]
pub struct Vault {
    bot: Arc<Signing>,
    starts: Arc<StartPoints>,
    source: Source,
    clock: Clock,
    /// Messages that did not open, counted in the order of [`UnwrapError::ALL`].
    dropped: Arc<[AtomicU64; UnwrapError::ALL.len()]>,
}

impl fmt::Debug for Vault {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Vault")
    }
}

impl Vault {
    /// Makes a new identity and writes it to a new file at `path` (permissions 0600), locked with
    /// `unlock`.
    ///
    /// Errors: [`VaultError::FileExists`], [`VaultError::File`], [`VaultError::WrongKey`] if
    /// `unlock` is empty or holds no key, [`VaultError::NoRandomness`].
    pub fn create(path: &Path, unlock: &Unlock) -> Result<Vault, VaultError> {
        identity::create(path, unlock, random::system).map(Vault::with)
    }

    /// Opens the identity in `path`.
    ///
    /// Errors: [`VaultError::File`], [`VaultError::WrongKey`].
    pub fn open(path: &Path, unlock: &Unlock) -> Result<Vault, VaultError> {
        identity::open(path, unlock).map(Vault::with)
    }

    /// A vault with a temporary identity that is not stored, for `npubbot mine` and `bench`.
    ///
    /// Errors: [`VaultError::NoRandomness`].
    pub fn without_identity() -> Result<Vault, VaultError> {
        Signing::draw(random::system).map(Vault::with)
    }

    fn with(bot: Signing) -> Vault {
        Vault {
            bot: Arc::new(bot),
            starts: Arc::default(),
            source: random::system,
            clock: Clock::System,
            dropped: Arc::default(),
        }
    }

    /// The same vault, with another clock for the dates of messages.
    pub fn with_clock(self, clock: Clock) -> Vault {
        Vault { clock, ..self }
    }

    /// The same vault, with another source of randomness.
    #[cfg(test)]
    pub(super) fn with_source(self, source: Source) -> Vault {
        Vault { source, ..self }
    }

    #[cfg(test)]
    pub(super) fn bot_for_tests(&self) -> &Signing {
        &self.bot
    }

    /// The bot's public key.
    pub fn public_key(&self) -> nostr::PublicKey {
        self.bot.public_key()
    }

    /// Draws a start secret, 256 bits from the operating system, and returns its point.
    ///
    /// Errors: [`VaultError::NoRandomness`].
    pub fn open_start(&self) -> Result<(StartId, StartPoint), VaultError> {
        self.starts.open(self.source)
    }

    /// Draws a blinding secret, 256 bits from the operating system, and returns the blinded point
    /// of an asker's half.
    ///
    /// Errors: [`VaultError::NoRandomness`].
    pub fn open_split_start(&self, half: &HalfPoint) -> Result<(StartId, StartPoint), VaultError> {
        self.starts.open_split(half, self.source)
    }

    /// Removes start points that will not be redeemed. Unknown ones are ignored.
    pub fn discard(&self, starts: &[StartId]) {
        self.starts.discard(starts);
    }

    /// Spends the start point, derives the key and seals it to the asker. The text is
    /// `message.text`, the nsec on a line of its own, then `after`. A key is always sealed
    /// (NIP-17), also if the message's channel is NIP-04. The start point is spent before anything
    /// is derived, so an error never allows a second try.
    ///
    /// Errors: [`VaultError::StartSpent`], [`VaultError::ForeignHit`], [`VaultError::Unsealable`],
    /// [`VaultError::NoRandomness`].
    pub fn redeem(
        &self,
        start: StartId,
        hit: &VerifiedHit,
        message: &OutgoingMessage,
        after: &str,
    ) -> Result<GiftWrap, VaultError> {
        let key = self.derive(start, hit)?;
        let mut text = SecretText::with_capacity(message.text.len() + NSEC_LENGTH + after.len() + 2);
        write_message(&mut text, &message.text, &key, after).map_err(|_| VaultError::Unsealable)?;
        drop(key);
        self.seal_text(message, text.as_str().ok_or(VaultError::Unsealable)?)
    }

    /// Spends the start point and writes the nsec, without a line break, to `output`.
    ///
    /// Errors: as [`Vault::redeem`], and [`VaultError::Output`]; the start point is spent then,
    /// too.
    pub fn redeem_to(&self, start: StartId, hit: &VerifiedHit, output: &mut dyn Write) -> Result<(), VaultError> {
        let key = self.derive(start, hit)?;
        let mut text = SecretText::with_capacity(NSEC_LENGTH);
        key.write_nsec(&mut text).map_err(|_| VaultError::Unsealable)?;
        output.write_all(text.as_bytes()).and_then(|()| output.flush()).map_err(VaultError::Output)
    }

    /// Spends the start point and returns the key locked with a password (NIP-49).
    ///
    /// Errors: as [`Vault::redeem_to`]; the start point is spent then, too.
    pub fn redeem_locked(&self, start: StartId, hit: &VerifiedHit, password: &str) -> Result<String, VaultError> {
        self.derive(start, hit)?.ncryptsec(password, self.source)
    }

    /// Spends a split start point and returns the tweak for the asker's half. The tweak is not a
    /// secret.
    ///
    /// Errors: [`VaultError::StartSpent`], [`VaultError::ForeignHit`].
    pub fn reveal(&self, start: StartId, hit: &VerifiedHit) -> Result<SplitTweak, VaultError> {
        let start = self.starts.spend_split(start)?;
        if start.point().as_ref() != Some(hit.point()) {
            return Err(VaultError::ForeignHit);
        }
        let half = StartPoint::new(*start.half().public_key());
        let split = start.tweak(hit.tweak()).ok_or(VaultError::ForeignHit)?;
        if candidate(&half, &split.tweak) != Some(hit.npub()) {
            return Err(VaultError::ForeignHit);
        }
        Ok(split)
    }

    /// Seals a message to its asker: rumor, seal and wrap (NIP-17, NIP-59), or kind 4 if its
    /// channel is NIP-04.
    ///
    /// Errors: [`VaultError::Unsealable`] if the asker's key is no key or the text is too long,
    /// [`VaultError::NoRandomness`].
    pub fn seal(&self, message: &OutgoingMessage) -> Result<GiftWrap, VaultError> {
        match message.channel {
            Channel::Sealed => self.seal_text(message, &message.text),
            Channel::Nip04 => seal::as_nip04(&self.bot, self.source, self.clock.now(), message),
        }
    }

    /// Opens a wrap to us and checks it, in the order of [`UnwrapError`]. The caller checks kind
    /// and date of the rumor, and looks up the author of a claim.
    ///
    /// Errors: [`UnwrapError`].
    pub fn unwrap(&self, wrap: &VerifiedEvent) -> Result<Opened, UnwrapError> {
        self.count(unwrap::unwrap(&self.bot, wrap))
    }

    /// The message in a claim, if `announcement`, the newest of its author, names the key that
    /// signed the seal.
    ///
    /// Errors: [`UnwrapError::Impostor`].
    pub fn confirm(&self, claim: Claim, announcement: Option<&Announcement>) -> Result<Rumor, UnwrapError> {
        self.count(claim.confirm(announcement))
    }

    /// Opens a message of kind 4 to us (NIP-04) and checks it as far as NIP-04 allows.
    ///
    /// Errors: [`UnwrapError`].
    pub fn open_nip04(&self, message: &VerifiedEvent) -> Result<Rumor, UnwrapError> {
        self.count(unwrap::open_nip04(&self.bot, message))
    }

    /// Number of messages that did not open since the start, by cause.
    pub fn dropped(&self) -> [(UnwrapError, u64); UnwrapError::ALL.len()] {
        let count = |cause| self.dropped[cause as usize].load(Ordering::Relaxed);
        UnwrapError::ALL.map(|cause| (cause, count(cause)))
    }

    /// Counts the message if it did not open.
    fn count<T>(&self, opened: Result<T, UnwrapError>) -> Result<T, UnwrapError> {
        opened.inspect_err(|&cause| _ = self.dropped[cause as usize].fetch_add(1, Ordering::Relaxed))
    }

    /// A signer for public events.
    pub fn signer(&self) -> BotSigner {
        BotSigner::new(Arc::clone(&self.bot))
    }

    /// Removes the start point from the table first, so that it yields at most one key.
    fn derive(&self, start: StartId, hit: &VerifiedHit) -> Result<DerivedKey, VaultError> {
        let start = self.starts.spend(start)?;
        if start.point().as_ref() != Some(hit.point()) {
            return Err(VaultError::ForeignHit);
        }
        let key = start.derive(hit.tweak()).ok_or(VaultError::ForeignHit)?;
        if key.npub() != Some(hit.npub()) {
            return Err(VaultError::ForeignHit);
        }
        Ok(key)
    }

    fn seal_text(&self, message: &OutgoingMessage, text: &str) -> Result<GiftWrap, VaultError> {
        seal::seal(&self.bot, self.source, self.clock.now(), message, text)
    }
}

fn write_message(text: &mut SecretText, before: &str, key: &DerivedKey, after: &str) -> fmt::Result {
    text.write_str(before)?;
    text.write_str("\n")?;
    key.write_nsec(text)?;
    text.write_str("\n")?;
    text.write_str(after)
}
