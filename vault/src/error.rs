//! Errors of the vault.

use crate::key::Npub;
use serde::{Deserialize, Serialize};
use thiserror::Error;

/// Reason why a wrap is not a message to us. Contains nothing of the message.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug, Error, Serialize, Deserialize)]
pub enum UnwrapError {
    /// The wrap exceeds the size limit. Checked before anything else.
    #[error("larger than 128 KiB")]
    TooLarge,
    /// The event is of another kind.
    #[error("neither a gift wrap nor a message of kind 4")]
    NotAWrap,
    /// No `p` tag has our key.
    #[error("addressed to somebody else")]
    NotForUs,
    /// Wrap or seal does not decrypt.
    #[error("cannot be decrypted")]
    Undecryptable,
    /// The seal is not an event of kind 13.
    #[error("the seal is malformed or of another kind")]
    BadSeal,
    /// Wrong id or signature of the seal.
    #[error("the seal's id or signature is wrong")]
    ForgedSeal,
    /// The rumor is not an unsigned event.
    #[error("the rumor is malformed")]
    BadRumor,
    /// The rumor names another author than the signer of the seal.
    #[error("seal and rumor have different authors")]
    Impostor,
    /// The rumor's id is not the hash of its content.
    #[error("the rumor's id is not that of its content")]
    LyingId,
    /// The message is older than any that is answered.
    #[error("older than a week")]
    TooOld,
    /// The vault gave no answer: its process ended each time it was asked. The message may be good.
    #[error("the vault process ended before it answered")]
    Unanswered,
}

impl UnwrapError {
    /// All reasons, in the order of the variants.
    pub const ALL: [UnwrapError; 11] = [
        UnwrapError::TooLarge,
        UnwrapError::NotAWrap,
        UnwrapError::NotForUs,
        UnwrapError::Undecryptable,
        UnwrapError::BadSeal,
        UnwrapError::ForgedSeal,
        UnwrapError::BadRumor,
        UnwrapError::Impostor,
        UnwrapError::LyingId,
        UnwrapError::TooOld,
        UnwrapError::Unanswered,
    ];
}

/// Reason why the vault refused.
#[derive(Debug, Error, Serialize, Deserialize)]
pub enum VaultError {
    /// A file with a secret is never overwritten.
    #[error("there is a file at {path} already; it is not overwritten")]
    FileExists {
        /// Path of the file.
        path: String,
    },
    /// The file is missing, unreadable, damaged or of another kind.
    #[error("the file {path} cannot be used: {reason}")]
    File {
        /// Path of the file.
        path: String,
        /// The problem, and what would work.
        reason: String,
    },
    /// The passphrase or the age key does not open the file.
    #[error("the file {path} does not open: {reason}")]
    WrongKey {
        /// Path of the file.
        path: String,
        /// The problem, and what would work.
        reason: String,
    },
    /// The operating system's generator failed.
    #[error("the operating system gives no randomness; nothing is searched until it does")]
    NoRandomness,
    /// The start point is spent: it yields at most one key.
    #[error("this start point is spent or was never opened")]
    StartSpent,
    /// The hit does not lead from the start point it was claimed for.
    #[error("the hit is not one of this start point")]
    ForeignHit,
    /// The ticket was altered, or made with another identity, or its asker is only claimed.
    #[error("the ticket of this job is none of this bot's vault")]
    ForeignTicket,
    /// The ticket does not ask for this key or tweak.
    #[error("no ticket asks for such a key")]
    NotAsked,
    /// The text or file is not a half of a split key.
    #[error("this is no half; a half starts with nhalf1 and has 65 characters, as `npubbot split new` wrote it")]
    NotAHalf,
    /// The tweak's fingerprint belongs to another half.
    #[error("this tweak was made for another half; use the half whose point you sent, or ask again with this one's")]
    OtherHalf,
    /// The sum of half and tweak is zero, which is not a key.
    #[error("this tweak leads to no key; it is not from a search, so ask the operator")]
    NoKey,
    /// The key of half and tweak matches none of the prefixes.
    #[error("the key is not one you asked for: its npub is {0}. Do not use it; ask the operator")]
    OtherKey(Npub),
    /// The receiver's key is not a point of the curve, or the text is too long for NIP-44.
    #[error("the answer could not be sealed")]
    Unsealable,
    /// The passphrase or key could not be obtained.
    #[error("{reason}")]
    Locked {
        /// The problem, and what would work.
        reason: String,
    },
    /// The event is not one that the bot signs.
    #[error("{reason}")]
    Unsigned {
        /// The reason.
        reason: String,
    },
    /// The vault process could not be started.
    #[error("the vault process cannot be started: {reason}")]
    Process {
        /// The problem.
        reason: String,
    },
    /// A system call filter, such as that of a service manager, ended the vault or the network
    /// process.
    #[error(
        "a process of the bot cannot be started: a system call filter ended it ({status}). Allow the groups \
         @system-service, @memlock and @sandbox with SystemCallFilter= in the unit (where systemd knows no @sandbox: \
         landlock_create_ruleset, landlock_restrict_self and seccomp)"
    )]
    Forbidden {
        /// The signal.
        status: String,
    },
    /// The vault process has ended and is not back yet.
    #[error("the vault process has ended; it is started again")]
    Gone,
    /// A bug inside the vault, or an answer that does not fit the request.
    #[error("the vault failed at this request")]
    Failed,
}
