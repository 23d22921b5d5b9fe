//! Starting the processes of a bot: its vault, and one for each device. A process is started by
//! this process ([`DirectSpawner`]) or, in a bot with walls, by the supervisor, which alone may.

use super::error::VaultError;
use super::identity::{IdentityFile, NEEDS_PERSON, VaultInit};
use super::lock;
use super::public::PublicSettings;
use super::request::MAX_FRAME;
use crate::frame;
use crate::os::channel::{self, Ends};
use crate::os::{self, program};
use serde::{Deserialize, Serialize};
use std::ffi::OsStr;
use std::io::{self, BufRead, BufReader, PipeReader, Read, Write};
use std::path::{Path, PathBuf};
use std::process::Child;
use std::sync::{Arc, Mutex};

/// The name of the program in lists of processes.
const NAME: &str = "npubbot";

/// The most bytes of the log of one process that are logged.
const MAX_LOG_BYTES: u64 = 64 << 10;

/// A process that a bot may start. It names no path and holds no secret: paths and the source of
/// the passphrase are the spawner's.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub enum ProcessRequest {
    /// The vault.
    Vault,
    /// A process that searches on one device. It is told by the bot which one.
    Device,
}

/// Variables of the environment that a GPU's driver and compiler read, by the beginning of their
/// names. A device process gets these only, and a vault none.
const DRIVER_VARIABLES: [&str; 6] = ["CUDA_", "NVIDIA_", "LD_LIBRARY_PATH", "NPUBBOT_NVRTC", "HOME", "PATH"];
/// Those of a test's driver, and of its faults.
#[cfg(any(test, feature = "test-util"))]
const TEST_VARIABLES: [&str; 2] = ["STUB_", "NPUBBOT_TEST_"];
#[cfg(not(any(test, feature = "test-util")))]
const TEST_VARIABLES: [&str; 0] = [];

impl ProcessRequest {
    /// The hidden command of the process.
    pub fn command(&self) -> &'static str {
        match self {
            ProcessRequest::Vault => "vault",
            ProcessRequest::Device => "device",
        }
    }
}

/// Starts processes.
pub trait Spawner: Send + Sync {
    /// Starts a process, which has got its first item.
    ///
    /// Errors: it cannot be started.
    fn start(&self, request: &ProcessRequest) -> io::Result<Spawned>;

    /// Whether each vault must have the same identity: the vault is a bot's.
    fn is_bot(&self) -> bool;
}

/// A started process.
pub struct Spawned {
    /// Our side of the channel to it.
    pub ends: Ends,
    /// The process.
    pub process: Box<dyn Process>,
}

/// A child process, of this process or of the supervisor.
pub trait Process: Send {
    /// Its id.
    fn id(&self) -> u32;

    /// Ends it, if it still runs, and waits for its end. The status of one that has ended by itself
    /// is its own.
    fn end(&mut self) -> ProcessEnd;
}

/// The end of a process.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub struct ProcessEnd {
    /// The exit status, for the log.
    pub status: String,
    /// The exit code; `None` if a signal ended it.
    pub code: Option<i32>,
    /// Whether a system call filter ended it.
    pub is_forbidden_call: bool,
}

impl ProcessEnd {
    /// The end of a process whose status cannot be had, and why.
    pub fn unknown(status: String) -> ProcessEnd {
        ProcessEnd { status, code: None, is_forbidden_call: false }
    }
}

impl Process for Child {
    fn id(&self) -> u32 {
        Child::id(self)
    }

    fn end(&mut self) -> ProcessEnd {
        // A process closes its end of the channel by ending, so this cuts none short.
        let _ = self.kill();
        match self.wait() {
            Ok(status) => {
                let is_forbidden_call = os::is_forbidden_call(status);
                ProcessEnd { status: status.to_string(), code: status.code(), is_forbidden_call }
            }
            Err(error) => ProcessEnd::unknown(error.to_string()),
        }
    }
}

