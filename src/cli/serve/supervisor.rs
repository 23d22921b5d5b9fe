//! The supervisor: reads flags and configuration, and starts the other processes.

use super::super::log::{LogFlags, RunningLog};
use super::super::search_flags::SearchFlags;
use super::{LOG_FLUSH_TIMEOUT, NOT_CLEAN, Serve, end_process, on_stop, public_settings, read_again};
use crate::config::Config;
use crate::control;
use crate::ledger;
use crate::log_writer;
use crate::os::manager::{self, BotState};
use crate::os::signals::Hangups;
use crate::os::tree::{self, Channel};
use crate::token_bucket::TokenBucket;
use crate::vault::{
    DirectSpawner, IdentityFile, PassphraseSource, Process, ProcessEnd, ProcessRequest, PublicSettings, Spawner,
    VaultError,
};
use serde::{Deserialize, Serialize};
use std::collections::HashMap;
use std::ffi::OsString;
use std::io;
use std::path::PathBuf;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, OnceLock};
use std::time::{Duration, Instant};

/// The most vaults at once: a new one is started before the one that it replaces ends.
const MAX_VAULTS: usize = 2;
/// The most device processes at once.
const MAX_DEVICES: usize = 64;
/// Starts a second; and starts that may follow each other at once.
const START_RATE: (u32, u32) = (1, 40);

/// A request of the network process. The supervisor carries out nothing else.
#[derive(Debug, Serialize, Deserialize)]
pub(super) enum Ask {
    /// Start a process. Answered by [`Tell::Started`].
    Start(ProcessRequest),
    /// End a process that was started. Answered by [`Tell::Ended`].
    End(u32),
    /// Read the configuration again. Answered by [`Tell::Configuration`].
    Configuration,
    /// The vault is open: a stop is a clean one from now on.
    Opened,
    /// Tell the service manager.
    State(BotState),
}

/// What the supervisor says to the network process.
#[derive(Serialize, Deserialize)]
pub(super) enum Tell {
    /// The first item.
    Begin(Box<NetworkInit>),
    /// A process has started, with this id; its channel follows. Or it has not, and why.
    Started(Result<u32, String>),
    /// A process has ended.
    Ended(ProcessEnd),
    /// The text of the configuration, which is right; or what is wrong with it.
    Configuration(Result<String, String>),
    /// Take up the configuration, as SIGHUP asks.
    Reload,
    /// Stop cleanly.
    Stop,
}

/// What the network process needs to begin. The text of the configuration is checked.
#[derive(Serialize, Deserialize)]
pub(super) struct NetworkInit {
    /// The data folder.
    pub data: OsString,
    /// The text of the configuration.
    pub config: String,
    pub search: SearchFlags,
    pub log: LogFlags,
    /// The files that nobody but the vault reads.
    pub secrets: Vec<OsString>,
    /// The longest time between two signs of life for the service manager.
    pub watchdog: Option<Duration>,
}

impl Serve {
    /// Runs the command as the supervisor. Ends the process with the exit code of the network process.
    ///
    /// Errors: those before the network process starts.
    pub fn run(self, log: RunningLog) -> anyhow::Result<()> {
        let folders = self.identity.folders.find()?;
        let (text, config) = Config::read(&folders.config)?;
        let settings = public_settings(&config);
        let identity = self.identity.find(&folders.data)?;
        let lock = ledger::lock(&folders.data)?;
        // Signals are caught before there is another process.
        let link = Arc::<NetworkLink>::default();
        let stopping = Arc::clone(&link);
        on_stop(move |end| stopping.stop(end))?;
        let hangups = tokio::runtime::Builder::new_current_thread().enable_all().build()?;
        let listening = {
            let _within = hangups.enter();
            Hangups::listen()?
        };
        let mut secrets = vec![folders.data.clone().into_os_string(), identity.file.clone().into_os_string()];
        if let PassphraseSource::PassphraseFile(file) | PassphraseSource::AgeIdentityFile(file) = &identity.means {
            secrets.push(file.clone().into_os_string());
        }
        let init = NetworkInit {
            data: folders.data.clone().into_os_string(),
            config: text,
            search: self.search,
            log: log.flags,
            secrets,
            watchdog: manager::watchdog(),
        };
        let vaults = DirectSpawner::of_bot(identity.clone(), settings.clone())?;
        let (network, channel) = tree::start("network".as_ref(), &ledger::folder(&folders.data))?;
        channel.send(&Tell::Begin(Box::new(init)))?;
        let channel = link.channel.get_or_init(|| channel);
        let hung_up = Arc::clone(&link);
        let reload = async move {
            let Some(mut listening) = listening else { return };
            while listening.next().await.is_some() {
                hung_up.tell(&Tell::Reload);
            }
        };
        std::thread::Builder::new().name("hangups".to_owned()).spawn(move || hangups.block_on(reload))?;
        let supervisor = Supervisor {
            config_file: folders.config,
            identity,
            settings,
            vaults,
            devices: DirectSpawner::of_devices(Some(folders.data.clone()))?,
            channel,
            link: &link,
            network: Box::new(network),
            children: HashMap::new(),
            starts: TokenBucket::new(START_RATE.0, START_RATE.1),
        };
        let ended = supervisor.run();
        // The network process may not delete it.
        let _ = std::fs::remove_file(control::socket(&folders.data));
        drop(lock);
        let code = ended?;
        log_writer::flush(LOG_FLUSH_TIMEOUT);
        std::process::exit(code)
    }
}

