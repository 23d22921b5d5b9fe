//! The answers of the bot, in the language of their asker, but for those about a search
//! (`decide.rs`).

use super::phrases::{
    TextTable, any_of, at_work, list, number, one_in, pattern_error, point_error, reply, say, shown, span, time_of_day,
};
use super::policy::Facts;
use super::price::phone_time;
use super::reading::read_text;
use super::request::{ChatContext, Intent, OfferReason};
use crate::job::{Asker, JobId};
use crate::key::{HalfPointError, Npub};
use crate::language::Language;
use crate::ledger::Job;
use crate::pattern::{Pattern, PatternError};
use std::time::Duration;

/// The most characters of a message: some twenty lines on a phone.
const MAX_CHARACTERS: usize = 1500;
/// The most lines of a message.
const MAX_LINES: usize = 20;
/// The most jobs with a line each in a status.
const JOBS_SHOWN: usize = 5;
/// Characters available for a job's prefixes in a line of a status.
const PATTERNS_SHOWN: usize = 90;
/// The most patterns that are shown, ready to send.
const MAX_OFFERED: usize = 3;

/// An answer.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct BotReply {
    /// The id of the text that the answer begins with, such as `too-hard`.
    pub topic: &'static str,
    /// The text.
    pub text: String,
}

impl BotReply {
    /// The answer with further lines.
    pub(super) fn and(self, more: impl IntoIterator<Item = String>) -> BotReply {
        BotReply { text: lines([self.text].into_iter().chain(more)), ..self }
    }
}

pub(super) fn lines(parts: impl IntoIterator<Item = String>) -> String {
    parts.into_iter().collect::<Vec<_>>().join("\n")
}

/// Whether a text has the length of an answer.
pub(super) fn fits(text: &str) -> bool {
    text.chars().count() <= MAX_CHARACTERS && text.lines().count() <= MAX_LINES
}

/// The text with as many of up to `most` items as fit into an answer, but at least one.
pub(super) fn as_many_as_fit(most: usize, with: impl Fn(usize) -> String) -> String {
    (2..=most).rev().map(&with).find(|text| fits(text)).unwrap_or_else(|| with(1))
}

pub(super) fn help(t: &TextTable, facts: &Facts<'_>) -> BotReply {
    reply!(t, "help").and(page_line(t, facts)).and([at_work(t, facts.open_jobs(), facts.rate)])
}

pub(super) fn split_help(t: &TextTable, facts: &Facts<'_>) -> BotReply {
    reply!(t, "split-help").and(page_line(t, facts))
}

/// The line that names the bot's page.
fn page_line(t: &TextTable, facts: &Facts<'_>) -> Option<String> {
    facts.page.map(|page| say!(t, "page", url = page))
}

pub(super) fn needs_sealed(t: &TextTable, facts: &Facts<'_>) -> BotReply {
    reply!(t, "needs-sealed").and(facts.page.map(|page| say!(t, "needs-sealed-page", page = page)))
}

/// The answer to a request that costs proof of work now, with the command that does it.
pub(super) fn price(t: &TextTable, bits: u32, author: Asker, facts: &Facts<'_>) -> BotReply {
    let page = facts.page.map(|page| say!(t, "price-page", page = page));
    let command = format!("npubbot work {} {} {bits}", facts.bot, Npub(author.0));
    let costs = reply!(t, "price", bits = bits, span = span(t, phone_time(bits)));
    costs.and(page).and([say!(t, "price-command", command = command)])
}

pub(super) fn foreign_language(t: &TextTable) -> BotReply {
    let names: Vec<String> = Language::ALL.map(|language| say!(TextTable::of(language), "language-name")).to_vec();
    reply!(t, "foreign-language", names = names.join(&say!(t, "comma"))).and([say!(t, "chat-answer")])
}

/// Each language with the words that choose it.
pub(super) fn languages(t: &TextTable) -> BotReply {
    let command = |language: Language| {
        let table = TextTable::of(language);
        say!(table, "choose-language", code = language.code(), name = say!(table, "language-name"))
    };
    reply!(t, "languages").and(Language::ALL.map(command))
}

pub(super) fn bad_point(t: &TextTable, error: Option<HalfPointError>) -> BotReply {
    let reason = match error {
        Some(HalfPointError::Secret) => return reply!(t, "secret-key"),
        Some(error) => reply!(t, "bad-point", reason = point_error(t, error)),
        None => reply!(t, "no-point"),
    };
    reason.and([say!(t, "send-a-point")])
}

pub(super) fn bad_words(t: &TextTable, words: &[(String, PatternError)]) -> BotReply {
    let line = |(word, error): &(String, PatternError)| {
        say!(t, "bad-word", word = shown(word), reason = pattern_error(t, error))
    };
    let text = lines(words.iter().map(line));
    BotReply { topic: "bad-word", text }.and([say!(t, "send-only-the-prefix")])
}