/// Starts children of this process: for tests, for all commands but `serve`, and where there are no
/// walls.
pub struct DirectSpawner {
    program: PathBuf,
    /// The first item of the next vault; `None` if this spawner starts none, or a person has typed the
    /// passphrase of the last one.
    vault: Mutex<Option<VaultInit>>,
    /// The first item of each device process: the folder above that of compiled kernels; `None` to keep
    /// none.
    kernels: Option<PathBuf>,
}

impl DirectSpawner {
    /// A spawner of this program's device processes. `kernels`: the folder above that of compiled
    /// kernels; `None` to keep none.
    ///
    /// Errors: the system does not say where the program is.
    pub fn of_devices(kernels: Option<PathBuf>) -> io::Result<Arc<dyn Spawner>> {
        Ok(Arc::new(DirectSpawner { program: program()?, vault: Mutex::new(None), kernels }))
    }

    /// A spawner of a bot's vaults, which get these settings.
    ///
    /// Errors: [`VaultError::Process`].
    pub fn of_bot(identity: IdentityFile, settings: PublicSettings) -> Result<Arc<dyn Spawner>, VaultError> {
        DirectSpawner::of_vault(Some((identity, Some(settings))))
    }

    /// A spawner of vaults.
    pub(super) fn of_vault(init: VaultInit) -> Result<Arc<dyn Spawner>, VaultError> {
        let program = program().map_err(|error| VaultError::Process { reason: error.to_string() })?;
        Ok(Arc::new(DirectSpawner { program, vault: Mutex::new(Some(init)), kernels: None }))
    }
}

/// The program of all processes of a bot: this one, or for tests, whose own program is another, the one
/// that `NPUBBOT_TEST_PROGRAM` names.
fn program() -> io::Result<PathBuf> {
    #[cfg(any(test, feature = "test-util"))]
    if let Some(program) = std::env::var_os("NPUBBOT_TEST_PROGRAM") {
        return Ok(program.into());
    }
    program::this_program()
}

impl Spawner for DirectSpawner {
    fn start(&self, request: &ProcessRequest) -> io::Result<Spawned> {
        let mut vault = lock(&self.vault);
        let first = match request {
            ProcessRequest::Vault => {
                frame::encode(vault.as_ref().ok_or_else(|| io::Error::other(NEEDS_PERSON))?, MAX_FRAME)?
            }
            ProcessRequest::Device => frame::encode(&self.kernels, MAX_FRAME)?,
        };
        let spawned = spawn(&self.program, request, &first)?;
        // From now on the identity exists. Nobody is asked again for a passphrase that was typed.
        *vault = vault.take().and_then(|init| match init {
            Some((identity, _)) if identity.means.is_person() => None,
            init => Some(init.map(|(identity, settings)| (IdentityFile { is_new: false, ..identity }, settings))),
        });
        Ok(spawned)
    }

    fn is_bot(&self) -> bool {
        matches!(*lock(&self.vault), Some(Some(_)))
    }
}

/// Starts a process and sends it its first item.
fn spawn(program: &Path, request: &ProcessRequest, first: &[u8]) -> io::Result<Spawned> {
    let is_for_driver = |name: &OsStr| {
        DRIVER_VARIABLES.iter().chain(&TEST_VARIABLES).any(|begin| name.to_string_lossy().starts_with(begin))
    };
    let environment: Vec<_> = match request {
        ProcessRequest::Vault => Vec::new(),
        ProcessRequest::Device => std::env::vars_os().filter(|(name, _)| is_for_driver(name)).collect(),
    };
    let (child, mut ends) = channel::start(program, NAME, request.command(), environment)?;
    // If this fails, the process has ended, and who reads from it sees that.
    let _ = ends.writer.write_all(first);
    Ok(Spawned { ends, process: Box::new(child) })
}

/// Starts a thread that gives what a process writes to its standard error to `log`, line by line: its
/// first 64 KiB.
///
/// Errors: the system has no room for a thread.
pub fn log_lines(errors: PipeReader, log: fn(&str)) -> io::Result<()> {
    let copy = move || {
        let lines = BufReader::new(errors.take(MAX_LOG_BYTES)).lines();
        lines.map_while(Result::ok).for_each(|line| log(&line));
    };
    std::thread::Builder::new().name("process log".to_owned()).spawn(copy).map(drop)
}
