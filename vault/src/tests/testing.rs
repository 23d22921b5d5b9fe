//! Vaults in this process, and methods of [`Vault`] that need one, for tests only.

use super::answering::serve;
use super::error::VaultError;
use super::identity::{Ready, Unlock};
use super::public::{Policy, PublicSettings};
#[cfg(test)]
use super::random::Source;
use super::request::MAX_FRAME;
#[cfg(test)]
use super::secret::Signing;
use super::secrets::Secrets;
use super::spawner::{Process, ProcessEnd, ProcessRequest, Spawned, Spawner};
use super::start_points::StartId;
use super::ticket::{self, Asked, Author, Order, Reader, Wanted};
use super::vault::Vault;
use crate::clock::Clock;
use crate::frame;
use crate::key::{HalfPoint, StartPoint, VerifiedHit};
use crate::message::{Asker, GiftWrap, OutgoingMessage, RumorId, Ticket};
use crate::os::channel::Ends;
use crate::pattern::ALPHABET;
use std::io::{self, PipeReader, PipeWriter};
use std::path::Path;
use std::sync::{Arc, Mutex};

/// Starts threads of this process that answer as a vault process does.
struct VaultThreads(Arc<Secrets>);

impl Spawner for VaultThreads {
    fn start(&self, _: &ProcessRequest) -> io::Result<Spawned> {
        let secrets = Arc::clone(&self.0);
        spawn_thread(0, secrets.public_key(), move |input, output| {
            let _ = serve(&Mutex::new(input), &secrets, &Mutex::new(output));
        })
    }

    fn is_bot(&self) -> bool {
        true
    }
}

/// Starts a thread in place of a vault process with this id and key. It has greeted the bot before
/// `vault` runs.
pub(super) fn spawn_thread(
    id: u32,
    key: nostr::PublicKey,
    vault: impl FnOnce(PipeReader, PipeWriter) + Send + 'static,
) -> io::Result<Spawned> {
    let ((input, writer), (reader, mut output), (errors, _)) = (io::pipe()?, io::pipe()?, io::pipe()?);
    let greeting: Result<Ready, VaultError> = Ok(Ready { key: key.to_bytes(), missing_walls: Vec::new() });
    frame::write(&mut output, &greeting, MAX_FRAME)?;
    std::thread::spawn(move || vault(input, output));
    Ok(Spawned { ends: Ends { reader, writer, errors }, process: Box::new(VaultThread(id)) })
}

struct VaultThread(u32);

impl Process for VaultThread {
    fn id(&self) -> u32 {
        self.0
    }

    fn end(&mut self) -> ProcessEnd {
        ProcessEnd::unknown("a thread of a test".to_owned())
    }
}

impl Vault {
    /// Makes a new identity in this process, and writes it to a new file at `path` (permissions
    /// 0600), locked with `unlock`.
    ///
    /// Errors: [`VaultError::FileExists`], [`VaultError::File`], [`VaultError::WrongKey`] if
    /// `unlock` is empty or holds no key, [`VaultError::NoRandomness`].
    pub fn create(path: &Path, unlock: &Unlock) -> Result<Vault, VaultError> {
        Vault::here(Secrets::create(path, unlock)?)
    }

    /// Opens the identity in `path` in this process.
    ///
    /// Errors: [`VaultError::File`], [`VaultError::WrongKey`].
    pub fn open(path: &Path, unlock: &Unlock) -> Result<Vault, VaultError> {
        Vault::here(Secrets::open(path, unlock)?)
    }

    /// [`Vault::start_local`] in this process.
    ///
    /// Errors: [`VaultError::NoRandomness`].
    pub fn without_identity() -> Result<Vault, VaultError> {
        Vault::here(Secrets::local()?)
    }

    fn here(secrets: Secrets) -> Result<Vault, VaultError> {
        let secrets = Arc::new(secrets);
        let mut vault = Vault::started_by(Arc::new(VaultThreads(Arc::clone(&secrets))), None)?;
        vault.secrets = Some(secrets);
        Ok(vault)
    }

    /// The same vault with another clock. A vault process has the system's clock.
    pub fn with_clock(self, clock: Clock) -> Vault {
        self.with(|secrets| Secrets { clock, ..secrets })
    }

    /// The same vault, with a reader of messages.
    pub fn with_reader(self, reader: Reader) -> Vault {
        self.with(|secrets| Secrets { reader, ..secrets })
    }

    /// A ticket that no message asked for.
    ///
    /// Errors: [`VaultError::Failed`] if the secrets are in a vault process.
    pub fn ticket_for_tests(&self, order: &Order) -> Result<Ticket, VaultError> {
        let secrets = self.secrets.as_ref().ok_or(VaultError::Failed)?;
        ticket::issue(&secrets.bot, Author::Verified, order)
    }

    /// [`Vault::redeem`] with a ticket for any key to the receiver of the message.
    ///
    /// Errors: as [`Vault::redeem`].
    pub fn redeem_any(
        &self,
        start: StartId,
        hit: &VerifiedHit,
        message: &OutgoingMessage,
    ) -> Result<GiftWrap, VaultError> {
        let ticket = self.ticket_for_tests(&Order::any_key(message.to, None))?;
        self.redeem(start, hit, &ticket, None, message)
    }

    /// Draws a blinding secret, 256 bits from the operating system, and returns the blinded point
    /// of an asker's half.
    ///
    /// Errors: [`VaultError::NoRandomness`], [`VaultError::Gone`].
    pub fn open_split_start(&self, half: &HalfPoint) -> Result<(StartId, StartPoint), VaultError> {
        self.open_starts(1, Some(half))?.pop().ok_or(VaultError::Failed)
    }

    /// The same vault, which signs what these settings allow.
    pub fn with_settings(self, settings: PublicSettings) -> Vault {
        self.with(|secrets| Secrets { policy: Arc::new(Policy::new(Some(settings))), ..secrets })
    }

    /// The same vault, with another source of randomness.
    #[cfg(test)]
    pub(super) fn with_source(self, source: Source) -> Vault {
        self.with(|secrets| Secrets { source, ..secrets })
    }

    #[cfg(test)]
    pub(super) fn bot_for_tests(&self) -> &Signing {
        &self.secrets.as_ref().expect("a vault of this process").bot
    }

    fn with(mut self, change: impl FnOnce(Secrets) -> Secrets) -> Vault {
        let secrets = self.secrets.as_ref().expect("a vault of this process").as_ref().clone();
        let Vault { process, secrets, .. } = Vault::here(change(secrets)).expect("a thread");
        (self.process, self.secrets) = (process, secrets);
        self
    }
}

impl Order {
    /// An order for any key, which no message asked for.
    pub fn any_key(asker: Asker, half: Option<HalfPoint>) -> Order {
        let letters = ALPHABET.iter().map(|&letter| char::from(letter).to_string());
        let wanted = Wanted::Patterns(letters.map(|letter| letter.parse().expect("a letter is a pattern")).collect());
        let (rumor, asked) = (RumorId([0; 32]), Asked { wanted, half });
        Order { asker, rumor, dated: 0, encryption_key: None, asked }
    }
}
