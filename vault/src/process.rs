//! The bot's side of the vault process: starts it, sends requests, and starts it again if it ends.

use super::error::VaultError;
use super::identity::Ready;
use super::lock;
use super::request::{Answer, MAX_FRAME, Request};
use super::spawner::{self, ProcessEnd, ProcessRequest, Spawned, Spawner, log_lines};
use crate::frame;
use crate::os::MissingWall;
use serde::de::DeserializeOwned;
use std::collections::HashMap;
use std::io::{self, PipeReader, PipeWriter, Write};
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::{Arc, Condvar, Mutex, PoisonError, mpsc};
use std::time::{Duration, Instant};

/// Longest time that a request waits for the next vault process after one has ended. Longer than a
/// start takes, shorter than the time that a clean stop may take.
const RESTART_TIMEOUT: Duration = Duration::from_millis(1500);
/// Limit on how many times a request is sent, if the vault process ends before it answers. It stops
/// a request that makes every vault process end.
const ATTEMPTS: usize = 3;
/// If a vault process ends sooner than this, a pause precedes the next start.
const SHORT_LIFE: Duration = Duration::from_secs(1);
/// First pause before another start. It doubles after each failed start.
const FIRST_PAUSE: Duration = Duration::from_millis(100);
/// Longest pause before another start.
const LAST_PAUSE: Duration = Duration::from_secs(10);

/// A vault process, and the next one whenever it ends. Ends it on drop.
pub(super) struct Process {
    shared: Arc<Shared>,
    /// The walls of the first process that could not be raised.
    pub(super) missing_walls: Vec<MissingWall>,
}

struct Shared {
    spawner: Arc<dyn Spawner>,
    /// The key of the identity.
    key: nostr::PublicKey,
    state: Mutex<State>,
    /// Notified when a process is connected, and when the vault is closed.
    changed: Condvar,
}

/// The connection, and the requests that have no answer yet.
struct State {
    /// The process, or why there is none.
    connection: Result<Connection, String>,
    is_closed: bool,
    /// Number of the last request.
    last: u64,
    /// The place of each request among those sent together, and who waits for its answer.
    waiting: HashMap<u64, (usize, mpsc::Sender<(usize, Answer)>)>,
}

/// A process ends once its writer is closed.
struct Connection {
    writer: Arc<Mutex<PipeWriter>>,
    process_id: u32,
}

