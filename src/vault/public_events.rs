//! Signatures of public events, inside the vault.

use super::error::VaultError;
use super::secret::Signing;
use nostr::{JsonUtil, UnsignedEvent};

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
