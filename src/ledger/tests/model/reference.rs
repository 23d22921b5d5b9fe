//! The reference of the model test: the ledger's behaviour, written with maps.

use super::*;

/// A job: its asker, its half, its state, and when it was accepted.
#[derive(Clone)]
struct Known {
    asker: u8,
    half: Option<usize>,
    state: JobState,
    accepted_at: u64,
    notice_at: Option<u64>,
    /// The search without a target.
    best: Option<KeptBest>,
}

/// The best key of a job without a target: its zero bits, and its sealed result. And the time of the
/// search in milliseconds, once it was recorded.
#[derive(Clone, Default)]
struct KeptBest {
    kept: Option<(u32, GiftWrap)>,
    searched: Option<u64>,
}

/// A message in the outbox.
#[derive(Clone)]
struct Queued {
    asker: u8,
    result_of: Option<JobId>,
    queued_at: u64,
    expires_at: u64,
    /// `None` once it is finished.
    due_at: Option<u64>,
}

/// Everything a ledger knows.
#[derive(Clone, Default)]
pub(super) struct Reference {
    pub last_job: i64,
    /// Halves that were used for a key.
    pub used: BTreeSet<usize>,
    jobs: BTreeMap<i64, Known>,
    outbox: BTreeMap<[u8; 32], Queued>,
    seen: BTreeSet<(u8, u64)>,
    silent: BTreeMap<u8, u64>,
    /// When a message by NIP-04 was answered.
    redirected: BTreeMap<u8, u64>,
    /// Languages other than English, each with the time at which it was set.
    languages: BTreeMap<u8, (Language, u64)>,
    started: Vec<(u8, u64)>,
}

/// The contents of a view of an asker: open jobs, results, times of the last day; whether the asker
/// is silent, redirected and served.
type View = (Vec<i64>, Vec<i64>, Vec<u64>, [bool; 3]);

impl Reference {
    /// Records a message as seen. Returns whether it is new.
    pub fn sees(&mut self, from: u8, number: u64) -> bool {
        self.seen.insert((from, number))
    }

    pub fn apply(&mut self, from: u8, effect: &Effect, half: Option<usize>, now: u64) {
        let own = |job: &Known| job.asker == from && job.state == JobState::Accepted;
        match effect {
            Effect::Nothing => {}
            Effect::Accept(id, spec) => {
                let (state, best) = (JobState::Accepted, spec.best.as_ref().map(|_| KeptBest::default()));
                let job = Known { asker: from, half, state, accepted_at: now, notice_at: spec.notice_at, best };
                self.jobs.insert(id.0, job);
                self.last_job = id.0;
            }
            Effect::Cancel(ids) => {
                for id in ids {
                    if let Some(job) = self.jobs.get_mut(&id.0).filter(|job| own(job)) {
                        job.state = JobState::Cancelled;
                    }
                }
            }
            Effect::Resend(id) => {
                let results = self.outbox.values_mut();
                for message in results.filter(|message| message.result_of == Some(*id) && message.asker == from) {
                    if message.expires_at > now {
                        (message.queued_at, message.due_at) = (now, Some(now));
                    }
                }
            }
            Effect::Redirect => _ = self.redirected.insert(from, now),
            Effect::Stop => {
                self.silent.entry(from).or_insert(now);
                self.jobs.values_mut().filter(|job| own(job)).for_each(|job| job.state = JobState::Cancelled);
            }
            Effect::Start => _ = self.silent.remove(&from),
            Effect::Forget => self.forget(from, u64::MAX, now),
        }
    }

    pub fn set_language(&mut self, who: u8, language: Language, now: u64) {
        match language {
            Language::English => _ = self.languages.remove(&who),
            _ => _ = self.languages.insert(who, (language, now)),
        }
    }

    pub fn language(&self, who: u8) -> Language {
        self.languages.get(&who).map_or(Language::English, |(language, _)| *language)
    }

    pub fn forget(&mut self, who: u8, until: u64, now: u64) {
        let old = |job: &Known| job.asker == who && job.accepted_at <= until;
        let jobs: BTreeSet<i64> = self.jobs.iter().filter(|(_, job)| old(job)).map(|(id, _)| *id).collect();
        let gone = |message: &Queued| {
            message.asker == who
                && (message.queued_at <= until || message.result_of.is_some_and(|job| jobs.contains(&job.0)))
        };
        self.outbox.retain(|_, message| !gone(message));
        self.silent.retain(|asker, since| *asker != who || *since > until);
        self.redirected.retain(|asker, at| *asker != who || *at > until);
        self.languages.retain(|asker, (_, since)| *asker != who || *since > until);
        let recent = self.jobs.values().filter(|job| old(job) && job.accepted_at > now - DAY);
        self.started.extend(recent.map(|job| (who, job.accepted_at)));
        self.jobs.retain(|_, job| !old(job));
    }

    pub fn queue(&mut self, wrap: &GiftWrap, result_of: Option<JobId>, now: u64) {
        let (asker, expires_at) = (wrap.to.0[0], wrap.expires_at);
        self.outbox.insert(wrap.id, Queued { asker, result_of, queued_at: now, expires_at, due_at: Some(now) });
    }

    /// The search of an open job without a target.
    fn search(&mut self, job: JobId) -> Option<&mut KeptBest> {
        self.jobs.get_mut(&job.0).filter(|job| job.state == JobState::Accepted)?.best.as_mut()
    }

    pub fn has_no_target(&mut self, job: JobId) -> bool {
        self.search(job).is_some()
    }

    pub fn record_searched(&mut self, job: JobId, time: u64) {
        if let Some(search) = self.search(job) {
            search.searched = search.searched.max(Some(time));
        }
    }

