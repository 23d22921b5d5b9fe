//! Decisions: a request and the facts lead to one [`Decision`].

use super::accepted::difficulty_of;
use super::best::{explain_best, find_best};
use super::explain::{cheaper_one, explain};
use super::facts::Facts;
use super::meaning::Meaning;
use super::policy;
use super::reply::{Acceptance, JobLine, Reply};
use super::request::{Form, Request};
use crate::job::{JobId, JobSpec, RumorId};
use crate::key::HalfPoint;
use crate::ledger::Job;
use crate::pattern::Pattern;
use std::time::Duration;

/// Expected time, in seconds, above which the acceptance mentions split keys.
const EXPENSIVE: u64 = 3600;
/// Expected time, in seconds, from which the acceptance names a cheaper look-alike.
const LONG: u64 = 60;

/// The outcome of a message.
#[derive(Clone, PartialEq, Debug)]
pub enum Decision {
    /// Nothing is answered and nothing is done.
    Ignore,
    /// A reply, and nothing else.
    Say(Reply),
    /// A job is accepted under the number `next_job`.
    Accept {
        /// The job.
        spec: JobSpec,
        /// The acceptance that the asker receives.
        reply: Reply,
    },
    /// Some of the asker's jobs are cancelled.
    Cancel {
        /// The jobs.
        jobs: Vec<JobId>,
        /// The answer; `None` if the asker deleted the request.
        reply: Option<Reply>,
    },
    /// A result is sent again.
    Resend {
        /// The job that the result belongs to.
        job: JobId,
        /// The answer.
        reply: Reply,
    },
    /// The one answer a day to messages by NIP-04.
    Redirect(Reply),
    /// All jobs of the asker are cancelled, and no message is sent to them.
    Stop(Reply),
    /// Messages are sent to the asker again.
    Start(Reply),
    /// Everything about the asker is deleted.
    Forget(Reply),
}

