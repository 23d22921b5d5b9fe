//! The holder of every secret. It answers requests, and nothing leaves it except in an answer.

use super::error::{UnwrapError, VaultError};
use super::identity::Unlock;
use super::lock;
use super::message::{Announcement, GiftWrap, Opened, OutgoingMessage, VerifiedEvent};
use super::public::{DATE_ALLOWANCE, Policy};
use super::random::{self, Source};
use super::request::{Answer, Hit, Request};
use super::seal::without_keys;
use super::secret::{self, Redeemed, Signing};
use super::start_points::{StartId, StartPoints};
use super::ticket::{self, Author, Order, Reader};
use super::{identity, seal, unwrap};
use crate::clock::Clock;
use crate::key::VerifiedHit;
use nostr::{Event, JsonUtil, Kind};
use npubbot_miner::token_bucket::TokenBucket;
use serde::Serialize;
use std::path::Path;
use std::sync::{Arc, Mutex};
use std::time::Instant;

/// The most start points in one request, so that the answer fits a frame.
pub(super) const MAX_STARTS: u32 = 8192;

/// The identity, the open start points, and the reader of messages. Clones share all of it.
#[derive(Clone)]
pub(super) struct Secrets {
    pub(super) bot: Arc<Signing>,
    pub(super) starts: Arc<StartPoints>,
    pub(super) source: Source,
    /// The clock that dates and judges all events. No request has a say in it.
    pub(super) clock: Clock,
    pub(super) policy: Arc<Policy>,
    pub(super) reader: Reader,
    /// Whether the keys are for the person at this machine. If so, there is no stored identity.
    pub(super) is_local: bool,
    pub(super) opened: Arc<Mutex<TokenBucket>>,
    pub(super) redeemed: Arc<Mutex<TokenBucket>>,
}

/// The most messages opened: per second, and in one burst. By default a bot decrypts 2,000 a
/// second.
const OPENED_RATE: (u32, u32) = (10_000, 40_000);

/// Age beyond which no message is opened, seconds: the week in which messages are answered, and the
/// allowance for a clock that is ahead.
const MAX_AGE: u64 = 7 * 86_400 + DATE_ALLOWANCE;

/// The most start points redeemed: per second, and in one burst.
const REDEEMED_RATE: (u32, u32) = (1_000, 10_000);

impl Secrets {
    /// Makes a new identity in the file at `path`.
    pub(super) fn create(path: &Path, unlock: &Unlock) -> Result<Secrets, VaultError> {
        Secrets::with(identity::create(path, unlock, random::system)?)
    }

    /// Opens the identity in the file at `path`.
    pub(super) fn open(path: &Path, unlock: &Unlock) -> Result<Secrets, VaultError> {
        Secrets::with(identity::open(path, unlock)?)
    }

    /// A vault that shows its keys to the person at this machine. Its identity is drawn and not
    /// stored.
    pub(super) fn local() -> Result<Secrets, VaultError> {
        let secrets = Secrets::with(Signing::draw(random::system)?)?;
        Ok(Secrets { is_local: true, ..secrets })
    }

    fn with(bot: Signing) -> Result<Secrets, VaultError> {
        let starts = Arc::new(StartPoints::new(random::system)?);
        let bucket = |(per_second, burst)| Arc::new(Mutex::new(TokenBucket::new(per_second, burst)));
        let (opened, redeemed) = (bucket(OPENED_RATE), bucket(REDEEMED_RATE));
        // A local vault has no reader: no message can ask it for a key.
        Ok(Secrets {
            bot: Arc::new(bot),
            starts,
            source: random::system,
            clock: Clock::System,
            policy: Arc::new(Policy::new(None)),
            reader: |_| None,
            is_local: false,
            opened,
            redeemed,
        })
    }

    pub(super) fn public_key(&self) -> nostr::PublicKey {
        self.bot.public_key()
    }

    /// Answers a request. Trusts nothing in it: hits are recomputed, events verified. Delays
    /// requests above a rate that no honest bot reaches.
    pub(super) fn answer(&self, request: Request) -> Answer {
        let limit = match request {
            Request::Open(_) => Some(&self.opened),
            Request::Redeem { .. } => Some(&self.redeemed),
            _ => None,
        };
        if let Some(bucket) = limit {
            let wait = lock(bucket).take(Instant::now());
            std::thread::sleep(wait);
        }
        let answer = self.try_answer(request);
        secret::clear_stack_below();
        answer
    }

