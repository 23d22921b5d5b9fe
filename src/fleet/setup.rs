//! Making a fleet, and adding and removing workers.

use super::error::FleetError;
use super::files;
use super::server_config::server_config;
use crate::os::process;
use crate::remote::{BOT, Credentials};
use crate::search::WorkerName;
use nkeys::{KeyPair, KeyPairType};
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::time::Duration;

/// The folder of the fleet, in the data folder.
pub const FOLDER: &str = "fleet";
/// The credentials of the bot, in that folder.
pub const BOT_CREDENTIALS: &str = "bot.creds";
const STATE: &str = "fleet.toml";
const SERVER_CONFIG: &str = "nats-server.conf";
const CERTIFICATE: &str = "server.pem";
const CERTIFICATE_KEY: &str = "server-key.pem";
const PROCESS: &str = "nats-server.pid";
/// The name of the server's program. A process that runs another program is not the server.
const PROGRAM: &str = "nats-server";
/// Time for the server to finish the first of two reloads.
const BETWEEN_RELOADS: Duration = Duration::from_millis(300);

/// The content of `fleet.toml`.
#[derive(Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct State {
    host: String,
    port: u16,
    /// The public key of the bot's user.
    bot: String,
    /// The public keys of the workers, by name.
    #[serde(default)]
    workers: BTreeMap<String, String>,
}

/// The files of a fleet.
pub struct Setup {
    folder: PathBuf,
    state: State,
}

/// Whether the server was told of a change.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Reloaded {
    /// The server was told to read its configuration again.
    Told,
    /// No server of this fleet runs on this machine.
    NotHere,
}

impl Setup {
    /// Makes a fleet in the data folder, with no workers. They will reach its server at this host
    /// and port.
    pub fn init(data: &Path, host: &str, port: u16) -> Result<Setup, FleetError> {
        let folder = folder_in(data)?;
        if folder.join(STATE).exists() {
            return Err(FleetError::Exists(folder));
        }
        let is_host = |c: char| c.is_ascii_alphanumeric() || ".-:".contains(c);
        if host.is_empty() || !host.chars().all(is_host) {
            return Err(FleetError::Host(host.to_owned()));
        }
        std::fs::create_dir_all(&folder).map_err(|error| FleetError::File { file: folder.clone(), error })?;
        // The bot itself may be on the same machine.
        let names = vec![host.to_owned(), "localhost".to_owned(), "127.0.0.1".to_owned()];
        let certified =
            rcgen::generate_simple_self_signed(names).map_err(|error| FleetError::Key(error.to_string()))?;
        files::write(&folder.join(CERTIFICATE), &certified.cert.pem())?;
        files::write(&folder.join(CERTIFICATE_KEY), &certified.signing_key.serialize_pem())?;
        let (key, seed) = draw()?;
        let setup = Setup { folder, state: State { host: host.to_owned(), port, bot: key, workers: BTreeMap::new() } };
        setup.write_credentials(BOT, &seed)?;
        setup.write()?;
        Ok(setup)
    }

    /// The fleet in the data folder.
    pub fn open(data: &Path) -> Result<Setup, FleetError> {
        let folder = folder_in(data)?;
        let file = folder.join(STATE);
        if !file.exists() {
            return Err(FleetError::Missing(folder));
        }
        let damaged = |reason: String| FleetError::Damaged { file: file.clone(), reason };
        let state: State = toml::from_str(&files::read(&file)?).map_err(|error| damaged(error.to_string()))?;
        let keys = state.workers.values().chain([&state.bot]);
        if let Some(wrong) = keys.into_iter().find(|key| KeyPair::from_public_key(key).is_err()) {
            return Err(damaged(format!("`{wrong}` is no public key")));
        }
        if let Some((wrong, _)) = state.workers.iter().find(|(name, _)| name.parse::<WorkerName>().is_err()) {
            return Err(damaged(format!("`{wrong}` is no name")));
        }
        Ok(Setup { folder, state })
    }

    /// The workers that were added, by name.
    pub fn workers(&self) -> Vec<WorkerName> {
        // Names were checked when the state was read or changed.
        self.state.workers.keys().filter_map(|name| name.parse().ok()).collect()
    }

    /// Adds a worker. Returns the file with its credentials.
    pub fn add(&mut self, name: WorkerName) -> Result<PathBuf, FleetError> {
        if self.state.workers.contains_key(name.as_str()) {
            return Err(FleetError::Taken(name));
        }
        let (key, seed) = draw()?;
        let file = self.write_credentials(name.as_str(), &seed)?;
        self.state.workers.insert(name.as_str().to_owned(), key);
        self.write()?;
        Ok(file)
    }

    /// Removes a worker: from the next reload on, the server does not know its key.
    pub fn remove(&mut self, name: WorkerName) -> Result<(), FleetError> {
        if self.state.workers.remove(name.as_str()).is_none() {
            return Err(FleetError::Unknown(name));
        }
        self.write()?;
        // The credentials are worthless now, so it does not matter if this fails.
        let _ = std::fs::remove_file(self.credentials(name.as_str()));
        Ok(())
    }

    /// Tells the server of this fleet to read its configuration again, if it runs on this machine.
    /// Each call reloads twice: only the second reload lets a new account use services of another
    /// one (seen with nats-server 2.15.1).
    pub fn reload(&self) -> Reloaded {
        let first = self.tell_server();
        std::thread::sleep(BETWEEN_RELOADS);
        self.tell_server().and(first).map_or(Reloaded::NotHere, |()| Reloaded::Told)
    }

