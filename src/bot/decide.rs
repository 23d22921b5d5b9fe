//! One message, one decision.

use super::policy;
use super::reply::{Acceptance, JobLine, Reply};
use super::request::{Form, Meaning, Request};
use crate::config::Limits;
use crate::job::{JobId, JobSpec, RumorId};
use crate::key::HalfPoint;
use crate::ledger::{AskerView, HalfUse, Job};
use crate::message::{Channel, WorkWanted};
use crate::pattern::{Difficulty, NINETY_FIVE_PERCENT, Pattern, Rate};
use std::time::Duration;

/// A job that takes longer than this, in seconds, is worth a word on split keys.
const EXPENSIVE: u64 = 3600;
/// An asker hears of a job that takes this many times as long as was promised.
const HALF_AS_LONG_AGAIN: f64 = 1.5;

/// Everything a decision depends on, beside the message.
#[derive(Clone, Copy, Debug)]
pub struct Facts<'a> {
    /// The operator's limits.
    pub limits: &'a Limits,
    /// What the ledger knows of the asker.
    pub asker: &'a AskerView,
    /// Jobs of the pool being searched, of all askers.
    pub pool_jobs: usize,
    /// Split jobs being searched, of all askers: they take turns with the pool.
    pub split_jobs: usize,
    /// The rate measured now, all devices together; `None` before the first measurement.
    pub rate: Option<Rate>,
    /// The number the job will have, should the message become one.
    pub next_job: JobId,
    /// What the half that a split request names was used for before.
    pub half: Option<HalfUse>,
    /// The part of the devices the pool has, up to 1.
    pub pool_part: f64,
    /// The part of the devices a further split job of this asker would have.
    pub split_part: f64,
    /// The part of the devices each split job of this asker has now.
    pub own_split_part: f64,
    /// A request of the pool with a prefix of at most so many bits waits until older ones are
    /// served: a launch yields only so many keys.
    pub easy_bits: u32,
    /// For so long, were all devices the pool's.
    pub easy_wait: Duration,
    /// Whether the asker publishes DM relays (kind 10050), so that their client reads sealed
    /// messages. Matters for messages of kind 4 only.
    pub reads_sealed: bool,
    /// The proof of work this asker still owes, because there is a flood and they are new.
    pub owes: Option<WorkWanted>,
    /// Unix seconds.
    pub now: u64,
}

impl Facts<'_> {
    fn open_jobs(&self) -> usize {
        self.pool_jobs + self.split_jobs
    }

    /// How long a request waits for its turn; nothing if that is soon.
    fn queue_for(&self, patterns: &[Pattern]) -> Duration {
        // Were one prefix hard enough to be searched at once, the easy ones would still be what is
        // found first.
        let waits = patterns.iter().any(|pattern| pattern.bits() <= self.easy_bits);
        let wait = self.easy_wait.div_f64(self.pool_part.max(0.01));
        if waits && wait >= SHORT_WAIT { wait } else { Duration::ZERO }
    }

    /// What a job with this part of the devices is searched at.
    fn rate_of(&self, part: f64) -> Option<Rate> {
        self.rate.map(|Rate(rate)| Rate(rate * part))
    }
}

/// A wait that is shorter is not worth a word.
const SHORT_WAIT: Duration = Duration::from_secs(2);

/// The outcome of a message.
#[derive(Clone, PartialEq, Debug)]
pub enum Decision {
    /// Nothing to say and nothing to do.
    Ignore,
    /// An answer that changes nothing.
    Say(Reply),
    /// A job under the number `next_job`.
    Accept {
        /// The job.
        spec: JobSpec,
        /// Its acceptance.
        reply: Reply,
    },
    /// Some of the asker's jobs are cancelled.
    Cancel {
        /// The jobs.
        jobs: Vec<JobId>,
        /// `None` if the asker deleted the request itself.
        reply: Option<Reply>,
    },
    /// The result of a finished job is sent again.
    Resend {
        /// The job.
        job: JobId,
        /// What is said with it.
        reply: Reply,
    },
    /// Nothing more is said to this asker, and nothing searched.
    Stop(Reply),
    /// Back from silence.
    Start(Reply),
    /// The asker is forgotten.
    Forget(Reply),
}

