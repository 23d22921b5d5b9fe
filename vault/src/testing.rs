//! Methods of [`Vault`] for tests only. They need a vault whose secrets are in this process.

use super::error::VaultError;
use super::link::Link;
use super::public::PublicSettings;
#[cfg(test)]
use super::random::Source;
#[cfg(test)]
use super::secret::Signing;
use super::secrets::Secrets;
use super::start_points::StartId;
use super::ticket::{Order, Reader};
use super::vault::Vault;
use crate::key::VerifiedHit;
use crate::message::{GiftWrap, OutgoingMessage, Ticket};
use std::sync::Arc;

impl Vault {
    /// The same vault, with a reader of messages.
    pub fn with_reader(self, reader: Reader) -> Vault {
        self.with(|secrets| secrets.with_reader(reader))
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

    /// The same vault, which signs what these settings allow.
    pub fn with_settings(self, settings: PublicSettings) -> Vault {
        self.with(|secrets| secrets.with_settings(Some(settings)))
    }

    /// The same vault, with another source of randomness.
    #[cfg(test)]
    pub(super) fn with_source(self, source: Source) -> Vault {
        self.with(|secrets| secrets.with_source(source))
    }

    #[cfg(test)]
    pub(super) fn bot_for_tests(&self) -> &Signing {
        self.here_only().expect("a vault of this process").bot_for_tests()
    }

    fn with(mut self, change: impl FnOnce(&Secrets) -> Secrets) -> Vault {
        let secrets = change(self.here_only().expect("a vault of this process"));
        self.link = Link::Here(Arc::new(secrets));
        self
    }
}
