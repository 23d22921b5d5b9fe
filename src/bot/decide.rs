//! Decisions: a request and the facts lead to one [`Decision`].

use super::policy;
use super::policy::{Facts, accepted_by_bot, cheaper, difficulty_of, nearest_accepted};
use super::reply::{Acceptance, BestAcceptance, BestExplanation, BotReply, CheaperPattern, Explanation, JobLine};
use super::request::{AskerRequest, Intent, MessageForm, MessageReading, Question, ShownCommand};
use crate::job::{BestSearch, JobId, JobSpec, RumorId, TimeClass};
use crate::key::HalfPoint;
use crate::ledger::{Effect, Job};
use crate::pattern::{Best, Pattern, Rate};
use std::time::Duration;

/// Expected time, in seconds, above which the acceptance mentions split keys.
const SPLIT_HINT_SECONDS: u64 = 3600;
/// Expected time, in seconds, from which the acceptance names a cheaper look-alike.
const CHEAPER_HINT_SECONDS: u64 = 60;
/// The most patterns that are shown, ready to send.
const MAX_OFFERED: usize = 3;

/// What to do about a message: its effect, and the answer, if it gets one.
pub type Decision = (Effect, Option<BotReply>);

/// A reply, and nothing else.
fn say(reply: BotReply) -> Decision {
    (Effect::Nothing, Some(reply))
}

/// Nothing is answered and nothing is done.
const IGNORE: Decision = (Effect::Nothing, None);

/// Decides what to do about a message.
pub fn decide(request: &AskerRequest, reading: &MessageReading, facts: &Facts<'_>) -> Decision {
    if let MessageForm::Deletion(messages) = &request.form {
        return delete_requests(messages, facts);
    }
    if request.is_nip04() {
        return match facts.asker.silent || facts.asker.redirected {
            true => IGNORE,
            false => (Effect::Redirect, Some(BotReply::NeedsSealed { page: facts.page.map(str::to_owned) })),
        };
    }
    if facts.asker.silent {
        return match reading.intent {
            Intent::Start => (Effect::Start, Some(BotReply::Started)),
            Intent::Delete => (Effect::Forget, Some(BotReply::Forgotten { open: 0 })),
            _ => IGNORE,
        };
    }
    match request.form {
        MessageForm::File => return say(BotReply::TextOnly),
        MessageForm::Group => return say(BotReply::NoGroups),
        MessageForm::Sealed | MessageForm::Nip04 | MessageForm::Deletion(_) => {}
    }
    match &reading.intent {
        Intent::Search(patterns) => decide_search(request, patterns, None, facts),
        Intent::Best(best) => decide_best(request, *best, None, facts),
        Intent::Split(half, patterns) => decide_search(request, patterns, Some(*half), facts),
        Intent::SplitBest(half, best) => decide_best(request, *best, Some(*half), facts),
        Intent::BadPoint(error) => say(BotReply::BadPoint(*error)),
        Intent::PointAlone => say(BotReply::PointAlone),
        Intent::WorkAlone => say(BotReply::WorkAlone),
        Intent::SplitHelp => say(BotReply::SplitHelp { page: facts.page.map(str::to_owned) }),
        Intent::Offer(patterns, reason) => say(BotReply::Offer {
            patterns: patterns.iter().take(MAX_OFFERED).cloned().collect(),
            reason: reason.clone(),
        }),
        Intent::Stop => (Effect::Stop, Some(BotReply::Stopped { open: facts.asker.open.len() })),
        Intent::Delete => (Effect::Forget, Some(BotReply::Forgotten { open: facts.asker.open.len() })),
        // Where other bots are greeted with it.
        Intent::Start => say(BotReply::Greeting { prefix: None }),
        Intent::Help => {
            say(BotReply::Help { open_jobs: facts.open_jobs(), rate: facts.rate, page: facts.page.map(str::to_owned) })
        }
        Intent::Status => say(status_reply(facts)),
        Intent::Cancel(job) => cancel(*job, facts),
        Intent::Show(command) => say(BotReply::Show { command: *command, open: open_jobs(facts) }),
        Intent::Resend(job) => resend(*job, facts),
        Intent::Explain(patterns) => say(explain(patterns, facts)),
        Intent::ExplainBest(best) => say(explain_best(*best, facts)),
        Intent::Kinds => say(BotReply::Kinds),
        Intent::BadWords(words) => say(BotReply::BadWords(words.clone())),
        Intent::Unsupported(nearest) => say(BotReply::Unsupported { nearest: nearest.clone() }),
        Intent::Ask(question) => say(BotReply::Answer(*question)),
        Intent::SecretKey => say(BotReply::SecretKey),
        Intent::TooManyWords(words) => {
            say(BotReply::TooManyPrefixes { asked: *words, allowed: facts.limits.prefixes_per_job })
        }
        Intent::Language(language) => say(BotReply::LanguageSet(*language)),
        Intent::Languages => say(BotReply::Languages),
        Intent::Thanks => say(BotReply::Thanks),
        Intent::Greeting => say(BotReply::Greeting { prefix: reading.shadowed.clone() }),
        Intent::Chat => say(BotReply::Chat),
        Intent::WhichNext => say(BotReply::WhichNext),
        Intent::LatinLetters => say(BotReply::LatinLetters),
        Intent::ForeignLanguage => say(BotReply::ForeignLanguage),
        Intent::Nothing => say(BotReply::Nothing),
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
            BotReply::Offer { patterns, .. } => {
                return format!("offer:{}", patterns.first().map_or("", Pattern::as_str));
            }
            BotReply::Explained { explained, .. } => {
                let patterns: Vec<Pattern> = explained.iter().map(|one| one.pattern.clone()).collect();
                return format!("explain:{}", listed(&patterns));
            }
            BotReply::ExplainedBest(best) => return format!("explain:{}", best.best),
            BotReply::Show { command: ShownCommand::Cancel, .. } | BotReply::NothingToCancel { asked: None, .. } => {
                "cancel"
            }
            BotReply::Show { command: ShownCommand::Delete, .. } => "delete",
            BotReply::Show { command: ShownCommand::Stop, .. } => "stop",
            BotReply::Status { .. } | BotReply::NothingToCancel { .. } | BotReply::AlreadySearching { .. } => "status",
            BotReply::NothingToResend { .. } => "resend",
            BotReply::SplitHelp { .. } | BotReply::BadPoint(_) | BotReply::PointAlone => "help-split",
            BotReply::Answer(Question::Who) => "who",
            BotReply::Answer(Question::Price) => "price",
            BotReply::Answer(Question::Safety) | BotReply::SecretKey => "safety",
            BotReply::Answer(Question::Import) => "import",
            BotReply::LanguageSet(language) => return format!("lang:{}", language.code()),
            BotReply::Languages => "lang",
            BotReply::Thanks => "thanks",
            BotReply::Greeting { .. } => "greeting",
            BotReply::Chat | BotReply::ForeignLanguage => "smalltalk",
            BotReply::BadWords(_) => "letters",
            BotReply::Help { .. }
            | BotReply::Kinds
            | BotReply::WhichNext
            | BotReply::LatinLetters
            | BotReply::Answer(_) => "help",
            _ => "refused",
        },
    };
    text.to_owned()
}