/// The channel to the network process, shared with the threads of signals.
#[derive(Default)]
struct NetworkLink {
    channel: OnceLock<Channel>,
    /// Whether the vault is open: a stop is a clean one from now on.
    is_opened: AtomicBool,
    /// The exit code, if a signal has closed the channel.
    forced: OnceLock<i32>,
}

impl NetworkLink {
    fn tell(&self, item: &Tell) {
        // If this fails, the network process has ended, and the reader of the channel sees that.
        let _ = self.channel.get().map(|channel| channel.send(item));
    }

    /// Asks for a clean stop. With an exit code, or as long as there is nothing to shut down, ends
    /// the network process.
    fn stop(&self, end: Option<i32>) {
        if end.is_none() && self.is_opened.load(Ordering::Relaxed) {
            return self.tell(&Tell::Stop);
        }
        let code = *self.forced.get_or_init(|| end.unwrap_or(0));
        match self.channel.get() {
            Some(channel) => channel.close(),
            None => end_process(code),
        }
    }
}

struct Supervisor<'link> {
    config_file: PathBuf,
    identity: IdentityFile,
    /// The settings of the next vault's public events.
    settings: PublicSettings,
    vaults: Arc<dyn Spawner>,
    devices: Arc<dyn Spawner>,
    channel: &'link Channel,
    link: &'link NetworkLink,
    network: Box<dyn Process>,
    /// The vaults and device processes, by id.
    children: HashMap<u32, (bool, Box<dyn Process>)>,
    starts: TokenBucket,
}

impl Supervisor<'_> {
    /// Serves the network process until it ends. Returns its exit code.
    ///
    /// Errors: a system call filter forbids its walls.
    fn run(mut self) -> Result<i32, VaultError> {
        while let Ok(Some(ask)) = self.channel.receive() {
            self.answer(ask);
        }
        let ProcessEnd { status, code, is_forbidden_call } = self.network.end();
        self.children.values_mut().for_each(|(_, child)| drop(child.end()));
        if let Some(code) = self.link.forced.get() {
            return Ok(*code);
        }
        if is_forbidden_call && !self.link.is_opened.load(Ordering::Relaxed) {
            return Err(VaultError::Forbidden { status });
        }
        if code.is_none() {
            tracing::error!(status, "the network process has ended, and the bot with it");
        }
        Ok(code.unwrap_or(NOT_CLEAN))
    }

    fn answer(&mut self, ask: Ask) {
        match ask {
            Ask::Start(request) => self.start(&request),
            Ask::End(id) => {
                let end = match self.children.remove(&id) {
                    Some((_, mut child)) => child.end(),
                    None => ProcessEnd::unknown("there is no such process".to_owned()),
                };
                self.link.tell(&Tell::Ended(end));
            }
            Ask::Configuration => self.read_configuration(),
            Ask::Opened => self.link.is_opened.store(true, Ordering::Relaxed),
            Ask::State(state) => {
                if let Err(error) = manager::tell(state) {
                    tracing::debug!(%error, "the service manager cannot be told");
                }
            }
        }
    }

    fn start(&mut self, request: &ProcessRequest) {
        let is_vault = *request == ProcessRequest::Vault;
        let (most, spawner) = if is_vault { (MAX_VAULTS, &self.vaults) } else { (MAX_DEVICES, &self.devices) };
        let others = self.children.values().filter(|(of_vault, _)| *of_vault == is_vault).count();
        let spawned = if others >= most || !self.starts.try_take(Instant::now()) {
            Err(io::Error::other("too many processes were started; later it is tried again"))
        } else {
            spawner.start(request)
        };
        match spawned {
            Ok(spawned) => {
                let id = spawned.process.id();
                if let Ok(process) = self.channel.send_process(&Tell::Started(Ok(id)), spawned) {
                    self.children.insert(id, (is_vault, process));
                }
            }
            Err(error) => self.link.tell(&Tell::Started(Err(error.to_string()))),
        }
    }

    /// Reads the configuration again. Later vaults have its settings, unless a person types the
    /// passphrase.
    fn read_configuration(&mut self) {
        let read = read_again(&self.config_file).and_then(|(text, config)| {
            let settings = public_settings(&config);
            if settings != self.settings && !self.identity.means.is_person() {
                let vaults = DirectSpawner::of_bot(self.identity.clone(), settings.clone());
                self.vaults = vaults.map_err(|error| error.to_string())?;
                self.settings = settings;
            }
            Ok(text)
        });
        self.link.tell(&Tell::Configuration(read));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_network_process_that_asks_for_process_after_process_gets_one_a_second() {
        let begun = Instant::now();
        let mut starts = TokenBucket::full_at(begun, START_RATE.0, START_RATE.1);
        let mut allowed = |second| (0..1000).filter(|_| starts.try_take(begun + Duration::from_secs(second))).count();
        assert_eq!([0, 1, 3, 1_000_000].map(&mut allowed), [40, 1, 2, 40]);
    }
}
