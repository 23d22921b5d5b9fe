//! A real NATS server with TLS, workers, and a search whose own device is nearly idle.

use super::harness::skip;
use super::program;
use npubbot::clock::Clock;
use npubbot::fleet::{BOT_CREDENTIALS, Credentials, FOLDER, Fleet, FleetError, FleetStatus, Setup, run_worker};
use npubbot::job::{JobId, JobSpec};
use npubbot::pattern::Pattern;
use npubbot::scheduler::{DeviceOpener, DeviceStatus, Find, FindOutcome, Health, Scheduler};
use npubbot::search::cpu::{CpuSearcher, KernelChoice};
use npubbot::search::{
    ClaimedHit, DeviceChoice, DeviceId, DeviceInfo, Launch, LaunchReport, SearchError, SearchOptions, Searcher,
    Surroundings,
};
use npubbot::shutdown::{self, Stopper};
use npubbot::vault::Vault;
use std::collections::VecDeque;
use std::net::{TcpListener, TcpStream};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::sync::{Arc, Mutex};
use std::time::Duration;
use tempfile::TempDir;
use tokio::task::JoinHandle;

/// Environment variable that names the server's program. Without it, `nats-server` in the `PATH` is
/// used.
const PROGRAM: &str = "NATS_SERVER";

/// The program of the NATS server. Skips the test if there is none.
pub fn needs_nats() -> PathBuf {
    let program: PathBuf = std::env::var_os(PROGRAM).map_or_else(|| "nats-server".into(), PathBuf::from);
    match Command::new(&program).arg("--version").stdout(Stdio::null()).stderr(Stdio::null()).status() {
        Ok(status) if status.success() => program,
        _ => skip(&format!("there is no nats-server; {PROGRAM} can name one")),
    }
}

/// A NATS server of a fleet. It is killed when dropped.
pub struct NatsServer {
    pub data: TempDir,
    pub port: u16,
    program: PathBuf,
    running: Option<Child>,
}

impl NatsServer {
    /// A fleet with these workers, and its server. Skips the test without the program.
    pub async fn start(workers: &[&str]) -> NatsServer {
        let program = needs_nats();
        let data = tempfile::tempdir().unwrap();
        let port = TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap().port();
        let mut setup = Setup::init(data.path(), "localhost", port).unwrap();
        for worker in workers {
            setup.add(worker.parse().unwrap()).unwrap();
        }
        let mut server = NatsServer { data, port, program, running: None };
        server.start_again().await;
        server
    }

    /// Starts the server that was killed.
    pub async fn start_again(&mut self) {
        let config = Setup::open(self.data.path()).unwrap().server_config();
        let log =
            std::fs::OpenOptions::new().create(true).append(true).open(self.data.path().join("nats.log")).unwrap();
        self.running = Some(
            Command::new(&self.program)
                .current_dir(config.parent().unwrap())
                .arg("-c")
                .arg(config)
                .stderr(log)
                .spawn()
                .unwrap(),
        );
        super::until("the server listens", || async { TcpStream::connect(("127.0.0.1", self.port)).ok() }).await;
    }

    /// Has the server read its configuration twice, as `npubbot fleet` advises.
    pub fn reload(&self) {
        let signal = format!("reload={}", self.data.path().join(FOLDER).join("nats-server.pid").display());
        for _ in 0..2 {
            assert!(Command::new(&self.program).args(["--signal", &signal]).status().unwrap().success());
            std::thread::sleep(Duration::from_millis(300));
        }
    }

    pub fn kill(&mut self) {
        if let Some(mut running) = self.running.take() {
            let _ = running.kill();
            let _ = running.wait();
        }
    }

    pub fn url(&self) -> String {
        format!("tls://localhost:{}", self.port)
    }

    /// The lines of a bot's configuration that name this server.
    pub fn config(&self) -> String {
        format!("[fleet]\nserver = \"{}\"\ncredentials = \"{}\"\n", self.url(), self.file("bot").display())
    }

    pub fn file(&self, user: &str) -> PathBuf {
        self.data.path().join(FOLDER).join(format!("{user}.creds"))
    }

    pub fn credentials(&self, user: &str) -> Credentials {
        Credentials::read(&self.file(user)).unwrap()
    }

    /// `npubbot worker` with one thread, not started yet.
    pub fn worker(&self, credentials: &Path) -> Command {
        let mut command = program::command();
        command.args(["worker", "--nats", &self.url(), "--device", "cpu", "--threads", "1"]);
        command.arg("--creds").arg(credentials);
        command
    }

    /// Starts a worker within this process, with a device of the test's.
    pub fn work(&self, worker: &str, searcher: impl Searcher + 'static) -> InProcess {
        let (stopper, mut shutdown) = shutdown::pair();
        let (url, credentials) = (self.url(), self.credentials(worker));
        let task = tokio::spawn(async move {
            run_worker(&url, credentials, vec![Box::new(searcher)], async move { shutdown.stopped().await }).await
        });
        InProcess { _stopper: stopper, _task: task }
    }
}

impl Drop for NatsServer {
    fn drop(&mut self) {
        self.kill();
    }
}

/// A worker within the test's process.
pub struct InProcess {
    _stopper: Stopper,
    _task: JoinHandle<Result<(), FleetError>>,
}

/// A bot's scheduler and its fleet, without the rest of a bot. Its own device tests one candidate
/// in fifty milliseconds.
pub struct Headquarters {
    pub scheduler: Arc<Scheduler>,
    pub fleet: Fleet,
    pub finds: Arc<Mutex<Vec<Find>>>,
    _stopper: Stopper,
}

impl Drop for Headquarters {
    fn drop(&mut self) {
        self.scheduler.close();
        self.fleet.close();
    }
}

