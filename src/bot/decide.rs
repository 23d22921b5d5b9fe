//! Decisions: a request and the facts lead to one [`Decision`].

use super::phrases::{
    TextTable, all_meanings, any_of, best_means, expected, list, means, number, odds, one_in, reply, say, span,
};
use super::policy::{
    CheaperPattern, Facts, PlannedSearch, accepted_by_bot, cheaper_one, difficulty_of, nearest_accepted, refusal,
    too_long,
};
use super::reply::{
    BotReply, as_many_as_fit, bad_point, bad_words, cancel_one, fits, foreign_language, help, instead, languages,
    lines, needs_sealed, nothing_to_resend, offer, resting, split_help, status,
};
use super::request::{AskerRequest, Intent, MessageForm, MessageReading, RequestedKeys};
use crate::job::{BestSearch, JobId, JobSpec, RumorId, TimeClass};
use crate::key::HalfPoint;
use crate::ledger::Effect;
use crate::pattern::{Best, Pattern};
use std::time::Duration;

/// Expected time, in seconds, above which the acceptance mentions split keys.
const SPLIT_HINT_SECONDS: u64 = 3600;
/// Expected time, in seconds, from which the acceptance names a cheaper look-alike.
const CHEAPER_HINT_SECONDS: u64 = 60;
/// Characters available for a job's prefixes in its acceptance. Further prefixes are only counted.
const PATTERNS_ACCEPTED: usize = 340;
/// Characters available for the meanings of a job's patterns in its acceptance.
const MEANINGS_ACCEPTED: usize = 400;
/// The most patterns of one message that are explained.
const EXPLAINED: usize = 5;

/// What to do about a message: its effect, and the answer, if it gets one.
pub type Decision = (Effect, Option<BotReply>);

/// A reply, and nothing else.
fn say(reply: BotReply) -> Decision {
    (Effect::Nothing, Some(reply))
}

/// Nothing is answered and nothing is done.
const IGNORE: Decision = (Effect::Nothing, None);

/// Decides what to do about a message. If it is a command that could be a prefix, a line of the
/// answer says how to search for that prefix, if there is room for it.
pub fn decide(request: &AskerRequest, reading: &MessageReading, facts: &Facts<'_>) -> Decision {
    let t = TextTable::of(reading.language);
    let (effect, reply) = decide_intent(t, request, &reading.intent, facts);
    let also_a_prefix = reading.also_a_prefix.as_ref().filter(|_| !matches!(reading.intent, Intent::Offer(..)));
    let itself = also_a_prefix.map(|prefix| say!(t, "search-for-it", prefix = prefix.to_string()));
    let with_itself =
        |reply: BotReply| Some(reply.clone().and(itself)).filter(|longer| fits(&longer.text)).unwrap_or(reply);
    (effect, reply.map(with_itself))
}

