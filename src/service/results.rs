//! Turns a find into a sealed result and records it (T2). A start point can be redeemed only once,
//! so its result is either recorded or lost for ever.

use super::ServiceContext;
use crate::bot::notices::{self, ResultKind};
use crate::fault;
use crate::job::JobId;
use crate::ledger::{Job, LedgerError};
use crate::log_writer::LogLimit;
use crate::message::GiftWrap;
use crate::scheduler::{Find, FindHandler, FindOutcome};
use crate::vault::VaultError;
use std::time::{Duration, Instant};

/// Pause before a failed transaction is tried again, for example on a full disk.
const RETRY_PAUSE: Duration = Duration::from_millis(500);

/// Turns finds into results. Runs on the scheduler's verifier thread.
pub(super) struct Results {
    context: ServiceContext,
}

impl FindHandler for Results {
    /// Redeems a find and records the result, that of a job without a target as its best so far. If
    /// that fails, the search for the job goes on.
    fn found(&mut self, find: Find) -> FindOutcome {
        let job = match self.context.ledger.open_job(find.job) {
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
        fault::before("redeem");
        let result = match self.redeem(&job, &find) {
            Ok(result) => result,
            Err(error) => {
                tracing::error!(job = %job.id, %error, "a find could not be redeemed; it is searched again");
                return FindOutcome::GoesOn;
            }
        };
        fault::after("redeem");
        let ledger = &self.context.ledger;
        if job.spec.best.is_none() {
            return self.record(job.id, "found", || ledger.found(job.id, &result));
        }
        match self.record(job.id, "kept", || ledger.keep_best(job.id, &find.pattern, &result)) {
            FindOutcome::Done => FindOutcome::Kept,
            other => other,
        }
    }

    /// Makes the best key of a job without a target its result. If the ledger cannot record that,
    /// the search for the job goes on.
    fn finish_search(&mut self, job: JobId) -> FindOutcome {
        self.record(job, "found", || self.context.ledger.deliver_best(job))
    }
}

impl Results {
    /// Results of a service.
    pub fn new(context: ServiceContext) -> Results {
        Results { context }
    }

    fn redeem(&self, job: &Job, find: &Find) -> Result<GiftWrap, VaultError> {
        let now = self.context.clock.now();
        let waited = Duration::from_secs(now.saturating_sub(job.accepted_at));
        let npub = find.hit.npub();
        let tips = self.context.config.bot.lud16.as_ref().map(|address| notices::tips(job.language, address));
        let message = |text: String| self.context.message_about(job, text + tips.as_deref().unwrap_or_default(), now);
        let found = match &job.spec.best {
            None => ResultKind::After(waited),
            Some(_) => ResultKind::Best,
        };
        // The ticket names the half, if there is one. A tweak for another half would be useless, and
        // would relate two keys.
        let text = match job.spec.half {
            Some(_) => notices::tweak_found(job, &find.pattern, &npub, found),
            None => notices::key_found(job, &find.pattern, &npub, found),
        };
        let newer = self.context.encryption_keys.newer(job.spec.asker, job.accepted_at);
        self.context.vault.redeem(find.start, &find.hit, &job.ticket, newer.as_ref(), &message(text))
    }