    fn tell_server(&self) -> Option<()> {
        let text = std::fs::read_to_string(self.folder.join(PROCESS)).ok()?;
        // By now the number may belong to another process, so the program's name is checked.
        process::reload(text.trim().parse().ok()?, PROGRAM)
    }

    /// The address of the server, for workers.
    pub fn server(&self) -> String {
        format!("tls://{}:{}", self.state.host, self.state.port)
    }

    /// The configuration of the server.
    pub fn server_config(&self) -> PathBuf {
        self.folder.join(SERVER_CONFIG)
    }

    fn credentials(&self, user: &str) -> PathBuf {
        self.folder.join(format!("{user}.creds"))
    }

    fn write_credentials(&self, user: &str, seed: &str) -> Result<PathBuf, FleetError> {
        let certificate = files::read(&self.folder.join(CERTIFICATE))?;
        let file = self.credentials(user);
        files::write(&file, &Credentials::text(user, seed, &certificate))?;
        Ok(file)
    }

    fn write(&self) -> Result<(), FleetError> {
        let state = toml::to_string(&self.state).map_err(|error| FleetError::Key(error.to_string()))?;
        files::write(&self.folder.join(STATE), &state)?;
        // Names were checked when the state was read or changed.
        let workers = self.state.workers.iter().filter_map(|(name, key)| Some((name.parse().ok()?, key.as_str())));
        files::write(&self.server_config(), &server_config(&self.folder, self.state.port, &self.state.bot, workers))
    }
}

/// The folder of the fleet, as an absolute path: the server may start anywhere.
fn folder_in(data: &Path) -> Result<PathBuf, FleetError> {
    std::path::absolute(data.join(FOLDER)).map_err(|error| FleetError::File { file: data.to_owned(), error })
}

/// Draws the key of a user: its public part, and its seed.
fn draw() -> Result<(String, String), FleetError> {
    let failed = |error: String| FleetError::Key(error);
    let mut random = [0; 32];
    getrandom::fill(&mut random).map_err(|error| failed(error.to_string()))?;
    let key = KeyPair::new_from_raw(KeyPairType::User, random).map_err(|error| failed(error.to_string()))?;
    let seed = key.seed().map_err(|error| failed(error.to_string()))?;
    Ok((key.public_key(), seed))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_worker_is_added_and_removed_and_nobody_else_reads_its_credentials() {
        let data = tempfile::tempdir().unwrap();
        assert!(matches!(Setup::open(data.path()), Err(FleetError::Missing(_))));
        assert!(matches!(Setup::init(data.path(), "no host", 4222), Err(FleetError::Host(_))));
        let setup = Setup::init(data.path(), "nats.example", 4333).unwrap();
        assert_eq!(setup.server(), "tls://nats.example:4333");
        assert!(matches!(Setup::init(data.path(), "nats.example", 4222), Err(FleetError::Exists(_))));
        let (ann, bob) = ("ann".parse().unwrap(), "bob".parse().unwrap());
        let mut setup = Setup::open(data.path()).unwrap();
        let file = setup.add(ann).unwrap();
        setup.add(bob).unwrap();
        assert!(matches!(setup.add(ann), Err(FleetError::Taken(_))));
        assert_eq!(Credentials::read(&file).unwrap().user(), "ann");
        let folder = data.path().join(FOLDER);
        for entry in std::fs::read_dir(&folder).unwrap() {
            let entry = entry.unwrap();
            assert!(!crate::os::files::is_open_to_others(&entry.path()).unwrap(), "{:?}", entry.path());
        }
        let config = std::fs::read_to_string(setup.server_config()).unwrap();
        let seeds = ["ann", "bob", "bot"].map(|user| std::fs::read_to_string(setup.credentials(user)).unwrap());
        assert!(seeds.iter().all(|text| !text.lines().any(|line| line.starts_with("SU") && config.contains(line))));
        assert_eq!(config.matches("nkey: U").count(), 3);
        let mut setup = Setup::open(data.path()).unwrap();
        setup.remove(ann).unwrap();
        assert!(matches!(setup.remove(ann), Err(FleetError::Unknown(_))));
        assert!(!file.exists());
        let config = std::fs::read_to_string(setup.server_config()).unwrap();
        assert!(config.matches("nkey: U").count() == 2 && !config.contains("npubbot.ann."), "{config}");
        assert_eq!(setup.reload(), Reloaded::NotHere);
    }

    #[test]
    fn a_process_that_is_no_server_is_left_alone() {
        let data = tempfile::tempdir().unwrap();
        let setup = Setup::init(data.path(), "nats.example", 4333).unwrap();
        std::fs::write(setup.folder.join(PROCESS), std::process::id().to_string()).unwrap();
        // If this process got the signal to reload (SIGHUP), it would end.
        assert_eq!(setup.reload(), Reloaded::NotHere);
    }

    #[test]
    fn a_file_that_was_changed_wrongly_is_refused_with_the_reason() {
        let data = tempfile::tempdir().unwrap();
        let setup = Setup::init(data.path(), "nats.example", 4333).unwrap();
        let file = setup.folder.join(STATE);
        let good = std::fs::read_to_string(&file).unwrap();
        for (bad, named) in [
            (good.replace("bot = \"U", "bot = \"X"), "no public key"),
            (format!("{good}\"a b\" = \"{}\"\n", setup.state.bot), "no name"),
            (good.replace("port", "sort"), "sort"),
        ] {
            std::fs::write(&file, bad).unwrap();
            let error = Setup::open(data.path()).map(drop).unwrap_err().to_string();
            assert!(error.contains(named), "{error}");
        }
    }
}
