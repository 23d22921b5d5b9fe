//! An attacker inside the network process, for tests of debug builds. At SIGUSR2 it looks through
//! all memory of this process and uses this process's end of the vault's socket, like an intruder
//! who has taken the process over.
//!
//! `NPUBBOT_TEST_CAPTURED` names a folder. The attacker reads its own npub from the file `attacker`
//! there. It writes the memory to the file `memory`, and a line for each success and each refusal
//! to `report`.

use super::context::Context;
use crate::job::{Asker, EncryptionKey, Ticket};
use crate::key::{Offset, Rotation, StartPoint, Tweak, VerifiedHit};
use crate::ledger::Job;
use crate::message::OutgoingMessage;
use crate::os::kernel;
use crate::os::signals::TestSignal;
use crate::pattern::Pattern;
use crate::vault::StartId;
use nostr::{EventBuilder, Kind, PublicKey};
use std::fs::{self, File};
use std::io::Write;
use std::path::PathBuf;
use std::time::Duration;

/// Number of start points that are open while the memory is written to its file.
const STARTS: usize = 24;
/// Number of requests from each thread of the flood.
const FLOOD: usize = 500;

/// Starts the attack at SIGUSR2, if a test asks for it.
pub(super) fn arm(context: &Context) {
    let Some(folder) = std::env::var_os("NPUBBOT_TEST_CAPTURED").map(PathBuf::from) else { return };
    let Ok(mut signal) = TestSignal::listen() else { return };
    let context = context.clone();
    tokio::spawn(async move {
        signal.next().await;
        let _ = tokio::task::spawn_blocking(move || {
            let end = Attacker::new(&context, folder.clone()).and_then(|mut attacker| attacker.run());
            let said = end.map_or_else(|error| format!("failed: {error}"), |()| "done".to_owned());
            fs::write(folder.join("end"), said)
        })
        .await;
    });
}

type Outcome = Result<(), Box<dyn std::error::Error>>;

/// The captured process, and the npub that is to receive keys.
struct Attacker<'a> {
    context: &'a Context,
    folder: PathBuf,
    report: File,
    npub: PublicKey,
    /// The attacker's own job. `victim` is an honest asker's.
    own: Job,
    victim: Job,
}

