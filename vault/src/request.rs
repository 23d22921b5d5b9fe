//! Requests that cross the wall of the vault, and their answers. Neither holds a secret, except the
//! keys and halves that a local vault shows to the person who started it, and that person's
//! passwords.

use super::error::VaultError;
use super::message::{OutgoingMessage, Ticket};
use super::start_points::StartId;
use super::ticket::texts;
use crate::key::{HalfPoint, SplitTweak, StartPoint, Tweak, VerifiedHit};
use crate::pattern::Pattern;
use serde::{Deserialize, Serialize};
use zeroize::{Zeroize, ZeroizeOnDrop};

/// The most bytes of a request, and of an answer.
pub const MAX_FRAME: usize = 1 << 20;

/// A request to the vault. Events are JSON (NIP-01). No request names the time: the
/// vault has its own clock.
#[derive(Clone, Serialize, Deserialize)]
pub(super) enum Request {
    /// Draw start secrets; with `half`, blindings of that half point. Answer: each start point with
    /// its number.
    OpenStarts {
        /// Number of start points, at most `secrets::MOST_STARTS`.
        count: u32,
        half: Option<HalfPoint>,
    },
    /// Forget start points that will not be redeemed.
    Discard(Vec<StartId>),
    /// Spend a start point and seal `message` and its key, each as a message of its own, to the
    /// author of the ticket. Answer: the `GiftWrap`.
    Redeem {
        start: StartId,
        hit: Hit,
        ticket: Ticket,
        /// An announcement of the ticket's author, if it is newer than their message.
        announcement: Option<String>,
        message: OutgoingMessage,
    },
    /// Spend a split start point for the half in the ticket. Answer: the [`SplitTweak`].
    Reveal { start: StartId, hit: Hit, ticket: Ticket },
    /// Replace the ticket of a claim by one that gives keys. The announcement confirms the author.
    /// Answer: the [`Ticket`].
    Confirm { ticket: Ticket, announcement: String },
    /// Spend a start point for the person at this machine. Only a local vault does this. Answer: the
    /// key, a [`SecretOutput`].
    Show { start: StartId, hit: Hit, form: Form },
    /// Do something with the half that this process has opened or drawn.
    Half(HalfRequest),
    /// Seal a message without a key, and `to_copy` as a second message. Answer: the `GiftWrap`.
    Seal { message: OutgoingMessage, to_copy: Option<String> },
    /// Encrypt a message without a key as kind 4 (NIP-04). Answer: the `GiftWrap`.
    SealNip04(OutgoingMessage),
    /// Open a gift wrap. Answer: what was in it, or an `UnwrapError`.
    Unwrap(String),
    /// Open a message of kind 4. Answer: as for a gift wrap.
    OpenNip04(String),
    /// Sign an unsigned public event. Answer: the event.
    Sign(String),
}

/// A request about an asker's half.
#[derive(Clone, Serialize, Deserialize)]
pub(super) enum HalfRequest {
    /// Answer: a [`HalfDescription`].
    Describe,
    /// Lock the half and these patterns for the file that was named at the beginning. Answer: the
    /// bytes of an age file.
    Lock {
        #[serde(with = "texts")]
        patterns: Vec<Pattern>,
    },
    /// Show the half. Answer: a [`SecretOutput`].
    Show,
    /// Combine the half with a tweak. Answer: the key, a [`SecretOutput`]; without a form, its
    /// [`Npub`](crate::key::Npub).
    Combine {
        tweak: SplitTweak,
        #[serde(with = "texts")]
        patterns: Vec<Pattern>,
        form: Option<Form>,
    },
}

/// The answer to a [`Request`]: the item that the request names, in postcard's encoding, or why the
/// vault refuses.
pub(super) type Answer = Result<Vec<u8>, VaultError>;

/// An asker's half as its file describes it.
#[derive(Serialize, Deserialize)]
pub(super) struct HalfDescription {
    pub(super) point: HalfPoint,
    #[serde(with = "texts")]
    pub(super) patterns: Vec<Pattern>,
}

/// The form in which a key is shown.
#[derive(Clone, Serialize, Deserialize)]
pub(super) enum Form {
    Nsec,
    /// Locked with this password (NIP-49).
    Locked(SecretOutput),
    /// The tweak for a half.
    Tweak,
}

/// A text that is secret or may be. Cleared on drop.
#[derive(Clone, Serialize, Deserialize, Zeroize, ZeroizeOnDrop)]
pub(super) struct SecretOutput(pub(super) String);

/// A claimed hit. The vault recomputes it.
#[derive(Clone, Copy, Serialize, Deserialize)]
pub(super) struct Hit {
    pub(super) point: StartPoint,
    pub(super) tweak: Tweak,
}

impl From<&VerifiedHit> for Hit {
    fn from(hit: &VerifiedHit) -> Hit {
        Hit { point: *hit.point(), tweak: *hit.tweak() }
    }
}
