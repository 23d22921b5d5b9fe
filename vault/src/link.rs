//! The connection to the secrets, which are in the vault process or in this one.

use super::error::VaultError;
use super::process::Process;
use super::request::{Answer, Request};
use super::secrets::Secrets;
use std::sync::Arc;
use std::time::Duration;

/// Longest time that a request waits for the next vault process after one has ended. Longer than a
/// start takes, shorter than the time that a clean stop may take.
const RESTART_TIMEOUT: Duration = Duration::from_millis(1500);

/// The place of the secrets. Cheap to clone.
#[derive(Clone)]
pub(super) enum Link {
    /// In the vault process.
    Process(Arc<Process>),
    /// In this process, for searches without a bot, and for tests.
    Here(Arc<Secrets>),
}

impl Link {
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
    pub(super) fn ask(&self, request: Request) -> Result<Answer, VaultError> {
        let answer = match self {
            Link::Here(secrets) => secrets.answer(request),
            Link::Process(process) => process.ask(&[request], RESTART_TIMEOUT)?.pop().ok_or(VaultError::Failed)?,
        };
        match answer {
            Answer::Refused(error) => Err(error),
            answer => Ok(answer),
        }
    }

    /// Sends requests to the vault together and returns the answers, in the order of the requests.
    /// The vault works on all cores.
    ///
    /// Errors: [`VaultError::Gone`].
    pub(super) fn ask_all(&self, requests: Vec<Request>) -> Result<Vec<Answer>, VaultError> {
        match self {
            Link::Process(process) => process.ask(&requests, RESTART_TIMEOUT),
            Link::Here(secrets) => Ok(answer_on_all_cores(secrets, requests)),
        }
    }

    /// Like [`Link::ask_all`], but waits as long as the vault process is away. If the process ends
    /// again and again, the requests are sent one by one, and only the request that ends the
    /// process is refused.
    pub(super) fn ask_patiently(&self, requests: Vec<Request>) -> Vec<Answer> {
        let process = match self {
            Link::Process(process) => process,
            Link::Here(secrets) => return answer_on_all_cores(secrets, requests),
        };
        let alone = |request| match process.ask(std::slice::from_ref(request), Duration::MAX) {
            Ok(mut answers) => answers.pop().unwrap_or(Answer::Refused(VaultError::Failed)),
            Err(error) => Answer::Refused(error),
        };
        match process.ask(&requests, Duration::MAX) {
            Ok(answers) => answers,
            Err(_) => requests.iter().map(alone).collect(),
        }
    }
}

fn answer_on_all_cores(secrets: &Secrets, mut requests: Vec<Request>) -> Vec<Answer> {
    let threads = std::thread::available_parallelism().map_or(1, usize::from).min(requests.len());
    if threads < 2 {
        return requests.into_iter().map(|request| secrets.answer(request)).collect();
    }
    let share = requests.len().div_ceil(threads);
    std::thread::scope(|scope| {
        let mut shares = Vec::new();
        while !requests.is_empty() {
            let rest = requests.split_off(share.min(requests.len()));
            let part = std::mem::replace(&mut requests, rest);
            let count = part.len();
            let answer = move || part.into_iter().map(|request| secrets.answer(request)).collect::<Vec<_>>();
            shares.push((count, scope.spawn(answer)));
        }
        let failed = |count| (0..count).map(|_| Answer::Refused(VaultError::Failed)).collect();
        shares.into_iter().flat_map(|(count, share)| share.join().unwrap_or_else(|_| failed(count))).collect()
    })
}
