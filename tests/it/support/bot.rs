//! The bot, within the test's process or as the real program.

use super::asker::Asker;
use super::relay::TestRelay;
use super::vault::{is_running, network_of};
use super::{until, wait_for};
use nostr_sdk::prelude::*;
use npubbot::clock::Clock;
use npubbot::config::Config;
use npubbot::ledger::Ledger;
use npubbot::search::Searcher;
use npubbot::search::cpu::{CpuSearcher, KernelChoice};
use npubbot::service::{Service, public_settings};
use npubbot::vault::{PublicSettings, Unlock, Vault};
use serde_json::json;
use std::fmt::Write as _;
use std::fs;
use std::io::{BufRead, BufReader};
use std::os::unix::fs::{DirBuilderExt, PermissionsExt};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Output, Stdio};
use std::time::{Duration, Instant};
use tempfile::TempDir;

/// The log of a bot that has started or has taken up a configuration.
pub const SERVING: &str = "serving; Ctrl-C stops";

/// A new age key as text.
pub fn age_key() -> String {
    age::secrecy::ExposeSecret::expose_secret(&age::x25519::Identity::generate().to_string()).to_owned()
}

/// Keeps rates of the processor in a data folder, as an earlier start does. So no start measures, and
/// what a bot promises does not depend on how busy the machine is when it starts.
fn keep_rates(data: &Path) {
    let folder = npubbot::ledger::folder(data);
    let file = folder.join("devices.json");
    if file.exists() {
        return;
    }
    let processor = CpuSearcher::open(Some(1), KernelChoice::Auto).unwrap();
    let rates = json!({ "choice": null, "top_words": 5e8, "whole_keys": 2e8 });
    let devices = json!({ "form": 2, "devices": { processor.calibration_key().unwrap(): rates } });
    fs::DirBuilder::new().recursive(true).mode(0o700).create(folder).unwrap();
    fs::write(&file, devices.to_string()).unwrap();
    fs::set_permissions(&file, PermissionsExt::from_mode(0o600)).unwrap();
}

/// A data folder, an age key that opens it, and a configuration.
pub struct Home {
    pub folder: TempDir,
    relays: Vec<RelayUrl>,
    extra: String,
}

impl Home {
    pub fn new(relays: &[RelayUrl]) -> Home {
        Home::with(relays, "")
    }

    /// A home whose configuration also has the lines `extra`.
    pub fn with(relays: &[RelayUrl], extra: &str) -> Home {
        let folder = tempfile::tempdir().unwrap();
        fs::write(folder.path().join("age-identity.txt"), age_key()).unwrap();
        let home = Home { folder, relays: relays.to_vec(), extra: extra.to_owned() };
        fs::write(home.config_file(), home.config_text()).unwrap();
        home
    }

    /// The same bot with other additional lines in its configuration.
    pub fn reconfigured(self, extra: &str) -> Home {
        let home = Home { extra: extra.to_owned(), ..self };
        fs::write(home.config_file(), home.config_text()).unwrap();
        home
    }

    pub fn data(&self) -> PathBuf {
        self.folder.path().join("data")
    }

    pub fn age_identity(&self) -> PathBuf {
        self.folder.path().join("age-identity.txt")
    }

    pub fn config_file(&self) -> PathBuf {
        self.folder.path().join("relays.toml")
    }

    fn config_text(&self) -> String {
        // The relays of askers are on this machine too, so private addresses must be allowed.
        let mut text = "allow_private_relays = true\n".to_owned();
        for url in &self.relays {
            writeln!(text, "[[relays]]\nurl = \"{url}\"\nroles = [\"inbox\", \"status\", \"discovery\"]").unwrap();
        }
        // The search is slow in an unoptimised test. One thread leaves the other core to the relay.
        if !self.extra.contains("[search]") {
            text.push_str("[search]\ndevice = \"cpu\"\nthreads = 1\n");
        }
        // Generous limits: a slow machine must not refuse a request, and one asker of a test plays
        // many.
        let mut patient = String::new();
        if !self.extra.contains("longest_expected_time") {
            patient.push_str("longest_expected_time = \"3650 days\"\ngive_up_after = \"3650 days\"\n");
        }
        if !self.extra.contains("answers_per_hour") {
            patient.push_str("answers_per_hour = 1000000\n");
        }
        let limits = format!("[limits]\n{patient}");
        if self.extra.contains("[limits]\n") {
            text + &self.extra.replacen("[limits]\n", &limits, 1)
        } else {
            format!("{text}{}\n{limits}", self.extra)
        }
    }

