//! Our requests to other bots. A bot's answer names the id of the request, and so does the deletion
//! that withdraws the request.

use super::error::VaultError;
use super::no_key::without_keys;
use super::request::Request;
use super::seal;
use super::vault::{Vault, sealed};
use crate::job::{Asker, RumorId};
use crate::message::{GiftWrap, OutgoingMessage};

impl Vault {
    /// Seals a message, and returns the id that its answers will name.
    ///
    /// Errors: as [`Vault::seal`].
    pub fn seal_request(&self, message: &OutgoingMessage) -> Result<(GiftWrap, RumorId), VaultError> {
        let now = self.clock.now();
        // The vault cuts possible keys from a text before sealing. The id must be that of the cut
        // text.
        let message = OutgoingMessage { text: without_keys(&message.text).into_owned(), ..message.clone() };
        let id = seal::rumor_id(&self.public_key(), now, &message)?;
        Ok((sealed(self.link.ask(Request::Seal { message, now })?)?, id))
    }

    /// Seals a deletion (NIP-09) of one of our messages, for its receiver only. A bot that receives
    /// it cancels the job of that message and does not answer.
    ///
    /// Errors: as [`Vault::seal`].
    pub fn retract(&self, to: Asker, deleted: RumorId, expires_at: u64) -> Result<GiftWrap, VaultError> {
        let now = self.clock.now();
        sealed(self.link.ask(Request::Retract { to, deleted, expires_at, now })?)
    }
}