/// Decides what to do about a message.
pub fn decide(request: &Request, facts: &Facts<'_>) -> Decision {
    if let Form::Deletion(messages) = &request.form {
        return take_back(messages, facts);
    }
    if request.is_nip04() {
        return match facts.asker.silent || facts.asker.redirected {
            true => Decision::Ignore,
            false => Decision::Redirect(Reply::NeedsSealed { page: facts.page.map(str::to_owned) }),
        };
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
    match &request.meaning {
        Meaning::Find(patterns) => find(request, patterns, None, facts),
        Meaning::Best(best) => decision(find_best(request, *best, None, facts)),
        Meaning::Split(half, patterns) => find(request, patterns, Some(*half), facts),
        Meaning::SplitBest(half, best) => decision(find_best(request, *best, Some(*half), facts)),
        Meaning::BadPoint(error) => Decision::Say(Reply::BadPoint(*error)),
        Meaning::PointAlone => Decision::Say(Reply::PointAlone),
        Meaning::SplitHelp => Decision::Say(Reply::SplitHelp),
        Meaning::Stop => Decision::Stop(Reply::Stopped { open: facts.asker.open.len() }),
        Meaning::Delete => Decision::Forget(Reply::Forgotten { open: facts.asker.open.len() }),
        Meaning::Help | Meaning::Start => Decision::Say(Reply::Help { open_jobs: facts.open_jobs(), rate: facts.rate }),
        Meaning::Status => Decision::Say(status(facts)),
        Meaning::Cancel(job) => cancel(*job, facts),
        Meaning::Resend(job) => resend(*job, facts),
        Meaning::Explain(patterns) => Decision::Say(explain(patterns, facts)),
        Meaning::ExplainBest(best) => Decision::Say(explain_best(*best, facts)),
        Meaning::Kinds => Decision::Say(Reply::Kinds),
        Meaning::BadWords(words) => Decision::Say(Reply::BadWords(words.clone())),
        Meaning::Sentence(patterns) => Decision::Say(Reply::Sentence(patterns.clone())),
        Meaning::Unsupported(nearest) => Decision::Say(Reply::Unsupported { nearest: nearest.clone() }),
        Meaning::SmallTalk(prefix) => Decision::Say(Reply::SmallTalk { prefix: prefix.clone() }),
        Meaning::SecretKey => Decision::Say(Reply::SecretKey),
        Meaning::SeedWords => Decision::Say(Reply::SeedWords),
        Meaning::TooManyWords(words) => {
            Decision::Say(Reply::TooManyPrefixes { asked: *words, allowed: facts.limits.prefixes_per_job })
        }
        Meaning::Language(_) => Decision::Say(Reply::LanguageSet),
        Meaning::Languages => Decision::Say(Reply::Languages),
        Meaning::Nothing => Decision::Say(Reply::Nothing),
    }
}

fn find(request: &Request, patterns: &[Pattern], half: Option<HalfPoint>, facts: &Facts<'_>) -> Decision {
    let considered = &patterns[..patterns.len().min(facts.limits.prefixes_per_job)];
    let rate = match half {
        Some(_) => facts.split_rate(considered, facts.split_part),
        None => facts.pool_rate(considered),
    };
    let Some(difficulty) = difficulty_of(considered) else {
        return Decision::Say(Reply::Nothing);
    };
    let expected = rate.and_then(|rate| difficulty.expected_time(rate));
    let refusal = policy::refusal(patterns, difficulty, half.is_some(), rate, facts);
    if let Some(reply) = refusal {
        return Decision::Say(reply);
    }
    let takes = rate.and_then(|rate| facts.takes(difficulty, rate));
    let queue = if half.is_none() { facts.queue_for(patterns) } else { Duration::ZERO };
    let is_split = half.is_some();
    let reply = Reply::Accepted(Acceptance {
        job: facts.next_job,
        patterns: patterns.to_vec(),
        difficulty,
        takes,
        rests: facts.rests(),
        queue,
        is_split,
        place: facts.split_place.filter(|_| is_split),
        expensive: expected.is_some_and(|expected| expected.as_secs() > EXPENSIVE),
        cheaper: if is_split || expected.is_none_or(|expected| expected.as_secs() < LONG) {
            None
        } else {
            cheaper_one(patterns, rate, facts)
        },
    });
    let expires_at = facts.now + facts.limits.give_up_after.as_secs();
    // The promised time: 95 of 100 jobs are done by then.
    let most = takes.map(|takes| takes.most.saturating_add(facts.until_hours() + queue));
    let notice_at = most.and_then(|most| facts.notice_at(most, expires_at));
    let (asker, subject) = (request.asker, request.subject.clone());
    Decision::Accept {
        spec: JobSpec {
            asker,
            patterns: patterns.to_vec(),
            best: None,
            half,
            encryption_key: request.encryption_key,
            subject,
            expires_at,
            notice_at,
        },
        reply,
    }
}

/// A job with its acceptance, or a refusal.
fn decision((job, reply): (Option<JobSpec>, Reply)) -> Decision {
    match job {
        Some(spec) => Decision::Accept { spec, reply },
        None => Decision::Say(reply),
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
        best: job.spec.best.as_deref().cloned(),
        waited: Duration::from_secs(facts.now.saturating_sub(job.accepted_at)),
        expected: progress(job, facts),
    };
    Reply::Status {
        open: facts.asker.open.iter().map(line).collect(),
        results: facts.asker.results.clone(),
        open_jobs: facts.open_jobs(),
        rate: facts.rate,
        rests: facts.rests(),
    }
}

/// The mean time of a job, and the chance that it is done by now.
fn progress(job: &Job, facts: &Facts<'_>) -> Option<(Duration, f64)> {
    let rate = match job.spec.half {
        Some(_) => facts.split_rate(&job.spec.patterns, facts.own_split_part),
        None => facts.pool_rate(&job.spec.patterns),
    }?;
    let difficulty = difficulty_of(&job.spec.patterns)?;
    let searched = facts.searched_since(job.accepted_at);
    Some((facts.takes(difficulty, rate)?.mean, difficulty.chance_after(rate.0 * searched.as_secs_f64())))
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
    let kept = facts.asker.results.clone();
    match kept.iter().copied().find(|id| asked.is_none_or(|asked| asked == *id)) {
        Some(job) => Decision::Resend { job, reply: Reply::SentAgain(job) },
        None => Decision::Say(Reply::NothingToResend { asked, kept }),
    }
}