    pub fn config(&self) -> Config {
        Config::parse(&self.config_text(), "test").unwrap()
    }

    /// The bot's keys, read from its identity file, for opening messages that were sent to it.
    pub fn keys(&self) -> Keys {
        let identity = fs::read_to_string(self.age_identity()).unwrap();
        let identity: age::x25519::Identity = identity.trim().parse().unwrap();
        let opened = age::decrypt(&identity, &fs::read(self.data().join("identity.age")).unwrap()).unwrap();
        let text = String::from_utf8(opened).unwrap();
        Keys::parse(text.lines().find(|line| line.starts_with("nsec1")).unwrap()).unwrap()
    }

    /// The settings of the bot's public events. A home without relays has one that nobody serves.
    pub fn settings(&self) -> PublicSettings {
        let mut text = self.config_text();
        if !text.contains("[[relays]]") {
            text.push_str("[[relays]]\nurl = \"ws://127.0.0.1:9\"\nroles = [\"inbox\", \"status\"]\n");
        }
        public_settings(&Config::parse(&text, "test").unwrap())
    }

    pub fn vault(&self) -> Vault {
        fs::create_dir_all(self.data()).unwrap();
        keep_rates(&self.data());
        let (file, unlock) = (self.data().join("identity.age"), Unlock::AgeIdentityFile(self.age_identity()));
        let vault = if file.exists() { Vault::open(&file, &unlock) } else { Vault::create(&file, &unlock) };
        vault.unwrap().with_reader(npubbot::bot::asked).with_settings(self.settings())
    }

    /// Starts the bot within this process.
    pub async fn start(&self) -> RunningBot {
        self.start_at(Clock::System).await
    }

    /// Starts the bot within this process, with this clock.
    pub async fn start_at(&self, clock: Clock) -> RunningBot {
        self.start_with(self.config(), clock).await
    }

    /// Starts the bot within this process, with values that its configuration file may not allow.
    pub async fn start_with(&self, config: Config, clock: Clock) -> RunningBot {
        let vault = self.vault().with_clock(clock.clone());
        let public_key = vault.public_key();
        let service = Service::start(config, &self.data(), vault, clock).await.unwrap();
        RunningBot { service, public_key }
    }

    /// Starts `npubbot serve` with its debug log in the file that [`Home::log`] reads. Returns once it
    /// serves.
    pub async fn spawn(&self) -> BotProcess {
        self.spawn_at_level("debug").await
    }

    /// Starts `npubbot serve` at this log level.
    pub async fn spawn_at_level(&self, level: &str) -> BotProcess {
        let (mut command, served) = (self.command(), self.times_served());
        command.env("RUST_LOG", format!("off,npubbot={level}")).stdout(Stdio::piped()).stderr(self.open_log());
        let mut child = ChildGuard(command.spawn().unwrap());
        // The first line is the npub.
        let mut lines = BufReader::new(child.0.stdout.take().unwrap()).lines();
        let line = tokio::task::spawn_blocking(move || lines.next()).await.unwrap();
        let npub = line.expect("serve prints its npub").unwrap();
        self.logs(SERVING, served + 1).await;
        BotProcess { child, public_key: PublicKey::from_bech32(&npub).unwrap() }
    }

    /// Starts `npubbot serve` with a fault (`src/fault.rs`). Threads that it holds wait for
    /// [`Home::open_gate`].
    pub fn spawn_faulty(&self, fault: &str) -> ChildGuard {
        self.spawn_faulty_at(fault, "off,npubbot=debug")
    }