fn decide_intent(t: &TextTable, request: &AskerRequest, intent: &Intent, facts: &Facts<'_>) -> Decision {
    if let MessageForm::Deletion(messages) = &request.form {
        return delete_requests(messages, facts);
    }
    if request.is_nip04() {
        return match facts.asker.silent || facts.asker.redirected {
            true => IGNORE,
            false => (Effect::Redirect, Some(needs_sealed(t, facts))),
        };
    }
    if facts.asker.silent {
        return match intent {
            Intent::Start => (Effect::Start, Some(reply!(t, "started"))),
            Intent::Delete => (Effect::Forget, Some(reply!(t, "forgotten", open = 0))),
            _ => IGNORE,
        };
    }
    match request.form {
        MessageForm::File => return say(reply!(t, "text-only")),
        MessageForm::Group => return say(reply!(t, "no-groups")),
        MessageForm::Sealed | MessageForm::Nip04 | MessageForm::Deletion(_) => {}
    }
    let open: Vec<JobId> = facts.asker.open.iter().map(|job| job.id).collect();
    match intent {
        Intent::Search(target, half) => search(t, request, target, *half, facts),
        Intent::Explain(RequestedKeys::Patterns(patterns)) => say(explain(t, patterns, facts)),
        Intent::Explain(RequestedKeys::Best(best)) => say(explain_best(t, *best, facts)),
        Intent::Offer(patterns, reason) => say(offer(t, patterns, reason)),
        Intent::BadPoint(error) => say(bad_point(t, *error)),
        Intent::BadWords(words) => say(bad_words(t, words)),
        Intent::Unsupported(nearest) => say(reply!(t, "unsupported").and([instead(t, nearest.as_ref())])),
        Intent::TooManyWords(words) => say(too_many_prefixes(t, *words, facts)),
        Intent::Help => say(help(t, facts)),
        Intent::SplitHelp => say(split_help(t, facts)),
        Intent::Status => say(status(t, facts)),
        Intent::Cancel(asked) => cancel(t, *asked, &open),
        Intent::ShowCancel => say(match open.as_slice() {
            [] => cancel_one(t, None, &open),
            [first, ..] => reply!(t, "cancel-one", jobs = list(t, &open), number = number(*first)),
        }),
        Intent::Resend(asked) => resend(t, *asked, facts),
        Intent::Stop if open.is_empty() => (Effect::Stop, Some(reply!(t, "stopped"))),
        Intent::Stop => (Effect::Stop, Some(reply!(t, "stopped-cancelled", open = open.len()))),
        Intent::Delete => (Effect::Forget, Some(reply!(t, "forgotten", open = open.len()))),
        // Other bots are greeted with `start`.
        Intent::Start | Intent::Greeting => say(reply!(t, "hello")),
        Intent::Language(_) => say(reply!(t, "language-set")),
        Intent::Languages => say(languages(t)),
        Intent::ForeignLanguage => say(foreign_language(t)),
        Intent::Say(id) => say(BotReply { topic: id, text: t.say(id, &[]) }),
    }
}

/// Cancels the jobs whose requests are deleted. A deletion gets no answer.
fn delete_requests(messages: &[RumorId], facts: &Facts<'_>) -> Decision {
    let deleted = facts.asker.open.iter().filter(|job| messages.contains(&job.rumor));
    let jobs: Vec<JobId> = deleted.map(|job| job.id).collect();
    if jobs.is_empty() { IGNORE } else { (Effect::Cancel(jobs), None) }
}

fn cancel(t: &TextTable, asked: Option<JobId>, open: &[JobId]) -> Decision {
    let jobs: Vec<JobId> = open.iter().copied().filter(|id| asked.is_none_or(|asked| asked == *id)).collect();
    if jobs.is_empty() {
        return say(cancel_one(t, asked, open));
    }
    let reply = reply!(t, "cancelled", jobs = list(t, &jobs), count = jobs.len());
    (Effect::Cancel(jobs), Some(reply))
}

fn resend(t: &TextTable, asked: Option<JobId>, facts: &Facts<'_>) -> Decision {
    let kept = &facts.asker.results;
    match kept.iter().copied().find(|id| asked.is_none_or(|asked| asked == *id)) {
        Some(job) => (Effect::Resend(job), Some(reply!(t, "sent-again", job = job.to_string()))),
        None => say(nothing_to_resend(t, asked, kept)),
    }
}

/// The refusal of a request for more prefixes than a job may have.
pub(super) fn too_many_prefixes(t: &TextTable, asked: usize, facts: &Facts<'_>) -> BotReply {
    reply!(t, "too-many-prefixes", asked = asked, allowed = facts.limits.prefixes_per_job)
}

/// What the acceptance of a search says.
struct SearchText {
    /// What is searched for.
    name: String,
    /// Lines about the meaning and the length of the search.
    about: Vec<String>,
    /// Lines with what else the asker may do.
    hints: Vec<String>,
    /// The promised length: 95 of 100 such searches are shorter.
    promised: Option<Duration>,
}

