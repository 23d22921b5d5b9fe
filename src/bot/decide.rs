//! Decisions: a request and the facts lead to one [`Decision`].

use super::accepted::difficulty_of;
use super::best::{explain_best, find_best};
use super::explain::{cheaper_one, explain};
use super::facts::Facts;
use super::intent::{Intent, Question, Reading, Shown};
use super::policy;
use super::reply::{Acceptance, JobLine, Reply};
use super::request::{Form, Request};
use crate::job::{JobId, JobSpec, RumorId};
use crate::key::HalfPoint;
use crate::ledger::{Effect, Job};
use crate::pattern::Pattern;
use std::time::Duration;

/// Expected time, in seconds, above which the acceptance mentions split keys.
const EXPENSIVE: u64 = 3600;
/// Expected time, in seconds, from which the acceptance names a cheaper look-alike.
const LONG: u64 = 60;
/// The most patterns that are shown, ready to send.
const MAX_OFFERED: usize = 3;

/// What to do about a message: its effect, and the answer, if it gets one.
pub type Decision = (Effect, Option<Reply>);

/// A reply, and nothing else.
fn say(reply: Reply) -> Decision {
    (Effect::Nothing, Some(reply))
}

/// Nothing is answered and nothing is done.
const IGNORE: Decision = (Effect::Nothing, None);

/// Decides what to do about a message.
pub fn decide(request: &Request, reading: &Reading, facts: &Facts<'_>) -> Decision {
    if let Form::Deletion(messages) = &request.form {
        return delete_requests(messages, facts);
    }
    if request.is_nip04() {
        return match facts.asker.silent || facts.asker.redirected {
            true => IGNORE,
            false => (Effect::Redirect, Some(Reply::NeedsSealed { page: facts.page.map(str::to_owned) })),
        };
    }
    if facts.asker.silent {
        return match reading.intent {
            Intent::Start => (Effect::Start, Some(Reply::Started)),
            Intent::Delete => (Effect::Forget, Some(Reply::Forgotten { open: 0 })),
            _ => IGNORE,
        };
    }
    match request.form {
        Form::File => return say(Reply::TextOnly),
        Form::Group => return say(Reply::NoGroups),
        Form::Sealed | Form::Nip04 | Form::Deletion(_) => {}
    }
    match &reading.intent {
        Intent::Search(patterns) => find(request, patterns, None, facts),
        Intent::Best(best) => find_best(request, *best, None, facts),
        Intent::Split(half, patterns) => find(request, patterns, Some(*half), facts),
        Intent::SplitBest(half, best) => find_best(request, *best, Some(*half), facts),
        Intent::BadPoint(error) => say(Reply::BadPoint(*error)),
        Intent::PointAlone => say(Reply::PointAlone),
        Intent::SplitHelp => say(Reply::SplitHelp { page: facts.page.map(str::to_owned) }),
        Intent::Offer(patterns, reason) => {
            say(Reply::Offer { patterns: patterns.iter().take(MAX_OFFERED).cloned().collect(), reason: reason.clone() })
        }
        Intent::Stop => (Effect::Stop, Some(Reply::Stopped { open: facts.asker.open.len() })),
        Intent::Delete => (Effect::Forget, Some(Reply::Forgotten { open: facts.asker.open.len() })),
        // Where other bots are greeted with it.
        Intent::Start => say(Reply::Greeting { prefix: None }),
        Intent::Help => {
            say(Reply::Help { open_jobs: facts.open_jobs(), rate: facts.rate, page: facts.page.map(str::to_owned) })
        }
        Intent::Status => say(status(facts)),
        Intent::Cancel(job) => cancel(*job, facts),
        Intent::Show(command) => say(Reply::Show { command: *command, open: open_jobs(facts) }),
        Intent::Resend(job) => resend(*job, facts),
        Intent::Explain(patterns) => say(explain(patterns, facts)),
        Intent::ExplainBest(best) => say(explain_best(*best, facts)),
        Intent::Kinds => say(Reply::Kinds),
        Intent::BadWords(words) => say(Reply::BadWords(words.clone())),
        Intent::Unsupported(nearest) => say(Reply::Unsupported { nearest: nearest.clone() }),
        Intent::Ask(question) => say(Reply::Answer(*question)),
        Intent::SecretKey => say(Reply::SecretKey),
        Intent::TooManyWords(words) => {
            say(Reply::TooManyPrefixes { asked: *words, allowed: facts.limits.prefixes_per_job })
        }
        Intent::Language(language) => say(Reply::LanguageSet(*language)),
        Intent::Languages => say(Reply::Languages),
        Intent::Thanks => say(Reply::Thanks),
        Intent::Greeting => say(Reply::Greeting { prefix: reading.shadowed.clone() }),
        Intent::Chat => say(Reply::Chat),
        Intent::WhichNext => say(Reply::WhichNext),
        Intent::LatinLetters => say(Reply::LatinLetters),
        Intent::ForeignLanguage => say(Reply::ForeignLanguage),
        Intent::Nothing => say(Reply::Nothing),
    }
}