    /// Starts `npubbot serve` with a fault and this `RUST_LOG`.
    pub fn spawn_faulty_at(&self, fault: &str, level: &str) -> ChildGuard {
        let mut command = self.command();
        command.env("NPUBBOT_TEST_FAULT", fault).env("NPUBBOT_TEST_GATE", self.folder.path().join("gate"));
        command.env("RUST_LOG", level).env("RUST_BACKTRACE", "full");
        ChildGuard(command.stdout(Stdio::null()).stderr(self.open_log()).spawn().unwrap())
    }

    /// Starts `npubbot serve` with a fault. Returns once it serves.
    pub async fn serving(&self, fault: &str) -> ChildGuard {
        let served = self.times_served();
        let bot = self.spawn_faulty(fault);
        self.logs(SERVING, served + 1).await;
        bot
    }

    /// How often the log says that a bot serves: at each start and after each reload.
    pub fn times_served(&self) -> usize {
        self.log().matches(SERVING).count()
    }

    /// Lets all threads pass the step at which a fault holds them.
    pub fn open_gate(&self) {
        fs::write(self.folder.path().join("gate"), "").unwrap();
    }

    /// Waits until the log has this text so many times.
    pub async fn logs(&self, text: &str, times: usize) {
        wait_for(&format!("`{text}` is logged"), || self.log().matches(text).count() >= times).await;
    }

    /// Waits until so many jobs are delivered.
    pub async fn has_delivered(&self, jobs: i64) {
        let delivered = "SELECT count(*) FROM job WHERE state = 'delivered'";
        wait_for(&format!("{jobs} jobs are delivered"), || self.count(delivered) == Some(jobs)).await;
    }

    fn log_file(&self) -> PathBuf {
        self.folder.path().join("log")
    }

    fn open_log(&self) -> fs::File {
        fs::OpenOptions::new().create(true).append(true).open(self.log_file()).unwrap()
    }

    pub fn log(&self) -> String {
        String::from_utf8_lossy(&fs::read(self.log_file()).unwrap_or_default()).into_owned()
    }

    /// `npubbot serve`, not started yet.
    pub fn command(&self) -> Command {
        // `serve` does not make an identity, so make one first.
        drop(self.vault());
        self.unlocked(&["serve"])
    }

    /// A command about this bot: with its data folder and its configuration.
    pub fn program(&self, arguments: &[&str]) -> Command {
        let mut command = super::program::command();
        command.args(arguments).arg("--config").arg(self.config_file()).arg("--data").arg(self.data());
        command
    }

    /// A command that also has the key of the bot's identity.
    pub fn unlocked(&self, arguments: &[&str]) -> Command {
        let mut command = self.program(arguments);
        command.arg("--age-identity").arg(self.age_identity());
        command
    }

    /// Runs an operator's command about this bot.
    pub fn operate(&self, arguments: &[&str]) -> Output {
        self.program(arguments).output().unwrap()
    }

    /// Waits until the bot answers on its socket.
    pub async fn answers(&self) {
        until("the bot answers", || async { self.operate(&["status"]).status.success().then_some(()) }).await;
    }

    /// Whether the log says that a stop reached its time limit, so that the process ended at once.
    pub fn stopped_late(&self) -> bool {
        self.log().contains("the clean shutdown takes too long")
    }

    /// The result of a query for one number in the ledger, while the bot may be running. `None` if
    /// there is no ledger yet.
    pub fn count(&self, query: &str) -> Option<i64> {
        self.reading()?.query_row(query, [], |row| row.get(0)).ok()
    }

    /// The ledger's file, for reading while the bot may be running. `None` if there is none yet.
    pub fn reading(&self) -> Option<rusqlite::Connection> {
        let file = self.data().join("ledger/ledger.sqlite");
        rusqlite::Connection::open_with_flags(file, rusqlite::OpenFlags::SQLITE_OPEN_READ_ONLY).ok()
    }

    /// Waits until the bot has no message left to send. `when` says at which point of the test.
    pub async fn all_is_sent(&self, when: &str) {
        let unsent = "SELECT count(*) FROM outbox WHERE finished = 0";
        wait_for(&format!("{when}: all is sent"), || self.count(unsent) == Some(0)).await;
    }

