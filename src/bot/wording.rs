//! The text of each reply. The words are in the tables of texts; this module chooses the texts and
//! their values.

use super::phrases::{
    TextTable, all_meanings, any_of, at_work, best_means, expected, list, means, number, odds, one_in, pattern_error,
    point_error, say, shown, span, time_of_day,
};
use super::policy::Rests;
use super::reading::read_text;
use super::reply::{Acceptance, BestAcceptance, BestExplanation, BotReply, CheaperPattern, Explanation, JobLine};
use super::request::{ChatContext, Intent, MessageReading, OfferReason, Question, ShownCommand};
use crate::job::JobId;
use crate::key::HalfPointError;
use crate::language::Language;
use crate::ledger::HalfUse;
use crate::pattern::{Pattern, PatternError};
use std::time::Duration;

/// The most characters of a message: some twenty lines on a phone.
pub(super) const MOST_CHARACTERS: usize = 1500;
/// The most jobs with a line each in a status.
const JOBS_SHOWN: usize = 5;
/// Characters available for a job's prefixes in its acceptance. Further prefixes are only counted.
const PATTERNS_ACCEPTED: usize = 340;
/// Characters available for a job's prefixes in a line of a status.
const PATTERNS_SHOWN: usize = 90;
/// Characters available for the meanings of a job's patterns in its acceptance.
const MEANINGS_ACCEPTED: usize = 400;
/// The most lines of a message.
pub(super) const MOST_LINES: usize = 20;

impl BotReply {
    /// The text of a reply.
    pub fn text(&self, language: Language) -> String {
        say_reply(TextTable::of(language), self)
    }
}

/// The text of the answer to a request, in the language of its asker. If the request is a command
/// that could be a prefix, a line says how to search for that prefix.
pub fn answer(reading: &MessageReading, reply: &BotReply) -> String {
    let text = reply.text(reading.language);
    match &reading.shadowed {
        Some(_) if matches!(reply, BotReply::Greeting { .. } | BotReply::Offer { .. }) => text,
        Some(prefix) => {
            lines([text, say!(TextTable::of(reading.language), "search-for-it", prefix = prefix.to_string())])
        }
        None => text,
    }
}

