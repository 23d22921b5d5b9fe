//! The bot's side of the vault process: starts it, sends requests, and starts it again if it ends.

use super::error::VaultError;
use super::identity::Ready;
use super::lock;
use super::request::{Answer, MAX_FRAME, Request};
use super::secrets::Secrets;
use super::spawner::{self, ProcessEnd, ProcessRequest, Spawned, Spawner, log_lines};
use crate::frame;
use crate::os::MissingWall;
use serde::de::DeserializeOwned;
use std::collections::HashMap;
use std::io::{self, PipeReader, PipeWriter, Write};
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError, mpsc};
use std::time::{Duration, Instant};

/// Longest time that a request waits for the next vault process after one has ended. Longer than a
/// start takes, shorter than the time that a clean stop may take.
pub(super) const RESTART_TIMEOUT: Duration = Duration::from_millis(1500);
/// Limit on how many times a request is sent, if the vault process ends before it answers. It stops
/// a request that makes every vault process end.
const ATTEMPTS: usize = 3;
/// If a vault process ends sooner than this, a pause precedes the next start.
const SHORT_LIFE: Duration = Duration::from_secs(1);
/// First pause before another start. It doubles after each failed start.
const FIRST_PAUSE: Duration = Duration::from_millis(100);
/// Longest pause before another start.
const LAST_PAUSE: Duration = Duration::from_secs(10);

/// A vault process. Ends it on drop.
pub(super) struct Process {
    shared: Arc<Shared>,
    missing_walls: Vec<MissingWall>,
}

/// The vault process itself.
type Child = Box<dyn spawner::Process>;

struct Shared {
    spawner: Arc<dyn Spawner>,
    key: nostr::PublicKey,
    state: Mutex<State>,
    /// Notified when a process is connected, and when the vault is closed.
    changed: Condvar,
}

/// The connection, and the requests that have no answer yet.
#[derive(Default)]
struct State {
    /// `None` while there is no process. A process ends once its writer is closed.
    writer: Option<Arc<Mutex<PipeWriter>>>,
    process_id: Option<u32>,
    is_closed: bool,
    /// Why the last start failed.
    trouble: Option<String>,
    /// Number of the last request.
    last: u64,
    waiting: HashMap<u64, (usize, mpsc::Sender<(usize, Answer)>)>,
}

/// A process that has opened its identity.
struct Started {
    child: Child,
    reader: PipeReader,
    writer: PipeWriter,
    key: nostr::PublicKey,
    missing_walls: Vec<MissingWall>,
}

impl Process {
    /// Starts the vault process and waits until it has opened the identity.
    ///
    /// Errors: [`VaultError::Process`], and those of opening or making the identity.
    pub(super) fn start(spawner: Arc<dyn Spawner>) -> Result<Process, VaultError> {
        let mut started = spawn(&*spawner)?;
        let missing_walls = std::mem::take(&mut started.missing_walls);
        let (key, state, changed) = (started.key, Mutex::default(), Condvar::new());
        let shared = Arc::new(Shared { spawner, key, state, changed });
        let (mut connected, watched) = (Some(shared.connect(started)), Arc::clone(&shared));
        let mut watch = move || {
            let next = connected.take().or_else(|| {
                // This thread has panicked, and nobody read the answers of the process.
                watched.disconnect();
                watched.restart(FIRST_PAUSE)
            });
            if let Some((child, reader)) = next {
                watched.watch(child, reader);
            }
        };
        let watch = move || while catch_unwind(AssertUnwindSafe(&mut watch)).is_err() {};
        std::thread::Builder::new().name("vault".to_owned()).spawn(watch).map_err(no_process)?;
        Ok(Process { shared, missing_walls })
    }

    /// The key of the identity.
    pub(super) fn public_key(&self) -> nostr::PublicKey {
        self.shared.key
    }

    /// Id of the process; `None` while there is none.
    pub(super) fn id(&self) -> Option<u32> {
        lock(&self.shared.state).process_id
    }

    /// The walls of the process that could not be raised.
    pub(super) fn missing_walls(&self) -> Vec<MissingWall> {
        self.missing_walls.clone()
    }

    /// Why there is no process; `None` while it works.
    pub(super) fn trouble(&self) -> Option<String> {
        let state = lock(&self.shared.state);
        match (&state.writer, &state.trouble) {
            (Some(_), _) => None,
            (None, trouble) => Some(trouble.clone().unwrap_or_else(|| VaultError::Gone.to_string())),
        }
    }

