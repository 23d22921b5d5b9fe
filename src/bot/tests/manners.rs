//! Rules for every text of the bot: plain text without markup, and short.

use super::errors::errors;
use super::patterns::KINDS;
use crate::bot::notices::ResultKind;
use crate::bot::phrases::shown;
use crate::bot::policy::{Rests, Takes};
use crate::bot::reading::read_text;
use crate::bot::reply::{Acceptance, BestAcceptance, BestExplanation, CheaperPattern, Explanation, JobLine};
use crate::bot::request::{ChatContext, Intent, OfferReason, Question, ShownCommand};
use crate::bot::text::is_invisible;
use crate::bot::wording::{MOST_CHARACTERS, MOST_LINES};
use crate::bot::{BotReply, Price, notices};
use crate::job::{BestSearch, JobId, JobSpec};
use crate::key::{HalfPointError, Npub};
use crate::language::Language;
use crate::ledger::{HalfUse, Job, JobState};
use crate::pattern::{Best, Difficulty, Family, Pattern, PatternError, Rate};
use proptest::prelude::*;
use std::collections::HashSet;
use std::time::Duration;
use strum::EnumCount;

/// Random values for the replies.
#[derive(Clone, Debug)]
pub(super) struct Filling {
    /// At least one.
    pub patterns: Vec<Pattern>,
    /// At least one.
    pub jobs: Vec<JobId>,
    /// Text of an asker.
    pub text: String,
    pub count: usize,
    pub seconds: u64,
    pub rate: Option<Rate>,
    pub part: f64,
    pub yes: bool,
}

fn filling() -> impl Strategy<Value = Filling> {
    let prefix = "[qpzry9x8gf2tvdw0s3jn54khce6mua7l]{1,51}".prop_map(|text| Pattern::parse(&text).unwrap());
    let other = prop::sample::select(KINDS.to_vec()).prop_map(|text| text.parse().unwrap());
    let pattern = prop_oneof![prefix, other];
    let jobs = prop::collection::vec((1..=i64::MAX).prop_map(JobId), 1..40);
    let rate = prop::option::of((1.0..1e15).prop_map(Rate));
    let numbers = (0..=usize::MAX, any::<u64>(), rate, 0.0..=1.0, any::<bool>());
    (prop::collection::vec(pattern, 1..=64), jobs, text(), numbers).prop_map(
        |(patterns, jobs, text, (count, seconds, rate, part, yes))| Filling {
            patterns,
            jobs,
            text,
            count,
            seconds: seconds >> (count % 64),
            rate,
            part,
            yes,
        },
    )
}

/// Any text, and text that a client could show as markup if it is repeated.
fn text() -> impl Strategy<Value = String> {
    let marks = prop::sample::select(vec![
        "**b**",
        "*b*",
        "_b_",
        "__b__",
        "`b`",
        "```",
        "# b",
        "## b",
        "#",
        "> b",
        "- b",
        "1. b",
        "~~b~~",
        "||b||",
        "[b](http://b.example)",
        "![b](b)",
        "<b>",
        "</b>",
        "<!--b-->",
        "<script>",
        "&lt;b&gt;",
        "\n# b",
        "\n- b",
        "---",
        "===",
        "|b|b|",
        "\\*b\\*",
        "b0b",
        "oops",
        "npub1bob",
        "nostr:npub1",
        "\u{202e}b",
        "\u{200b}#\u{200b} b",
    ]);
    let marked = prop::collection::vec(marks, 1..12).prop_map(|marks| marks.join(" "));
    prop_oneof![marked, any::<String>(), "[!-~ ]{0,200}"]
}

