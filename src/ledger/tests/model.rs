//! Model test: random sequences of everything that can happen to a ledger, compared with a
//! reference in memory. The long form, with the seed in `NPUBBOT_TEST_SEED`:
//! `NPUBBOT_MODEL_STEPS=1000000 cargo test --release --lib ledger::tests::model`

mod reference;

use super::*;
use crate::job::BestSearch;
use crate::language::Language;
use rand::rngs::StdRng;
use rand::{Rng, SeedableRng};
use reference::Reference;
use std::collections::{BTreeMap, BTreeSet};
use std::time::Duration;

/// Steps in an ordinary run.
const SCHEMA_STEPS: u64 = 3_000;
/// Number of askers: few, so that they get into every state.
const ASKERS: u8 = 5;

fn numbered(kind: u8, number: u64) -> [u8; 32] {
    let mut bytes = [kind; 32];
    bytes[..8].copy_from_slice(&number.to_be_bytes());
    bytes
}

/// The ledger, the reference, and the facts that a restore must not undo.
struct Run {
    rng: StdRng,
    folder: TempDir,
    clock: Clock,
    ledger: Option<Ledger>,
    reference: Reference,
    backup: Option<Reference>,
    halves: Vec<HalfPoint>,
    /// Indices of all halves for which a key was ever found.
    keys: BTreeSet<usize>,
    wraps: u64,
    /// Dates of the messages so far.
    rumors: Vec<u64>,
}

impl Run {
    fn new(seed: u64) -> Run {
        // Prefers `/dev/shm`, which is in memory: a million syncs would take hours on a disk.
        let folder = tempfile::tempdir_in("/dev/shm").or_else(|_| TempDir::new()).unwrap();
        let clock = Clock::at(NOW);
        let ledger = Some(Ledger::open(folder.path(), clock.clone()).unwrap());
        let (reference, halves, keys) = (Reference::default(), Vec::new(), BTreeSet::new());
        let rng = StdRng::seed_from_u64(seed);
        Run { rng, folder, clock, ledger, reference, backup: None, halves, keys, wraps: 0, rumors: Vec::new() }
    }

    fn ledger(&self) -> &Ledger {
        self.ledger.as_ref().unwrap()
    }

    fn wrap(&mut self, to: u8) -> GiftWrap {
        self.wraps += 1;
        let expires_at = self.clock.now() + 2 * DAY;
        GiftWrap { id: numbered(1, self.wraps), to: asker(to), json: format!("wrap {}", self.wraps), expires_at }
    }

    /// A half, either new or used before.
    fn half(&mut self) -> usize {
        if self.halves.is_empty() || self.rng.random_bool(0.5) {
            let secret = SecretKey::from_slice(&numbered(7, self.halves.len() as u64 + 1)).unwrap();
            self.halves.push(HalfPoint::new(PublicKey::from_secret_key(SECP256K1, &secret)));
            return self.halves.len() - 1;
        }
        self.rng.random_range(0..self.halves.len())
    }

    /// A job number: mostly of an open job, else any number.
    fn job(&mut self) -> JobId {
        let open = self.reference.open();
        if open.is_empty() || self.rng.random_bool(0.1) {
            return JobId(self.rng.random_range(1..=self.reference.last_job + 1));
        }
        open[self.rng.random_range(0..open.len())]
    }

    fn step(&mut self) {
        let who = self.rng.random_range(1..=ASKERS);
        match self.rng.random_range(0..1000) {
            0..300 => self.message(who, true),
            300..420 => self.message(who, false),
            420..500 => self.end(true),
            500..520 => self.end(false),
            520..580 => self.keep_best(),
            580..620 => self.deliver_best(),
            620..640 => self.tell_late(),
            640..880 => self.send(),
            880..960 => self.pass_time(),
            960..975 => self.delete_expired(),
            975..985 => self.vanish(who),
            985..992 => self.restart(),
            992..996 => self.back_up(),
            _ => self.restore(),
        }
        self.check(who);
    }