    /// Sends requests together and waits for their answers, in the order of the requests. If the
    /// process ends meanwhile, waits at most `patience` for the next one and asks again.
    pub(super) fn ask(&self, requests: &[Request], patience: Duration) -> Result<Vec<Answer>, VaultError> {
        let deadline = Instant::now().checked_add(patience);
        for _ in 0..ATTEMPTS {
            // They end when each request has its answer, or the process has ended.
            let mut answers: Vec<(usize, Answer)> = self.shared.send(requests, deadline)?.iter().collect();
            if answers.len() == requests.len() {
                answers.sort_unstable_by_key(|(at, _)| *at);
                return Ok(answers.into_iter().map(|(_, answer)| answer).collect());
            }
        }
        Err(VaultError::Gone)
    }
}

impl Drop for Process {
    fn drop(&mut self) {
        let mut state = lock(&self.shared.state);
        state.is_closed = true;
        state.writer = None;
        self.shared.changed.notify_all();
    }
}

impl Shared {
    /// Sends requests, once there is a process. Each answer comes with the place of its request.
    fn send(
        &self,
        requests: &[Request],
        deadline: Option<Instant>,
    ) -> Result<mpsc::Receiver<(usize, Answer)>, VaultError> {
        let mut state = self.wait(lock(&self.state), deadline)?;
        let writer = state.writer.clone().ok_or(VaultError::Gone)?;
        let (answer, answered) = mpsc::channel();
        let mut frames = Vec::new();
        for (at, request) in requests.iter().enumerate() {
            state.last += 1;
            frames.extend(frame::encode(&(state.last, request), MAX_FRAME).map_err(|_| VaultError::Failed)?);
            let number = state.last;
            state.waiting.insert(number, (at, answer.clone()));
        }
        drop(state);
        // If this fails, the process has ended, and the watching thread sees that.
        let _ = lock(&writer).write_all(&frames);
        Ok(answered)
    }

    /// Waits for a process. Errors: there is none before the deadline, or the vault is closed.
    fn wait<'a>(
        &self,
        mut state: MutexGuard<'a, State>,
        deadline: Option<Instant>,
    ) -> Result<MutexGuard<'a, State>, VaultError> {
        while state.writer.is_none() {
            let left = deadline.map_or(LAST_PAUSE, |deadline| deadline.saturating_duration_since(Instant::now()));
            if state.is_closed || left.is_zero() {
                return Err(VaultError::Gone);
            }
            state = self.changed.wait_timeout(state, left).unwrap_or_else(PoisonError::into_inner).0;
        }
        Ok(state)
    }

    /// Makes a process the current one. Returns it and the reader of its answers.
    fn connect(&self, started: Started) -> (Child, PipeReader) {
        let mut state = lock(&self.state);
        state.writer = Some(Arc::new(Mutex::new(started.writer)));
        state.process_id = Some(started.child.id());
        state.trouble = None;
        self.changed.notify_all();
        (started.child, started.reader)
    }

    /// Passes each answer to the caller that waits for it. When the process ends, starts the next
    /// one.
    fn watch(&self, mut child: Child, mut reader: PipeReader) {
        loop {
            let began = Instant::now();
            while let Ok(Some((number, answer))) = frame::read::<(u64, Answer)>(&mut reader, MAX_FRAME) {
                if let Some((at, to)) = lock(&self.state).waiting.remove(&number) {
                    // If nobody waits any more, the answer is not needed.
                    let _ = to.send((at, answer));
                }
            }
            let is_closed = self.disconnect();
            let status = child.end().status;
            if is_closed {
                return;
            }
            tracing::error!(status, "the vault process has ended; it is started again");
            let pause = if began.elapsed() < SHORT_LIFE { FIRST_PAUSE } else { Duration::ZERO };
            match self.restart(pause) {
                Some(next) => (child, reader) = next,
                None => return,
            }
        }
    }

    /// Marks the process as gone, so that waiting callers ask again. Returns whether the vault is
    /// closed.
    fn disconnect(&self) -> bool {
        let mut state = lock(&self.state);
        (state.writer, state.process_id) = (None, None);
        state.waiting.clear();
        state.is_closed
    }

    /// Starts the process again, until it works; `None` once the vault is closed.
    fn restart(&self, mut pause: Duration) -> Option<(Child, PipeReader)> {
        loop {
            if self.is_closed_within(pause) {
                return None;
            }
            match self.try_restart() {
                Ok(next) => {
                    tracing::info!("the vault process works again");
                    return Some(next);
                }
                Err(error) => {
                    pause = (pause * 2).clamp(FIRST_PAUSE, LAST_PAUSE);
                    tracing::error!(%error, retry_in = ?pause, "the vault process cannot be started");
                    lock(&self.state).trouble = Some(error.to_string());
                }
            }
        }
    }

    fn try_restart(&self) -> Result<(Child, PipeReader), VaultError> {
        let mut started = spawn(&*self.spawner)?;
        if self.spawner.is_bot() && started.key != self.key {
            started.child.end();
            return Err(no_process("the identity file holds another identity now"));
        }
        Ok(self.connect(started))
    }

    /// Waits for `pause`, or until the vault is closed. Returns whether it is closed.
    fn is_closed_within(&self, pause: Duration) -> bool {
        let wait = self.changed.wait_timeout_while(lock(&self.state), pause, |state| !state.is_closed);
        wait.unwrap_or_else(PoisonError::into_inner).0.is_closed
    }
}