fn say_reply(t: &TextTable, reply: &BotReply) -> String {
    match reply {
        BotReply::Accepted(accepted) => acceptance(t, accepted),
        BotReply::AcceptedBest(accepted) => best_acceptance(t, accepted),
        BotReply::Help { open_jobs, rate, page } => {
            let at_work = at_work(t, *open_jobs, *rate);
            lines([say!(t, "help")].into_iter().chain(page_line(t, page)).chain([at_work]))
        }
        BotReply::Status { open, results, open_jobs, rate, rests } => {
            let rests = rests.map(|rests| resting(t, rests));
            let at_work = lines([at_work(t, *open_jobs, *rate)].into_iter().chain(rests));
            status(t, open, results, at_work)
        }
        BotReply::Cancelled(jobs) => say!(t, "cancelled", jobs = list(t, jobs), count = jobs.len()),
        BotReply::NothingToCancel { asked, open } => nothing_to_cancel(t, *asked, open),
        BotReply::SentAgain(job) => say!(t, "sent-again", job = job.to_string()),
        BotReply::NothingToResend { asked, kept } => nothing_to_resend(t, *asked, kept),
        BotReply::BadWords(words) => bad_words(t, words),
        BotReply::Offer { patterns, reason } => offer(t, patterns, reason),
        BotReply::Show { command, open } => show(t, *command, open),
        BotReply::Answer(question) => match question {
            Question::Who => say!(t, "answer-who"),
            Question::Price => say!(t, "answer-price"),
            Question::Safety => say!(t, "answer-safety"),
            Question::Import => say!(t, "answer-import"),
            Question::Seed => say!(t, "seed-answer"),
        },
        BotReply::Thanks => say!(t, "thanks-answer"),
        BotReply::Chat => say!(t, "chat-answer"),
        BotReply::WhichNext => say!(t, "which-next"),
        BotReply::LatinLetters => say!(t, "latin-letters"),
        BotReply::ForeignLanguage => {
            let names: Vec<String> =
                Language::ALL.map(|language| say!(TextTable::of(language), "language-name")).to_vec();
            lines([say!(t, "foreign-language", names = names.join(&say!(t, "comma"))), say!(t, "chat-answer")])
        }
        BotReply::Unsupported { nearest } => lines([say!(t, "unsupported"), instead(t, nearest)]),
        BotReply::NotSearched { pattern, nearest } => {
            lines([means(t, pattern), say!(t, "needs-start"), say!(t, "nothing-started"), instead(t, nearest)])
        }
        BotReply::TooWide { asked, allowed } => say!(t, "too-wide", asked = *asked, allowed = *allowed),
        BotReply::TooManyEnds { asked, allowed } => say!(t, "too-many-ends", asked = *asked, allowed = *allowed),
        BotReply::TooWideNow => say!(t, "too-wide-now"),
        BotReply::Explained { explained, more } => explanations(t, explained, *more),
        BotReply::ExplainedBest(explained) => {
            let find = say!(t, "explain-find", pattern = explained.best.to_string());
            lines(best_explanation(t, explained).into_iter().chain([find]))
        }
        BotReply::BestTooLong { best } => {
            say!(t, "best-too-long", limit = span(t, best.time), best = best.to_string())
        }
        BotReply::Kinds => say!(t, "kinds"),
        BotReply::Greeting { prefix } => match prefix {
            Some(prefix) => lines([say!(t, "hello"), say!(t, "search-for-it", prefix = prefix.to_string())]),
            None => say!(t, "hello"),
        },
        BotReply::SecretKey | BotReply::BadPoint(Some(HalfPointError::Secret)) => say!(t, "secret-key"),
        BotReply::Nothing => say!(t, "nothing"),
        BotReply::TextOnly => say!(t, "text-only"),
        BotReply::NoGroups => say!(t, "no-groups"),
        BotReply::SplitHelp { page } => lines([say!(t, "split-help")].into_iter().chain(page_line(t, page))),
        BotReply::BadPoint(error) => {
            let reason = match error {
                Some(error) => say!(t, "bad-point", reason = point_error(t, *error)),
                None => say!(t, "no-point"),
            };
            lines([reason, say!(t, "send-a-point")])
        }
        BotReply::PointAlone => say!(t, "point-alone"),
        BotReply::HalfUsed(used) => {
            let used = match used {
                HalfUse::Open => "open",
                HalfUse::Spent => "spent",
            };
            say!(t, "half-used", use = used)
        }
        BotReply::Stopped { open: 0 } => say!(t, "stopped"),
        BotReply::Stopped { open } => say!(t, "stopped-cancelled", open = *open),
        BotReply::Started => say!(t, "started"),
        BotReply::Forgotten { open } => say!(t, "forgotten", open = *open),
        BotReply::LanguageSet(_) => say!(t, "language-set"),
        BotReply::Languages => languages(t),
        BotReply::TooManyPrefixes { asked, allowed } => {
            say!(t, "too-many-prefixes", asked = *asked, allowed = *allowed)
        }
        BotReply::AlreadySearching { job } => {
            say!(t, "already-searching", job = job.to_string(), number = number(*job))
        }
        BotReply::TooManyOpen { open, allowed } => {
            let first = open.first().map_or(JobId(1), |job| *job);
            let (count, jobs) = (open.len(), list(t, open));
            say!(t, "too-many-open", count = count, jobs = jobs, allowed = *allowed, number = number(first))
        }
        BotReply::ResultNotTaken => say!(t, "result-not-taken"),
        BotReply::TooManyNotTaken => say!(t, "too-many-not-taken"),
        BotReply::TooManyToday { allowed, wait_seconds } => {
            say!(t, "too-many-today", allowed = *allowed, span = span(t, Duration::from_secs(*wait_seconds)))
        }
        BotReply::TooHard { expected, limit, characters, cheaper } => {
            let refusal = say!(t, "too-hard", span = span(t, *expected), limit = span(t, *limit));
            let instead = match characters {
                0 => say!(t, "too-hard-all"),
                _ => say!(t, "too-hard-up-to", characters = *characters),
            };
            lines([refusal, instead].into_iter().chain(cheaper.as_ref().map(|cheaper| looks_alike(t, cheaper))))
        }
        BotReply::NotMeasured { characters } => say!(t, "not-measured", characters = *characters),
        BotReply::NeedsSealed { page } => {
            let page = page.as_ref().map(|page| say!(t, "needs-sealed-page", page = page.as_str()));
            lines([say!(t, "needs-sealed")].into_iter().chain(page))
        }
        BotReply::FriendsOnly => say!(t, "friends-only"),
        BotReply::Restored => say!(t, "restored"),
        BotReply::Price(price) => {
            let page = price.page.as_ref().map(|page| say!(t, "price-page", page = page.as_str()));
            let time = span(t, price.phone_time());
            let costs = say!(t, "price", bits = price.bits, span = time);
            lines([costs].into_iter().chain(page).chain([say!(t, "price-command", command = price.command())]))
        }
        BotReply::WorkAlone => say!(t, "work-alone"),
        BotReply::Paused { until } => say!(t, "paused", time = time_of_day(*until)),
    }
}

