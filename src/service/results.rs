//! From a find to a sealed result (T2). A start point can be redeemed only once, so its result is
//! either recorded or lost for ever.

use super::compose;
use super::context::Context;
use crate::bot::notices;
use crate::fault::{self, Step};
use crate::ledger::Job;
use crate::message::GiftWrap;
use crate::scheduler::{Find, FindOutcome};
use crate::vault::VaultError;
use std::time::Duration;

/// Pause before a failed transaction is tried again, for example on a full disk.
const TRY_AGAIN: Duration = Duration::from_millis(500);

/// Turns finds into results. Runs on the scheduler's verifier thread.
pub(super) struct Results(pub Context);

impl Results {
    /// Redeems a find and records the result. If the result could not be recorded, the search for
    /// the job goes on.
    pub fn settle(&self, find: Find) -> FindOutcome {
        let job = match self.0.ledger.open_job(find.job) {
            Ok(Some(job)) => job,
            Ok(None) => return FindOutcome::Done,
            Err(error) => {
                tracing::error!(job = %find.job, %error, "a find is dropped and searched again");
                return FindOutcome::GoesOn;
            }
        };
        if !is_for(&job, &find) {
            tracing::error!(job = %job.id, "a find fits no pattern of its job; it is dropped and searched again");
            return FindOutcome::GoesOn;
        }
        fault::before(Step::Redeem);
        let result = match self.redeem(&job, &find) {
            Ok(result) => result,
            Err(error) => {
                tracing::error!(job = %job.id, %error, "a find could not be redeemed; it is searched again");
                return FindOutcome::GoesOn;
            }
        };
        fault::after(Step::Redeem);
        self.record(&job, &result)
    }

    fn redeem(&self, job: &Job, find: &Find) -> Result<GiftWrap, VaultError> {
        let now = self.0.clock.now();
        let waited = Duration::from_secs(now.saturating_sub(job.accepted_at));
        let npub = find.hit.npub();
        let message = |text: String| compose::about(job, text, now, &self.0);
        if let Some(half) = &job.spec.half {
            let tweak = self.0.vault.reveal(find.start, &find.hit)?;
            // A tweak for another half would be useless, and would relate two keys.
            if tweak.fingerprint != half.fingerprint() {
                return Err(VaultError::ForeignHit);
            }
            return self.0.vault.seal(&message(notices::tweak_found(job, &find.pattern, &npub, waited, &tweak)));
        }
        let (before, after) = notices::key_found(job, &find.pattern, &npub, waited);
        self.0.vault.redeem(find.start, &find.hit, &message(before), &after)
    }

    /// T2. Until it is recorded, the sealed result exists only here, so this waits while the disk
    /// fails.
    fn record(&self, job: &Job, result: &GiftWrap) -> FindOutcome {
        loop {
            match self.0.ledger.found(job.id, result) {
                Ok(recorded) => {
                    if recorded {
                        tracing::info!(job = %job.id, "found");
                        self.0.wakes.outbox.wake();
                    }
                    self.0.wakes.status.wake();
                    return FindOutcome::Done;
                }
                Err(error) if error.is_transient() && !self.0.shutdown.is_stopping() => {
                    tracing::error!(job = %job.id, %error, "a result cannot be recorded yet");
                    std::thread::sleep(TRY_AGAIN);
                }
                Err(error) => {
                    tracing::error!(job = %job.id, %error, "a result could not be recorded; it is searched again");
                    return FindOutcome::GoesOn;
                }
            }
        }
    }
}

