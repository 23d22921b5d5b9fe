//! One message, one decision.

use super::policy;
use super::reply::{Acceptance, JobLine, Neighbours, Reply};
use super::request::{self, Request};
use crate::config::Limits;
use crate::job::{JobId, JobSpec};
use crate::key::HalfPoint;
use crate::ledger::{AskerView, HalfUse, Job};
use crate::message::{Channel, WorkWanted};
use crate::pattern::{Difficulty, NINETY_FIVE_PERCENT, Pattern, Rate};
use crate::vault::Rumor;
use std::time::Duration;

/// NIP-04: a message of an old client, in the open but for its text.
const KIND_OLD: u16 = 4;
/// NIP-09: a deletion.
const KIND_DELETION: u16 = 5;
/// NIP-17: a file message.
const KIND_FILE: u16 = 15;
/// A job that takes longer than this, in seconds, is worth a word on split keys.
const EXPENSIVE: u64 = 3600;
/// An asker hears of a job that takes this many times as long as was promised.
const HALF_AS_LONG_AGAIN: f64 = 1.5;

/// What is known when a message is decided.
#[derive(Clone, Copy, Debug)]
pub struct Context<'a> {
    pub limits: &'a Limits,
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
    /// A request of the pool with a prefix of at most so many bits waits until older ones are served: a launch yields only so
    /// many keys.
    pub easy_bits: u32,
    /// For so long, were all devices the pool's.
    pub easy_wait: Duration,
    /// Whether the asker publishes DM relays (kind 10050), so that their client reads sealed messages. Matters for
    /// messages of kind 4 only.
    pub reads_sealed: bool,
    /// The proof of work this asker still owes, because there is a flood and they are new.
    pub owes: Option<WorkWanted>,
    /// Unix seconds.
    pub now: u64,
}