/// The line that names the bot's page.
fn page_line(t: &TextTable, page: &Option<String>) -> Option<String> {
    page.as_ref().map(|page| say!(t, "page", url = page.clone()))
}

/// Lines with patterns that are ready to send.
fn offer(t: &TextTable, patterns: &[Pattern], reason: &OfferReason) -> String {
    let first = match reason {
        OfferReason::Impossible(character) => say!(t, "offer-impossible", character = character.to_string()),
        OfferReason::Accent => say!(t, "offer-accent"),
        OfferReason::OtherScript(character, latin) => {
            say!(t, "offer-script", character = character.to_string(), latin = latin.to_string())
        }
        OfferReason::Unsure => say!(t, "offer-unsure"),
        OfferReason::Uneven(easiest) => say!(t, "offer-uneven", easiest = easiest.to_string()),
        OfferReason::Change(job) => say!(t, "offer-change", job = job.to_string(), number = number(*job)),
    };
    lines([first].into_iter().chain(patterns.iter().map(|pattern| ready(t, pattern))))
}

/// A line that searches for a pattern when it is sent: the pattern itself, or after `find`.
fn ready(t: &TextTable, pattern: &Pattern) -> String {
    let context = ChatContext { language: t.language(), ..ChatContext::default() };
    match read_text(pattern.as_str(), &context).intent {
        Intent::Search(read) if read == [pattern.clone()] => pattern.to_string(),
        _ => say!(t, "find-it", prefix = pattern.to_string()),
    }
}

/// Lines with a command that is ready to send.
fn show(t: &TextTable, command: ShownCommand, open: &[JobId]) -> String {
    match (command, open) {
        (ShownCommand::Cancel, []) => nothing_to_cancel(t, None, open),
        (ShownCommand::Cancel, [first, ..]) => say!(t, "cancel-one", jobs = list(t, open), number = number(*first)),
        (ShownCommand::Delete, _) => say!(t, "show-delete"),
        (ShownCommand::Stop, _) => say!(t, "show-stop"),
    }
}

fn lines(parts: impl IntoIterator<Item = String>) -> String {
    parts.into_iter().collect::<Vec<_>>().join("\n")
}