/// Every kind of reply, with these values.
pub(super) fn answers(filling: &Filling) -> Vec<BotReply> {
    let Filling { patterns, jobs, count, rate, yes, .. } = filling.clone();
    let (job, time) = (jobs[0], Duration::from_secs(filling.seconds));
    let difficulty = Difficulty::any_of(patterns.iter().map(Pattern::difficulty)).unwrap();
    let line = |(job, pattern): (&JobId, &Pattern)| JobLine {
        job: *job,
        patterns: if yes { patterns.clone() } else { vec![pattern.clone()] },
        best: None,
        waited: time,
        expected: rate.map(|_| (time, filling.part)),
    };
    let rests = [None, Some(Rests::Now), Some(Rests::Until(filling.seconds))][count % 3];
    let cheaper = yes.then(|| CheaperPattern { pattern: patterns[0].clone(), expected: time });
    let explained = |pattern: &Pattern| Explanation {
        pattern: pattern.clone(),
        is_accepted: yes,
        expected: rate.map(|_| Takes::without_pause(time)),
        nearest: Some(patterns[0].clone()),
        cheaper: cheaper.clone(),
    };
    let accepted = |is_split| Acceptance {
        job,
        patterns: patterns.clone(),
        difficulty,
        takes: rate.map(|_| Takes::without_pause(time)),
        rests,
        queue: if yes { time } else { Duration::ZERO },
        is_split,
        place: yes.then_some(count),
        expensive: yes,
        other_job: yes.then_some(job),
        cheaper: cheaper.clone(),
    };
    let family = [Family::Any, Family::Zeros, Family::Words][count % 3];
    // A bot suggests no search longer than it accepts.
    let best = Best { family, time: Duration::from_secs(1 + filling.seconds % 86_400) };
    let search = BestSearch { kept: yes.then(|| patterns[0].clone()), ..BestSearch::new(best) };
    let explained_best = BestExplanation { best, likely: rate.map(|_| patterns[0].clone()), takes: time };
    let accepted_best = |is_split| BestAcceptance {
        job,
        explanation: explained_best.clone(),
        rests,
        queue: if yes { time } else { Duration::ZERO },
        is_split,
        place: yes.then_some(count),
    };
    let of_best = |job: &JobId| JobLine { best: Some(search.clone()), ..line((job, &patterns[0])) };
    let some = |yes: bool| if yes { jobs.clone() } else { Vec::new() };
    let (asked, lines) = (yes.then_some(job), jobs.iter().zip(&patterns).map(line).collect());
    let page = yes.then(|| "https://bot.example/".to_owned());
    let half_errors =
        [HalfPointError::NotAPoint, HalfPointError::NotOnCurve, HalfPointError::Damaged, HalfPointError::Secret];
    let mut answers = vec![
        BotReply::Accepted(accepted(false)),
        BotReply::Accepted(accepted(true)),
        BotReply::AcceptedBest(accepted_best(false)),
        BotReply::AcceptedBest(accepted_best(true)),
        BotReply::ExplainedBest(explained_best.clone()),
        BotReply::BestTooLong { best },
        BotReply::Status {
            open: jobs.iter().map(of_best).collect(),
            results: some(yes),
            open_jobs: count,
            rate,
            rests,
        },
        BotReply::Help { open_jobs: count, rate, page: page.clone() },
        BotReply::Status { open: lines, results: some(yes), open_jobs: count, rate, rests },
        BotReply::Status { open: Vec::new(), results: some(!yes), open_jobs: count, rate, rests },
        BotReply::Cancelled(jobs.clone()),
        BotReply::Cancelled(vec![job]),
        BotReply::NothingToCancel { asked, open: some(yes) },
        BotReply::NothingToCancel { asked, open: some(!yes) },
        BotReply::SentAgain(job),
        BotReply::NothingToResend { asked, kept: some(yes) },
        BotReply::NothingToResend { asked, kept: some(!yes) },
        BotReply::Answer(
            [Question::Who, Question::Price, Question::Safety, Question::Import, Question::Seed][count % 5],
        ),
        BotReply::Show {
            command: [ShownCommand::Cancel, ShownCommand::Delete, ShownCommand::Stop][count % 3],
            open: some(yes),
        },
        BotReply::Thanks,
        BotReply::Chat,
        BotReply::WhichNext,
        BotReply::LatinLetters,
        BotReply::ForeignLanguage,
        BotReply::TooManyPrefixes { asked: count, allowed: count },
        BotReply::AlreadySearching { job },
        BotReply::ResultNotTaken,
        BotReply::TooManyNotTaken,
        BotReply::TooManyOpen { open: jobs.clone(), allowed: count },
        BotReply::TooManyToday { allowed: count, wait_seconds: filling.seconds },
        too_hard(filling),
        BotReply::NotSearched { pattern: patterns[0].clone(), nearest: yes.then(|| patterns[0].clone()) },
        BotReply::TooWide { asked: count, allowed: count },
        BotReply::TooManyEnds { asked: count, allowed: count },
        BotReply::TooWideNow,
        BotReply::Explained { explained: patterns.iter().take(5).map(explained).collect(), more: count },
        BotReply::Explained { explained: vec![explained(&patterns[0])], more: 0 },
        BotReply::Kinds,
        BotReply::NotMeasured { characters: count as u32 % 52 },
        BotReply::Unsupported { nearest: yes.then(|| patterns[0].clone()) },
        BotReply::Greeting { prefix: yes.then(|| patterns[0].clone()) },
        BotReply::SecretKey,
        BotReply::LanguageSet(Language::German),
        BotReply::Languages,
        BotReply::Paused { until: filling.seconds },
        BotReply::WorkAlone,
        BotReply::Nothing,
        BotReply::TextOnly,
        BotReply::NoGroups,
        BotReply::SplitHelp { page },
        BotReply::BadPoint(None),
        BotReply::PointAlone,
        BotReply::HalfUsed(if yes { HalfUse::Open } else { HalfUse::Spent }),
        BotReply::NeedsSealed { page: yes.then(|| "https://bot.example/page".to_owned()) },
        BotReply::Price(Price {
            bits: count as u32 % 45,
            bot: Npub([1; 32]),
            author: Npub([2; 32]),
            page: yes.then(|| "https://bot.example/page".to_owned()),
        }),
        BotReply::Stopped { open: count },
        BotReply::Started,
        BotReply::Forgotten { open: count },
    ];
    answers.extend(
        errors()
            .chunks(3)
            .map(|errors| BotReply::BadWords(errors.iter().map(|error| ("q".to_owned(), error.clone())).collect())),
    );
    answers.extend([BotReply::Restored, BotReply::FriendsOnly]);
    answers.extend(half_errors.map(|error| BotReply::BadPoint(Some(error))));
    // The asker's words are repeated in the form in which they were read.
    let reasons = [
        OfferReason::Impossible('b'),
        OfferReason::Accent,
        OfferReason::OtherScript('а', 'a'),
        OfferReason::Unsure,
        OfferReason::Uneven(patterns[0].clone()),
        OfferReason::Change(job),
    ];
    let offered: Vec<Pattern> = patterns.iter().take(3).cloned().collect();
    answers.extend(reasons.map(|reason| BotReply::Offer { patterns: offered.clone(), reason }));
    if let Intent::BadWords(words) = read_text(&filling.text, &ChatContext::default()).intent {
        answers.push(BotReply::BadWords(words));
    }
    answers
}