    /// A message of an asker: a request, or anything else. One in ten is a replay.
    fn message(&mut self, from: u8, request: bool) {
        let is_replay = !self.rumors.is_empty() && self.rng.random_bool(0.1);
        let number = if is_replay { self.rng.random_range(1..=self.rumors.len()) } else { self.rumors.len() + 1 };
        if !is_replay {
            self.rumors.push(self.clock.now());
        }
        let (dated, number) = (self.rumors[number - 1], number as u64);
        let rumor = RumorId(numbered(2, number));
        let effect = if request { self.request(from) } else { self.other() };
        let reply = self.rng.random_bool(0.9).then(|| self.wrap(from));
        let is_new = self.rng.random_bool(0.2) && !matches!(effect, Effect::Forget);
        let language = is_new.then(|| Language::ALL[self.rng.random_range(0..Language::ALL.len())]);
        let seen_on = vec!["wss://one.example".to_owned()];
        let answer = AnsweredMessage {
            rumor,
            dated,
            seen_on,
            effect: effect.clone(),
            reply: reply.clone(),
            language,
            ..super::reply(from, 0)
        };
        let recorded = self.ledger().answer(&answer).unwrap();
        if recorded == Recorded::TooOld {
            assert!(dated + 8 * DAY <= self.clock.now(), "nobody is refused who wrote within the week");
            return;
        }
        assert_eq!(recorded == Recorded::Now, self.reference.sees(from, number), "one answer a message");
        if recorded == Recorded::Now {
            let half = match &effect {
                Effect::Accept(_, spec) => spec.half.and_then(|half| self.halves.iter().position(|own| *own == half)),
                _ => None,
            };
            self.reference.apply(from, &effect, half, self.clock.now());
            if let Some(language) = language {
                self.reference.set_language(from, language, self.clock.now());
            }
            if let Some(reply) = reply {
                self.reference.queue(&reply, None, self.clock.now());
            }
        }
    }

    /// A request for the pool, or for a split key with a fresh half. The bot refuses any other
    /// half.
    fn request(&mut self, from: u8) -> Effect {
        let id = self.ledger().next_job().unwrap();
        assert!(id.0 > self.reference.last_job, "no number twice");
        let half = self.rng.random_bool(0.3).then(|| self.half());
        if let Some(half) = half {
            let used = self.ledger().half_use(&self.halves[half]).unwrap();
            assert_eq!(used, self.reference.half_use(half), "half {half}");
            assert!(!self.keys.contains(&half) || used == Some(HalfUse::Spent), "a used half stays used");
            if used.is_some() {
                return Effect::Nothing;
            }
        }
        let Effect::Accept(_, spec) = super::request(from, 0, id).effect else { unreachable!() };
        let mut spec = JobSpec { half: half.map(|half| self.halves[half]), ..spec };
        if self.rng.random_bool(0.3) {
            let search = BestSearch::new("best zeros 10m".parse().unwrap());
            (spec.patterns, spec.best) = (search.best.family.floor(), Some(Box::new(search)));
        }
        let notice_at = self.clock.now() + self.rng.random_range(0..7200);
        Effect::Accept(id, JobSpec { notice_at: self.rng.random_bool(0.2).then_some(notice_at), ..spec })
    }

    fn other(&mut self) -> Effect {
        match self.rng.random_range(0..22) {
            0..8 => Effect::Nothing,
            8..12 => Effect::Cancel(vec![self.job(), self.job()]),
            12..16 => Effect::Resend(JobId(self.rng.random_range(1..=self.reference.last_job + 1))),
            16 => Effect::Stop,
            17..19 => Effect::Start,
            19..21 => Effect::Redirect,
            _ => Effect::Forget,
        }
    }

    /// Ends a job: its key is found, or it is given up.
    fn end(&mut self, is_find: bool) {
        let job = self.job();
        let Some((to, half)) = self.reference.open_job(job) else {
            let wrap = self.wrap(1);
            assert!(!self.ledger().found(job, &wrap).unwrap(), "one result a job");
            return;
        };
        let wrap = self.wrap(to);
        let astray = GiftWrap { to: asker(to + 1), ..wrap.clone() };
        for wrap in [&astray, &wrap] {
            let ended = if is_find { self.ledger().found(job, wrap) } else { self.ledger().expire(job, wrap) };
            assert!(is_misaddressed(&ended) == (wrap.to != asker(to)) && ended.unwrap_or(true), "{job}");
        }
        self.note_end(job, half, is_find, &wrap);
    }

    fn note_end(&mut self, job: JobId, half: Option<usize>, is_find: bool, wrap: &GiftWrap) {
        if let Some(half) = half.filter(|_| is_find) {
            assert!(self.keys.insert(half), "one key a half");
        }
        self.reference.end(job, is_find);
        self.reference.queue(wrap, is_find.then_some(job), self.clock.now());
    }

