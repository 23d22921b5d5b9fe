//! One message, one decision.

use super::policy;
use super::reply::{JobLine, Reply};
use super::request::{self, Request};
use crate::config::Limits;
use crate::ids::JobId;
use crate::ledger::{AskerView, Job};
use crate::pattern::{Difficulty, Pattern, Rate};
use crate::vault::Rumor;
use std::time::Duration;

/// NIP-17: a file message.
const KIND_FILE: u16 = 15;

/// What is known when a message is decided.
#[derive(Clone, Copy, Debug)]
pub struct Context<'a> {
    pub limits: &'a Limits,
    pub asker: &'a AskerView,
    /// Jobs being searched, of all askers.
    pub pool_jobs: usize,
    /// The rate measured now; `None` before the first measurement.
    pub rate: Option<Rate>,
    /// The number the job will have, should the message become one.
    pub next_job: JobId,
    /// Unix seconds.
    pub now: u64,
}

/// What a message comes to.
#[derive(Clone, PartialEq, Debug)]
pub enum Decision {
    /// Nothing to say and nothing to do.
    Ignore,
    Say(Reply),
    /// A job under the number `next_job`.
    Accept {
        patterns: Vec<Pattern>,
        expires_at: u64,
        reply: Reply,
    },
    Cancel {
        jobs: Vec<JobId>,
        reply: Reply,
    },
    Resend {
        job: JobId,
        reply: Reply,
    },
}

/// Decides any message. Never panics, whatever the text.
pub fn decide(rumor: &Rumor, context: &Context<'_>) -> Decision {
    if rumor.kind == KIND_FILE {
        return Decision::Say(Reply::TextOnly);
    }
    if rumor.other_receivers > 0 {
        return Decision::Say(Reply::NoGroups);
    }
    match request::read(&rumor.content) {
        Request::Wish(patterns) => wish(patterns, context),
        Request::Help => Decision::Say(Reply::Help { pool_jobs: context.pool_jobs, rate: context.rate }),
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

fn wish(patterns: Vec<Pattern>, context: &Context<'_>) -> Decision {
    if let Some(reply) = policy::refusal(&patterns, context) {
        return Decision::Say(reply);
    }
    let Some(difficulty) = Difficulty::any_of(patterns.iter().map(Pattern::difficulty)) else {
        return Decision::Say(Reply::Nothing);
    };
    let reply = Reply::Accepted {
        job: context.next_job,
        patterns: patterns.clone(),
        difficulty,
        rate: context.rate,
        others: context.pool_jobs,
    };
    let expires_at = context.now + context.limits.give_up_after.as_secs();
    Decision::Accept { patterns, expires_at, reply }
}

fn status(context: &Context<'_>) -> Reply {
    let line = |job: &Job| JobLine {
        job: job.id,
        patterns: job.patterns.clone(),
        waited: Duration::from_secs(context.now.saturating_sub(job.accepted_at)),
        difficulty: Difficulty::any_of(job.patterns.iter().map(Pattern::difficulty)),
    };
    Reply::Status {
        open: context.asker.open.iter().map(line).collect(),
        results: context.asker.results.iter().map(|job| job.id).collect(),
        pool_jobs: context.pool_jobs,
        rate: context.rate,
    }
}

fn cancel(asked: Option<JobId>, context: &Context<'_>) -> Decision {
    let open: Vec<JobId> = context.asker.open.iter().map(|job| job.id).collect();
    let jobs: Vec<JobId> = open.iter().copied().filter(|id| asked.is_none_or(|asked| asked == *id)).collect();
    if jobs.is_empty() {
        return Decision::Say(Reply::NothingToCancel { asked, open });
    }
    Decision::Cancel { reply: Reply::Cancelled(jobs.clone()), jobs }
}

fn resend(asked: Option<JobId>, context: &Context<'_>) -> Decision {
    let kept: Vec<JobId> = context.asker.results.iter().map(|job| job.id).collect();
    match kept.iter().copied().find(|id| asked.is_none_or(|asked| asked == *id)) {
        Some(job) => Decision::Resend { job, reply: Reply::SentAgain(job) },
        None => Decision::Say(Reply::NothingToResend { asked, kept }),
    }
}