/// Accepts or refuses a search.
fn search(
    t: &TextTable,
    request: &AskerRequest,
    target: &RequestedKeys,
    half: Option<HalfPoint>,
    facts: &Facts<'_>,
) -> Decision {
    let is_split = half.is_some();
    let (patterns, best) = match target {
        RequestedKeys::Patterns(patterns) => (patterns.as_slice(), None),
        RequestedKeys::Best(best) => (&[][..], Some(*best)),
    };
    let counted = &patterns[..patterns.len().min(facts.limits.prefixes_per_job)];
    let difficulty = difficulty_of(counted);
    if best.is_none() && difficulty.is_none() {
        return say(reply!(t, "nothing"));
    }
    let rate = match is_split {
        true => facts.split_rate(counted, facts.shares.part_of_one_more),
        false => facts.pool_rate(counted),
    };
    let of_all = facts.split_rate(counted, 1.0).and_then(|rate| difficulty?.expected_time(rate));
    let device_time = best.map_or(of_all.unwrap_or_default(), |best| best.time);
    let place = facts.place_for(counted, best.is_some(), is_split, device_time);
    let search = PlannedSearch { patterns, best, difficulty, rate, is_split };
    if let Some(reply) = refusal(t, request.asker, &search, &place, facts) {
        return say(reply);
    }
    let rests = resting(t, facts);
    let text = match best {
        None => {
            let room = MEANINGS_ACCEPTED.saturating_sub(rests.as_ref().map_or(0, |text| text.chars().count()));
            text_of_patterns(t, &search, room, facts)
        }
        Some(best) => text_of_best(t, best, is_split, facts),
    };
    let patterns = best.map_or_else(|| patterns.to_vec(), |best| best.family.floor());
    let queue = if is_split { Duration::ZERO } else { facts.queue_for(&patterns) };
    let accepted = reply!(t, "accepted", job = facts.next_job.to_string(), patterns = text.name);
    let reply = accepted
        .and(text.about)
        .and(rests)
        .and(arrival(t, queue, is_split, facts))
        .and(text.hints)
        .and([say!(t, "to-stop", number = number(facts.next_job))]);
    let expires_at = facts.now + place.lifetime.as_secs();
    let promised = text.promised.map(|most| most.saturating_add(facts.until_hours() + queue));
    let spec = JobSpec {
        asker: request.asker,
        patterns,
        best: best.map(|best| Box::new(BestSearch::new(best))),
        half,
        encryption_key: request.encryption_key,
        subject: request.subject.clone(),
        expires_at,
        notice_at: promised.and_then(|promised| facts.notice_at(promised, expires_at)),
        class: TimeClass::of(device_time),
        priority: facts.priority,
    };
    (Effect::Accept(facts.next_job, spec), Some(reply))
}

/// `room`: characters available for the meanings of the patterns.
fn text_of_patterns(t: &TextTable, search: &PlannedSearch<'_>, room: usize, facts: &Facts<'_>) -> SearchText {
    let PlannedSearch { patterns, difficulty, rate, is_split, .. } = *search;
    let takes = difficulty.zip(rate).and_then(|(difficulty, rate)| facts.takes(difficulty, rate));
    let mut about = all_meanings(t, patterns, room);
    about.extend(difficulty.map(|difficulty| odds(t, difficulty)));
    about.push(takes.map_or_else(|| say!(t, "no-speed-yet"), |takes| expected(t, takes)));
    let mut hints = Vec::new();
    let seconds = rate.and_then(|rate| difficulty?.expected_time(rate)).map_or(0, |time| time.as_secs());
    if !is_split && seconds >= CHEAPER_HINT_SECONDS {
        hints.extend(cheaper_one(patterns, rate, facts).map(|cheaper| looks_alike(t, &cheaper)));
    }
    if let [other] = facts.asker.open.as_slice() {
        hints.push(say!(t, "other-job", job = other.id.to_string(), number = number(other.id)));
    }
    if !is_split && seconds > SPLIT_HINT_SECONDS {
        hints.push(say!(t, "expensive"));
    }
    let name = any_of(t, patterns, PATTERNS_ACCEPTED);
    SearchText { name, about, hints, promised: takes.map(|takes| takes.most) }
}

fn text_of_best(t: &TextTable, best: Best, is_split: bool, facts: &Facts<'_>) -> SearchText {
    let part = if is_split { facts.shares.part_of_one_more } else { pool_part(facts) };
    let promised = Some(best_takes(best, part, facts));
    SearchText { name: best.to_string(), about: about_best(t, best, part, facts), hints: Vec::new(), promised }
}

