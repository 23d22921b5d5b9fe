//! The interface of the vault to other rooms.

use super::error::{UnwrapError, VaultError};
use super::identity::IdentityFile;
use super::message::{Announcement, Claim, GiftWrap, Opened, OutgoingMessage, Rumor, Ticket, VerifiedEvent};
use super::process::Process;
use super::public::{BotSigner, PublicSettings};
use super::request::Request;
use super::secrets::MAX_STARTS;
use super::spawner::{DirectSpawner, Spawner};
use super::start_points::StartId;
use super::unwrap;
use crate::key::{HalfPoint, StartPoint, VerifiedHit};
use crate::os::MissingWall;
use nostr::{JsonUtil, UnsignedEvent};
use std::fmt;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use zeroize::Zeroizing;

/// A handle to the vault process, which owns every secret: the identity and the open start points.
/// Cheap to clone; clones share it.
///
/// Every call is a request to the process. If it has ended, most calls wait up to 1.5 s for the next
/// one, then fail with [`VaultError::Gone`].
#[derive(Clone)]
pub struct Vault {
    pub(super) process: Arc<Process>,
    /// The secrets of a vault in this process.
    #[cfg(any(test, feature = "test-util"))]
    pub(super) secrets: Option<Arc<super::secrets::Secrets>>,
    /// What its public events are made of; `None` if it signs none.
    settings: Option<Arc<PublicSettings>>,
    /// Events that the vault's policy refused to sign.
    refusals: Arc<AtomicU64>,
    /// Messages that did not open, counted in the order of [`UnwrapError::ALL`].
    dropped: Arc<[AtomicU64; UnwrapError::ALL.len()]>,
}

impl fmt::Debug for Vault {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Vault")
    }
}

impl Vault {
    /// Starts the vault process, which opens or makes the identity. The process ends with the last
    /// clone. It signs the public events that `settings` allow; without settings, none.
    ///
    /// Errors: [`VaultError::Process`], [`VaultError::Locked`], and those of opening or making the
    /// identity.
    pub fn start(opening: IdentityFile, settings: Option<PublicSettings>) -> Result<Vault, VaultError> {
        let spawner = DirectSpawner::of_vault(Some((opening, settings.clone())))?;
        Vault::started_by(spawner, settings)
    }

    /// Starts the vault process by a spawner. It is a bot's, and `settings` are those that the
    /// spawner gives it.
    ///
    /// Errors: as [`Vault::start`].
    pub fn started_by(spawner: Arc<dyn Spawner>, settings: Option<PublicSettings>) -> Result<Vault, VaultError> {
        Ok(Vault {
            process: Arc::new(Process::start(spawner)?),
            #[cfg(any(test, feature = "test-util"))]
            secrets: None,
            settings: settings.map(Arc::new),
            refusals: Arc::default(),
            dropped: Arc::default(),
        })
    }

    /// What the public events are made of that the vault signs; `None` if it signs none.
    pub fn settings(&self) -> Option<&PublicSettings> {
        self.settings.as_deref()
    }

    /// Starts a vault process without an identity, for `npubbot mine` and `bench`. Only such a
    /// vault shows keys.
    ///
    /// Errors: [`VaultError::Process`], [`VaultError::NoRandomness`].
    pub fn start_local() -> Result<Vault, VaultError> {
        Vault::started_by(DirectSpawner::of_vault(None)?, None)
    }

    /// Number of requests that the vault refused by its policy. An honest bot makes none.
    pub fn refusals(&self) -> u64 {
        self.refusals.load(Ordering::Relaxed)
    }

    /// The bot's public key.
    pub fn public_key(&self) -> nostr::PublicKey {
        self.process.public_key()
    }

    /// Id of the vault process; `None` without one, and while it is started again.
    pub fn process_id(&self) -> Option<u32> {
        self.process.id()
    }

    /// The reason why the vault process does not work; `None` if it works.
    pub fn trouble(&self) -> Option<String> {
        self.process.trouble()
    }

    /// The walls of the vault process that could not be raised.
    pub fn missing_walls(&self) -> Vec<MissingWall> {
        self.process.missing_walls.clone()
    }