fn acceptance(t: &TextTable, job: &Acceptance) -> String {
    let patterns = any_of(t, &job.patterns, PATTERNS_ACCEPTED);
    let mut said = vec![say!(t, "accepted", job = job.job.to_string(), patterns = patterns)];
    let rests = job.rests.map(|rests| resting(t, rests));
    let length = rests.as_ref().map_or(0, |text| text.chars().count());
    said.extend(all_meanings(t, &job.patterns, MEANINGS_ACCEPTED.saturating_sub(length)));
    said.push(odds(t, job.difficulty));
    said.push(job.takes.map_or_else(|| say!(t, "no-speed-yet"), |takes| expected(t, takes)));
    said.extend(rests);
    said.extend(arrival(t, job.queue, job.is_split, job.place));
    said.extend(job.cheaper.as_ref().map(|cheaper| looks_alike(t, cheaper)));
    said.extend(job.other_job.map(|other| say!(t, "other-job", job = other.to_string(), number = number(other))));
    if job.expensive && !job.is_split {
        said.push(say!(t, "expensive"));
    }
    said.push(say!(t, "to-stop", number = number(job.job)));
    lines(said)
}

/// The line that says why nothing is searched now.
fn resting(t: &TextTable, rests: Rests) -> String {
    match rests {
        Rests::Until(time) => say!(t, "rests-until", time = time_of_day(time)),
        Rests::Now => say!(t, "rests-now"),
    }
}

/// Lines that say when and how the result comes.
fn arrival(t: &TextTable, queue: Duration, is_split: bool, place: Option<usize>) -> Vec<String> {
    let mut said = Vec::new();
    if !queue.is_zero() {
        said.push(say!(t, "queue", span = span(t, queue)));
    }
    if is_split {
        said.push(say!(t, "at-your-point"));
        said.extend(place.map(|place| say!(t, "place-in-line", place = place)));
        said.push(say!(t, "tweak-comes"));
    } else {
        said.push(say!(t, "key-comes"));
    }
    said
}

fn best_acceptance(t: &TextTable, job: &BestAcceptance) -> String {
    let mut said = vec![say!(t, "accepted", job = job.job.to_string(), patterns = job.explanation.best.to_string())];
    said.extend(best_explanation(t, &job.explanation));
    said.extend(job.rests.map(|rests| resting(t, rests)));
    said.extend(arrival(t, job.queue, job.is_split, job.place));
    said.push(say!(t, "to-stop", number = number(job.job)));
    lines(said)
}

fn best_explanation(t: &TextTable, explained: &BestExplanation) -> Vec<String> {
    let mut said = vec![best_means(t, &explained.best)];
    said.extend(
        explained.likely.as_ref().map(|likely| say!(t, "best-likely", amount = one_in(t, likely.difficulty()))),
    );
    said.push(say!(t, "best-takes", span = span(t, explained.takes)));
    said
}

fn looks_alike(t: &TextTable, cheaper: &CheaperPattern) -> String {
    say!(t, "looks-alike", pattern = cheaper.pattern.to_string(), span = span(t, cheaper.expected))
}

/// The lines with the nearest pattern, or with an example.
fn instead(t: &TextTable, nearest: &Option<Pattern>) -> String {
    match nearest {
        Some(nearest) => say!(t, "unsupported-nearest", nearest = nearest.to_string()),
        None => say!(t, "unsupported-example"),
    }
}

/// Joins as many explanations as fit into one answer, but at least one.
fn explanations(t: &TextTable, explained: &[Explanation], more: usize) -> String {
    let with = |shown: usize| {
        let mut said: Vec<String> = explained.iter().take(shown).map(|one| explanation(t, one)).collect();
        let more = more + explained.len().saturating_sub(shown);
        if more > 0 {
            said.push(say!(t, "and-more-jobs", count = more));
        }
        if let Some(first) = explained.iter().take(shown).find(|one| one.is_accepted) {
            said.push(say!(t, "explain-find", pattern = first.pattern.to_string()));
        }
        lines(said)
    };
    let fits = |text: &String| text.chars().count() <= MOST_CHARACTERS && text.lines().count() <= MOST_LINES;
    (2..=explained.len()).rev().map(with).find(fits).unwrap_or_else(|| with(1))
}

