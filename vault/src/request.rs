//! Requests that cross the wall of the vault, and their answers. Neither holds a secret, except the
//! keys that a local vault shows to the person who started it, and that person's passwords.

use super::error::VaultError;
use super::message::{OutgoingMessage, Ticket};
use super::start_points::StartId;
use crate::key::{HalfPoint, StartPoint, Tweak};
use serde::{Deserialize, Serialize};
use zeroize::Zeroizing;

/// The most bytes of a request, and of an answer.
pub const MAX_FRAME: usize = 1 << 20;

/// A claimed hit, which the vault recomputes: the start point and the tweak.
pub(super) type Hit = (StartPoint, Tweak);

/// A request to the vault. Events are JSON (NIP-01). No request names the time: the vault has its
/// own clock.
#[derive(Clone, Serialize, Deserialize)]
pub(super) enum Request {
    /// Draw start secrets; with `half`, blindings of that half point. Answer: each start point with
    /// its number.
    OpenStarts {
        /// Number of start points, at most `secrets::MAX_STARTS`.
        count: u32,
        half: Option<HalfPoint>,
    },
    /// Forget start points that will not be redeemed.
    Discard(Vec<StartId>),
    /// Spend a start point and seal `message` and its key or tweak, each as a message of its own, to
    /// the author of the ticket. Answer: the `GiftWrap`.
    Redeem {
        start: StartId,
        hit: Hit,
        ticket: Ticket,
        /// An announcement of the ticket's author, if it is newer than their message.
        announcement: Option<String>,
        message: OutgoingMessage,
    },
    /// Replace the ticket of a claim by one that gives keys. The announcement confirms the author.
    /// Answer: the [`Ticket`].
    Confirm { ticket: Ticket, announcement: String },
    /// Spend a start point for the person at this machine. Only a local vault does this. Answer: the
    /// nsec, with a password the key locked by it (NIP-49), or the tweak for a half.
    Show { start: StartId, hit: Hit, password: Option<Zeroizing<String>> },
    /// Seal a message without a key. Answer: the `GiftWrap`.
    Seal(OutgoingMessage),
    /// Encrypt a message without a key as kind 4 (NIP-04). Answer: the `GiftWrap`.
    SealNip04(OutgoingMessage),
    /// Open a gift wrap or a message of kind 4. Answer: the `Opened`, or an `UnwrapError`.
    Open(Vec<u8>),
    /// Sign an unsigned public event. Answer: the event.
    Sign(String),
}

/// The answer to a [`Request`]: the item that the request names, in postcard's encoding, or why the
/// vault refuses.
pub(super) type Answer = Result<Vec<u8>, VaultError>;