impl Headquarters {
    pub fn start(server: &NatsServer) -> Headquarters {
        let finds = Arc::new(Mutex::new(Vec::new()));
        let kept = Arc::clone(&finds);
        let on_find = move |find: Find| {
            kept.lock().unwrap().push(find);
            FindOutcome::Done
        };
        let opener =
            DeviceOpener::new(|| Err(String::new()), |id, _| Ok(Box::new(Twisted::slow(id)) as Box<dyn Searcher>));
        let options = SearchOptions { devices: DeviceChoice::Cpu, ..SearchOptions::default() };
        let (vault, surroundings) = (Vault::without_identity().unwrap(), Surroundings::new(Clock::System));
        let scheduler = Arc::new(Scheduler::start_with(&options, opener, surroundings, vault, on_find).unwrap());
        let fleet = Fleet::new(&server.url());
        let (stopper, mut shutdown) = shutdown::pair();
        let credentials = Credentials::read(&server.data.path().join(FOLDER).join(BOT_CREDENTIALS)).unwrap();
        let attached = Arc::clone(&scheduler);
        let attach = move |searcher| attached.attach(searcher);
        tokio::spawn(fleet.clone().run(Arc::new(credentials), attach, async move { shutdown.stopped().await }));
        Headquarters { scheduler, fleet, finds, _stopper: stopper }
    }

    pub fn order(&self, job: i64, prefix: &str) {
        self.scheduler.add(JobId(job), JobSpec::local(vec![Pattern::parse(prefix).unwrap()]));
    }

    /// Waits until this job has its key.
    pub async fn found(&self, job: i64) -> Find {
        super::until("a key is found", || async {
            self.finds.lock().unwrap().iter().find(|find| find.job == JobId(job)).cloned()
        })
        .await
    }

    /// The first device of a worker, if it has come.
    pub fn device(&self, worker: &str) -> Option<DeviceStatus> {
        let name = format!("worker {worker}:0");
        self.scheduler.devices().into_iter().find(|device| device.id.to_string() == name)
    }

    /// Waits until a worker's device works and has a rate.
    pub async fn works(&self, worker: &str) -> DeviceStatus {
        let works = |device: &DeviceStatus| device.health == Health::Working && device.rate.is_some();
        super::until(&format!("{worker} works"), || async { self.device(worker).filter(works) }).await
    }

    /// Waits until a worker's device tests further candidates.
    pub async fn goes_on(&self, worker: &str) {
        let before = self.works(worker).await.candidates;
        super::until(&format!("{worker} goes on"), || async {
            self.device(worker).filter(|device| device.health == Health::Working && device.candidates > before)
        })
        .await;
    }

    /// The state of the workers, without the figures of the scheduler.
    pub fn status(&self) -> FleetStatus {
        self.fleet.status(|_| None)
    }

    /// The workers that get no orders, and why.
    pub fn refused(&self) -> Vec<(String, String)> {
        self.status().workers.into_iter().filter_map(|worker| Some((worker.name, worker.refused?))).collect()
    }

    /// Waits until a worker is dropped for good. Returns the reason.
    pub async fn drops(&self, worker: &str) -> String {
        super::until(&format!("{worker} is dropped"), || async {
            self.refused().into_iter().find(|(name, _)| name == worker).map(|(_, reason)| reason)
        })
        .await
    }
}

/// Changes the report of a device. It also sees the launch.
pub type Twist = Box<dyn FnMut(&Launch, LaunchReport) -> LaunchReport + Send>;

/// A device whose reports are changed on the way. Without an inner device its reports are empty.
pub struct Twisted {
    inner: Option<CpuSearcher>,
    info: DeviceInfo,
    launches: VecDeque<Launch>,
    twist: Twist,
}

impl Twisted {
    /// An honest device of one thread.
    pub fn new(twist: impl FnMut(&Launch, LaunchReport) -> LaunchReport + Send + 'static) -> Twisted {
        let inner = CpuSearcher::open(Some(1), KernelChoice::Auto).unwrap();
        let (info, twist) = (inner.info().clone(), Box::new(twist));
        Twisted { inner: Some(inner), info, launches: VecDeque::new(), twist }
    }

    /// The bot's own device in these tests. It works, but is too slow to help.
    fn slow(id: DeviceId) -> Twisted {
        let twist = |_: &Launch, _| {
            std::thread::sleep(Duration::from_millis(50));
            claims(Vec::new(), 1)
        };
        let info = DeviceInfo { id, name: "slow".into(), kernel: "slow".into(), threads: 1, warning: None };
        Twisted { inner: None, info, launches: VecDeque::new(), twist: Box::new(twist) }
    }
}

impl Searcher for Twisted {
    fn info(&self) -> &DeviceInfo {
        &self.info
    }

    fn starts(&self) -> usize {
        self.inner.as_ref().map_or(1, Searcher::starts)
    }

    fn in_flight(&self) -> usize {
        self.inner.as_ref().map_or(1, Searcher::in_flight)
    }

    fn submit(&mut self, launch: Launch) -> Result<(), SearchError> {
        self.launches.push_back(launch.clone());
        self.inner.as_mut().map_or(Ok(()), |inner| inner.submit(launch))
    }

    fn collect(&mut self) -> Result<LaunchReport, SearchError> {
        let report = self.inner.as_mut().map(Searcher::collect).transpose()?.unwrap_or_default();
        let launch = self.launches.pop_front().unwrap();
        Ok((self.twist)(&launch, report))
    }
}

/// A report that claims these hits and candidates without a search, after the time of a short
/// launch.
pub fn claims(hits: Vec<ClaimedHit>, candidates: u64) -> LaunchReport {
    LaunchReport { candidates, hits, busy: Duration::from_millis(50), is_cut_short: false }
}
