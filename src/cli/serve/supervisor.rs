//! The supervisor: reads flags and configuration, and starts the other processes.

use super::super::log::{LogFlags, RunningLog};
use super::super::search_flags::SearchFlags;
use super::{INTERRUPTED, LATE_STOP, LOG_FLUSH_TIMEOUT, NOT_CLEAN, STOP_TIMEOUT, Serve, public_settings, read_again};
use crate::config::Config;
use crate::control;
use crate::ledger;
use crate::log_writer;
use crate::os::manager::{self, BotState};
use crate::os::signals::{Hangups, Stops};
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
use std::sync::Arc;
use std::time::{Duration, Instant};
use tokio::sync::mpsc;

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
    /// The configuration file, for messages.
    pub config_file: OsString,
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
        let settings = public_settings(&self.search.in_config(config));
        let identity = self.identity.find(&folders.data)?;
        let lock = ledger::lock(&folders.data)?;
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build()?;
        // Signals are caught before there is another process.
        let (stops, hangups) = {
            let _within = runtime.enter();
            (Stops::listen()?, Hangups::listen()?)
        };
        let mut secrets = vec![folders.data.clone().into_os_string(), identity.file.clone().into_os_string()];
        if let PassphraseSource::PassphraseFile(file) | PassphraseSource::AgeIdentityFile(file) = &identity.means {
            secrets.push(file.clone().into_os_string());
        }
        let init = NetworkInit {
            data: folders.data.clone().into_os_string(),
            config_file: folders.config.clone().into_os_string(),
            config: text,
            search: self.search.clone(),
            log: log.flags,
            secrets,
            watchdog: manager::watchdog(),
        };
        let vaults = DirectSpawner::of_bot(identity.clone(), settings.clone())?;
        let (network, channel) = tree::start("network".as_ref(), &ledger::folder(&folders.data))?;
        channel.send(&Tell::Begin(Box::new(init)))?;
        let channel = Arc::new(channel);
        let supervisor = Supervisor {
            config_file: folders.config,
            search: self.search,
            identity,
            settings,
            vaults,
            devices: DirectSpawner::of_devices(Some(folders.data.clone()))?,
            channel: Arc::clone(&channel),
            network: Box::new(network),
            children: HashMap::new(),
            starts: TokenBucket::new(START_RATE.0, START_RATE.1),
            is_opened: false,
        };
        let (asked, asks) = mpsc::unbounded_channel();
        let listen = move || {
            while let Ok(Some(ask)) = channel.receive() {
                let _ = asked.send(ask);
            }
        };
        std::thread::Builder::new().name("network".to_owned()).spawn(listen)?;
        let ended = runtime.block_on(supervisor.run(asks, stops, hangups));
        // The network process may not delete it.
        let _ = std::fs::remove_file(control::socket(&folders.data));
        drop(lock);
        let code = ended?;
        log_writer::flush(LOG_FLUSH_TIMEOUT);
        std::process::exit(code)
    }
}

struct Supervisor {
    config_file: PathBuf,
    search: SearchFlags,
    identity: IdentityFile,
    /// The settings of the next vault's public events.
    settings: PublicSettings,
    vaults: Arc<dyn Spawner>,
    devices: Arc<dyn Spawner>,
    channel: Arc<Channel>,
    network: Box<dyn Process>,
    /// The vaults and device processes, by id.
    children: HashMap<u32, (bool, Box<dyn Process>)>,
    starts: TokenBucket,
    /// Whether the vault is open.
    is_opened: bool,
}

impl Supervisor {
    /// Serves the network process until it ends. Returns the exit code.
    async fn run(
        mut self,
        mut asks: mpsc::UnboundedReceiver<Ask>,
        mut stops: Stops,
        mut hangups: Option<Hangups>,
    ) -> Result<i32, VaultError> {
        let mut deadline = None;
        loop {
            let hangup = async {
                match &mut hangups {
                    Some(hangups) => hangups.next().await,
                    None => None,
                }
            };
            tokio::select! {
                ask = asks.recv() => match ask {
                    Some(ask) => self.answer(ask),
                    None => return self.ended(),
                },
                () = stops.next() => match deadline {
                    None if self.is_opened => {
                        deadline = Some(tokio::time::Instant::now() + STOP_TIMEOUT);
                        self.tell(&Tell::Stop);
                    }
                    Some(_) => return self.end(INTERRUPTED),
                    // There is nothing to shut down yet.
                    None => return self.end(0),
                },
                Some(()) = hangup => self.tell(&Tell::Reload),
                () = async { tokio::time::sleep_until(deadline.unwrap_or_else(tokio::time::Instant::now)).await },
                    if deadline.is_some() => {
                        tracing::warn!("{LATE_STOP}");
                        return self.end(NOT_CLEAN);
                    }
            }
        }
    }

    fn tell(&self, item: &Tell) {
        // If this fails, the network process has ended, and the reader of the channel sees that.
        let _ = self.channel.send(item);
    }

    fn answer(&mut self, ask: Ask) {
        match ask {
            Ask::Start(request) => self.start(&request),
            Ask::End(id) => {
                let end = match self.children.remove(&id) {
                    Some((_, mut child)) => child.end(),
                    None => ProcessEnd::unknown("there is no such process".to_owned()),
                };
                self.tell(&Tell::Ended(end));
            }
            Ask::Configuration => self.read_configuration(),
            Ask::Opened => self.is_opened = true,
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
                self.tell(&Tell::Started(Ok(id)));
                if let Ok(process) = self.channel.send_process(spawned) {
                    self.children.insert(id, (is_vault, process));
                }
            }
            Err(error) => self.tell(&Tell::Started(Err(error.to_string()))),
        }
    }

    /// Reads the configuration again. Later vaults have its settings, unless a person types the
    /// passphrase.
    fn read_configuration(&mut self) {
        let read = read_again(&self.config_file).and_then(|(text, config)| {
            self.follow(public_settings(&self.search.in_config(config))).map_err(|error| error.to_string())?;
            Ok(text)
        });
        self.tell(&Tell::Configuration(read));
    }

    fn follow(&mut self, settings: PublicSettings) -> Result<(), VaultError> {
        if settings != self.settings && !self.identity.means.is_person() {
            self.vaults = DirectSpawner::of_bot(self.identity.clone(), settings.clone())?;
            self.settings = settings;
        }
        Ok(())
    }

    /// The network process has ended. Ends the others, and returns its exit code.
    ///
    /// Errors: a system call filter forbids its walls.
    fn ended(mut self) -> Result<i32, VaultError> {
        let ProcessEnd { status, code, is_forbidden_call } = self.network.end();
        if is_forbidden_call && !self.is_opened {
            return Err(VaultError::Forbidden { status });
        }
        if code.is_none() {
            tracing::error!(status, "the network process has ended, and the bot with it");
        }
        self.end(code.unwrap_or(NOT_CLEAN))
    }

    /// Ends all processes. Returns `code`.
    fn end(mut self, code: i32) -> Result<i32, VaultError> {
        self.network.end();
        self.children.values_mut().for_each(|(_, child)| drop(child.end()));
        Ok(code)
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