    /// A key of a job without a target is found, or the time of the search is recorded. Other jobs,
    /// and those that have ended, stay as they are.
    fn keep_best(&mut self) {
        let job = self.job();
        if self.rng.random_bool(0.3) {
            let searched = self.rng.random_range(0..600_000);
            self.ledger().record_searched(&[(job, Duration::from_millis(searched))]).unwrap();
            return self.reference.record_searched(job, searched);
        }
        let zeros = self.rng.random_range(20..24);
        let pattern = format!("zeros:{zeros}").parse().unwrap();
        let to = self.reference.open_job(job).map_or(1, |(to, _)| to);
        let wrap = self.wrap(to);
        let astray = self.ledger().keep_best(job, &pattern, &GiftWrap { to: asker(to + 1), ..wrap.clone() });
        assert_eq!(is_misaddressed(&astray), self.reference.has_no_target(job), "{job}");
        let is_kept = self.ledger().keep_best(job, &pattern, &wrap).unwrap();
        assert_eq!(is_kept, self.reference.keep_best(job, zeros, wrap), "only a rarer key replaces the best: {job}");
    }

    /// The time of a job without a target is up: the key that was kept last is its result.
    fn deliver_best(&mut self) {
        let job = self.job();
        let kept = self.reference.kept(job);
        assert_eq!(self.ledger().deliver_best(job).unwrap(), kept.is_some(), "{job}");
        if let Some(wrap) = kept {
            let (_, half) = self.reference.open_job(job).unwrap();
            self.note_end(job, half, true, &wrap);
        }
    }

    /// Jobs that take longer than promised are told once, and go on.
    fn tell_late(&mut self) {
        let late: Vec<JobId> = self.ledger().late_jobs().unwrap().iter().map(|job| job.id).collect();
        assert_eq!(late, self.reference.tell_late(self.clock.now()));
        for job in late {
            let (to, _) = self.reference.open_job(job).unwrap();
            let notice = self.wrap(to);
            let astray = GiftWrap { to: asker(to + 1), ..notice.clone() };
            assert!(is_misaddressed(&self.ledger().tell_late(job, &astray)));
            assert_eq!([(); 2].map(|()| self.ledger().tell_late(job, &notice).unwrap()), [true, false]);
            self.reference.queue(&notice, None, self.clock.now());
        }
    }

    /// The outbox sends some messages: a relay says OK, or none does.
    fn send(&mut self) {
        let due = self.ledger().due_messages(usize::MAX).unwrap();
        let ids: BTreeSet<[u8; 32]> = due.iter().map(|message| message.wrap.id).collect();
        assert_eq!(ids, self.reference.due(self.clock.now()));
        for message in due {
            let now = self.clock.now();
            let reached = if self.rng.random_bool(0.8) { vec!["wss://one.example".to_owned()] } else { Vec::new() };
            let is_over = !reached.is_empty() || self.rng.random_bool(0.05);
            let at = now + self.rng.random_range(0..600);
            self.reference.sent(message.wrap.id, !reached.is_empty(), (!is_over).then_some(at));
            let again_at = (!is_over).then_some(at);
            self.ledger().record_attempts(&[Attempt { message: message.id, reached, again_at }]).unwrap();
        }
    }

    fn pass_time(&mut self) {
        self.clock.set(self.clock.now() + self.rng.random_range(0..3 * 3600));
    }

    fn delete_expired(&mut self) {
        self.ledger().delete_expired().unwrap();
        self.reference.delete_expired(self.clock.now());
    }

    fn vanish(&mut self, who: u8) {
        let until = self.clock.now() - self.rng.random_range(0..2 * 3600);
        let (before, ended) = (self.reference.open(), self.ledger().forget(asker(who), until).unwrap());
        self.reference.forget(who, until, self.clock.now());
        let left = self.reference.open();
        let gone: Vec<JobId> = before.into_iter().filter(|job| !left.contains(job)).collect();
        assert_eq!(ended.unwrap_or_default(), gone);
    }

    /// The process ends, cleanly or killed, and starts again.
    fn restart(&mut self) {
        self.stop();
        self.start();
        let lost = self.ledger().lost_jobs().unwrap();
        assert!(lost.is_empty(), "a restart is not a restore");
    }