    /// Draws a start secret, 256 bits from the operating system, and returns its point.
    ///
    /// Errors: [`VaultError::NoRandomness`], [`VaultError::Gone`].
    pub fn open_start(&self) -> Result<(StartId, StartPoint), VaultError> {
        self.open_starts(1, None)?.pop().ok_or(VaultError::Failed)
    }

    /// Draws `count` start secrets and returns their points. With `half`, draws blinding secrets
    /// and returns the blinded points of that half.
    ///
    /// Errors: [`VaultError::NoRandomness`], [`VaultError::Gone`].
    pub fn open_starts(
        &self,
        count: usize,
        half: Option<&HalfPoint>,
    ) -> Result<Vec<(StartId, StartPoint)>, VaultError> {
        let mut starts = Vec::with_capacity(count);
        while starts.len() < count {
            let some = (count - starts.len()).min(MAX_STARTS as usize) as u32;
            let more: Vec<(StartId, StartPoint)> =
                self.process.ask(Request::OpenStarts { count: some, half: half.copied() })?;
            if more.len() != some as usize {
                return Err(VaultError::Failed);
            }
            starts.extend(more);
        }
        Ok(starts)
    }

    /// Removes start points that will not be redeemed. Unknown ones are ignored. A failed request
    /// does no harm: a vault process that has ended has lost its start points.
    pub fn discard(&self, starts: &[StartId]) {
        for some in starts.chunks(MAX_STARTS as usize) {
            let _ = self.process.ask::<()>(Request::Discard(some.to_vec()));
        }
    }

    /// Spends the start point, derives the key, or for a half its tweak, and seals it to the asker in
    /// the ticket; `message.to` is ignored. The wrap is encrypted to the key in `announcement`, if the
    /// asker announced it after the request, otherwise to the key of the request. The result is two
    /// messages: `message`, then one that is the nsec or tweak and nothing else, so that one touch
    /// copies it. It is always sealed (NIP-17). The start point is spent before anything is derived,
    /// so an error never allows a second try.
    ///
    /// Errors: [`VaultError::ForeignTicket`], which spends nothing; [`VaultError::StartSpent`],
    /// [`VaultError::ForeignHit`], [`VaultError::NotAsked`], [`VaultError::Unsealable`],
    /// [`VaultError::NoRandomness`], [`VaultError::Gone`].
    pub fn redeem(
        &self,
        start: StartId,
        hit: &VerifiedHit,
        ticket: &Ticket,
        announcement: Option<&Announcement>,
        message: &OutgoingMessage,
    ) -> Result<GiftWrap, VaultError> {
        let (hit, ticket, message) = ((*hit.point(), *hit.tweak()), ticket.clone(), message.clone());
        let announcement = announcement.map(|announcement| announcement.json().to_owned());
        self.process.ask(Request::Redeem { start, hit, ticket, announcement, message })
    }

    /// Spends the start point and returns the nsec, or with a password the key locked by it (NIP-49);
    /// for a half its tweak. The vault of a bot refuses: it shows no key.
    ///
    /// Errors: [`VaultError::NotAsked`] from the vault of a bot; those of [`Vault::redeem`].
    pub fn show(
        &self,
        start: StartId,
        hit: &VerifiedHit,
        password: Option<&str>,
    ) -> Result<Zeroizing<String>, VaultError> {
        let (hit, password) = ((*hit.point(), *hit.tweak()), password.map(|password| Zeroizing::new(password.into())));
        self.process.ask(Request::Show { start, hit, password })
    }

    /// Seals a message to its asker: rumor, seal and wrap (NIP-17, NIP-59).
    ///
    /// Errors: [`VaultError::Unsealable`] if the asker's key is invalid or the text is too long,
    /// [`VaultError::NoRandomness`], [`VaultError::Gone`].
    pub fn seal(&self, message: &OutgoingMessage) -> Result<GiftWrap, VaultError> {
        self.process.ask(Request::Seal(message.clone()))
    }

    /// Encrypts a message to its asker as kind 4 (NIP-04), for clients without NIP-17.
    ///
    /// Errors: as [`Vault::seal`].
    pub fn seal_nip04(&self, message: &OutgoingMessage) -> Result<GiftWrap, VaultError> {
        self.process.ask(Request::SealNip04(message.clone()))
    }