impl Context<'_> {
    fn open_jobs(&self) -> usize {
        self.pool_jobs + self.split_jobs
    }

    /// How long a request waits for its turn; nothing if that is soon.
    fn queue_for(&self, patterns: &[Pattern]) -> Duration {
        // Were one prefix hard enough to be searched at once, the easy ones would still be what is found first.
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

/// What a message comes to.
#[derive(Clone, PartialEq, Debug)]
pub enum Decision {
    /// Nothing to say and nothing to do.
    Ignore,
    Say(Reply),
    /// A job under the number `next_job`.
    Accept {
        spec: JobSpec,
        reply: Reply,
    },
    /// Without an answer where the request itself was taken back.
    Cancel {
        jobs: Vec<JobId>,
        reply: Option<Reply>,
    },
    Resend {
        job: JobId,
        reply: Reply,
    },
    /// Nothing more is said to this asker, and nothing searched.
    Stop(Reply),
    /// Back from silence.
    Start(Reply),
    /// The asker is forgotten.
    Forget(Reply),
}

/// Decides any message. Never panics, whatever the text.
pub fn decide(rumor: &Rumor, context: &Context<'_>) -> Decision {
    if rumor.kind == KIND_DELETION {
        return take_back(rumor, context);
    }
    if context.asker.silent {
        return match request::read(&rumor.content) {
            Request::Start => Decision::Start(Reply::Started),
            Request::Delete => Decision::Forget(Reply::Forgotten { open: 0 }),
            _ => Decision::Ignore,
        };
    }
    if rumor.kind == KIND_FILE {
        return Decision::Say(Reply::TextOnly);
    }
    if rumor.other_receivers > 0 {
        return Decision::Say(Reply::NoGroups);
    }
    match request::read(&rumor.content) {
        Request::JobSpec(_) if rumor.kind == KIND_OLD && !context.reads_sealed => Decision::Say(Reply::NeedsSealed),
        Request::JobSpec(patterns) => request(rumor, patterns, None, Channel::Sealed, context),
        Request::Split(point, patterns) => {
            // What comes of it is no secret, so it may go back the way it came.
            let old = rumor.kind == KIND_OLD && !context.reads_sealed;
            request(rumor, patterns, Some(point), if old { Channel::Nip04 } else { Channel::Sealed }, context)
        }
        Request::BadPoint(error) => Decision::Say(Reply::BadPoint(error)),
        Request::PointAlone => Decision::Say(Reply::PointAlone),
        Request::SplitHelp => Decision::Say(Reply::SplitHelp),
        Request::Stop => Decision::Stop(Reply::Stopped { open: context.asker.open.len() }),
        Request::Delete => Decision::Forget(Reply::Forgotten { open: context.asker.open.len() }),
        Request::Help | Request::Start => {
            Decision::Say(Reply::Help { open_jobs: context.open_jobs(), rate: context.rate })
        }
        Request::Status => Decision::Say(status(context)),
        Request::Cancel(job) => cancel(job, context),
        Request::Resend(job) => resend(job, context),
        Request::BadWords(words) => Decision::Say(Reply::BadWords(words)),
        Request::Sentence(patterns) => Decision::Say(Reply::Sentence(patterns)),
        Request::TooManyWords(words) => {
            Decision::Say(Reply::TooManyPrefixes { asked: words, allowed: context.limits.prefixes_per_job })
        }
        Request::Nothing => Decision::Say(Reply::Nothing),
    }
}

fn request(
    rumor: &Rumor,
    patterns: Vec<Pattern>,
    half: Option<HalfPoint>,
    channel: Channel,
    context: &Context<'_>,
) -> Decision {
    let part = if half.is_some() { context.split_part } else { context.pool_part };
    let rate = context.rate_of(part);
    if let Some(reply) = policy::refusal(&patterns, half.is_some(), rate, context) {
        return Decision::Say(reply);
    }
    let Some(difficulty) = Difficulty::any_of(patterns.iter().map(Pattern::difficulty)) else {
        return Decision::Say(Reply::Nothing);
    };
    let expected = rate.and_then(|rate| difficulty.expected_time(rate));
    let queue = if half.is_none() { context.queue_for(&patterns) } else { Duration::ZERO };
    let reply = Reply::Accepted(Acceptance {
        job: context.next_job,
        patterns: patterns.clone(),
        difficulty,
        rate,
        neighbours: match half {
            None => Neighbours::InPool { jobs: context.pool_jobs, split_jobs: context.split_jobs, part, queue },
            Some(_) => Neighbours::Apart { part },
        },
        expensive: expected.is_some_and(|expected| expected.as_secs() > EXPENSIVE),
    });
    let expires_at = context.now + context.limits.give_up_after.as_secs();
    // What was promised is the bound that 95 of 100 jobs keep.
    let most = expected.map(|expected| expected.mul_f64(NINETY_FIVE_PERCENT) + queue);
    let notice = most.map(|most| most.mul_f64(HALF_AS_LONG_AGAIN).as_secs().max(60));
    let notice_at = notice.map(|after| context.now.saturating_add(after)).filter(|&at| at < expires_at);
    let (asker, subject) = (rumor.author, rumor.subject.clone());
    Decision::Accept { spec: JobSpec { asker, patterns, half, channel, subject, expires_at, notice_at }, reply }
}

/// A request that is deleted is cancelled; nobody waits for an answer to a deletion.
fn take_back(rumor: &Rumor, context: &Context<'_>) -> Decision {
    let taken_back = context.asker.open.iter().filter(|job| rumor.takes_back.contains(&job.rumor));
    let jobs: Vec<JobId> = taken_back.map(|job| job.id).collect();
    if jobs.is_empty() { Decision::Ignore } else { Decision::Cancel { jobs, reply: None } }
}

fn status(context: &Context<'_>) -> Reply {
    let line = |job: &Job| JobLine {
        job: job.id,
        patterns: job.spec.patterns.clone(),
        waited: Duration::from_secs(context.now.saturating_sub(job.accepted_at)),
        difficulty: Difficulty::any_of(job.spec.patterns.iter().map(Pattern::difficulty)),
        rate: context.rate_of(if job.spec.half.is_some() { context.own_split_part } else { context.pool_part }),
    };
    Reply::Status {
        open: context.asker.open.iter().map(line).collect(),
        results: context.asker.results.iter().map(|job| job.id).collect(),
        open_jobs: context.open_jobs(),
        rate: context.rate,
    }
}

fn cancel(asked: Option<JobId>, context: &Context<'_>) -> Decision {
    let open: Vec<JobId> = context.asker.open.iter().map(|job| job.id).collect();
    let jobs: Vec<JobId> = open.iter().copied().filter(|id| asked.is_none_or(|asked| asked == *id)).collect();
    if jobs.is_empty() {
        return Decision::Say(Reply::NothingToCancel { asked, open });
    }
    Decision::Cancel { reply: Some(Reply::Cancelled(jobs.clone())), jobs }
}

fn resend(asked: Option<JobId>, context: &Context<'_>) -> Decision {
    let kept: Vec<JobId> = context.asker.results.iter().map(|job| job.id).collect();
    match kept.iter().copied().find(|id| asked.is_none_or(|asked| asked == *id)) {
        Some(job) => Decision::Resend { job, reply: Reply::SentAgain(job) },
        None => Decision::Say(Reply::NothingToResend { asked, kept }),
    }
}
