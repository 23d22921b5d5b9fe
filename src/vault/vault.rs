//! The door: what other rooms may ask of the vault.

use super::random::{self, Source};
use super::secret::{DerivedKey, NSEC_LENGTH, SecretText, Signing};
use super::start_points::StartPoints;
use super::{BotSigner, Rumor, StartId, Unlock, UnwrapError, VaultError, VerifiedEvent, identity, seal, unwrap};
use crate::clock::Clock;
use crate::key::{HalfPoint, SplitTweak, StartPoint, VerifiedHit, candidate};
use crate::message::{Channel, GiftWrap, OutgoingMessage};
use std::fmt::{self, Write as _};
use std::io::Write;
use std::path::Path;
use std::sync::Arc;

/// The keeper of every secret. Cheap to clone; clones share what is open.
#[derive(Clone)]
pub struct Vault {
    bot: Arc<Signing>,
    starts: Arc<StartPoints>,
    source: Source,
    clock: Clock,
}

impl fmt::Debug for Vault {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Vault")
    }
}

impl Vault {
    /// Makes a new identity and keeps it in `path` under `unlock` (permissions 0600). Never overwrites.
    ///
    /// Errors: [`VaultError::FileExists`], [`VaultError::File`], [`VaultError::WrongKey`] if `unlock` is
    /// empty or holds no key, [`VaultError::NoRandomness`].
    pub fn create(path: &Path, unlock: &Unlock) -> Result<Vault, VaultError> {
        identity::create(path, unlock, random::system).map(Vault::with)
    }

    /// Opens the identity in `path`.
    ///
    /// Errors: [`VaultError::File`], [`VaultError::WrongKey`].
    pub fn open(path: &Path, unlock: &Unlock) -> Result<Vault, VaultError> {
        identity::open(path, unlock).map(Vault::with)
    }

    /// A vault with no identity file, for `npubbot mine` and `bench`: it can open and redeem start points, and cannot be asked
    /// again. Its public key is drawn anew each time.
    ///
    /// Errors: [`VaultError::NoRandomness`].
    pub fn without_identity() -> Result<Vault, VaultError> {
        Signing::draw(random::system).map(Vault::with)
    }

    fn with(bot: Signing) -> Vault {
        Vault { bot: Arc::new(bot), starts: Arc::default(), source: random::system, clock: Clock::System }
    }

    /// The same vault, dating its letters by `clock`.
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

    /// A fresh start point: 256 bits from the operating system.
    ///
    /// Errors: [`VaultError::NoRandomness`].
    pub fn open_start(&self) -> Result<(StartId, StartPoint), VaultError> {
        self.starts.open(self.source)
    }

    /// A fresh start point on an asker's own point, blinded with 256 bits from the operating system.
    ///
    /// Errors: [`VaultError::NoRandomness`].
    pub fn open_split_start(&self, half: &HalfPoint) -> Result<(StartId, StartPoint), VaultError> {
        self.starts.open_split(half, self.source)
    }

    /// Forgets start points that will not be redeemed. Unknown ones are ignored.
    pub fn discard(&self, starts: &[StartId]) {
        self.starts.discard(starts);
    }

    /// Spends the start point, derives the key, and seals it to the asker: `letter.text`, the nsec on a line of its own, `after`.
    /// A key is always sealed, whatever the letter's channel.
    /// The start point is gone before anything is derived, whatever happens next.
    ///
    /// Errors: [`VaultError::StartSpent`], [`VaultError::ForeignHit`], [`VaultError::Unsealable`],
    /// [`VaultError::NoRandomness`].
    pub fn redeem(
        &self,
        start: StartId,
        hit: &VerifiedHit,
        letter: &OutgoingMessage,
        after: &str,
    ) -> Result<GiftWrap, VaultError> {
        let key = self.derive(start, hit)?;
        let mut text = SecretText::with_capacity(letter.text.len() + NSEC_LENGTH + after.len() + 2);
        write_message(&mut text, &letter.text, &key, after).map_err(|_| VaultError::Unsealable)?;
        drop(key);
        self.seal_text(letter, text.as_str().ok_or(VaultError::Unsealable)?)
    }

    /// Spends the start point and writes the nsec, without a line break, to `output`.
    ///
    /// Errors: as [`Vault::redeem`], and [`VaultError::Output`]; the start point is spent then, too.
    pub fn redeem_to(&self, start: StartId, hit: &VerifiedHit, output: &mut dyn Write) -> Result<(), VaultError> {
        let key = self.derive(start, hit)?;
        let mut text = SecretText::with_capacity(NSEC_LENGTH);
        key.write_nsec(&mut text).map_err(|_| VaultError::Unsealable)?;
        output.write_all(text.as_bytes()).and_then(|()| output.flush()).map_err(VaultError::Output)
    }

    /// Spends a start point on an asker's point and says what turns their half into the key. That is no secret.
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

    /// Seals a letter to its asker: rumor, seal and wrap (NIP-17, NIP-59), once; or as kind 4, if it is to travel so.
    ///
    /// Errors: [`VaultError::Unsealable`] if the asker's key is no key or the text is too long,
    /// [`VaultError::NoRandomness`].
    pub fn seal(&self, letter: &OutgoingMessage) -> Result<GiftWrap, VaultError> {
        match letter.channel {
            Channel::Sealed => self.seal_text(letter, &letter.text),
            Channel::Nip04 => seal::as_nip04(&self.bot, self.source, self.clock.now(), letter),
        }
    }

    /// Opens a wrap to us and checks all that can be checked, in the order of [`UnwrapError`]. The rumor's kind and date
    /// are not judged here.
    pub fn unwrap(&self, wrap: &VerifiedEvent) -> Result<Rumor, UnwrapError> {
        unwrap::unwrap(&self.bot, wrap)
    }

    /// Opens a message of kind 4 to us (NIP-04), checked as far as that old form allows.
    pub fn open_nip04(&self, message: &VerifiedEvent) -> Result<Rumor, UnwrapError> {
        unwrap::open_nip04(&self.bot, message)
    }

    /// Signs what the bot publishes.
    pub fn signer(&self) -> BotSigner {
        BotSigner::new(Arc::clone(&self.bot))
    }

    /// One start point, at most one key, ever: the start point leaves the table first.
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

    fn seal_text(&self, letter: &OutgoingMessage, text: &str) -> Result<GiftWrap, VaultError> {
        seal::seal(&self.bot, self.source, self.clock.now(), letter, text)
    }
}

fn write_message(text: &mut SecretText, before: &str, key: &DerivedKey, after: &str) -> fmt::Result {
    text.write_str(before)?;
    text.write_str("\n")?;
    key.write_nsec(text)?;
    text.write_str("\n")?;
    text.write_str(after)
}