fn open_jobs(facts: &Facts<'_>) -> Vec<JobId> {
    facts.asker.open.iter().map(|job| job.id).collect()
}

fn decide_search(request: &AskerRequest, patterns: &[Pattern], half: Option<HalfPoint>, facts: &Facts<'_>) -> Decision {
    let considered = &patterns[..patterns.len().min(facts.limits.prefixes_per_job)];
    let rate = match half {
        Some(_) => facts.split_rate(considered, facts.shares.part_of_one_more),
        None => facts.pool_rate(considered),
    };
    let Some(difficulty) = difficulty_of(considered) else {
        return say(BotReply::Nothing);
    };
    let expected = rate.and_then(|rate| difficulty.expected_time(rate));
    let of_all = facts.split_rate(considered, 1.0).and_then(|rate| difficulty.expected_time(rate));
    let device_time = of_all.unwrap_or_default();
    let place = facts.place_for(considered, false, half.is_some(), device_time);
    let refusal = policy::refusal(request.asker, patterns, difficulty, half.is_some(), rate, &place, facts);
    if let Some(reply) = refusal {
        return say(reply);
    }
    let takes = rate.and_then(|rate| facts.takes(difficulty, rate));
    let queue = if half.is_none() { facts.queue_for(patterns) } else { Duration::ZERO };
    let is_split = half.is_some();
    let reply = BotReply::Accepted(Acceptance {
        job: facts.next_job,
        patterns: patterns.to_vec(),
        difficulty,
        takes,
        rests: facts.rests(),
        queue,
        is_split,
        place: facts.shares.place_of_one_more.filter(|_| is_split),
        expensive: expected.is_some_and(|expected| expected.as_secs() > SPLIT_HINT_SECONDS),
        other_job: match facts.asker.open.as_slice() {
            [only] => Some(only.id),
            _ => None,
        },
        cheaper: if is_split || expected.is_none_or(|expected| expected.as_secs() < CHEAPER_HINT_SECONDS) {
            None
        } else {
            cheaper_one(patterns, rate, facts)
        },
    });
    let expires_at = facts.now + place.lifetime.as_secs();
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
        class: TimeClass::of(device_time),
        priority: facts.priority,
    };
    (Effect::Accept(facts.next_job, spec), Some(reply))
}

/// Cancels the jobs whose requests are deleted. A deletion gets no answer.
fn delete_requests(messages: &[RumorId], facts: &Facts<'_>) -> Decision {
    let deleted = facts.asker.open.iter().filter(|job| messages.contains(&job.rumor));
    let jobs: Vec<JobId> = deleted.map(|job| job.id).collect();
    if jobs.is_empty() { IGNORE } else { (Effect::Cancel(jobs), None) }
}