fn explanation(t: &TextTable, one: &Explanation) -> String {
    let mut said = vec![means(t, &one.pattern), odds(t, one.pattern.difficulty())];
    if one.is_accepted {
        said.push(one.expected.map_or_else(|| say!(t, "no-speed-yet"), |takes| expected(t, takes)));
        said.extend(one.cheaper.as_ref().map(|cheaper| looks_alike(t, cheaper)));
    } else {
        said.extend([say!(t, "needs-start"), instead(t, &one.nearest)]);
    }
    lines(said)
}

/// The text of a status with as many jobs as fit, but at least one.
fn status(t: &TextTable, open: &[JobLine], results: &[JobId], at_work: String) -> String {
    let with = |shown| lines(status_lines(t, open, results, shown).into_iter().chain([at_work.clone()]));
    let fits = |text: &String| text.chars().count() <= MOST_CHARACTERS;
    (2..=JOBS_SHOWN).rev().map(with).find(fits).unwrap_or_else(|| with(1))
}

fn status_lines(t: &TextTable, open: &[JobLine], results: &[JobId], shown: usize) -> Vec<String> {
    let mut said: Vec<String> = open.iter().take(shown).map(|line| job_line(t, line)).collect();
    if open.len() > shown {
        said.push(say!(t, "and-more-jobs", count = open.len() - shown));
    }
    if open.is_empty() {
        said.push(say!(t, "no-jobs"));
    }
    if !results.is_empty() {
        said.push(say!(t, "kept-keys", jobs = list(t, results)));
    }
    said
}

fn job_line(t: &TextTable, line: &JobLine) -> String {
    let (job, waited) = (line.job.to_string(), span(t, line.waited));
    if let Some(search) = &line.best {
        let best = search.best.to_string();
        return match &search.kept {
            Some(kept) => {
                let amount = one_in(t, kept.difficulty());
                say!(t, "job-line-best", job = job, best = best, waited = waited, amount = amount)
            }
            None => say!(t, "job-line", job = job, patterns = best, waited = waited),
        };
    }
    let patterns = any_of(t, &line.patterns, PATTERNS_SHOWN);
    if let Some((mean, chance)) = line.expected {
        let (mean, chance) = (span(t, mean), format!("{:.0}", 100.0 * chance));
        say!(t, "job-line-expected", job = job, patterns = patterns, waited = waited, mean = mean, chance = chance)
    } else {
        say!(t, "job-line", job = job, patterns = patterns, waited = waited)
    }
}

fn nothing_to_cancel(t: &TextTable, asked: Option<JobId>, open: &[JobId]) -> String {
    let missing = match asked {
        Some(asked) => say!(t, "no-such-job", job = asked.to_string()),
        None => say!(t, "no-open-job"),
    };
    let instead = match open {
        [] => say!(t, "start-one"),
        [first, ..] => say!(t, "cancel-one", jobs = list(t, open), number = number(*first)),
    };
    lines([missing, instead])
}

fn nothing_to_resend(t: &TextTable, asked: Option<JobId>, kept: &[JobId]) -> String {
    let missing = match asked {
        Some(asked) => say!(t, "no-such-key", job = asked.to_string()),
        None => say!(t, "no-key"),
    };
    let instead = match kept {
        [] => say!(t, "resend-later"),
        [first, ..] => say!(t, "resend-one", jobs = list(t, kept), number = number(*first)),
    };
    lines([missing, instead])
}

fn bad_words(t: &TextTable, words: &[(String, PatternError)]) -> String {
    let line = |(word, error): &(String, PatternError)| {
        say!(t, "bad-word", word = shown(word), reason = pattern_error(t, error))
    };
    lines(words.iter().map(line).chain([say!(t, "send-only-the-prefix")]))
}

/// Each language with the words that choose it.
fn languages(t: &TextTable) -> String {
    let command = |language: Language| {
        let table = TextTable::of(language);
        say!(table, "choose-language", code = language.code(), name = say!(table, "language-name"))
    };
    lines([say!(t, "languages")].into_iter().chain(Language::ALL.map(command)))
}
