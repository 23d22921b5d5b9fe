//! Requests that cross the wall of the vault, and their answers. Neither holds a secret, except the
//! keys and halves that a local vault shows to the person who started it, and that person's
//! passwords.

use super::error::{UnwrapError, VaultError};
use super::message::{GiftWrap, Opened, OutgoingMessage, Ticket};
use super::start_points::StartId;
use super::ticket::texts;
use crate::key::{HalfPoint, Npub, SplitTweak, StartPoint, Tweak, VerifiedHit};
use crate::pattern::Pattern;
use serde::{Deserialize, Serialize};
use zeroize::{Zeroize, ZeroizeOnDrop};

/// A request to the vault. Events are JSON (NIP-01). No request names the time: the
/// vault has its own clock.
#[derive(Clone, Serialize, Deserialize)]
pub(super) enum Request {
    /// Draw start secrets; with `half`, blindings of that half point.
    OpenStarts {
        /// Number of start points, at most `secrets::MOST_STARTS`.
        count: u32,
        half: Option<HalfPoint>,
    },
    /// Forget start points that will not be redeemed.
    Discard(Vec<StartId>),
    /// Spend a start point and seal `message` and its key, each as a message of its own, to the
    /// author of the ticket.
    Redeem {
        start: StartId,
        hit: Hit,
        ticket: Ticket,
        /// An announcement of the ticket's author, if it is newer than their message.
        announcement: Option<String>,
        message: OutgoingMessage,
    },
    /// Spend a split start point and return its tweak for the half in the ticket.
    Reveal { start: StartId, hit: Hit, ticket: Ticket },
    /// Replace the ticket of a claim by one that gives keys. The announcement confirms the author.
    Confirm { ticket: Ticket, announcement: String },
    /// Spend a start point and give its key to the person at this machine. Only a local vault does
    /// this.
    Show { start: StartId, hit: Hit, form: Form },
    /// Do something with the half that this process has opened or drawn.
    Half(HalfRequest),
    /// Seal a message without a key, and `to_copy` as a second message.
    Seal { message: OutgoingMessage, to_copy: Option<String> },
    /// Encrypt a message without a key as kind 4 (NIP-04).
    SealNip04(OutgoingMessage),
    /// Open a gift wrap.
    Unwrap(String),
    /// Open a message of kind 4.
    OpenNip04(String),
    /// Sign an unsigned public event.
    Sign(String),
}

/// A request about an asker's half.
#[derive(Clone, Serialize, Deserialize)]
pub(super) enum HalfRequest {
    /// Return the half's point, and the patterns in its file.
    Describe,
    /// Lock the half and these patterns for the file that was named at the beginning.
    Lock {
        #[serde(with = "texts")]
        patterns: Vec<Pattern>,
    },
    /// Show the half.
    Show,
    /// Combine the half with a tweak. Without a form, the answer is only the key's npub.
    Combine {
        tweak: SplitTweak,
        #[serde(with = "texts")]
        patterns: Vec<Pattern>,
        form: Option<Form>,
    },
}

/// The answer to a [`Request`]. The variants are in the order of the requests.
#[derive(Serialize, Deserialize)]
pub(super) enum Answer {
    Starts(Vec<(StartId, StartPoint)>),
    Done,
    Sealed(GiftWrap),
    Tweak(SplitTweak),
    Ticket(Ticket),
    SecretOutput(SecretOutput),
    Half {
        point: HalfPoint,
        #[serde(with = "texts")]
        patterns: Vec<Pattern>,
    },
    /// The bytes of an age file.
    Locked(Vec<u8>),
    Combined(Npub),
    Opened(Result<Opened, UnwrapError>),
    /// The signed event.
    Signed(String),
    /// The vault refused the request.
    Refused(VaultError),
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
