//! Every secret: the identity in its age file, the start points being searched, the derived key between two lines.
//!
//! No secret leaves this room but sealed to its asker (or, for `npubbot mine`, written once to the caller's output).
//! The types that hold one are in the private module `secret`; no other room can name them:
//!
//! ```compile_fail,E0603
//! use npubbot::vault::secret::Start point;
//! ```
//!
//! One start point gives at most one key, ever: whoever knows one key of a start point knows all others of it. [`Vault::redeem`] takes
//! the start point out of the table before it derives anything, so whatever fails afterwards, there is no second try.

mod age_file;
mod half;
mod identity;
mod random;
mod seal;
mod secret;
mod signer;
mod start_points;
mod unwrap;
#[expect(clippy::module_inception, reason = "the room and its main type have one name")]
mod vault;
mod verified;

#[cfg(test)]
mod tests;

pub use half::{CombineError, CombinedKey, Half};
pub use signer::BotSigner;
pub use vault::Vault;
pub use verified::VerifiedEvent;

use crate::job::{Asker, RumorId};
use std::fmt;
use thiserror::Error;

/// The number of an open start point. Says nothing about its secret.
#[derive(Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord, Debug)]
pub struct StartId(pub u64);

/// A message as it was inside its seal, checked: the author signed the seal, the id is recomputed.
/// Its `Debug` shows nothing of what was said.
#[derive(Clone, PartialEq, Eq)]
pub struct Rumor {
    pub id: RumorId,
    pub author: Asker,
    pub kind: u16,
    pub content: String,
    /// Unix seconds, as the author says.
    pub created_at: u64,
    pub subject: Option<String>,
    /// Of a deletion (kind 5, NIP-09): the messages it takes back.
    pub takes_back: Vec<RumorId>,
    /// Receivers named in `p` tags other than us and the author: more than none is a group.
    pub other_receivers: usize,
}

impl fmt::Debug for Rumor {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Rumor {:?} of {:?}, kind {}, {} bytes", self.id, self.author, self.kind, self.content.len())
    }
}

/// Why a wrap is not a message to us. Never holds any content.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug, Error)]
pub enum UnwrapError {
    #[error("larger than 128 KiB")]
    TooLarge,
    #[error("neither a gift wrap nor a message of kind 4")]
    NotAWrap,
    #[error("addressed to somebody else")]
    NotForUs,
    #[error("cannot be decrypted")]
    Undecryptable,
    #[error("the seal is malformed, of another kind, or has tags")]
    BadSeal,
    #[error("the seal's id or signature is wrong")]
    ForgedSeal,
    #[error("the rumor is malformed")]
    BadRumor,
    #[error("seal and rumor have different authors")]
    Impostor,
    #[error("the rumor's id is not that of its content")]
    LyingId,
}

/// Why the vault refused.
#[derive(Debug, Error)]
pub enum VaultError {
    #[error("there is a file at {path} already; it is not overwritten")]
    FileExists { path: String },
    #[error("the file {path} cannot be used: {reason}")]
    File { path: String, reason: String },
    #[error("the file {path} does not open: {reason}")]
    WrongKey { path: String, reason: String },
    #[error("the operating system gives no randomness; nothing is searched until it does")]
    NoRandomness,
    /// One start point, at most one key, ever.
    #[error("this start point is spent or was never opened")]
    StartSpent,
    #[error("the hit is not one of this start point")]
    ForeignHit,
    #[error("this is no half; a half starts with nhalf1 and has 65 characters, as `npubbot split new` wrote it")]
    NotAHalf,
    #[error("the answer could not be sealed")]
    Unsealable,
    #[error("the key could not be written: {0}")]
    Output(std::io::Error),
}

/// What opens a file with a secret in it.
pub enum Unlock {
    /// scrypt, as `age -p` does.
    Passphrase(age::secrecy::SecretString),
    /// A file with an `AGE-SECRET-KEY-1…` line, as `age-keygen` makes it.
    AgeIdentityFile(std::path::PathBuf),
}
