//! The signer of public events that relays' client library calls.

use super::error::VaultError;
use super::link::Link;
use super::request::{Answer, Request};
use nostr::signer::SignerBackend;
use nostr::util::BoxedFuture;
use nostr::{Event, JsonUtil, NostrSigner, PublicKey, SignerError, UnsignedEvent};
use std::fmt;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

/// Number of requests that the vault's policy refused. An honest bot makes none, so each is a sign
/// of a bug or of a captured process. Clones share the number.
#[derive(Clone, Default)]
pub(super) struct Refusals(Arc<AtomicU64>);

impl Refusals {
    /// Counts a refusal by the policy, and logs the 1st, 2nd, 4th, 8th and so on.
    fn count(&self, error: &VaultError) {
        if matches!(error, VaultError::Unsigned { .. }) {
            let count = self.0.fetch_add(1, Ordering::Relaxed) + 1;
            if count.is_power_of_two() {
                tracing::error!(%error, count, "the vault refuses to sign: a bug, or the bot's process is captured");
            }
        }
    }

    pub(super) fn number(&self) -> u64 {
        self.0.load(Ordering::Relaxed)
    }
}

/// Signer of the bot's public events, within the policy in `public`. It refuses to encrypt and
/// decrypt. Messages go through `Vault::seal` and `Vault::open_all`.
#[derive(Clone)]
pub struct BotSigner {
    link: Link,
    refusals: Refusals,
}

impl BotSigner {
    pub(super) fn new(link: Link, refusals: Refusals) -> BotSigner {
        BotSigner { link, refusals }
    }

    /// Signs an event with the bot's key, if the policy allows it. Waits for the vault.
    ///
    /// Errors: the policy does not allow the event, or the vault is away.
    pub fn sign(&self, unsigned: UnsignedEvent) -> Result<Event, SignerError> {
        let answer = self.link.ask(Request::Sign(unsigned.as_json()));
        match answer.inspect_err(|error| self.refusals.count(error)).map_err(SignerError::backend)? {
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