    /// Seals messages, on all cores, and returns the wraps in their order.
    ///
    /// Errors: those of [`Vault::seal`], if it fails for any message.
    pub fn seal_all(&self, messages: Vec<OutgoingMessage>) -> Result<Vec<GiftWrap>, VaultError> {
        let requests: Vec<_> = messages.into_iter().map(Request::Seal).collect();
        self.process.ask_all(&requests)?.into_iter().collect()
    }

    /// Opens gift wraps and messages of kind 4 (NIP-04) to us, on all cores. Checks each as far as
    /// its kind allows, in the order of [`UnwrapError`]. The caller checks kind and date of a
    /// rumor, and looks up the author of a claim. Waits as long as the vault process is away,
    /// because a message that fails to open is ignored for good.
    pub fn open_all(&self, events: &[VerifiedEvent]) -> Vec<Result<Opened, UnwrapError>> {
        let requests: Vec<_> = events.iter().map(open_request).collect();
        let opened = self.process.ask_patiently(&requests).into_iter().map(|opened| {
            opened.unwrap_or_else(|error| {
                tracing::error!(%error, "a message could not be opened");
                Err(UnwrapError::Unanswered)
            })
        });
        opened.map(|opened| self.count(opened)).collect()
    }

    /// Opens one gift wrap or message of kind 4.
    #[cfg(test)]
    pub(super) fn open_one(&self, event: &VerifiedEvent) -> Result<Opened, UnwrapError> {
        self.open_all(std::slice::from_ref(event)).pop().expect("one result an event")
    }

    /// The message in a claim, if `announcement` names the key that signed the seal. Pass the
    /// author's newest announcement. The returned ticket gives keys. Waits like
    /// [`Vault::open_all`].
    ///
    /// Errors: [`UnwrapError::Impostor`], [`UnwrapError::Unanswered`].
    pub fn confirm(&self, claim: Claim, announcement: Option<&Announcement>) -> Result<Rumor, UnwrapError> {
        let rumor = self.count(claim.confirm(announcement))?;
        let (Some(ticket), Some(announcement)) = (&rumor.ticket, announcement) else { return Ok(rumor) };
        let (ticket, announcement) = (ticket.clone(), announcement.json().to_owned());
        match self.process.ask_patiently(&[Request::Confirm { ticket, announcement }]).pop() {
            Some(Ok(ticket)) => Ok(Rumor { ticket: Some(ticket), ..rumor }),
            // The bot's own check above passed, so the vault ended before it answered.
            _ => self.count(Err(UnwrapError::Unanswered)),
        }
    }

    /// Number of messages that did not open since the start, by cause.
    pub fn dropped(&self) -> [(UnwrapError, u64); UnwrapError::ALL.len()] {
        let count = |cause| self.dropped[cause as usize].load(Ordering::Relaxed);
        UnwrapError::ALL.map(|cause| (cause, count(cause)))
    }

    /// Counts the message if it did not open.
    fn count<T>(&self, opened: Result<T, UnwrapError>) -> Result<T, UnwrapError> {
        opened.inspect_err(|&cause| _ = self.dropped[cause as usize].fetch_add(1, Ordering::Relaxed))
    }

    /// A signer for public events.
    pub fn signer(&self) -> BotSigner {
        BotSigner(self.clone())
    }

    /// Signs a public event, if the policy allows it. Returns its JSON. An honest bot has none
    /// refused, so each refusal is a sign of a bug or of a captured process.
    pub(super) fn sign(&self, unsigned: &UnsignedEvent) -> Result<String, VaultError> {
        self.process.ask(Request::Sign(unsigned.as_json())).inspect_err(|error| {
            if matches!(error, VaultError::Unsigned { .. }) {
                let count = self.refusals.fetch_add(1, Ordering::Relaxed) + 1;
                // The log has the 1st, 2nd, 4th, 8th and so on.
                if count.is_power_of_two() {
                    tracing::error!(%error, count, "the vault refuses to sign: a bug, or the bot's process is captured");
                }
            }
        })
    }
}

/// The request to open an event. Of a larger one than the vault opens, a part is enough to refuse it.
fn open_request(event: &VerifiedEvent) -> Request {
    let mut json = event.as_json().into_bytes();
    json.truncate(unwrap::MAX_WRAP + 1);
    Request::Open(json)
}