    /// Keeps a key, if it is the rarest so far of an open job without a target.
    pub fn keep_best(&mut self, job: JobId, zeros: u32, wrap: GiftWrap) -> bool {
        let search = self.search(job).filter(|search| search.kept.as_ref().is_none_or(|(kept, _)| zeros > *kept));
        search.map(|search| search.kept = Some((zeros, wrap))).is_some()
    }

    pub fn kept(&mut self, job: JobId) -> Option<GiftWrap> {
        self.search(job)?.kept.as_ref().map(|(_, wrap)| wrap.clone())
    }

    /// The pattern of the best key of an open job, and the time of its search.
    pub fn best(&self, job: JobId) -> Option<(Option<String>, Duration)> {
        let search = self.jobs[&job.0].best.as_ref()?;
        let kept = search.kept.as_ref().map(|(zeros, _)| format!("zeros:{zeros}"));
        Some((kept, Duration::from_millis(search.searched.unwrap_or(0))))
    }

    pub fn best_rows(&self) -> u32 {
        let open = self.jobs.values().filter(|job| job.state == JobState::Accepted);
        let has_row = |search: &&KeptBest| search.kept.is_some() || search.searched.is_some();
        open.filter_map(|job| job.best.as_ref()).filter(has_row).count() as u32
    }

    /// The open jobs whose askers are due to be told that they take longer. They are told once.
    pub fn tell_late(&mut self, now: u64) -> Vec<JobId> {
        let is_late = |job: &Known| job.state == JobState::Accepted && job.notice_at.is_some_and(|at| at <= now);
        let late = self.jobs.iter_mut().filter(|(_, job)| is_late(job));
        late.map(|(id, job)| (JobId(*id), job.notice_at = None).0).collect()
    }

    /// Ends a job: it is found, or given up.
    pub fn end(&mut self, job: JobId, is_find: bool) {
        let job = self.jobs.get_mut(&job.0).unwrap();
        job.state = if is_find { JobState::Found } else { JobState::Expired };
        self.used.extend(job.half.filter(|_| is_find));
    }

    pub fn sent(&mut self, wrap: [u8; 32], is_reached: bool, again: Option<u64>) {
        let message = self.outbox.get_mut(&wrap).unwrap();
        let job = message.result_of.and_then(|job| self.jobs.get_mut(&job.0));
        if let Some(job) = job.filter(|job| is_reached && job.state == JobState::Found) {
            job.state = JobState::Delivered;
        }
        message.due_at = again;
        if again.is_none() && message.result_of.is_none() {
            self.outbox.remove(&wrap);
        }
    }

    pub fn delete_expired(&mut self, now: u64) {
        self.outbox.retain(|_, message| message.due_at.is_some() || message.expires_at > now);
        self.started.retain(|(_, at)| *at > now - DAY);
    }

    pub fn open(&self) -> Vec<JobId> {
        let open = self.jobs.iter().filter(|(_, job)| job.state == JobState::Accepted);
        open.map(|(id, _)| JobId(*id)).collect()
    }

    /// Asker and half of an open job.
    pub fn open_job(&self, job: JobId) -> Option<(u8, Option<usize>)> {
        let job = self.jobs.get(&job.0).filter(|job| job.state == JobState::Accepted)?;
        Some((job.asker, job.half))
    }

    pub fn half_use(&self, half: usize) -> Option<HalfUse> {
        let is_open = self.jobs.values().any(|job| job.state == JobState::Accepted && job.half == Some(half));
        if self.used.contains(&half) { Some(HalfUse::Spent) } else { is_open.then_some(HalfUse::Open) }
    }

    pub fn due(&self, now: u64) -> BTreeSet<[u8; 32]> {
        let due = self.outbox.iter().filter(|(_, message)| message.due_at.is_some_and(|at| at <= now));
        due.map(|(wrap, _)| *wrap).collect()
    }

    pub fn view(&self, who: u8, now: u64) -> View {
        let of = |states: &'static [JobState]| {
            self.jobs.iter().filter(move |(_, job)| job.asker == who && states.contains(&job.state))
        };
        let is_kept =
            |id: i64| self.outbox.values().any(|kept| kept.result_of == Some(JobId(id)) && kept.expires_at > now);
        let open = of(&[JobState::Accepted]).map(|(id, _)| *id).collect();
        let found = of(&[JobState::Found, JobState::Delivered]).map(|(id, _)| *id);
        let mut results: Vec<i64> = found.filter(|id| is_kept(*id)).collect();
        results.reverse();
        let jobs = self.jobs.values().filter(|job| job.asker == who).map(|job| job.accepted_at);
        let deleted = self.started.iter().filter(|(asker, _)| *asker == who).map(|(_, at)| *at);
        let mut last_day: Vec<u64> = jobs.chain(deleted).filter(|at| *at > now - DAY).collect();
        last_day.sort_unstable();
        let redirected = self.redirected.get(&who).is_some_and(|at| *at > now - DAY);
        let served = of(&[JobState::Delivered]).next().is_some();
        (open, results, last_day, [self.silent.contains_key(&who), redirected, served])
    }

    /// Whether the ledger keeps more of an asker without a job than the ids of their messages.
    pub fn keeps(&self, who: u8) -> bool {
        self.silent.contains_key(&who)
            || self.languages.contains_key(&who)
            || self.outbox.values().any(|message| message.asker == who)
    }

    pub fn totals(&self) -> Totals {
        let count = |state| self.jobs.values().filter(|job| job.state == state).count() as u64;
        Totals {
            accepted: count(JobState::Accepted),
            found: count(JobState::Found),
            delivered: count(JobState::Delivered),
            cancelled: count(JobState::Cancelled),
            expired: count(JobState::Expired),
            unsent_messages: self.outbox.values().filter(|message| message.due_at.is_some()).count() as u64,
        }
    }
}