/// A process that has opened its identity.
struct Started {
    child: Box<dyn spawner::Process>,
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
        let first = spawn(&*spawner)?;
        let (key, missing_walls) = (first.key, first.missing_walls.clone());
        let (connection, waiting) = (Err(VaultError::Gone.to_string()), HashMap::new());
        let state = Mutex::new(State { connection, is_closed: false, last: 0, waiting });
        let shared = Arc::new(Shared { spawner, key, state, changed: Condvar::new() });
        let (kept, mut next) = (Arc::clone(&shared), Some(shared.connect(first)));
        let keep = move || {
            while catch_unwind(AssertUnwindSafe(|| kept.keep(next.take()))).is_err() {
                // Nobody reads the answers of the process any more.
                kept.disconnect(VaultError::Gone.to_string());
            }
        };
        std::thread::Builder::new().name("vault".to_owned()).spawn(keep).map_err(no_process)?;
        Ok(Process { shared, missing_walls })
    }

    /// The key of the identity.
    pub(super) fn public_key(&self) -> nostr::PublicKey {
        self.shared.key
    }

    /// Id of the process; `None` while there is none.
    pub(super) fn id(&self) -> Option<u32> {
        lock(&self.shared.state).connection.as_ref().ok().map(|connection| connection.process_id)
    }

    /// Why there is no process; `None` while it works.
    pub(super) fn trouble(&self) -> Option<String> {
        lock(&self.shared.state).connection.as_ref().err().cloned()
    }

    /// Sends one request and returns the item of the answer.
    ///
    /// Errors: the reason why the vault refuses the request; [`VaultError::Gone`].
    pub(super) fn ask<T: DeserializeOwned>(&self, request: Request) -> Result<T, VaultError> {
        self.ask_all(&[request])?.pop().ok_or(VaultError::Failed)?
    }

    /// Sends requests together and returns the items of the answers, in the order of the requests.
    /// A vault process works on all cores.
    pub(super) fn ask_all<T: DeserializeOwned>(
        &self,
        requests: &[Request],
    ) -> Result<Vec<Result<T, VaultError>>, VaultError> {
        Ok(self.answers(requests, RESTART_TIMEOUT)?.into_iter().map(decode).collect())
    }

    /// Like [`Process::ask_all`], but waits as long as the vault process is away. If the process ends
    /// again and again, the requests are sent one by one, and only the request that ends the process
    /// is refused.
    pub(super) fn ask_patiently<T: DeserializeOwned>(&self, requests: &[Request]) -> Vec<Result<T, VaultError>> {
        let one =
            |request| self.answers(std::slice::from_ref(request), Duration::MAX)?.pop().ok_or(VaultError::Failed)?;
        let all = self.answers(requests, Duration::MAX);
        all.unwrap_or_else(|_| requests.iter().map(one).collect()).into_iter().map(decode).collect()
    }

    /// Sends requests and waits for their answers. If the process ends meanwhile, waits at most
    /// `patience` for the next one and asks again.
    pub(super) fn answers(&self, requests: &[Request], patience: Duration) -> Result<Vec<Answer>, VaultError> {
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
        state.connection = Err(VaultError::Gone.to_string());
        self.shared.changed.notify_all();
    }
}

impl Shared {
    /// Sends requests, once there is a process. Each answer comes with the place of its request.
    ///
    /// Errors: there is no process before the deadline, or the vault is closed.
    fn send(
        &self,
        requests: &[Request],
        deadline: Option<Instant>,
    ) -> Result<mpsc::Receiver<(usize, Answer)>, VaultError> {
        let mut state = lock(&self.state);
        let writer = loop {
            if let Ok(connection) = &state.connection {
                break Arc::clone(&connection.writer);
            }
            let left = deadline.map_or(LAST_PAUSE, |deadline| deadline.saturating_duration_since(Instant::now()));
            if state.is_closed || left.is_zero() {
                return Err(VaultError::Gone);
            }
            state = self.changed.wait_timeout(state, left).unwrap_or_else(PoisonError::into_inner).0;
        };
        let (answer, answered) = mpsc::channel();
        let mut frames = Vec::new();
        for (at, request) in requests.iter().enumerate() {
            state.last += 1;
            let number = state.last;
            frames.extend(frame::encode(&(number, request), MAX_FRAME).map_err(|_| VaultError::Failed)?);
            state.waiting.insert(number, (at, answer.clone()));
        }
        drop(state);
        // If this fails, the process has ended, and the keeping thread sees that.
        let _ = lock(&writer).write_all(&frames);
        Ok(answered)
    }

    /// Makes a process the current one. Returns it and the reader of its answers.
    fn connect(&self, started: Started) -> (Box<dyn spawner::Process>, PipeReader) {
        let (writer, process_id) = (Arc::new(Mutex::new(started.writer)), started.child.id());
        lock(&self.state).connection = Ok(Connection { writer, process_id });
        self.changed.notify_all();
        (started.child, started.reader)
    }

