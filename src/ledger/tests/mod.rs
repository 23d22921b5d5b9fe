//! Behaviour of the ledger. The tests are inside the room because they use its private connection.

mod answers;
mod askers;
mod budget;
mod clocks;
mod files;
mod model;
mod outbox;
mod quarantine;
mod restore;
mod rules;
mod trouble;

use super::*;
use crate::clock::Clock;
use crate::job::{Asker, JobId, JobSpec, RumorId, Ticket};
use crate::key::HalfPoint;
use crate::message::GiftWrap;
use crate::pattern::Pattern;
use secp256k1::{PublicKey, SECP256K1, SecretKey};
use tempfile::TempDir;

const NOW: u64 = 1_800_000_000;
const DAY: u64 = 86_400;

/// A ledger in a temporary folder, with a clock set by the test.
struct Bench {
    folder: TempDir,
    clock: Clock,
    ledger: Ledger,
}

fn bench() -> Bench {
    let folder = TempDir::new().unwrap();
    let clock = Clock::at(NOW);
    let ledger = Ledger::open(folder.path(), clock.clone()).unwrap();
    Bench { folder, clock, ledger }
}

impl Bench {
    /// The same folder, opened again.
    fn reopened(self) -> Bench {
        let Bench { folder, clock, ledger } = self;
        drop(ledger);
        let ledger = Ledger::open(folder.path(), clock.clone()).unwrap();
        Bench { folder, clock, ledger }
    }

    /// Accepts a request that `asker` sent in the message `rumor`, and returns the job's number.
    fn accept(&self, asker: u8, rumor: u8) -> JobId {
        self.accept_with(asker, rumor, |_| {})
    }

    /// Like [`Bench::accept`], with a changed job.
    fn accept_with(&self, asker: u8, rumor: u8, change: impl FnOnce(&mut JobSpec)) -> JobId {
        let id = self.ledger.next_job().unwrap();
        let mut answer = request(asker, rumor, id);
        let Effect::Accept(_, job) = &mut answer.effect else { unreachable!() };
        change(job);
        assert_eq!(self.ledger.answer(&answer).unwrap(), Recorded::Now);
        id
    }

    fn found(&self, job: JobId, asker: u8, number: u8) -> DueMessage {
        assert!(self.ledger.found(job, &wrap(asker, number)).unwrap());
        self.result_of(job).unwrap()
    }

    fn result_of(&self, job: JobId) -> Option<DueMessage> {
        self.ledger.due_messages(usize::MAX).unwrap().into_iter().find(|message| message.result_of == Some(job))
    }

    /// Counts an attempt to send a message; the next is at `due_at`.
    fn postpone(&self, message: MessageId, due_at: u64) -> Result<(), LedgerError> {
        self.ledger.record_attempts(&[Attempt { message, reached: Vec::new(), again_at: Some(due_at) }])
    }

    /// Ends the attempts to send a message.
    fn finish(&self, message: MessageId) -> Result<(), LedgerError> {
        self.ledger.record_attempts(&[Attempt { message, reached: Vec::new(), again_at: None }])
    }

    fn sql(&self, statement: &str) {
        self.ledger.read().execute_batch(statement).unwrap();
    }
}

fn asker(number: u8) -> Asker {
    Asker([number; 32])
}

fn half(byte: u8) -> HalfPoint {
    HalfPoint::new(PublicKey::from_secret_key(SECP256K1, &SecretKey::from_slice(&[byte; 32]).unwrap()))
}

fn wrap(to: u8, number: u8) -> GiftWrap {
    GiftWrap { id: [number; 32], to: asker(to), json: format!("wrap {number}"), expires_at: NOW + 30 * DAY }
}

fn patterns(words: &str) -> Vec<Pattern> {
    words.split(' ').map(|word| word.parse().unwrap()).collect()
}

/// The answer to a request, which becomes the job `id`. The wrap of the reply has the number of the
/// message.
fn request(from: u8, rumor: u8, id: JobId) -> AnsweredMessage {
    let patterns = patterns("m0ctane qqqq ~alice m0ct*cafe [5s]at0 words:8");
    AnsweredMessage {
        effect: Effect::Accept(
            id,
            JobSpec {
                asker: asker(from),
                subject: Some("vanity".to_owned()),
                expires_at: NOW + 7 * DAY,
                ..JobSpec::local(patterns)
            },
        ),
        ..reply(from, rumor)
    }
}

/// The answer to a message without an effect.
fn reply(from: u8, rumor: u8) -> AnsweredMessage {
    AnsweredMessage {
        asker: asker(from),
        rumor: RumorId([rumor; 32]),
        dated: NOW,
        seen_on: vec!["wss://one.example".to_owned(), "wss://two.example".to_owned()],
        ticket: Some(Ticket(vec![from, rumor])),
        effect: Effect::Nothing,
        reply: Some(wrap(from, rumor)),
        language: None,
        work: None,
        deletes: Vec::new(),
    }
}

fn numbers(jobs: &[JobId]) -> Vec<i64> {
    jobs.iter().map(|job| job.0).collect()
}

fn ids(jobs: &[Job]) -> Vec<i64> {
    jobs.iter().map(|job| job.id.0).collect()
}