/// Decides a message.
pub fn decide(request: &Request, facts: &Facts<'_>) -> Decision {
    if let Form::Deletion(messages) = &request.form {
        return take_back(messages, facts);
    }
    if facts.asker.silent {
        return match request.meaning {
            Meaning::Start => Decision::Start(Reply::Started),
            Meaning::Delete => Decision::Forget(Reply::Forgotten { open: 0 }),
            _ => Decision::Ignore,
        };
    }
    match request.form {
        Form::File => return Decision::Say(Reply::TextOnly),
        Form::Group => return Decision::Say(Reply::NoGroups),
        Form::Sealed | Form::Nip04 | Form::Deletion(_) => {}
    }
    let only_nip04 = request.form == Form::Nip04 && !facts.reads_sealed;
    match &request.meaning {
        Meaning::Find(_) if only_nip04 => Decision::Say(Reply::NeedsSealed),
        Meaning::Find(patterns) => find(request, patterns, None, Channel::Sealed, facts),
        Meaning::Split(half, patterns) => {
            // A tweak is no secret, so it may go back by NIP-04.
            let channel = if only_nip04 { Channel::Nip04 } else { Channel::Sealed };
            find(request, patterns, Some(*half), channel, facts)
        }
        Meaning::BadPoint(error) => Decision::Say(Reply::BadPoint(*error)),
        Meaning::PointAlone => Decision::Say(Reply::PointAlone),
        Meaning::SplitHelp => Decision::Say(Reply::SplitHelp),
        Meaning::Stop => Decision::Stop(Reply::Stopped { open: facts.asker.open.len() }),
        Meaning::Delete => Decision::Forget(Reply::Forgotten { open: facts.asker.open.len() }),
        Meaning::Help | Meaning::Start => Decision::Say(Reply::Help { open_jobs: facts.open_jobs(), rate: facts.rate }),
        Meaning::Status => Decision::Say(status(facts)),
        Meaning::Cancel(job) => cancel(*job, facts),
        Meaning::Resend(job) => resend(*job, facts),
        Meaning::BadWords(words) => Decision::Say(Reply::BadWords(words.clone())),
        Meaning::Sentence(patterns) => Decision::Say(Reply::Sentence(patterns.clone())),
        Meaning::Unsupported(nearest) => Decision::Say(Reply::Unsupported { nearest: nearest.clone() }),
        Meaning::SmallTalk(prefix) => Decision::Say(Reply::SmallTalk { prefix: prefix.clone() }),
        Meaning::SecretKey => Decision::Say(Reply::SecretKey),
        Meaning::SeedWords => Decision::Say(Reply::SeedWords),
        Meaning::TooManyWords(words) => {
            Decision::Say(Reply::TooManyPrefixes { asked: *words, allowed: facts.limits.prefixes_per_job })
        }
        Meaning::Nothing => Decision::Say(Reply::Nothing),
    }
}

fn find(
    request: &Request,
    patterns: &[Pattern],
    half: Option<HalfPoint>,
    channel: Channel,
    facts: &Facts<'_>,
) -> Decision {
    let part = if half.is_some() { facts.split_part } else { facts.pool_part };
    let rate = facts.rate_of(part);
    if let Some(reply) = policy::refusal(patterns, half.is_some(), rate, facts) {
        return Decision::Say(reply);
    }
    let Some(difficulty) = Difficulty::any_of(patterns.iter().map(Pattern::difficulty)) else {
        return Decision::Say(Reply::Nothing);
    };
    let expected = rate.and_then(|rate| difficulty.expected_time(rate));
    let queue = if half.is_none() { facts.queue_for(patterns) } else { Duration::ZERO };
    let is_split = half.is_some();
    let reply = Reply::Accepted(Acceptance {
        job: facts.next_job,
        patterns: patterns.to_vec(),
        difficulty,
        rate,
        queue,
        is_split,
        comes_elsewhere: request.form == Form::Nip04 && channel == Channel::Sealed,
        expensive: expected.is_some_and(|expected| expected.as_secs() > EXPENSIVE),
    });
    let expires_at = facts.now + facts.limits.give_up_after.as_secs();
    // What was promised is the bound that 95 of 100 jobs keep.
    let most = expected.map(|expected| expected.mul_f64(NINETY_FIVE_PERCENT) + queue);
    let notice = most.map(|most| most.mul_f64(HALF_AS_LONG_AGAIN).as_secs().max(60));
    let notice_at = notice.map(|after| facts.now.saturating_add(after)).filter(|&at| at < expires_at);
    let (asker, subject) = (request.asker, request.subject.clone());
    Decision::Accept {
        spec: JobSpec { asker, patterns: patterns.to_vec(), half, channel, subject, expires_at, notice_at },
        reply,
    }
}

/// Cancels the jobs whose requests are deleted. A deletion gets no answer.
fn take_back(messages: &[RumorId], facts: &Facts<'_>) -> Decision {
    let taken_back = facts.asker.open.iter().filter(|job| messages.contains(&job.rumor));
    let jobs: Vec<JobId> = taken_back.map(|job| job.id).collect();
    if jobs.is_empty() { Decision::Ignore } else { Decision::Cancel { jobs, reply: None } }
}

fn status(facts: &Facts<'_>) -> Reply {
    let line = |job: &Job| JobLine {
        job: job.id,
        patterns: job.spec.patterns.clone(),
        waited: Duration::from_secs(facts.now.saturating_sub(job.accepted_at)),
        difficulty: Difficulty::any_of(job.spec.patterns.iter().map(Pattern::difficulty)),
        rate: facts.rate_of(if job.spec.half.is_some() { facts.own_split_part } else { facts.pool_part }),
    };
    Reply::Status {
        open: facts.asker.open.iter().map(line).collect(),
        results: facts.asker.results.iter().map(|job| job.id).collect(),
        open_jobs: facts.open_jobs(),
        rate: facts.rate,
    }
}

fn cancel(asked: Option<JobId>, facts: &Facts<'_>) -> Decision {
    let open: Vec<JobId> = facts.asker.open.iter().map(|job| job.id).collect();
    let jobs: Vec<JobId> = open.iter().copied().filter(|id| asked.is_none_or(|asked| asked == *id)).collect();
    if jobs.is_empty() {
        return Decision::Say(Reply::NothingToCancel { asked, open });
    }
    Decision::Cancel { reply: Some(Reply::Cancelled(jobs.clone())), jobs }
}

fn resend(asked: Option<JobId>, facts: &Facts<'_>) -> Decision {
    let kept: Vec<JobId> = facts.asker.results.iter().map(|job| job.id).collect();
    match kept.iter().copied().find(|id| asked.is_none_or(|asked| asked == *id)) {
        Some(job) => Decision::Resend { job, reply: Reply::SentAgain(job) },
        None => Decision::Say(Reply::NothingToResend { asked, kept }),
    }
}
