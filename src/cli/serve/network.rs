//! The network process: talks to strangers, behind walls. Everything that it may not do itself it
//! asks of the supervisor.

use super::supervisor::{Ask, NetworkInit, Tell};
use super::{Bot, MAX_RELOADS, NOT_CLEAN, ReloadRequest, end_process, public_settings, runtime};
use crate::cli::PART_OF_SERVE;
use crate::config::{Config, Walls};
use crate::control::ControlServer;
use crate::ledger;
use crate::os::tree::{self, Channel};
use crate::os::walls;
use crate::service::{MetricsServer, ServiceManager};
use crate::shutdown::{self, Stopper};
use crate::vault::{Process, ProcessEnd, ProcessRequest, Spawned, Spawner, Vault};
use crate::web::WebServer;
use anyhow::Context;
use std::io;
use std::path::PathBuf;
use std::sync::{Arc, Mutex, PoisonError, mpsc};
use tokio::sync::oneshot;

/// The name of the configuration, whose text the supervisor has checked.
const CONFIG_NAME: &str = "relays.toml";

/// Serves as the network process until the supervisor asks for a stop. The supervisor tells it
/// everything.
///
/// Errors: standard input is not the channel of a supervisor; those of the bot.
pub(in crate::cli) fn serve_network() -> anyhow::Result<()> {
    let (channel, init) = begin().context(PART_OF_SERVE)?;
    let data = PathBuf::from(init.data);
    let config = init.search.in_config(Config::parse(&init.config, CONFIG_NAME)?);
    let page = WebServer::listen(&config.web)?;
    let metrics = config.web.metrics.map(MetricsServer::bind).transpose()?;
    let control = ControlServer::open(&data);
    let secrets: Vec<PathBuf> = init.secrets.into_iter().map(PathBuf::from).collect();
    let read = crate::service::files_to_read(&config, &data);
    let missing = tree::enclose_network(vec![ledger::folder(&data)], read, &secrets);
    let log = init.log.start("info");
    let are_required = config.vault.walls == Walls::Required;
    walls::check("network", missing, are_required)?;
    let (tell, told) = mpsc::channel();
    let link = Arc::new(Link { channel, answers: Mutex::new(told) });
    let (stopper, shutdown) = shutdown::pair();
    let (reload, reloads) = tokio::sync::mpsc::channel(MAX_RELOADS);
    let (listening, asked) = (Arc::clone(&link), reload.clone());
    std::thread::Builder::new()
        .name("supervisor".to_owned())
        .spawn(move || listening.listen(&tell, &stopper, &asked))?;

    let spawner = Arc::clone(&link) as Arc<dyn Spawner>;
    let start = {
        let spawner = Arc::clone(&spawner);
        move |settings| Vault::started_by(Arc::clone(&spawner), Some(settings))
    };
    let vault = start(public_settings(&config))?;
    walls::check("vault", vault.missing_walls(), are_required)?;
    #[cfg(any(test, feature = "test-util"))]
    tree::attack_if_asked(&data, vault.process_id());
    link.channel.send(&Ask::Opened)?;
    let (supervisor, flags) = (Arc::clone(&link), init.search);
    let read = move || {
        let text = supervisor.configuration()?;
        let config = Config::parse(&text, CONFIG_NAME).map_err(|error| error.to_string())?;
        Ok(flags.in_config(config))
    };
    let bot = Bot {
        data,
        vault,
        start_vault: Box::new(start),
        devices: spawner,
        shutdown,
        read: Box::new(read),
        reloads: (reload, reloads),
        recent_log: log.recent,
        manager: ServiceManager::new(init.watchdog, move |state| link.channel.send(&Ask::State(state))),
        page,
        metrics,
        control,
    };
    bot.run(config, runtime()?)
}

/// Becomes the network process and reads the first item.
fn begin() -> io::Result<(Channel, NetworkInit)> {
    tree::follow_supervisor()?;
    let channel = Channel::own_end()?;
    match channel.receive()? {
        Some(Tell::Begin(init)) => Ok((channel, *init)),
        _ => Err(io::ErrorKind::InvalidData.into()),
    }
}

/// The answers of the supervisor, in the order of the requests.
enum Answer {
    Started(io::Result<Spawned>),
    Ended(ProcessEnd),
    Configuration(Result<String, String>),
}

/// The channel to the supervisor.
struct Link {
    channel: Channel,
    /// Locked from a request to its answer.
    answers: Mutex<mpsc::Receiver<Answer>>,
}

impl Link {
    /// Reads what the supervisor says, until this process ends.
    fn listen(
        self: &Arc<Link>,
        answers: &mpsc::Sender<Answer>,
        stopper: &Stopper,
        reloads: &tokio::sync::mpsc::Sender<ReloadRequest>,
    ) {
        while let Ok(Some(item)) = self.channel.receive() {
            let answer = match item {
                Tell::Started(started) => Answer::Started(self.started(started)),
                Tell::Ended(end) => Answer::Ended(end),
                Tell::Configuration(read) => Answer::Configuration(read),
                Tell::Reload => {
                    // Nobody waits for the outcome, which is in the log.
                    let _ = reloads.try_send(oneshot::channel().0);
                    continue;
                }
                Tell::Stop => {
                    tracing::info!("stopping; send the signal again to end at once");
                    // The supervisor ends this process if that takes too long.
                    stopper.stop();
                    continue;
                }
                Tell::Begin(_) => continue,
            };
            let _ = answers.send(answer);
        }
        // The supervisor is gone, and the kernel ends this process; on a kernel that does not:
        end_process(NOT_CLEAN);
    }

    /// Asks the supervisor, and waits for its answer.
    fn ask(&self, ask: &Ask) -> io::Result<Answer> {
        let answers = self.answers.lock().unwrap_or_else(PoisonError::into_inner);
        self.channel.send(ask)?;
        answers.recv().map_err(|_| io::Error::other("the supervisor does not answer"))
    }

    /// The text of the configuration as the file has it now.
    fn configuration(&self) -> Result<String, String> {
        match self.ask(&Ask::Configuration) {
            Ok(Answer::Configuration(read)) => read,
            Ok(_) => Err("the supervisor answers something else".to_owned()),
            Err(error) => Err(error.to_string()),
        }
    }

    fn started(self: &Arc<Link>, started: Result<u32, String>) -> io::Result<Spawned> {
        let id = started.map_err(io::Error::other)?;
        self.channel.receive_process(Box::new(ChildOfSupervisor { id, link: Arc::clone(self) }))
    }
}

impl Spawner for Link {
    fn start(&self, request: &ProcessRequest) -> io::Result<Spawned> {
        match self.ask(&Ask::Start(request.clone()))? {
            Answer::Started(spawned) => spawned,
            _ => Err(io::ErrorKind::InvalidData.into()),
        }
    }

    fn is_bot(&self) -> bool {
        true
    }
}

/// A child of the supervisor that was started for this process.
struct ChildOfSupervisor {
    id: u32,
    link: Arc<Link>,
}

impl Process for ChildOfSupervisor {
    fn id(&self) -> u32 {
        self.id
    }

    fn end(&mut self) -> ProcessEnd {
        match self.link.ask(&Ask::End(self.id)) {
            Ok(Answer::Ended(end)) => end,
            _ => ProcessEnd::unknown("the supervisor does not answer".to_owned()),
        }
    }
}