    /// Passes each answer to the caller that waits for it, and starts the process again whenever it
    /// has ended, until the vault is closed.
    fn keep(&self, mut next: Option<(Box<dyn spawner::Process>, PipeReader)>) {
        let mut pause = FIRST_PAUSE;
        loop {
            if next.is_none() && self.is_closed_within(pause) {
                return;
            }
            match next.take().map_or_else(|| self.start_again(), Ok) {
                Ok((mut child, reader)) => {
                    let began = Instant::now();
                    self.pass_answers(reader);
                    let is_closed = self.disconnect(VaultError::Gone.to_string());
                    let status = child.end().status;
                    if !is_closed {
                        tracing::error!(status, "the vault process has ended; it is started again");
                    }
                    pause = if began.elapsed() < SHORT_LIFE { FIRST_PAUSE } else { Duration::ZERO };
                }
                Err(error) => {
                    pause = (pause * 2).clamp(FIRST_PAUSE, LAST_PAUSE);
                    tracing::error!(%error, retry_in = ?pause, "the vault process cannot be started");
                    self.disconnect(error.to_string());
                }
            }
        }
    }

    /// Waits for `pause`, or until the vault is closed. Returns whether it is closed.
    fn is_closed_within(&self, pause: Duration) -> bool {
        let wait = self.changed.wait_timeout_while(lock(&self.state), pause, |state| !state.is_closed);
        wait.unwrap_or_else(PoisonError::into_inner).0.is_closed
    }

    fn start_again(&self) -> Result<(Box<dyn spawner::Process>, PipeReader), VaultError> {
        let mut started = spawn(&*self.spawner)?;
        if self.spawner.is_bot() && started.key != self.key {
            started.child.end();
            return Err(no_process("the identity file holds another identity now"));
        }
        tracing::info!("the vault process works again");
        Ok(self.connect(started))
    }

    fn pass_answers(&self, mut reader: PipeReader) {
        while let Ok(Some((number, answer))) = frame::read::<(u64, Answer)>(&mut reader, MAX_FRAME) {
            if let Some((at, to)) = lock(&self.state).waiting.remove(&number) {
                // If nobody waits any more, the answer is not needed.
                let _ = to.send((at, answer));
            }
        }
    }

    /// Marks the process as gone, so that waiting callers ask again. Returns whether the vault is
    /// closed.
    fn disconnect(&self, trouble: String) -> bool {
        let mut state = lock(&self.state);
        state.connection = Err(trouble);
        state.waiting.clear();
        state.is_closed
    }
}

/// Starts a process and waits until it has opened its identity. This may take until a person has
/// typed a passphrase.
fn spawn(spawner: &dyn Spawner) -> Result<Started, VaultError> {
    let Spawned { ends, process: mut child } = spawner.start(&ProcessRequest::Vault).map_err(no_process)?;
    // The text of a panic. The process could not log by itself without waiting for a reader that sleeps.
    log_lines(ends.errors, |line| tracing::error!(line, "the vault process wrote this")).map_err(no_process)?;
    let (mut reader, writer) = (ends.reader, ends.writer);
    let greeting = match frame::read::<Result<Ready, VaultError>>(&mut reader, MAX_FRAME) {
        Ok(Some(greeting)) => greeting,
        Err(error) if error.kind() == io::ErrorKind::InvalidData => Err(no_process(error)),
        Ok(None) | Err(_) => Err(match child.end() {
            ProcessEnd { status, is_forbidden_call: true, .. } => VaultError::Forbidden { status },
            ProcessEnd { status, .. } => no_process(format!("it ended at once ({status})")),
        }),
    };
    let ready = greeting.and_then(|Ready { key, missing_walls }| {
        Ok((nostr::PublicKey::from_slice(&key).map_err(no_process)?, missing_walls))
    });
    let (key, missing_walls) = ready.inspect_err(|_| drop(child.end()))?;
    Ok(Started { child, reader, writer, key, missing_walls })
}

fn no_process(reason: impl ToString) -> VaultError {
    VaultError::Process { reason: reason.to_string() }
}

/// The item of an answer.
pub(super) fn decode<T: DeserializeOwned>(answer: Answer) -> Result<T, VaultError> {
    postcard::from_bytes(&answer?).map_err(|_| VaultError::Failed)
}