/// Starts a process and makes it open its identity or half.
fn spawn(spawner: &dyn Spawner) -> Result<Started, VaultError> {
    let Spawned { mut ends, process: mut child } = spawner.start(&ProcessRequest::Vault).map_err(no_process)?;
    // The text of a panic. The process could not log by itself without waiting for a reader that sleeps.
    log_lines(ends.errors, |line| tracing::error!(line, "the vault process wrote this")).map_err(no_process)?;
    let (key, missing_walls) = greet(&mut ends.reader, &mut child).inspect_err(|_| drop(child.end()))?;
    Ok(Started { child, reader: ends.reader, writer: ends.writer, key, missing_walls })
}

/// Waits for the key of the identity and the missing walls of a new process. This may take until a
/// person has typed a passphrase.
fn greet(reader: &mut PipeReader, child: &mut Child) -> Result<(nostr::PublicKey, Vec<MissingWall>), VaultError> {
    match frame::read::<Result<Ready, VaultError>>(reader, MAX_FRAME) {
        Ok(Some(greeting)) => {
            let Ready { key, missing_walls } = greeting?;
            Ok((nostr::PublicKey::from_slice(&key).map_err(no_process)?, missing_walls))
        }
        Err(error) if error.kind() == io::ErrorKind::InvalidData => Err(no_process(error)),
        Ok(None) | Err(_) => Err(match child.end() {
            ProcessEnd { status, is_forbidden_call: true, .. } => VaultError::Forbidden { status },
            ProcessEnd { status, .. } => no_process(format!("it ended at once ({status})")),
        }),
    }
}

fn no_process(reason: impl ToString) -> VaultError {
    VaultError::Process { reason: reason.to_string() }
}

/// The place of the secrets. Cheap to clone.
#[derive(Clone)]
pub(super) enum Link {
    /// In the vault process.
    Process(Arc<Process>),
    /// In this process, for tests.
    Here(Arc<Secrets>),
}

impl Link {
    /// The vault process, if there is one.
    pub(super) fn process(&self) -> Option<&Process> {
        match self {
            Link::Process(process) => Some(process),
            Link::Here(_) => None,
        }
    }

    /// The key of the identity.
    pub(super) fn public_key(&self) -> nostr::PublicKey {
        match self {
            Link::Process(process) => process.public_key(),
            Link::Here(secrets) => secrets.public_key(),
        }
    }

    /// Sends one request and returns the answer.
    ///
    /// Errors: the reason why the vault refuses the request; [`VaultError::Gone`].
    pub(super) fn ask<T: DeserializeOwned>(&self, request: Request) -> Result<T, VaultError> {
        decode(self.ask_one(&request, RESTART_TIMEOUT))
    }

    fn ask_one(&self, request: &Request, patience: Duration) -> Answer {
        self.ask_all(std::slice::from_ref(request), patience)?.pop().ok_or(VaultError::Failed)?
    }

    /// Sends requests to the vault together and returns the answers, in the order of the requests.
    /// A vault process works on all cores.
    pub(super) fn ask_all(&self, requests: &[Request], patience: Duration) -> Result<Vec<Answer>, VaultError> {
        match self {
            Link::Process(process) => process.ask(requests, patience),
            Link::Here(secrets) => Ok(requests.iter().map(|request| secrets.answer(request.clone())).collect()),
        }
    }

    /// Like [`Link::ask_all`], but waits as long as the vault process is away. If the process ends
    /// again and again, the requests are sent one by one, and only the request that ends the
    /// process is refused.
    pub(super) fn ask_patiently(&self, requests: &[Request]) -> Vec<Answer> {
        self.ask_all(requests, Duration::MAX)
            .unwrap_or_else(|_| requests.iter().map(|request| self.ask_one(request, Duration::MAX)).collect())
    }
}

/// The item of an answer.
pub(super) fn decode<T: DeserializeOwned>(answer: Answer) -> Result<T, VaultError> {
    postcard::from_bytes(&answer?).map_err(|_| VaultError::Failed)
}