    fn stop(&mut self) {
        let ledger = self.ledger.take().unwrap();
        if self.rng.random_bool(0.5) {
            ledger.close();
        }
    }

    fn start(&mut self) {
        self.ledger = Some(Ledger::open(self.folder.path(), self.clock.clone()).unwrap());
    }

    fn back_up(&mut self) {
        self.stop();
        let file = self.folder.path().join("ledger.sqlite");
        std::fs::copy(&file, self.folder.path().join("backup")).unwrap();
        self.backup = Some(self.reference.clone());
        self.start();
    }

    /// Restores the last backup, but not the file of used halves, as the manual says.
    fn restore(&mut self) {
        let Some(backup) = self.backup.clone() else { return };
        self.stop();
        for file in ["ledger.sqlite-wal", "ledger.sqlite-shm"] {
            let _ = std::fs::remove_file(self.folder.path().join(file));
        }
        std::fs::copy(self.folder.path().join("backup"), self.folder.path().join("ledger.sqlite")).unwrap();
        self.reference = backup;
        self.start();
        for job in self.ledger().lost_jobs().unwrap() {
            assert!(job.spec.half.is_some() && job.state == JobState::Expired, "only split jobs are given up");
            let from = job.spec.asker.0[0];
            let notice = self.wrap(from);
            assert!(self.ledger().tell_lost(job.id, &notice).unwrap());
            assert!(!self.ledger().tell_lost(job.id, &notice).unwrap());
            self.reference.end(job.id, false);
            self.reference.queue(&notice, None, self.clock.now());
        }
        self.reference.used.extend(&self.keys);
        for job in self.reference.open() {
            let half = self.reference.open_job(job).unwrap().1;
            assert!(half.is_none_or(|half| !self.keys.contains(&half)), "{job}: its half is used");
        }
    }

    /// Checks the conditions that hold after each step.
    fn check(&self, who: u8) {
        let view = self.ledger().asker_view(asker(who)).unwrap();
        let expected = self.reference.view(who, self.clock.now());
        let flags = [view.silent, view.redirected, view.served];
        let shown = (ids(&view.open), numbers(&view.results), view.accepted_last_day, flags);
        assert_eq!(shown, expected, "asker {who}");
        let language = self.reference.language(who);
        let languages = view.open.iter().map(|job| job.language).chain([view.language]);
        assert!(languages.into_iter().all(|kept| kept == language), "asker {who}: {language:?}");
        for job in &view.open {
            let best = job.spec.best.as_ref().map(|best| (best.kept.as_ref().map(Pattern::to_string), best.searched));
            assert_eq!(best, self.reference.best(job.id), "{}", job.id);
        }
        if self.ledger().latest_jobs(Some(asker(who)), 1).unwrap().is_empty() {
            let kept = self.ledger().askers().unwrap().contains(&asker(who));
            assert_eq!(kept, self.reference.keeps(who), "nothing is left of a forgotten asker but a reply");
        }
    }
}

fn is_misaddressed(done: &Result<bool, LedgerError>) -> bool {
    matches!(done, Err(LedgerError::Misaddressed))
}

#[test]
fn random_sequences_agree_with_the_reference() {
    let given = |name: &str| std::env::var(name).ok().and_then(|text| text.parse().ok());
    let seed = given("NPUBBOT_TEST_SEED").unwrap_or_else(rand::random);
    let steps = given("NPUBBOT_MODEL_STEPS").unwrap_or(SCHEMA_STEPS);
    println!("NPUBBOT_TEST_SEED={seed}");
    let mut run = Run::new(seed);
    for step in 1..=steps {
        run.step();
        if step % 500 == 0 {
            let totals = run.ledger().totals().unwrap();
            assert_eq!(totals, run.reference.totals(), "step {step}");
            let results: i64 = run
                .ledger()
                .read()
                .query_row(
                    "SELECT count(*) - count(DISTINCT result_of) FROM outbox WHERE result_of IS NOT NULL",
                    [],
                    |row| row.get(0),
                )
                .unwrap();
            assert_eq!(results, 0, "one result a job");
            let best: u32 = run.ledger().read().query_row("SELECT count(*) FROM best", [], |row| row.get(0)).unwrap();
            assert_eq!(best, run.reference.best_rows(), "however a job ends, nothing of it is left");
        }
        if step % 100_000 == 0 {
            println!("{step} steps, {} keys of {} halves", run.keys.len(), run.halves.len());
        }
    }
}
