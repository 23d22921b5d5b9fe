//! The files of an operator who has workers on other machines: the keys of the users of the NATS
//! server, its certificate and its configuration.
//!
//! | file in `fleet/` of the data folder | content |
//! | --- | --- |
//! | `fleet.toml` | host, port, and the public key of each user |
//! | `nats-server.conf` | made of it: an account for the bot and one for each worker |
//! | `server.pem`, `server-key.pem` | the certificate that clients must see, and its key |
//! | `bot.creds`, `NAME.creds` | the credentials of the bot, and of a worker |

use super::FleetError;
use super::credentials::Credentials;
use super::subjects::{BOT, Rights, rights_of_bot, rights_of_worker, services_for};
use super::wire::LARGEST_ANSWER;
use nkeys::{KeyPair, KeyPairType};
use npubbot_miner::search::WorkerName;
use npubbot_miner::search::orders::LARGEST_ORDER;
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};
use std::collections::BTreeMap;
use std::io::Write as _;
use std::path::{Path, PathBuf};

/// The folder of the fleet, in the data folder.
pub const FOLDER: &str = "fleet";
/// The credentials of the bot, in that folder.
pub const BOT_CREDENTIALS: &str = "bot.creds";
const STATE: &str = "fleet.toml";
const SERVER_CONFIG: &str = "nats-server.conf";
const CERTIFICATE: &str = "server.pem";
const CERTIFICATE_KEY: &str = "server-key.pem";
const PROCESS: &str = "nats-server.pid";

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

impl Setup {
    /// Makes a fleet in the data folder, with no workers. They will reach its server at this host
    /// and port.
    pub fn init(data: &Path, host: &str, port: u16) -> Result<Setup, FleetError> {
        let folder = folder_in(data)?;
        if folder.join(STATE).exists() {
            let text =
                format!("there is a fleet in {}; `npubbot fleet add NAME` adds a worker to it", folder.display());
            return Err(FleetError::Refused(text));
        }
        let is_host = |c: char| c.is_ascii_alphanumeric() || ".-:".contains(c);
        if host.is_empty() || !host.chars().all(is_host) {
            return Err(FleetError::Refused(format!(
                "`{host}` is not a host; give the name or the address at which workers reach this machine"
            )));
        }
        std::fs::create_dir_all(&folder).map_err(|error| FleetError::File { file: folder.clone(), error })?;
        // The bot itself may be on the same machine.
        let names = vec![host.to_owned(), "localhost".to_owned(), "127.0.0.1".to_owned()];
        let certified = rcgen::generate_simple_self_signed(names).map_err(|error| no_key(&error))?;
        write_private(&folder.join(CERTIFICATE), &certified.cert.pem())?;
        write_private(&folder.join(CERTIFICATE_KEY), &certified.signing_key.serialize_pem())?;
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
            let text = format!("there is no fleet in {}; `npubbot fleet init --host HOST` makes one", folder.display());
            return Err(FleetError::Refused(text));
        }
        let damaged = |reason: String| FleetError::Refused(format!("{}: {reason}", file.display()));
        let state: State = toml::from_str(&read(&file)?).map_err(|error| damaged(error.to_string()))?;
        let keys = state.workers.values().chain([&state.bot]);
        if let Some(wrong) = keys.into_iter().find(|key| KeyPair::from_public_key(key).is_err()) {
            return Err(damaged(format!("`{wrong}` is not a public key")));
        }
        if let Some((wrong, _)) = state.workers.iter().find(|(name, _)| name.parse::<WorkerName>().is_err()) {
            return Err(damaged(format!("`{wrong}` is not a name")));
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
            let text = format!("there is a worker {name}; choose another name, or remove it first");
            return Err(FleetError::Refused(text));
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
            return Err(FleetError::Refused(format!("there is no worker {name}")));
        }
        self.write()?;
        // The credentials are worthless now, so it does not matter if this fails.
        let _ = std::fs::remove_file(self.credentials(name.as_str()));
        Ok(())
    }

    /// The address of the server, for workers.
    pub fn server(&self) -> String {
        format!("tls://{}:{}", self.state.host, self.state.port)
    }

    /// The configuration of the server, which must run in its folder: its paths are relative.
    pub fn server_config(&self) -> PathBuf {
        self.folder.join(SERVER_CONFIG)
    }

    fn credentials(&self, user: &str) -> PathBuf {
        self.folder.join(format!("{user}.creds"))
    }

    fn write_credentials(&self, user: &str, seed: &str) -> Result<PathBuf, FleetError> {
        let certificate = read(&self.folder.join(CERTIFICATE))?;
        let file = self.credentials(user);
        write_private(&file, &Credentials::text(user, seed, &certificate))?;
        Ok(file)
    }

    fn write(&self) -> Result<(), FleetError> {
        let state = toml::to_string(&self.state).map_err(|error| FleetError::Failed(error.to_string()))?;
        write_private(&self.folder.join(STATE), &state)?;
        // Names were checked when the state was read or changed.
        let workers = self.state.workers.iter().filter_map(|(name, key)| Some((name.parse().ok()?, key.as_str())));
        write_private(&self.server_config(), &server_config(self.state.port, &self.state.bot, workers))
    }
}

