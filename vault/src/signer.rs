//! The bot's public events: which are signed, and the signer that relays' client library calls.

use super::error::VaultError;
use super::link::Link;
use super::request::{Answer, Request};
use super::secret::Signing;
use nostr::signer::SignerBackend;
use nostr::util::BoxedFuture;
use nostr::{Event, JsonUtil, NostrSigner, PublicKey, SignerError, UnsignedEvent};
use std::fmt;

/// Signer of the bot's public events: kinds 0, 1, 5, 10002, 10044, 10050, 22242 (AUTH), 30315,
/// 31989, 31990. It refuses to encrypt and decrypt. Messages go through `Vault::seal` and
/// `Vault::open_all`.
#[derive(Clone)]
pub struct BotSigner {
    link: Link,
}

impl BotSigner {
    pub(super) fn new(link: Link) -> BotSigner {
        BotSigner { link }
    }

    /// Signs an event of a listed kind with the bot's key. Waits for the vault.
    ///
    /// Errors: the event has another kind, another author or a wrong id, or the vault is away.
    pub fn sign(&self, unsigned: UnsignedEvent) -> Result<Event, SignerError> {
        match self.link.ask(Request::Sign(unsigned.as_json())).map_err(SignerError::backend)? {
            Answer::Signed(event) => Event::from_json(event).map_err(SignerError::backend),
            _ => Err(SignerError::backend(VaultError::Failed)),
        }
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
        Box::pin(std::future::ready(Ok(self.link.public_key())))
    }

    fn sign_event(&self, unsigned: UnsignedEvent) -> BoxedFuture<'_, Result<Event, SignerError>> {
        let signer = self.clone();
        // The answer may take as long as a new start of the vault process.
        let signing = tokio::task::spawn_blocking(move || signer.sign(unsigned));
        Box::pin(async move { signing.await.map_err(SignerError::backend)? })
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

/// Kinds that are signed: profile, note, deletion, relay list, encryption key, DM relay list, AUTH,
/// status, recommendation of a handler, handler (NIP-89).
const KINDS: [u16; 10] = [0, 1, 5, 10002, 10044, 10050, 22242, 30315, 31989, 31990];

/// Signs an event of a listed kind with the bot's key. Takes and returns JSON.
///
/// Errors: [`VaultError::Unsigned`] for another kind, another author, or a wrong id.
pub(super) fn sign(bot: &Signing, json: &str) -> Result<String, VaultError> {
    let refused = |reason: String| VaultError::Unsigned { reason };
    let unsigned = UnsignedEvent::from_json(json).map_err(|_| refused("this is no event".to_owned()))?;
    let kind = unsigned.kind.as_u16();
    if !KINDS.contains(&kind) {
        return Err(refused(format!("the bot does not sign events of kind {kind}")));
    }
    if unsigned.pubkey != bot.public_key() {
        return Err(refused("the bot signs in its own name only".to_owned()));
    }
    let signed = unsigned.sign_with_keys(bot.keys()).map_err(|error| refused(error.to_string()))?;
    signed.try_as_json().map_err(|error| refused(error.to_string()))
}