    fn try_answer(&self, request: Request) -> Answer {
        let now = self.clock.now();
        match request {
            Request::OpenStarts { count, half } => {
                let starts = (0..count.min(MAX_STARTS)).map(|_| self.starts.open(half, self.source));
                encode(&starts.collect::<Result<Vec<_>, _>>()?)
            }
            Request::Discard(starts) => encode(&self.starts.discard(&starts)),
            Request::Redeem { start, hit, ticket, announcement, message } => {
                let order = ticket::read(&self.bot, Author::Verified, &ticket)?;
                let announced = announcement.as_deref().and_then(Announcement::verify);
                let encryption_key = order.encryption_key_now(announced.as_ref());
                let message = OutgoingMessage { to: order.asker, encryption_key, ..without_keys_in(message) };
                let redeemed = self.redeem(start, hit, Some(&order))?.text();
                encode(&self.seal_pair(now, &message, &redeemed)?)
            }
            Request::Confirm { ticket, announcement } => {
                let order = ticket::read(&self.bot, Author::Claimed, &ticket)?;
                let announced = Announcement::verify(&announcement);
                if !announced.is_some_and(|announced| announced.confirms(order.asker, order.encryption_key)) {
                    return Err(VaultError::ForeignTicket);
                }
                encode(&ticket::issue(&self.bot, Author::Verified, &order)?)
            }
            Request::Show { .. } if !self.is_local => Err(VaultError::NotAsked),
            Request::Show { start, hit, password } => match (self.redeem(start, hit, None)?, password) {
                (Redeemed::Key(key), Some(password)) => encode(&key.ncryptsec(&password, self.source)?),
                (redeemed, _) => encode(&redeemed.text()),
            },
            Request::Seal(message) => {
                let message = without_keys_in(message);
                encode(&seal::seal(&self.bot, self.source, now, &message, &message.text, 0)?)
            }
            Request::SealNip04(message) => {
                encode(&seal::as_nip04(&self.bot, self.source, now, &without_keys_in(message))?)
            }
            Request::Open(json) => encode(&self.open_message(now, &json)),
            Request::Sign(json) => encode(&self.policy.sign(&self.bot, now, &json)?),
        }
    }

    /// Opens a gift wrap, and makes the ticket for its request; or a message of kind 4.
    fn open_message(&self, now: u64, json: &[u8]) -> Result<Opened, UnwrapError> {
        if json.len() > unwrap::MAX_WRAP {
            return Err(UnwrapError::TooLarge);
        }
        let event = Event::from_json(json).map_err(|_| UnwrapError::NotAWrap)?;
        let is_nip04 = event.kind == Kind::EncryptedDirectMessage;
        let mut opened = match is_nip04 {
            true => {
                let message = VerifiedEvent::check(event).ok_or(UnwrapError::ForgedSeal)?;
                Opened::Message(unwrap::open_nip04(&self.bot, &message)?)
            }
            false => unwrap::unwrap(&self.bot, &event)?,
        };
        let author = if matches!(opened, Opened::Message(_)) { Author::Verified } else { Author::Claimed };
        let rumor = opened.rumor_mut();
        // The author's signature covers this date, so nobody can pass an old message for a new one.
        if rumor.created_at.saturating_add(MAX_AGE) < now {
            return Err(UnwrapError::TooOld);
        }
        let order = Order::read(rumor, self.reader).filter(|_| !is_nip04);
        rumor.ticket = order.and_then(|order| ticket::issue(&self.bot, author, &order).ok());
        Ok(opened)
    }

    /// Spends a start point and returns its key or tweak, if `order` asks for it. Without an order,
    /// any is returned. The start point is removed from the table first, so it yields at most one.
    fn redeem(&self, start: StartId, hit: Hit, order: Option<&Order>) -> Result<Redeemed, VaultError> {
        let start = self.starts.spend(start)?;
        let point = start.point().filter(|point| *point == hit.0).ok_or(VaultError::ForeignHit)?;
        let hit = VerifiedHit::recompute(point, hit.1).ok_or(VaultError::ForeignHit)?;
        order.map_or(Ok(()), |order| order.allow(&hit.npub(), start.half()))?;
        start.redeem(&hit).ok_or(VaultError::ForeignHit)
    }

    /// Seals a message, and a second one that is `to_copy` and nothing else.
    fn seal_pair(&self, now: u64, message: &OutgoingMessage, to_copy: &str) -> Result<GiftWrap, VaultError> {
        let explained = seal::seal(&self.bot, self.source, now, message, &message.text, 0)?;
        // Clients sort by date.
        let copied = seal::seal(&self.bot, self.source, now, message, to_copy, 1)?;
        let expires_at = explained.expires_at.min(copied.expires_at);
        Ok(GiftWrap { json: explained.json + "\n" + &copied.json, expires_at, ..copied })
    }
}

/// The message without anything that could be a key, in its text and in its subject, which the
/// asker wrote.
fn without_keys_in(message: OutgoingMessage) -> OutgoingMessage {
    let clean = |text: String| without_keys(&text).into_owned();
    OutgoingMessage { text: clean(message.text), subject: message.subject.map(clean), ..message }
}

/// The item of an answer.
pub(super) fn encode(item: &impl Serialize) -> Answer {
    postcard::to_stdvec(item).map_err(|_| VaultError::Failed)
}