/// The folder of the fleet, as an absolute path, for messages.
fn folder_in(data: &Path) -> Result<PathBuf, FleetError> {
    std::path::absolute(data.join(FOLDER)).map_err(|error| FleetError::File { file: data.to_owned(), error })
}

/// Draws the key of a user: its public part, and its seed.
fn draw() -> Result<(String, String), FleetError> {
    let mut random = [0; 32];
    getrandom::fill(&mut random).map_err(|error| no_key(&error))?;
    let key = KeyPair::new_from_raw(KeyPairType::User, random).map_err(|error| no_key(&error))?;
    let seed = key.seed().map_err(|error| no_key(&error))?;
    Ok((key.public_key(), seed))
}

fn no_key(error: &dyn std::fmt::Display) -> FleetError {
    FleetError::Failed(format!("no key can be made: {error}"))
}

/// Writes a file in one step, in place of an older one. Only its owner can read it.
fn write_private(file: &Path, text: &str) -> Result<(), FleetError> {
    let failed = |error| FleetError::File { file: file.to_owned(), error };
    let folder = file.parent().unwrap_or(Path::new("."));
    // A temporary file is its owner's alone, and keeps its rights when it is renamed.
    let mut new = tempfile::NamedTempFile::new_in(folder).map_err(failed)?;
    new.write_all(text.as_bytes()).and_then(|()| new.as_file().sync_all()).map_err(failed)?;
    new.persist(file).map_err(|error| failed(error.error))?;
    Ok(())
}

fn read(file: &Path) -> Result<String, FleetError> {
    std::fs::read_to_string(file).map_err(|error| FleetError::File { file: file.to_owned(), error })
}

/// The server's memory for the orders in transit to all workers.
const MEMORY: u64 = 1 << 30;
/// The most connections of all users together.
const CONNECTIONS: usize = 10_000;
/// The most connections and subscriptions of a worker. A worker has one connection, and a second
/// one while it reconnects. Each device's request for orders has a subscription.
const OF_A_WORKER: (usize, usize) = (8, 256);

/// The text of the configuration of a server that runs in the folder of its files. The server reads
/// JSON.
fn server_config<'a>(port: u16, bot: &str, workers: impl Iterator<Item = (WorkerName, &'a str)>) -> String {
    let (mut exports, mut accounts) = (Vec::new(), serde_json::Map::new());
    for (name, key) in workers {
        for (subject, _, is_streamed) in services_for(name) {
            let answers = if is_streamed { "stream" } else { "singleton" };
            exports.push(json!({ "service": subject, "response_type": answers, "accounts": [account(name)] }));
        }
        accounts.insert(account(name), account_of(name, key));
    }
    let bot = json!({ "jetstream": "enabled", "users": users(bot, rights_of_bot()), "exports": exports });
    accounts.insert(BOT.to_owned(), bot);
    let config = json!({
        "server_name": "npubbot-fleet",
        "listen": format!("0.0.0.0:{port}"),
        "pid_file": PROCESS,
        "max_payload": LARGEST_ORDER + 1024,
        "max_connections": CONNECTIONS,
        // Without this, connections would be readable. No client may connect without TLS.
        "tls": { "cert_file": CERTIFICATE, "key_file": CERTIFICATE_KEY, "timeout": 5 },
        // Orders are kept in memory only, for seconds.
        "jetstream": { "store_dir": "jetstream", "max_memory_store": MEMORY },
        "accounts": accounts,
    });
    format!(
        "# Made by `npubbot fleet`, which writes it anew at each change. Its paths begin at this folder.\n{config:#}\n"
    )
}

