//! Signatures of public events, for the code that talks to relays.

use super::secret::Signing;
use nostr::signer::SignerBackend;
use nostr::util::BoxedFuture;
use nostr::{Event, NostrSigner, PublicKey, SignerError, UnsignedEvent};
use std::fmt;
use std::sync::Arc;

/// Kinds that are signed: profile, note, deletion, relay list, encryption key, DM relay list, AUTH,
/// status, handler and its recommendation.
const KINDS: [u16; 10] = [0, 1, 5, 10002, 10044, 10050, 22242, 30315, 31989, 31990];

/// Signer of the bot's public events: kinds 0, 1, 5, 10002, 10044, 10050, 22242 (AUTH), 30315, 31989,
/// 31990.
/// It refuses to encrypt and decrypt. Messages go through `Vault::seal` and `Vault::unwrap`.
#[derive(Clone)]
pub struct BotSigner {
    bot: Arc<Signing>,
}

impl BotSigner {
    pub(super) fn new(bot: Arc<Signing>) -> BotSigner {
        BotSigner { bot }
    }

    /// Signs an event of a listed kind with the bot's key.
    ///
    /// Errors: another kind, another author, or a wrong id.
    pub fn sign(&self, unsigned: UnsignedEvent) -> Result<Event, SignerError> {
        let kind = unsigned.kind.as_u16();
        if !KINDS.contains(&kind) {
            return Err(SignerError::from(format!("the bot does not sign events of kind {kind}")));
        }
        if unsigned.pubkey != self.bot.public_key() {
            return Err(SignerError::from("the bot signs in its own name only"));
        }
        unsigned.sign_with_keys(self.bot.keys()).map_err(SignerError::backend)
    }
}

impl fmt::Debug for BotSigner {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("BotSigner")
    }
}

/// Refuses to encrypt or decrypt. Returned as a future that is ready at once.
fn refuse<'a>() -> BoxedFuture<'a, Result<String, SignerError>> {
    Box::pin(std::future::ready(Err(SignerError::from("the bot's signer does not encrypt or decrypt"))))
}

impl NostrSigner for BotSigner {
    fn backend(&self) -> SignerBackend<'_> {
        SignerBackend::Custom("npubbot".into())
    }

    fn get_public_key(&self) -> BoxedFuture<'_, Result<PublicKey, SignerError>> {
        Box::pin(std::future::ready(Ok(self.bot.public_key())))
    }

    fn sign_event(&self, unsigned: UnsignedEvent) -> BoxedFuture<'_, Result<Event, SignerError>> {
        Box::pin(std::future::ready(self.sign(unsigned)))
    }

    fn nip04_encrypt<'a>(&'a self, _: &'a PublicKey, _: &'a str) -> BoxedFuture<'a, Result<String, SignerError>> {
        refuse()
    }

    fn nip04_decrypt<'a>(&'a self, _: &'a PublicKey, _: &'a str) -> BoxedFuture<'a, Result<String, SignerError>> {
        refuse()
    }

    fn nip44_encrypt<'a>(&'a self, _: &'a PublicKey, _: &'a str) -> BoxedFuture<'a, Result<String, SignerError>> {
        refuse()
    }

    fn nip44_decrypt<'a>(&'a self, _: &'a PublicKey, _: &'a str) -> BoxedFuture<'a, Result<String, SignerError>> {
        refuse()
    }
}