/// The kind of a decision in few words, such as `search:m0c` or `status`: what the lists of messages
/// in `tests/messages` expect.
pub fn label((effect, reply): &Decision) -> String {
    let listed = |patterns: &[Pattern]| patterns.iter().map(Pattern::as_str).collect::<Vec<_>>().join(",");
    let text = match (effect, reply) {
        (Effect::Accept(_, spec), _) => {
            return match &spec.best {
                Some(search) => format!("search:{}", search.best),
                None => format!("search:{}", listed(&spec.patterns)),
            };
        }
        (Effect::Cancel(jobs), _) => match jobs.as_slice() {
            [job] => return format!("cancel:{}", job.0),
            _ => "cancel",
        },
        (Effect::Resend(_), _) => "resend",
        (Effect::Stop, _) => "stop",
        (Effect::Start, _) => "start",
        (Effect::Forget, _) => "delete",
        (_, None) => "ignore",
        (_, Some(reply)) => match reply {
            Reply::Offer { patterns, .. } => return format!("offer:{}", patterns.first().map_or("", Pattern::as_str)),
            Reply::Explained { explained, .. } => {
                let patterns: Vec<Pattern> = explained.iter().map(|one| one.pattern.clone()).collect();
                return format!("explain:{}", listed(&patterns));
            }
            Reply::ExplainedBest(best) => return format!("explain:{}", best.best),
            Reply::Show { command: Shown::Cancel, .. } | Reply::NothingToCancel { asked: None, .. } => "cancel",
            Reply::Show { command: Shown::Delete, .. } => "delete",
            Reply::Show { command: Shown::Stop, .. } => "stop",
            Reply::Status { .. } | Reply::NothingToCancel { .. } | Reply::AlreadySearching { .. } => "status",
            Reply::NothingToResend { .. } => "resend",
            Reply::SplitHelp { .. } | Reply::BadPoint(_) | Reply::PointAlone => "help-split",
            Reply::Answer(Question::Who) => "who",
            Reply::Answer(Question::Price) => "price",
            Reply::Answer(Question::Safety) | Reply::SecretKey => "safety",
            Reply::Answer(Question::Import) => "import",
            Reply::LanguageSet(language) => return format!("lang:{}", language.code()),
            Reply::Languages => "lang",
            Reply::Thanks => "thanks",
            Reply::Greeting { .. } => "greeting",
            Reply::Chat | Reply::ForeignLanguage => "smalltalk",
            Reply::BadWords(_) => "letters",
            Reply::Help { .. } | Reply::Kinds | Reply::WhichNext | Reply::LatinLetters | Reply::Answer(_) => "help",
            _ => "refused",
        },
    };
    text.to_owned()
}

fn open_jobs(facts: &Facts<'_>) -> Vec<JobId> {
    facts.asker.open.iter().map(|job| job.id).collect()
}

fn find(request: &Request, patterns: &[Pattern], half: Option<HalfPoint>, facts: &Facts<'_>) -> Decision {
    let considered = &patterns[..patterns.len().min(facts.limits.prefixes_per_job)];
    let rate = match half {
        Some(_) => facts.split_rate(considered, facts.split_part),
        None => facts.pool_rate(considered),
    };
    let Some(difficulty) = difficulty_of(considered) else {
        return say(Reply::Nothing);
    };
    let expected = rate.and_then(|rate| difficulty.expected_time(rate));
    let refusal = policy::refusal(patterns, difficulty, half.is_some(), rate, facts);
    if let Some(reply) = refusal {
        return say(reply);
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
        other_job: match facts.asker.open.as_slice() {
            [only] => Some(only.id),
            _ => None,
        },
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
    let spec = JobSpec {
        asker: request.asker,
        patterns: patterns.to_vec(),
        best: None,
        half,
        encryption_key: request.encryption_key,
        subject: request.subject.clone(),
        expires_at,
        notice_at,
    };
    (Effect::Accept(facts.next_job, spec), Some(reply))
}

/// Cancels the jobs whose requests are deleted. A deletion gets no answer.
fn delete_requests(messages: &[RumorId], facts: &Facts<'_>) -> Decision {
    let deleted = facts.asker.open.iter().filter(|job| messages.contains(&job.rumor));
    let jobs: Vec<JobId> = deleted.map(|job| job.id).collect();
    if jobs.is_empty() { IGNORE } else { (Effect::Cancel(jobs), None) }
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
    let open = open_jobs(facts);
    let jobs: Vec<JobId> = open.iter().copied().filter(|id| asked.is_none_or(|asked| asked == *id)).collect();
    if jobs.is_empty() {
        return say(Reply::NothingToCancel { asked, open });
    }
    (Effect::Cancel(jobs.clone()), Some(Reply::Cancelled(jobs)))
}

fn resend(asked: Option<JobId>, facts: &Facts<'_>) -> Decision {
    let kept = facts.asker.results.clone();
    match kept.iter().copied().find(|id| asked.is_none_or(|asked| asked == *id)) {
        Some(job) => (Effect::Resend(job), Some(Reply::SentAgain(job))),
        None => say(Reply::NothingToResend { asked, kept }),
    }
}