/// Whether the find is for a pattern of the job, and its npub matches that pattern. The verifier
/// has checked both; this second check makes sure that no asker gets a key for another request.
fn is_for(job: &Job, find: &Find) -> bool {
    job.spec.patterns.contains(&find.pattern) && find.pattern.matches(&find.hit.npub())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::clock::Clock;
    use crate::config::Config;
    use crate::job::{Asker, EncryptionKey, JobId, JobSpec, RumorId};
    use crate::key::{HalfPoint, Offset, Rotation, StartPoint, Tweak, VerifiedHit};
    use crate::ledger::{Answer, Effect, Ledger};
    use crate::pattern::Pattern;
    use crate::service::context::Wakes;
    use crate::shutdown::Stopper;
    use crate::vault::{ANNOUNCEMENT, Announcement, StartId, Vault, VerifiedEvent};
    use nostr::nips::nip44;
    use nostr::{Event, EventBuilder, JsonUtil, Keys, Tag};
    use secp256k1::Scalar;
    use std::sync::Arc;
    use tempfile::TempDir;

    struct Bench {
        results: Results,
        keys: Keys,
        asker: Asker,
        _stopper: Stopper,
        _folder: TempDir,
    }

    fn bench() -> Bench {
        let folder = TempDir::new().unwrap();
        let clock = Clock::at(1_800_000_000);
        let (_stopper, shutdown) = crate::shutdown::pair();
        let context = Context {
            vault: Vault::without_identity().unwrap().with_clock(clock.clone()),
            ledger: Ledger::open(folder.path(), clock.clone()).unwrap(),
            clock,
            config: Arc::new(Config::embedded_default().unwrap()),
            wakes: Wakes::default(),
            encryption_keys: Arc::default(),
            access: Default::default(),
            pulse: Default::default(),
            shutdown,
        };
        let keys = Keys::generate();
        let asker = Asker(keys.public_key().to_bytes());
        Bench { results: Results(context), keys, asker, _stopper, _folder: folder }
    }

    fn pattern(text: &str) -> Pattern {
        Pattern::parse(text).unwrap()
    }

    fn half() -> HalfPoint {
        format!("02{}", nostr::Keys::generate().public_key().to_hex()).parse().unwrap()
    }

    impl Bench {
        /// Accepts a job for the prefix `q`.
        fn accept(&self, half: Option<HalfPoint>) -> JobId {
            self.accept_from(half, None)
        }

        /// A job for `q`, asked for with an encryption key.
        fn accept_from(&self, half: Option<HalfPoint>, encryption_key: Option<EncryptionKey>) -> JobId {
            let ledger = &self.results.0.ledger;
            let (asker, id) = (self.asker, ledger.next_job().unwrap());
            let local = JobSpec::local(vec![pattern("q")]);
            let spec = JobSpec { asker, half, encryption_key, expires_at: 2_000_000_000, ..local };
            let rumor = RumorId([id.0 as u8; 32]);
            let effect = Effect::Accept(id, spec);
            ledger.answer(&Answer { asker, rumor, seen_on: Vec::new(), effect, reply: None, language: None }).unwrap();
            id
        }

        fn settle(&self, job: JobId, named: &str, found: &str, (start, point): (StartId, StartPoint)) -> FindOutcome {
            let found = pattern(found);
            let hit = (1u64..).find_map(|number| {
                let mut bytes = [0; 32];
                bytes[24..].copy_from_slice(&number.to_be_bytes());
                let offset = Offset::from_scalar(Scalar::from_be_bytes(bytes).unwrap());
                let hit = VerifiedHit::recompute(point, Tweak { offset, rotation: Rotation::ALL[0] })?;
                found.matches(&hit.npub()).then_some(hit)
            });
            self.results.settle(Find { job, pattern: pattern(named), half: None, start, hit: hit.unwrap() })
        }

        fn is_open(&self, job: JobId) -> bool {
            self.results.0.ledger.open_job(job).unwrap().is_some()
        }
    }

    #[test]
    fn a_find_that_fits_no_pattern_of_its_job_is_not_redeemed() {
        let bench = bench();
        let job = bench.accept(None);
        let start = || bench.results.0.vault.open_start().unwrap();
        assert_eq!(bench.settle(job, "p", "p", start()), FindOutcome::GoesOn, "a pattern that the job does not have");
        assert_eq!(
            bench.settle(job, "q", "p", start()),
            FindOutcome::GoesOn,
            "an npub that does not match the pattern"
        );
        assert!(bench.is_open(job));
        assert_eq!(bench.settle(job, "q", "q", start()), FindOutcome::Done);
        assert!(!bench.is_open(job));
    }

    #[test]
    fn a_start_point_of_another_half_gives_no_tweak() {
        let (bench, own) = (bench(), half());
        let job = bench.accept(Some(own));
        let start = |half: HalfPoint| bench.results.0.vault.open_split_start(&half).unwrap();
        assert_eq!(bench.settle(job, "q", "q", start(half())), FindOutcome::GoesOn);
        assert!(bench.is_open(job));
        assert_eq!(bench.settle(job, "q", "q", bench.results.0.vault.open_start().unwrap()), FindOutcome::GoesOn);
        assert!(bench.is_open(job));
        assert_eq!(bench.settle(job, "q", "q", start(own)), FindOutcome::Done);
        assert!(!bench.is_open(job));
    }

    /// The key of the request, unless the asker announced another one since.
    #[test]
    fn a_result_is_encrypted_to_the_key_in_force_when_it_is_sealed() {
        let (bench, used, later) = (bench(), Keys::generate(), Keys::generate());
        let key = |keys: &Keys| Some(EncryptionKey(keys.public_key().to_bytes()));
        let found = |key| {
            let job = bench.accept_from(None, key);
            assert_eq!(bench.settle(job, "q", "q", bench.results.0.vault.open_start().unwrap()), FindOutcome::Done);
            let due = bench.results.0.ledger.due_messages(9).unwrap();
            let result = due.into_iter().find(|message| message.result_of == Some(job)).unwrap();
            assert_eq!(result.wrap.to, bench.asker);
            Event::from_json(result.wrap.json).unwrap()
        };
        let opens = |keys: &Keys, wrap: &Event| {
            nip44::decrypt(keys.secret_key(), &wrap.pubkey, &wrap.content).is_ok_and(|json| {
                let seal = Event::from_json(json).unwrap();
                nip44::decrypt(keys.secret_key(), &seal.pubkey, &seal.content).unwrap().contains("nsec1")
            })
        };
        let announce = |keys: &Keys, dated: u64| {
            let tag = Tag::parse(["n", &keys.public_key().to_hex()]).unwrap();
            let builder = EventBuilder::new(ANNOUNCEMENT, "").tag(tag).custom_created_at(dated.into());
            let event = VerifiedEvent::check(builder.sign_with_keys(&bench.keys).unwrap()).unwrap();
            bench.results.0.encryption_keys.note_for_tests(Announcement::read(&event).unwrap());
        };
        let who_opens = |wrap: Event| [&bench.keys, &used, &later].map(|keys| opens(keys, &wrap));
        assert_eq!(who_opens(found(None)), [true, false, false]);
        assert_eq!(who_opens(found(key(&used))), [false, true, false]);
        announce(&later, 1_799_999_999);
        assert_eq!(who_opens(found(key(&used))), [false, true, false], "older than the request");
        announce(&later, 1_800_000_001);
        assert_eq!(who_opens(found(key(&used))), [false, false, true]);
        assert_eq!(who_opens(found(None)), [true, false, false], "a client that needs none gets none");
    }
}