/// The account of a worker. It sees no subjects of other workers.
fn account_of(worker: WorkerName, key: &str) -> Value {
    let (connections, subscriptions) = OF_A_WORKER;
    let imports = services_for(worker)
        .map(|(subject, local, _)| json!({ "service": { "account": BOT, "subject": subject }, "to": local }));
    json!({
        "limits": {
            "max_connections": connections,
            "max_subscriptions": subscriptions,
            "max_payload": LARGEST_ANSWER,
        },
        "users": users(key, rights_of_worker(worker)),
        "imports": imports,
    })
}

fn account(worker: WorkerName) -> String {
    format!("worker-{worker}")
}

/// The only user of an account.
fn users(key: &str, (publish, subscribe): Rights) -> Value {
    let permissions = json!({ "publish": { "allow": publish }, "subscribe": { "allow": subscribe } });
    json!([{ "nkey": key, "permissions": permissions }])
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_worker_is_added_and_removed_and_nobody_else_reads_its_credentials() {
        let data = tempfile::tempdir().unwrap();
        let said = |result: Result<Setup, FleetError>| result.map(drop).unwrap_err().to_string();
        assert!(said(Setup::open(data.path())).contains("there is no fleet in"));
        assert!(said(Setup::init(data.path(), "no host", 4222)).contains("is not a host"));
        let setup = Setup::init(data.path(), "nats.example", 4333).unwrap();
        assert_eq!(setup.server(), "tls://nats.example:4333");
        assert!(said(Setup::init(data.path(), "nats.example", 4222)).contains("there is a fleet in"));
        let (ann, bob) = ("ann".parse().unwrap(), "bob".parse().unwrap());
        let mut setup = Setup::open(data.path()).unwrap();
        let file = setup.add(ann).unwrap();
        setup.add(bob).unwrap();
        assert!(setup.add(ann).unwrap_err().to_string().contains("choose another name"));
        assert_eq!(Credentials::read(&file).unwrap().user(), "ann");
        let folder = data.path().join(FOLDER);
        for entry in std::fs::read_dir(&folder).unwrap() {
            let entry = entry.unwrap();
            #[cfg(unix)]
            assert_eq!(std::os::unix::fs::PermissionsExt::mode(&entry.metadata().unwrap().permissions()) & 0o77, 0);
            assert!(entry.path().is_file());
        }
        let config = std::fs::read_to_string(setup.server_config()).unwrap();
        let seeds = ["ann", "bob", "bot"].map(|user| std::fs::read_to_string(setup.credentials(user)).unwrap());
        assert!(seeds.iter().all(|text| !text.lines().any(|line| line.starts_with("SU") && config.contains(line))));
        assert_eq!(config.matches("\"nkey\": \"U").count(), 3);
        let mut setup = Setup::open(data.path()).unwrap();
        setup.remove(ann).unwrap();
        assert!(setup.remove(ann).unwrap_err().to_string().contains("there is no worker"));
        assert!(!file.exists());
        let config = std::fs::read_to_string(setup.server_config()).unwrap();
        assert!(config.matches("\"nkey\": \"U").count() == 2 && !config.contains("npubbot.ann."), "{config}");
    }

    #[test]
    fn a_file_that_was_changed_wrongly_is_refused_with_the_reason() {
        let data = tempfile::tempdir().unwrap();
        let setup = Setup::init(data.path(), "nats.example", 4333).unwrap();
        let file = setup.folder.join(STATE);
        let good = std::fs::read_to_string(&file).unwrap();
        for (bad, named) in [
            (good.replace("bot = \"U", "bot = \"X"), "not a public key"),
            (format!("{good}\"a b\" = \"{}\"\n", setup.state.bot), "not a name"),
            (good.replace("port", "sort"), "sort"),
        ] {
            std::fs::write(&file, bad).unwrap();
            let error = Setup::open(data.path()).map(drop).unwrap_err().to_string();
            assert!(error.contains(named), "{error}");
        }
    }
}