/// The line with the nearest pattern, or with an example.
pub(super) fn instead(t: &TextTable, nearest: Option<&Pattern>) -> String {
    match nearest {
        Some(nearest) => say!(t, "unsupported-nearest", nearest = nearest.to_string()),
        None => say!(t, "unsupported-example"),
    }
}

/// Lines with patterns that are ready to send.
pub(super) fn offer(t: &TextTable, patterns: &[Pattern], reason: &OfferReason) -> BotReply {
    let first = match reason {
        OfferReason::Impossible(character) => reply!(t, "offer-impossible", character = character.to_string()),
        OfferReason::Accent => reply!(t, "offer-accent"),
        OfferReason::OtherScript(character, latin) => {
            reply!(t, "offer-script", character = character.to_string(), latin = latin.to_string())
        }
        OfferReason::Unsure => reply!(t, "offer-unsure"),
        OfferReason::Uneven(easiest) => reply!(t, "offer-uneven", easiest = easiest.to_string()),
        OfferReason::Change(job) => reply!(t, "offer-change", job = job.to_string(), number = number(*job)),
    };
    first.and(patterns.iter().take(MAX_OFFERED).map(|pattern| line_to_send(t, pattern)))
}

/// A line that searches for a pattern when it is sent: the pattern itself, or after `find`.
fn line_to_send(t: &TextTable, pattern: &Pattern) -> String {
    let context = ChatContext { language: t.language(), ..ChatContext::default() };
    match read_text(pattern.as_str(), &context).intent == Intent::search(vec![pattern.clone()]) {
        true => pattern.to_string(),
        false => say!(t, "find-it", prefix = pattern.to_string()),
    }
}

/// The answer to `cancel` that names no open job, or is not certain enough to be obeyed.
pub(super) fn cancel_one(t: &TextTable, asked: Option<JobId>, open: &[JobId]) -> BotReply {
    let missing = match asked {
        Some(asked) => reply!(t, "no-such-job", job = asked.to_string()),
        None => reply!(t, "no-open-job"),
    };
    missing.and([match open {
        [] => say!(t, "start-one"),
        [first, ..] => say!(t, "cancel-one", jobs = list(t, open), number = number(*first)),
    }])
}

pub(super) fn nothing_to_resend(t: &TextTable, asked: Option<JobId>, kept: &[JobId]) -> BotReply {
    let missing = match asked {
        Some(asked) => reply!(t, "no-such-key", job = asked.to_string()),
        None => reply!(t, "no-key"),
    };
    missing.and([match kept {
        [] => say!(t, "resend-later"),
        [first, ..] => say!(t, "resend-one", jobs = list(t, kept), number = number(*first)),
    }])
}

/// The line that says why nothing is searched now.
pub(super) fn resting(t: &TextTable, facts: &Facts<'_>) -> Option<String> {
    let begins = facts.now.saturating_add(facts.until_hours().as_secs());
    match begins > facts.now {
        _ if facts.is_stopped => Some(say!(t, "rests-now")),
        true => Some(say!(t, "rests-until", time = time_of_day(begins))),
        false => None,
    }
}

/// The asker's jobs and keys, with as many jobs as fit.
pub(super) fn status(t: &TextTable, facts: &Facts<'_>) -> BotReply {
    let (open, results) = (&facts.asker.open, &facts.asker.results);
    let with = |shown: usize| {
        let mut said: Vec<String> = open.iter().take(shown).map(|job| job_line(t, job, facts)).collect();
        if open.len() > shown {
            said.push(say!(t, "and-more-jobs", count = open.len() - shown));
        }
        if open.is_empty() {
            said.push(say!(t, "no-jobs"));
        }
        if !results.is_empty() {
            said.push(say!(t, "kept-keys", jobs = list(t, results)));
        }
        said.push(at_work(t, facts.open_jobs(), facts.rate));
        said.extend(resting(t, facts));
        lines(said)
    };
    BotReply { topic: "status", text: as_many_as_fit(JOBS_SHOWN, with) }
}

fn job_line(t: &TextTable, job: &Job, facts: &Facts<'_>) -> String {
    let waited = span(t, Duration::from_secs(facts.now.saturating_sub(job.accepted_at)));
    let (id, patterns) = (job.id.to_string(), &job.spec.patterns);
    if let Some(search) = &job.spec.best {
        let best = search.best.to_string();
        return match &search.kept {
            Some(kept) => {
                let amount = one_in(t, kept.difficulty());
                say!(t, "job-line-best", job = id, best = best, waited = waited, amount = amount)
            }
            None => say!(t, "job-line", job = id, patterns = best, waited = waited),
        };
    }
    let patterns = any_of(t, patterns, PATTERNS_SHOWN);
    match facts.progress(job) {
        Some((mean, chance)) => {
            let (mean, chance) = (span(t, mean), format!("{:.0}", 100.0 * chance));
            say!(t, "job-line-expected", job = id, patterns = patterns, waited = waited, mean = mean, chance = chance)
        }
        None => say!(t, "job-line", job = id, patterns = patterns, waited = waited),
    }
}