/// Lines that say when and how the result comes.
fn arrival(t: &TextTable, queue: Duration, is_split: bool, facts: &Facts<'_>) -> Vec<String> {
    let mut said = Vec::new();
    if !queue.is_zero() {
        said.push(say!(t, "queue", span = span(t, queue)));
    }
    if is_split {
        said.push(say!(t, "at-your-point"));
        said.extend(facts.shares.place_of_one_more.map(|place| say!(t, "place-in-line", place = place)));
        said.push(say!(t, "tweak-comes"));
    } else {
        said.push(say!(t, "key-comes"));
    }
    said
}

/// The line with a look-alike that is found much sooner.
pub(super) fn looks_alike(t: &TextTable, cheaper: &CheaperPattern) -> String {
    say!(t, "looks-alike", pattern = cheaper.pattern.to_string(), span = span(t, cheaper.expected))
}

/// The share of the devices that a search without a target gets from the pool. Its patterns
/// restrict the start of a key, so the fast kernel searches for them.
fn pool_part(facts: &Facts<'_>) -> f64 {
    facts.shares.pool_part * facts.shares.top_words_part
}

/// Time until a search ends that has the share `part` of the devices. The time that the asker named
/// is that of a search with all devices.
fn best_takes(best: Best, part: f64, facts: &Facts<'_>) -> Duration {
    facts.within(best.time.div_f64(part.max(0.001)))
}

/// Lines with the meaning of a search without a target, its likely result and its time.
fn about_best(t: &TextTable, best: Best, part: f64, facts: &Facts<'_>) -> Vec<String> {
    let likely = facts.rate.and_then(|rate| best.likely_pattern(rate));
    let mut said = vec![best_means(t, &best)];
    said.extend(likely.map(|likely| say!(t, "best-likely", amount = one_in(t, likely.difficulty()))));
    said.push(say!(t, "best-takes", span = span(t, best_takes(best, part, facts))));
    said
}

/// The answer to `explain best words 10m`.
fn explain_best(t: &TextTable, best: Best, facts: &Facts<'_>) -> BotReply {
    too_long(t, best, facts).unwrap_or_else(|| {
        let about = lines(about_best(t, best, pool_part(facts), facts));
        BotReply { topic: "explain", text: about }.and([say!(t, "explain-find", pattern = best.to_string())])
    })
}

/// The meaning and the expected time of patterns at the rate of the pool, of as many as fit into one
/// answer.
fn explain(t: &TextTable, patterns: &[Pattern], facts: &Facts<'_>) -> BotReply {
    let explained: Vec<String> =
        patterns.iter().take(EXPLAINED).map(|pattern| explanation(t, pattern, facts)).collect();
    let with = |shown: usize| {
        let mut said: Vec<String> = explained.iter().take(shown).cloned().collect();
        if patterns.len() > shown {
            said.push(say!(t, "and-more-jobs", count = patterns.len() - shown));
        }
        if let Some(first) = patterns.iter().take(shown).find(|pattern| accepted_by_bot(pattern)) {
            said.push(say!(t, "explain-find", pattern = first.to_string()));
        }
        lines(said)
    };
    BotReply { topic: "explain", text: as_many_as_fit(explained.len(), with) }
}

fn explanation(t: &TextTable, pattern: &Pattern, facts: &Facts<'_>) -> String {
    let mut said = vec![means(t, pattern), odds(t, pattern.difficulty())];
    if accepted_by_bot(pattern) {
        let alone = std::slice::from_ref(pattern);
        let rate = facts.pool_rate(alone);
        let takes = rate.and_then(|rate| facts.takes(pattern.difficulty(), rate));
        said.push(takes.map_or_else(|| say!(t, "no-speed-yet"), |takes| expected(t, takes)));
        said.extend(cheaper_one(alone, rate, facts).map(|cheaper| looks_alike(t, &cheaper)));
    } else {
        said.extend([say!(t, "needs-start"), instead(t, nearest_accepted(pattern).as_ref())]);
    }
    lines(said)
}