    /// Runs T2, or a part of it. Until it is recorded, the sealed result exists only here, so this
    /// waits while the disk fails. Returns `Done` also for a job that has ended meanwhile.
    fn record(&self, job: JobId, what: &str, transaction: impl Fn() -> Result<bool, LedgerError>) -> FindOutcome {
        let line = LogLimit::hourly();
        loop {
            match transaction() {
                Ok(recorded) => {
                    if recorded {
                        tracing::info!(%job, "{what}");
                        self.context.wakes.outbox.notify_one();
                    }
                    self.context.wakes.status.notify_one();
                    return FindOutcome::Done;
                }
                Err(error) if error.is_transient() && !self.context.shutdown.is_stopping() => {
                    if line.next(Instant::now()).is_some() {
                        tracing::error!(%job, %error, "a result cannot be recorded yet");
                    }
                    std::thread::sleep(RETRY_PAUSE);
                }
                Err(error) => {
                    tracing::error!(%job, %error, "a result could not be recorded; it is searched again");
                    return FindOutcome::GoesOn;
                }
            }
        }
    }
}

/// Whether the find is for a pattern of the job, and its npub matches that pattern. For a job
/// without a target, whether it is rarer than the best key so far. The verifier has checked this
/// already; the second check makes sure that no asker gets a key for another request.
fn is_for(job: &Job, find: &Find) -> bool {
    let npub = find.hit.npub();
    match &job.spec.best {
        None => job.spec.patterns.contains(&find.pattern) && find.pattern.matches(&npub),
        Some(search) => {
            search.best.family.rarest(&npub).as_ref() == Some(&find.pattern) && search.is_beaten_by(&find.pattern)
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::clock::Clock;
    use crate::job::{Asker, BestSearch, EncryptionKey, JobId, JobSpec, RumorId};
    use crate::key::{HalfPoint, Offset, Rotation, StartPoint, Tweak, VerifiedHit};
    use crate::ledger::{AnsweredMessage, Effect};
    use crate::pattern::Pattern;
    use crate::service::tests::context;
    use crate::shutdown::Stopper;
    use crate::vault::{ANNOUNCEMENT, Asked, Order, StartId, VerifiedEvent, Wanted};
    use nostr::nips::nip44;
    use nostr::{Event, EventBuilder, JsonUtil, Keys, Tag};
    use secp256k1::Scalar;
    use tempfile::TempDir;

    struct Bench {
        results: Results,
        keys: Keys,
        asker: Asker,
        /// The search without a target for the jobs that `accept` makes; `None` for a prefix.
        best: Option<Box<BestSearch>>,
        _stopper: Stopper,
        _folder: TempDir,
    }

    fn bench() -> Bench {
        let folder = TempDir::new().unwrap();
        let (_stopper, shutdown) = crate::shutdown::pair();
        let context = context(folder.path(), Clock::at(1_800_000_000), shutdown);
        let keys = Keys::generate();
        let asker = Asker(keys.public_key().to_bytes());
        Bench { results: Results::new(context), keys, asker, best: None, _stopper, _folder: folder }
    }

    fn pattern(text: &str) -> Pattern {
        text.parse().unwrap()
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
            let ledger = &self.results.context.ledger;
            let (asker, id) = (self.asker, ledger.next_job().unwrap());
            let local = JobSpec::local(vec![pattern("q")]);
            let best = self.best.clone();
            let spec = JobSpec { asker, half, best, encryption_key, expires_at: 2_000_000_000, ..local };
            let rumor = RumorId([id.0 as u8; 32]);
            let wanted = match &self.best {
                None => Wanted::Patterns(spec.patterns.clone()),
                Some(search) => Wanted::Rarest(search.best.family),
            };
            let asked = Asked { wanted, half };
            let order = Order { asker, rumor, dated: self.results.context.clock.now(), encryption_key, asked };
            let ticket = Some(self.results.context.vault.ticket_for_tests(&order).unwrap());
            let effect = Effect::Accept(id, spec);
            ledger.answer(&AnsweredMessage { ticket, effect, ..AnsweredMessage::ignored(asker, rumor, 0) }).unwrap();
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
            Results::new(self.results.context.clone()).found(Find {
                job,
                pattern: pattern(named),
                half: None,
                start,
                hit: hit.unwrap(),
            })
        }

        /// Whether the outbox was woken since the last call.
        fn wakes_outbox(&self) -> bool {
            use futures_util::FutureExt;
            self.results.context.wakes.outbox.notified().now_or_never().is_some()
        }

        fn is_open(&self, job: JobId) -> bool {
            self.results.context.ledger.open_job(job).unwrap().is_some()
        }
    }

    #[test]
    fn a_find_that_fits_no_pattern_of_its_job_is_not_redeemed() {
        let bench = bench();
        let job = bench.accept(None);
        let start = || bench.results.context.vault.open_start().unwrap();
        assert_eq!(bench.settle(job, "p", "p", start()), FindOutcome::GoesOn, "a pattern that the job does not have");
        assert_eq!(
            bench.settle(job, "q", "p", start()),
            FindOutcome::GoesOn,
            "an npub that does not match the pattern"
        );
        assert!(bench.is_open(job));
        // What does not fit is refused here, before the vault spends the start point.
        let start = start();
        assert_eq!(bench.settle(job, "q", "p", start), FindOutcome::GoesOn);
        assert!(!bench.wakes_outbox());
        assert_eq!(bench.settle(job, "q", "q", start), FindOutcome::Done);
        assert!(!bench.is_open(job) && bench.wakes_outbox(), "the result is sent at once");
    }

    /// A key of a job without a target is recorded with the rarest pattern of its family that it
    /// meets.
    #[test]
    fn a_find_that_its_family_does_not_know_is_not_kept() {
        let mut bench = bench();
        bench.best = Some(Box::new(BestSearch::new("best zeros 10m".parse().unwrap())));
        let job = bench.accept(None);
        let start = || bench.results.context.vault.open_start().unwrap();
        assert_eq!(bench.settle(job, "q", "q", start()), FindOutcome::GoesOn, "not of the family");
        assert_eq!(bench.settle(job, "zeros:20", "q", start()), FindOutcome::GoesOn, "not what the key has");
        assert_eq!(
            Results::new(bench.results.context.clone()).finish_search(job),
            FindOutcome::Done,
            "nothing was kept"
        );
        assert!(bench.is_open(job) && bench.results.context.ledger.due_messages(9).unwrap().is_empty());
    }

    #[test]
    fn a_start_point_of_another_half_gives_no_tweak() {
        let (bench, own) = (bench(), half());
        let job = bench.accept(Some(own));
        let start = |half: HalfPoint| bench.results.context.vault.open_split_start(&half).unwrap();
        assert_eq!(bench.settle(job, "q", "q", start(half())), FindOutcome::GoesOn);
        assert!(bench.is_open(job));
        assert_eq!(bench.settle(job, "q", "q", bench.results.context.vault.open_start().unwrap()), FindOutcome::GoesOn);
        assert!(bench.is_open(job));
        assert_eq!(bench.settle(job, "q", "q", start(own)), FindOutcome::Done);
        assert!(!bench.is_open(job));
    }

    /// The key in force is that of the request, unless the asker announced another one since.
    #[test]
    fn a_result_is_encrypted_to_the_key_in_force_when_it_is_sealed() {
        let (bench, used, later) = (bench(), Keys::generate(), Keys::generate());
        let key = |keys: &Keys| Some(EncryptionKey(keys.public_key().to_bytes()));
        let found = |key| {
            let job = bench.accept_from(None, key);
            assert_eq!(
                bench.settle(job, "q", "q", bench.results.context.vault.open_start().unwrap()),
                FindOutcome::Done
            );
            let due = bench.results.context.ledger.due_messages(9).unwrap();
            let result = due.into_iter().find(|message| message.result_of == Some(job)).unwrap();
            assert_eq!(result.wrap.to, bench.asker);
            Event::from_json(result.wrap.events().last().unwrap()).unwrap()
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
            bench.results.context.encryption_keys.note_for_tests(&event);
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