/// The refusal of a request that takes too long.
fn too_hard(filling: &Filling) -> BotReply {
    let time = Duration::from_secs(filling.seconds);
    let cheaper = filling.yes.then(|| CheaperPattern { pattern: filling.patterns[0].clone(), expected: time });
    BotReply::TooHard { expected: time, limit: time, characters: filling.count as u32 % 52, cheaper }
}

/// Texts other than replies: key, tweak, notices, apology.
pub(super) fn notices(filling: &Filling, language: Language) -> Vec<String> {
    let (job, pattern, npub) = (filling.jobs[0], &filling.patterns[0], Npub([filling.count as u8; 32]));
    let waited = Duration::from_secs(filling.seconds);
    let open = Job {
        id: job,
        accepted_at: filling.seconds / 2,
        spec: JobSpec { expires_at: filling.seconds, ..JobSpec::local(filling.patterns.clone()) },
        language,
        ..super::job(1, "q", JobState::Accepted)
    };
    let after = ResultKind::After(waited);
    vec![
        notices::key_found(&open, pattern, &npub, after),
        notices::key_found(&open, pattern, &npub, ResultKind::Best),
        notices::tweak_found(&open, pattern, &npub, after),
        notices::tweak_found(&open, pattern, &npub, ResultKind::Best),
        notices::late(&open, filling.count as u64),
        notices::given_up(&open),
        notices::lost(&open),
        notices::apology(language),
        notices::tips(language, "me@example.com").trim_start().to_owned(),
    ]
}

