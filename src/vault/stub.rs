use super::*;
use crate::key::{BasePoint, VerifiedHit};
use crate::mail::{GiftWrap, Letter};
use std::io::Write;
use std::path::Path;

/// The keeper of every secret. Cheap to clone; clones share what is open.
#[derive(Clone)]
pub struct Vault {}

/// Signs as the bot, and only what the bot publishes: kinds 0, 1, 5, 10002, 10050, 22242 (AUTH), 30315, 31990.
#[derive(Clone, Debug)]
pub struct BotSigner {}

impl Vault {
    /// Makes a new identity and keeps it in `path` under `unlock` (permissions 0600). Never overwrites.
    pub fn create(_path: &Path, _unlock: &Unlock) -> Result<Vault, VaultError> {
        unimplemented!()
    }
    /// Opens the identity in `path`.
    pub fn open(_path: &Path, _unlock: &Unlock) -> Result<Vault, VaultError> {
        unimplemented!()
    }
    /// A vault with no identity file, for `npubbot mine` and `bench`: it can open and redeem bases, and cannot be asked again.
    pub fn without_identity() -> Result<Vault, VaultError> {
        unimplemented!()
    }
    /// The bot's public key.
    pub fn public_key(&self) -> nostr::PublicKey {
        unimplemented!()
    }
    /// A fresh base: 256 bits from the operating system.
    pub fn open_base(&self) -> Result<(BaseId, BasePoint), VaultError> {
        unimplemented!()
    }
    /// Forgets bases that will not be redeemed. Unknown ones are ignored.
    pub fn discard(&self, _bases: &[BaseId]) {
        unimplemented!()
    }
    /// Spends the base, derives the key, and seals it to the asker: `letter.text`, the nsec on a line of its own, `after`.
    /// The base is gone before anything is derived, whatever happens next.
    pub fn redeem(
        &self,
        _base: BaseId,
        _hit: &VerifiedHit,
        _letter: &Letter,
        _after: &str,
    ) -> Result<GiftWrap, VaultError> {
        unimplemented!()
    }
    /// Spends the base and writes the nsec, without a line break, to `output`.
    pub fn redeem_to(&self, _base: BaseId, _hit: &VerifiedHit, _output: &mut dyn Write) -> Result<(), VaultError> {
        unimplemented!()
    }
    /// Seals a letter to its asker: rumor, seal and wrap (NIP-17, NIP-59), once.
    pub fn seal(&self, _letter: &Letter) -> Result<GiftWrap, VaultError> {
        unimplemented!()
    }
    /// Opens a wrap to us and checks all that can be checked, in the order of `design.md`.
    pub fn unwrap(&self, _wrap: &nostr::Event) -> Result<Rumor, UnwrapError> {
        unimplemented!()
    }
    pub fn signer(&self) -> BotSigner {
        unimplemented!()
    }
}