impl<'a> Attacker<'a> {
    fn new(context: &'a Context, folder: PathBuf) -> Result<Attacker<'a>, Box<dyn std::error::Error>> {
        let npub = PublicKey::parse(fs::read_to_string(folder.join("attacker"))?.trim())?;
        let is_own = |job: &Job| job.spec.asker.0 == npub.to_bytes();
        let jobs = context.ledger.open_jobs()?;
        let (own, victim) = (jobs.iter().find(|job| is_own(job)), jobs.iter().find(|job| !is_own(job)));
        let (own, victim) = own.cloned().zip(victim.cloned()).ok_or("no open jobs")?;
        let report = File::create(folder.join("report"))?;
        Ok(Attacker { context, folder, report, npub, own, victim })
    }

    fn run(&mut self) -> Outcome {
        let starts = self.context.vault.open_starts(STARTS, None)?;
        kernel::dump_memory(&self.folder.join("memory"))?;
        // Tells the test that the start points are open. It now reads the vault's memory, as root.
        fs::write(self.folder.join("open"), "yes")?;
        while !self.folder.join("go").exists() {
            std::thread::sleep(Duration::from_millis(5));
        }
        for (at, (start, point)) in starts.into_iter().enumerate() {
            let wanted = if at.is_multiple_of(2) { &self.own } else { &self.victim };
            let (step, hit) = found(&point, &wanted.spec.patterns[0]);
            self.redeem(at, start, step, &hit)?;
        }
        self.ask_for_signatures()?;
        self.seal_keys()?;
        self.flood();
        Ok(())
    }

    /// Tries to redeem a hit with one of several tickets, which `at` selects. The hit is of the
    /// attacker's own pattern if `at` is even, else of the victim's.
    fn redeem(&mut self, at: usize, start: StartId, step: i64, hit: &VerifiedHit) -> Outcome {
        let (own, theirs) = (self.own.ticket.clone(), self.victim.ticket.clone());
        let (order, mac) = (own.0.len() - 32, theirs.0.len() - 32);
        let tried = match at / 2 % 6 {
            // The ticket of the job that the hit is for, unchanged. Further start points replay it.
            0 => {
                if at.is_multiple_of(2) {
                    own
                } else {
                    theirs
                }
            }
            // The ticket of the other job.
            1 => {
                if at.is_multiple_of(2) {
                    theirs
                } else {
                    own
                }
            }
            2 => replaced(&theirs, &self.victim.spec.asker.0, &self.npub.to_bytes()),
            3 => {
                let [from, to] = [&self.victim, &self.own].map(|job| job.spec.patterns[0].as_str().as_bytes());
                replaced(&own, to, from)
            }
            4 => Ticket([&own.0[..order], &theirs.0[mac..]].concat()),
            _ => {
                if at.is_multiple_of(2) {
                    own
                } else {
                    theirs
                }
            }
        };
        let message = self.message("Yours:");
        for attempt in ["first", "second"] {
            match self.context.vault.redeem(start, hit, &tried, None, &message) {
                Ok(wrap) => writeln!(
                    self.report,
                    "redeemed {attempt} {} {step} {}",
                    hit.npub(),
                    wrap.events().last().unwrap_or_default()
                )?,
                Err(error) => writeln!(self.report, "refused {error}")?,
            }
        }
        Ok(())
    }

    /// Asks for signatures of events of every range of kinds, in the bot's name and in the
    /// attacker's.
    fn ask_for_signatures(&mut self) -> Outcome {
        let signer = self.context.vault.signer();
        for kind in (0..1500).chain(10_000..10_100).chain([22_242, 24_133, 27_235]).chain(30_000..32_000) {
            for author in [self.context.vault.public_key(), self.npub] {
                let event = EventBuilder::new(Kind::from(kind), "I say so").build(author);
                if signer.sign(event).is_ok() {
                    writeln!(self.report, "signed {kind} {author}")?;
                }
            }
        }
        Ok(())
    }

    /// Asks the vault to seal messages to the attacker that contain the keys in the file `keys`, by
    /// NIP-17 and by NIP-04.
    fn seal_keys(&mut self) -> Outcome {
        for key in fs::read_to_string(self.folder.join("keys"))?.lines() {
            let message = OutgoingMessage { subject: Some(key.to_owned()), ..self.message(key) };
            let vault = &self.context.vault;
            for sealed in [vault.seal(&message)?, vault.seal_nip04(&message)?] {
                writeln!(self.report, "sealed {}", sealed.json)?;
            }
        }
        Ok(())
    }

    fn flood(&self) {
        let (vault, message, noise) = (&self.context.vault, self.message("x"), Ticket(vec![7; 100_000]));
        std::thread::scope(|scope| {
            for _ in 0..4 {
                scope.spawn(|| {
                    for _ in 0..FLOOD {
                        let _ = vault.seal(&message);
                    }
                    let Ok((start, point)) = vault.open_start() else { return };
                    let (_, hit) = found(&point, &self.own.spec.patterns[0]);
                    for _ in 0..FLOOD / 10 {
                        let _ = vault.redeem(start, &hit, &noise, None, &message);
                    }
                });
            }
        });
    }

    /// A message to the attacker.
    fn message(&self, text: &str) -> OutgoingMessage {
        OutgoingMessage {
            to: Asker(self.npub.to_bytes()),
            encryption_key: Some(EncryptionKey(self.npub.to_bytes())),
            text: text.to_owned(),
            in_reply_to: None,
            subject: None,
            expires_at: 2_000_000_000,
            not_before: 0,
        }
    }
}

/// Searches from a start point for a hit that meets a pattern. Returns its step and the hit.
fn found(point: &StartPoint, pattern: &Pattern) -> (i64, VerifiedHit) {
    let rotation = Rotation::ALL[0];
    let mut hits = (1..).filter_map(|step| {
        let tweak = Tweak { offset: Offset::of_point(0, step, rotation), rotation };
        VerifiedHit::recompute(*point, tweak).map(|hit| (step, hit))
    });
    hits.find(|(_, hit)| pattern.matches(&hit.npub())).unwrap_or_else(|| unreachable!("the numbers have no end"))
}

/// A copy of the ticket with the first occurrence of `from` replaced by `to`.
fn replaced(ticket: &Ticket, from: &[u8], to: &[u8]) -> Ticket {
    let mut bytes = ticket.0.clone();
    if let Some(at) = bytes.windows(from.len()).position(|window| window == from) {
        bytes.splice(at..at + from.len(), to.iter().copied());
    }
    Ticket(bytes)
}