/// Patterns that the texts show as examples. Like those of askers they have marks such as `~`.
const EXAMPLES: [&str; 6] = ["~hanako", "~m0ctane", "*m0ct*@12", "*m0ct", "[s5]at0sh", "[s5]"];

/// The patterns and words that the texts of a filling may show, the longest first: its own, the
/// examples, and the suggestions of errors.
fn shown_words(filling: &Filling) -> Vec<String> {
    let mut shown_words: Vec<String> = filling.patterns.iter().map(Pattern::to_string).collect();
    if let Intent::BadWords(words) = read_text(&filling.text, &ChatContext::default()).intent {
        for (word, error) in words {
            shown_words.push(shown(&word));
            shown_words.extend(error.suggestions().into_iter().map(str::to_owned));
            if let PatternError::Forbidden { character, .. } = error {
                // The character stands alone, in the quotes of each language.
                let quotes = [("“", "”"), ("„", "“"), ("«", "»"), ("« ", " »"), ("「", "」")];
                shown_words.extend(quotes.map(|(open, close)| format!("{open}{character}{close}")));
            }
        }
    }
    shown_words.extend(EXAMPLES.map(str::to_owned));
    shown_words.extend(errors().iter().flat_map(PatternError::suggestions).map(str::to_owned));
    shown_words.retain(|word| !word.is_empty());
    shown_words.sort_by_key(|word| std::cmp::Reverse(word.len()));
    shown_words.dedup();
    shown_words
}

/// The first characters in a text that a client may show as markup.
fn markup(text: &str) -> Option<&str> {
    let anywhere = ["`", "*", "_", "~", "<", ">", "|", "](", "&lt;", "&gt;", "&amp;"];
    let at_the_start = |line: &&str| {
        let word = line.split(' ').next().unwrap_or_default();
        let is_heading = !word.is_empty() && word.chars().all(|c| c == '#');
        let is_rule = line.len() > 2 && (line.chars().all(|c| c == '-') || line.chars().all(|c| c == '='));
        let is_number =
            word.strip_suffix(['.', ')']).is_some_and(|n| !n.is_empty() && n.bytes().all(|b| b.is_ascii_digit()));
        is_heading || is_rule || is_number || ["-", "+"].contains(&word) || line.starts_with([' ', '\t'])
    };
    anywhere.into_iter().find(|mark| text.contains(mark)).or_else(|| text.lines().find(at_the_start))
}

#[test]
fn markup_is_recognised() {
    for text in ["**b**", "a\n# b", "[a](b)", "<b>", "a_b_", "a\n- b", "1. a", "x\n---", "    code", "`x`", "&lt;"] {
        assert!(markup(text).is_some(), "{text:?}");
    }
    for text in ["Job #1: npub1cat.", "at 80.0 M/s", "a - b", "#1, #2", "2 jobs", "the tag [\"nonce\", \"20\"]"] {
        assert_eq!(markup(text), None, "{text:?}");
    }
}

proptest! {
    // Each case tries every answer in every language, so a few cases are enough.
    #![proptest_config(ProptestConfig { cases: ProptestConfig::default().cases.min(8), ..ProptestConfig::default() })]

    #[test]
    fn everything_that_is_said_is_plain_and_short(filling in filling()) {
        let answers = answers(&filling);
        let variants: HashSet<_> = answers.iter().map(std::mem::discriminant).collect();
        prop_assert_eq!(variants.len(), BotReply::COUNT, "every answer is tried");
        let texts = |language| {
            answers.iter().map(move |reply| reply.text(language)).chain(notices(&filling, language))
        };
        let shown_words = shown_words(&filling);
        for text in Language::ALL.into_iter().flat_map(texts) {
            let hidden = text.chars().find(|&c| is_invisible(c) || (c.is_control() && c != '\n'));
            prop_assert_eq!(hidden, None, "{:?}", text);
            let plain = shown_words.iter().fold(text.clone(), |text, word| text.replace(word, "x"));
            prop_assert_eq!(markup(&plain), None, "{}", text);
            let length = text.chars().count();
            prop_assert!(length <= MOST_CHARACTERS && !text.trim().is_empty(), "{} characters: {}", length, text);
            prop_assert!(text.lines().count() <= MOST_LINES, "{}", text);
        }
    }
}
