//! Methods of [`Vault`] for tests only. They need a vault whose secrets are in this process.

use super::error::VaultError;
use super::identity::Unlock;
use super::process::Link;
use super::public::{Policy, PublicSettings};
#[cfg(test)]
use super::random::Source;
#[cfg(test)]
use super::secret::Signing;
use super::secrets::Secrets;
use super::start_points::StartId;
use super::ticket::{Asked, Order, Reader, Wanted};
use super::vault::Vault;
use crate::key::VerifiedHit;
use crate::key::{HalfPoint, StartPoint};
use crate::message::{Asker, GiftWrap, OutgoingMessage, RumorId, Ticket};
use crate::pattern::ALPHABET;
use std::path::Path;
use std::sync::Arc;

impl Vault {
    /// Makes a new identity in this process, and writes it to a new file at `path` (permissions
    /// 0600), locked with `unlock`.
    ///
    /// Errors: [`VaultError::FileExists`], [`VaultError::File`], [`VaultError::WrongKey`] if
    /// `unlock` is empty or holds no key, [`VaultError::NoRandomness`].
    pub fn create(path: &Path, unlock: &Unlock) -> Result<Vault, VaultError> {
        Secrets::create(path, unlock).map(Vault::here)
    }

    /// Opens the identity in `path` in this process.
    ///
    /// Errors: [`VaultError::File`], [`VaultError::WrongKey`].
    pub fn open(path: &Path, unlock: &Unlock) -> Result<Vault, VaultError> {
        Secrets::open(path, unlock).map(Vault::here)
    }

    /// The same vault, with a reader of messages.
    pub fn with_reader(self, reader: Reader) -> Vault {
        self.with(|secrets| Secrets { reader, ..secrets })
    }

    /// A ticket that no message asked for.
    ///
    /// Errors: [`VaultError::Failed`] if the secrets are in a vault process.
    pub fn ticket_for_tests(&self, order: &Order) -> Result<Ticket, VaultError> {
        self.here_only()?.issue(order)
    }

    /// [`Vault::redeem`] with a ticket for any key to the receiver of the message.
    ///
    /// Errors: as [`Vault::redeem`].
    pub fn redeem_any(
        &self,
        start: StartId,
        hit: &VerifiedHit,
        message: &OutgoingMessage,
    ) -> Result<GiftWrap, VaultError> {
        let ticket = self.ticket_for_tests(&Order::any_key(message.to, None))?;
        self.redeem(start, hit, &ticket, None, message)
    }

    /// Draws a blinding secret, 256 bits from the operating system, and returns the blinded point
    /// of an asker's half.
    ///
    /// Errors: [`VaultError::NoRandomness`], [`VaultError::Gone`].
    pub fn open_split_start(&self, half: &HalfPoint) -> Result<(StartId, StartPoint), VaultError> {
        self.open_starts(1, Some(half))?.pop().ok_or(VaultError::Failed)
    }

    /// The same vault, which signs what these settings allow.
    pub fn with_settings(self, settings: PublicSettings) -> Vault {
        self.with(|secrets| Secrets { policy: Arc::new(Policy::new(Some(settings))), ..secrets })
    }

    /// The same vault, with another source of randomness.
    #[cfg(test)]
    pub(super) fn with_source(self, source: Source) -> Vault {
        self.with(|secrets| Secrets { source, ..secrets })
    }

    #[cfg(test)]
    pub(super) fn bot_for_tests(&self) -> &Signing {
        &self.here_only().expect("a vault of this process").bot
    }

    fn with(mut self, change: impl FnOnce(Secrets) -> Secrets) -> Vault {
        let secrets = change(self.here_only().expect("a vault of this process").clone());
        self.link = Link::Here(Arc::new(secrets));
        self
    }
}

impl Order {
    /// An order for any key, which no message asked for.
    pub fn any_key(asker: Asker, half: Option<HalfPoint>) -> Order {
        let letters = ALPHABET.iter().map(|&letter| char::from(letter).to_string());
        let wanted = Wanted::Patterns(letters.map(|letter| letter.parse().expect("a letter is a pattern")).collect());
        let (rumor, asked) = (RumorId([0; 32]), Asked { wanted, half });
        Order { asker, rumor, dated: 0, encryption_key: None, asked }
    }
}
