//! The holder of every secret. It answers requests, and nothing leaves it except in an answer.

use super::error::{UnwrapError, VaultError};
use super::half::Half;
use super::identity::Unlock;
use super::lock;
use super::message::Announcement;
use super::message::{GiftWrap, Opened, OutgoingMessage, Rumor, Ticket, VerifiedEvent};
use super::public::{DATE_ALLOWANCE, Policy};
use super::random::{self, Source};
use super::request::{Answer, Form, Hit, Request, SecretOutput};
use super::seal::without_keys;
use super::secret::{self, DerivedKey, Signing};
use super::start_points::{StartId, StartPoints};
use super::ticket::{self, Author, Order, Reader};
use super::{identity, seal, unwrap};
use crate::clock::Clock;
use crate::key::{SplitTweak, StartPoint, VerifiedHit, candidate};
use nostr::{Event, JsonUtil};
use npubbot_miner::token_bucket::TokenBucket;
use serde::Serialize;
use std::path::Path;
use std::sync::{Arc, Mutex};
use std::time::Instant;

/// The most start points in one request, so that the answer fits a frame.
pub(super) const MOST_STARTS: u32 = 8192;

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
    /// The half of the person at this machine.
    pub(super) half: Option<Arc<Half>>,
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

    /// [`Secrets::local`] with an asker's half.
    pub(super) fn of_half(half: Half) -> Result<Secrets, VaultError> {
        Ok(Secrets { half: Some(Arc::new(half)), ..Secrets::local()? })
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
            half: None,
            opened,
            redeemed,
        })
    }

    /// Makes the ticket of an order without a message that asks for it.
    #[cfg(any(test, feature = "test-util"))]
    pub(super) fn issue(&self, order: &Order) -> Result<Ticket, VaultError> {
        ticket::issue(&self.bot, Author::Verified, order)
    }

    pub(super) fn public_key(&self) -> nostr::PublicKey {
        self.bot.public_key()
    }

    /// Answers a request. Trusts nothing in it: hits are recomputed, events verified. Delays
    /// requests above a rate that no honest bot reaches.
    pub(super) fn answer(&self, request: Request) -> Answer {
        let limit = match request {
            Request::Unwrap(_) | Request::OpenNip04(_) => Some(&self.opened),
            Request::Redeem { .. } | Request::Reveal { .. } => Some(&self.redeemed),
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
        match request {
            Request::OpenStarts { count, half } => {
                let open = |_| match &half {
                    None => self.starts.open(self.source),
                    Some(half) => self.starts.open_split(half, self.source),
                };
                encode(&(0..count.min(MOST_STARTS)).map(open).collect::<Result<Vec<_>, _>>()?)
            }
            Request::Discard(starts) => encode(&self.starts.discard(&starts)),
            Request::Redeem { start, hit, ticket, announcement, message } => {
                let order = self.order(Author::Verified, &ticket)?;
                let announced = announcement.as_deref().and_then(Announcement::verify);
                let encryption_key = order.encryption_key_now(announced.as_ref());
                let message = OutgoingMessage { to: order.asker, encryption_key, ..without_keys_in(message) };
                encode(&self.redeem(start, &hit, &order, &message)?)
            }
            Request::Reveal { start, hit, ticket } => {
                let order = self.order(Author::Verified, &ticket)?;
                encode(&self.reveal(start, &hit, Some(&order))?)
            }
            Request::Show { .. } | Request::Half(_) if !self.is_local => Err(VaultError::NotAsked),
            Request::Half(request) => self.half.as_ref().ok_or(VaultError::HalfGone)?.answer(request),
            Request::Show { start, hit, form } => encode(&self.show(start, &hit, form)?),
            Request::Confirm { ticket, announcement } => {
                let order = self.order(Author::Claimed, &ticket)?;
                let announced = Announcement::verify(&announcement);
                if !announced.is_some_and(|announced| announced.confirms(order.asker, order.encryption_key)) {
                    return Err(VaultError::ForeignTicket);
                }
                encode(&ticket::issue(&self.bot, Author::Verified, &order)?)
            }
            Request::Seal { message, to_copy } => {
                let (message, to_copy) = (without_keys_in(message), to_copy.as_deref().map(without_keys));
                encode(&self.seal(&message, to_copy.as_deref())?)
            }
            Request::SealNip04(message) => {
                let message = without_keys_in(message);
                encode(&seal::as_nip04(&self.bot, self.source, self.clock.now(), &message)?)
            }
            Request::Unwrap(json) => {
                let opened = event(&json).and_then(|wrap| unwrap::unwrap(&self.bot, &wrap));
                let recent = opened.and_then(|opened| self.refuse_old(opened));
                encode(&recent.map(|opened| self.with_ticket(opened)))
            }
            Request::OpenNip04(json) => encode(
                &event(&json)
                    .and_then(|event| VerifiedEvent::check(event).ok_or(UnwrapError::ForgedSeal))
                    .and_then(|message| unwrap::open_nip04(&self.bot, &message))
                    .and_then(|rumor| self.refuse_old(Opened::Message(rumor))),
            ),
            Request::Sign(json) => encode(&self.policy.sign(&self.bot, self.clock.now(), &json)?),
        }
    }

    /// The message, unless it is older than any that a bot answers. The author's signature covers
    /// this date, so nobody can pass an old message for a new one.
    fn refuse_old(&self, opened: Opened) -> Result<Opened, UnwrapError> {
        let is_old = opened.rumor().created_at.saturating_add(MAX_AGE) < self.clock.now();
        if is_old { Err(UnwrapError::TooOld) } else { Ok(opened) }
    }

    /// The message with the ticket for its request.
    fn with_ticket(&self, opened: Opened) -> Opened {
        match opened {
            Opened::Message(rumor) => Opened::Message(Rumor { ticket: self.ticket(Author::Verified, &rumor), ..rumor }),
            Opened::Claim(claim) => {
                let ticket = self.ticket(Author::Claimed, claim.unverified());
                Opened::Claim(claim.with_ticket(ticket))
            }
        }
    }

    fn ticket(&self, author: Author, rumor: &Rumor) -> Option<Ticket> {
        Order::read(rumor, self.reader).and_then(|order| ticket::issue(&self.bot, author, &order).ok())
    }

    fn order(&self, author: Author, ticket: &Ticket) -> Result<Order, VaultError> {
        ticket::read(&self.bot, author, ticket)
    }

    fn redeem(
        &self,
        start: StartId,
        hit: &Hit,
        order: &Order,
        message: &OutgoingMessage,
    ) -> Result<GiftWrap, VaultError> {
        let nsec = self.derive(start, hit, Some(order))?.nsec()?;
        self.seal(message, Some(nsec.as_str().ok_or(VaultError::Unsealable)?))
    }

    /// Spends the start point and returns its key, or its tweak.
    fn show(&self, start: StartId, hit: &Hit, form: Form) -> Result<SecretOutput, VaultError> {
        Ok(match form {
            Form::Tweak => SecretOutput(self.reveal(start, hit, None)?.to_string()),
            Form::Locked(password) => SecretOutput(self.derive(start, hit, None)?.ncryptsec(&password.0, self.source)?),
            Form::Nsec => self.derive(start, hit, None)?.nsec()?.to_output()?,
        })
    }

    /// Spends a split start point and returns its tweak, if `order` asks for it. Without an order,
    /// any tweak is returned.
    fn reveal(&self, start: StartId, hit: &Hit, order: Option<&Order>) -> Result<SplitTweak, VaultError> {
        let start = self.starts.spend_split(start)?;
        let hit = recompute(start.point(), hit)?;
        order.map_or(Ok(()), |order| order.allow(&hit.npub(), Some(start.half())))?;
        let half = StartPoint::new(*start.half().public_key());
        let split = start.tweak(hit.tweak()).ok_or(VaultError::ForeignHit)?;
        if candidate(&half, &split.tweak) != Some(hit.npub()) {
            return Err(VaultError::ForeignHit);
        }
        Ok(split)
    }

    /// Spends a start point and returns its key, if `order` asks for it. Without an order, any key
    /// is returned. The start point is removed from the table first, so it yields at most one key.
    fn derive(&self, start: StartId, hit: &Hit, order: Option<&Order>) -> Result<DerivedKey, VaultError> {
        let start = self.starts.spend(start)?;
        let hit = recompute(start.point(), hit)?;
        order.map_or(Ok(()), |order| order.allow(&hit.npub(), None))?;
        let key = start.derive(hit.tweak()).ok_or(VaultError::ForeignHit)?;
        if key.npub() != Some(hit.npub()) {
            return Err(VaultError::ForeignHit);
        }
        Ok(key)
    }

    fn seal(&self, message: &OutgoingMessage, to_copy: Option<&str>) -> Result<GiftWrap, VaultError> {
        let now = self.clock.now();
        let explained = seal::seal(&self.bot, self.source, now, message, &message.text, 0)?;
        let Some(to_copy) = to_copy else { return Ok(explained) };
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

/// The recomputed hit, if it belongs to the start point at `point`.
fn recompute(point: Option<StartPoint>, hit: &Hit) -> Result<VerifiedHit, VaultError> {
    let point = point.filter(|point| *point == hit.point).ok_or(VaultError::ForeignHit)?;
    VerifiedHit::recompute(point, hit.tweak).ok_or(VaultError::ForeignHit)
}

/// The item of an answer.
pub(super) fn encode(item: &impl Serialize) -> Answer {
    postcard::to_stdvec(item).map_err(|_| VaultError::Failed)
}

fn event(json: &str) -> Result<Event, UnwrapError> {
    if json.len() > unwrap::MAX_WRAP {
        return Err(UnwrapError::TooLarge);
    }
    Event::from_json(json).map_err(|_| UnwrapError::NotAWrap)
}