fn status_reply(facts: &Facts<'_>) -> BotReply {
    let line = |job: &Job| JobLine {
        job: job.id,
        patterns: job.spec.patterns.clone(),
        best: job.spec.best.as_deref().cloned(),
        waited: Duration::from_secs(facts.now.saturating_sub(job.accepted_at)),
        expected: progress(job, facts),
    };
    BotReply::Status {
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
        Some(_) => facts.split_rate(&job.spec.patterns, facts.shares.own_split_part),
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
        return say(BotReply::NothingToCancel { asked, open });
    }
    (Effect::Cancel(jobs.clone()), Some(BotReply::Cancelled(jobs)))
}

fn resend(asked: Option<JobId>, facts: &Facts<'_>) -> Decision {
    let kept = facts.asker.results.clone();
    match kept.iter().copied().find(|id| asked.is_none_or(|asked| asked == *id)) {
        Some(job) => (Effect::Resend(job), Some(BotReply::SentAgain(job))),
        None => say(BotReply::NothingToResend { asked, kept }),
    }
}

/// Decides about a request without a target.
pub(super) fn decide_best(request: &AskerRequest, best: Best, half: Option<HalfPoint>, facts: &Facts<'_>) -> Decision {
    let is_split = half.is_some();
    let place = facts.place_for(&[], true, is_split, best.time);
    if let Some(refusal) = policy::refusal_of_best(request.asker, best, is_split, &place, facts) {
        return (Effect::Nothing, Some(refusal));
    }
    let part = if is_split { facts.shares.part_of_one_more } else { pool_part(facts) };
    let patterns = best.family.floor();
    let queue = if is_split { Duration::ZERO } else { facts.queue_for(&patterns) };
    let takes = best_takes(best, part, facts);
    let reply = BotReply::AcceptedBest(BestAcceptance {
        job: facts.next_job,
        explanation: best_explanation(best, part, facts),
        rests: facts.rests(),
        queue,
        is_split,
        place: facts.shares.place_of_one_more.filter(|_| is_split),
    });
    let expires_at = facts.now + place.lifetime.as_secs();
    let spec = JobSpec {
        asker: request.asker,
        patterns,
        best: Some(Box::new(BestSearch::new(best))),
        half,
        encryption_key: request.encryption_key,
        subject: request.subject.clone(),
        expires_at,
        notice_at: facts.notice_at(takes.saturating_add(facts.until_hours() + queue), expires_at),
        class: TimeClass::of(best.time),
        priority: facts.priority,
    };
    (Effect::Accept(facts.next_job, spec), Some(reply))
}

/// The answer to `explain best words 10m`.
pub(super) fn explain_best(best: Best, facts: &Facts<'_>) -> BotReply {
    match policy::too_long(best, facts) {
        Some(reply) => reply,
        None => BotReply::ExplainedBest(best_explanation(best, pool_part(facts), facts)),
    }
}

/// The share of the devices that a search without a target gets from the pool. Its patterns
/// restrict the start of a key, so the fast kernel searches for them.
fn pool_part(facts: &Facts<'_>) -> f64 {
    facts.shares.pool_part * facts.shares.top_words_part
}

fn best_explanation(best: Best, part: f64, facts: &Facts<'_>) -> BestExplanation {
    BestExplanation {
        best,
        likely: facts.rate.and_then(|rate| best.likely(rate)),
        takes: best_takes(best, part, facts),
    }
}

/// Time until a search ends that has the share `part` of the devices. The time that the asker named
/// is that of a search with all devices.
fn best_takes(best: Best, part: f64, facts: &Facts<'_>) -> Duration {
    facts.within(best.time.div_f64(part.max(0.001)))
}

/// The most patterns of one message that are explained.
const EXPLAINED: usize = 5;

/// The cheaper look-alike of a single pattern, with its expected time. `None` for several patterns.
pub(super) fn cheaper_one(patterns: &[Pattern], rate: Option<Rate>, facts: &Facts<'_>) -> Option<CheaperPattern> {
    let [only] = patterns else { return None };
    let pattern = cheaper(only)?;
    let expected = facts.takes(pattern.difficulty(), rate?)?.mean;
    Some(CheaperPattern { pattern, expected })
}

/// The meaning and the expected time of each pattern, at the rate of the pool.
pub(super) fn explain(patterns: &[Pattern], facts: &Facts<'_>) -> BotReply {
    let explanation = |pattern: &Pattern| {
        let rate = facts.pool_rate(std::slice::from_ref(pattern));
        let is_accepted = accepted_by_bot(pattern);
        Explanation {
            pattern: pattern.clone(),
            expected: rate.and_then(|rate| facts.takes(pattern.difficulty(), rate)).filter(|_| is_accepted),
            is_accepted,
            nearest: if is_accepted { None } else { nearest_accepted(pattern) },
            cheaper: cheaper_one(std::slice::from_ref(pattern), rate, facts),
        }
    };
    BotReply::Explained {
        explained: patterns.iter().take(EXPLAINED).map(explanation).collect(),
        more: patterns.len().saturating_sub(EXPLAINED),
    }
}