    /// The ledger of a bot that does not run. Makes one if there is none.
    pub fn ledger(&self) -> Ledger {
        Ledger::open(&npubbot::ledger::folder(&self.data()), Clock::System).expect("the lock is free")
    }

    /// The file of the ledger, opened by another program.
    pub fn sql(&self) -> rusqlite::Connection {
        rusqlite::Connection::open(self.data().join("ledger/ledger.sqlite")).unwrap()
    }

    /// Checks that SQLite finds the ledger sound.
    pub fn assert_sound(&self) {
        let sound: String = self.sql().query_row("PRAGMA integrity_check", [], |row| row.get(0)).unwrap();
        assert_eq!(sound, "ok");
    }
}

/// The bot within the test's process.
pub struct RunningBot {
    pub service: Service,
    pub public_key: PublicKey,
}

/// A relay, a bot on it, and an asker.
pub struct Met<B> {
    pub relay: TestRelay,
    pub home: Home,
    pub bot: B,
    pub asker: Asker,
}

/// A relay, and the home of a bot on it, whose configuration also has the lines `extra`.
pub async fn at_relay(extra: &str) -> (TestRelay, Home) {
    let relay = TestRelay::start().await;
    let home = Home::with(&[relay.url()], extra);
    (relay, home)
}

/// An asker who meets a bot within the test's process. Its configuration also has the lines `extra`.
pub async fn met(extra: &str) -> Met<RunningBot> {
    let (relay, home) = at_relay(extra).await;
    let bot = home.start().await;
    let asker = Asker::connect(&relay.url(), bot.public_key).await;
    Met { relay, home, bot, asker }
}

/// An asker who meets `npubbot serve`.
pub async fn met_process(extra: &str) -> Met<BotProcess> {
    let (relay, home) = at_relay(extra).await;
    let bot = home.spawn().await;
    let asker = Asker::connect(&relay.url(), bot.public_key).await;
    Met { relay, home, bot, asker }
}

/// A process that is killed when dropped.
pub struct ChildGuard(pub Child);

impl ChildGuard {
    pub fn signal(&self, signal: rustix::process::Signal) {
        super::vault::signal(self.0.id(), signal);
    }

    /// Waits for the process to end.
    pub async fn ended(&mut self) -> std::process::ExitStatus {
        until("the process ends", || {
            let status = self.0.try_wait().unwrap();
            async move { status }
        })
        .await
    }
}

impl Drop for ChildGuard {
    fn drop(&mut self) {
        let network = network_of(self.0.id());
        let _ = self.0.kill();
        let _ = self.0.wait();
        // The kernel ends the network process too, but on a busy machine that takes a while.
        while is_running(network) {
            std::thread::sleep(Duration::from_millis(5));
        }
    }
}

/// Checks that a stopped process ended as it should: cleanly, or because it reached the time limit.
pub fn assert_clean(status: std::process::ExitStatus, home: &Home) {
    assert!(status.success() || home.stopped_late(), "{status}\n{}", home.log());
}

/// `npubbot serve` as a separate process, which serves.
pub struct BotProcess {
    child: ChildGuard,
    pub public_key: PublicKey,
}

impl BotProcess {
    pub fn pid(&self) -> u32 {
        self.child.0.id()
    }

    /// Waits until it ends on its own; returns its exit status.
    pub async fn ended(mut self) -> std::process::ExitStatus {
        self.child.ended().await
    }

    /// Kills the process (SIGKILL), so that it cannot clean up.
    pub fn kill(self) {
        drop(self);
    }

    /// Stops the process, whose log is in `home`. When other tests run at the same time, the
    /// process may exceed the time limit of a clean shutdown. `reliability::process` tests that
    /// limit alone.
    pub async fn stop(self, home: &Home) {
        let (status, _) = self.stop_with(rustix::process::Signal::TERM).await;
        assert_clean(status, home);
    }

    /// Sends a signal and waits for the end. Returns the exit status and the time it took.
    pub async fn stop_with(mut self, signal: rustix::process::Signal) -> (std::process::ExitStatus, Duration) {
        let began = Instant::now();
        self.child.signal(signal);
        (self.child.ended().await, began.elapsed())
    }
}
