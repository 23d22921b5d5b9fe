//! Rules for every text of the bot: plain text without markup, and short.

use super::patterns::KINDS;
use super::{NOW, POINT, context, job, limits, rumor};
use crate::bot::notices::ResultKind;
use crate::bot::phrases::{FILES, shown};
use crate::bot::reading::read_text;
use crate::bot::reply::{MOST_CHARACTERS, MOST_LINES};
use crate::bot::request::{ChatContext, Intent, MessageReading, OfferReason, RequestedKeys};
use crate::bot::text::is_invisible;
use crate::bot::{BotReply, Facts, decide, notices, read};
use crate::config::Limits;
use crate::hours::Hours;
use crate::job::{BestSearch, JobId, JobSpec, Priority};
use crate::key::{HalfPointError, Npub};
use crate::language::Language;
use crate::ledger::{AskerView, Job};
use crate::pattern::{Best, Family, Pattern, PatternError, Rate};
use crate::scheduler::{Shares, WaitEstimate};
use crate::vault::Rumor;
use proptest::prelude::*;
use std::collections::HashSet;
use std::time::Duration;

/// Errors that random texts hardly ever cause.
fn errors() -> Vec<PatternError> {
    let number = |keyword: &'static str, nearest: Option<&str>| {
        let (nearest, example) = (nearest.map(str::to_owned), format!("{keyword}7"));
        PatternError::Number { keyword, least: 2, most: 51, nearest, example }
    };
    let long = "m0ctane".repeat(7);
    vec![
        PatternError::Impossible(51),
        PatternError::Empty,
        PatternError::TooLong(53),
        PatternError::Anything,
        PatternError::Class,
        number("=", None),
        number("=", Some("=12*")),
        number("zeros:", Some("zeros:255")),
        PatternError::Hex(None),
        PatternError::Hex(Some(format!("hex:*{}", "dead".repeat(15)))),
        PatternError::HexTooLong(65),
        PatternError::Within(None),
        PatternError::Within(Some(format!("*{long}*@58"))),
        PatternError::TooMany(47),
        PatternError::Ending(None),
        PatternError::Ending(Some(long.clone())),
        PatternError::TooIntricate,
        PatternError::Best,
        PatternError::Forbidden { character: 'b', nearest: vec![long.clone(), long.clone()], look_alike: Some(long) },
    ]
}

/// Random values for the replies.
#[derive(Clone, Debug)]
struct Filling {
    /// At least one.
    patterns: Vec<Pattern>,
    /// At least one.
    jobs: Vec<JobId>,
    /// Text of an asker.
    text: String,
    count: usize,
    seconds: u64,
    rate: Option<Rate>,
    yes: bool,
}

fn filling() -> impl Strategy<Value = Filling> {
    let prefix = "[qpzry9x8gf2tvdw0s3jn54khce6mua7l]{1,51}".prop_map(|text| Pattern::parse(&text).unwrap());
    let other = prop::sample::select(KINDS.to_vec()).prop_map(|text| text.parse().unwrap());
    let pattern = prop_oneof![prefix, other];
    let jobs = prop::collection::vec((1..=i64::MAX).prop_map(JobId), 1..40);
    let rate = prop::option::of((1.0..1e15).prop_map(Rate));
    let numbers = (0..=usize::MAX, any::<u64>(), rate, any::<bool>());
    (prop::collection::vec(pattern, 1..=64), jobs, text(), numbers).prop_map(
        |(patterns, jobs, text, (count, seconds, rate, yes))| Filling {
            patterns,
            jobs,
            text,
            count,
            seconds: seconds >> (count % 64),
            rate,
            yes,
        },
    )
}

/// Any text, and text that a client could show as markup if it is repeated.
fn text() -> impl Strategy<Value = String> {
    const MARKS: &str = "**b**¦*b*¦_b_¦__b__¦`b`¦```¦# b¦## b¦#¦> b¦- b¦1. b¦~~b~~¦||b||¦[b](http://b.example)¦![b](b)¦<b>¦\
        </b>¦<!--b-->¦<script>¦&lt;b&gt;¦\n# b¦\n- b¦---¦===¦|b|b|¦\\*b\\*¦b0b¦oops¦npub1bob¦nostr:npub1¦\u{202e}b¦\u{200b}#\u{200b} b";
    let marks = prop::sample::select(MARKS.split('¦').collect::<Vec<_>>());
    let marked = prop::collection::vec(marks, 1..12).prop_map(|marks| marks.join(" "));
    prop_oneof![marked, any::<String>(), "[!-~ ]{0,200}"]
}

/// Messages that start no search, with these values.
fn intents(filling: &Filling) -> Vec<Intent> {
    let Filling { patterns, jobs, count, yes, .. } = filling.clone();
    let nearest = yes.then(|| patterns[0].clone());
    let mut intents = vec![
        Intent::Explain(RequestedKeys::Patterns(patterns.clone())),
        Intent::Explain(RequestedKeys::Best(best(filling))),
        Intent::BadPoint(None),
        Intent::Unsupported(nearest),
        Intent::TooManyWords(count),
        Intent::Help,
        Intent::SplitHelp,
        Intent::Status,
        Intent::Cancel(None),
        Intent::Cancel(Some(jobs[0])),
        Intent::Cancel(Some(JobId(-1))),
        Intent::ShowCancel,
        Intent::Resend(None),
        Intent::Resend(Some(JobId(-1))),
        Intent::Stop,
        Intent::Start,
        Intent::Delete,
        Intent::Language(Language::German),
        Intent::Languages,
        Intent::Greeting,
        Intent::ForeignLanguage,
    ];
    let half_errors =
        [HalfPointError::NotAPoint, HalfPointError::NotOnCurve, HalfPointError::Damaged, HalfPointError::Secret];
    intents.extend(half_errors.map(|error| Intent::BadPoint(Some(error))));
    let words = |errors: &[PatternError]| errors.iter().map(|error| ("q".to_owned(), error.clone())).collect();
    intents.extend(errors().chunks(3).map(|errors| Intent::BadWords(words(errors))));
    // The asker's words are repeated in the form in which they were read.
    let reasons = [
        OfferReason::Impossible('b'),
        OfferReason::Accent,
        OfferReason::OtherScript('а', 'a'),
        OfferReason::Unsure,
        OfferReason::Uneven(patterns[0].clone()),
        OfferReason::Change(jobs[0]),
    ];
    intents.extend(reasons.map(|reason| Intent::Offer(patterns.clone(), reason)));
    let read = read_text(&filling.text, &ChatContext::default()).intent;
    intents.extend(Some(read).filter(|read| matches!(read, Intent::BadWords(_))));
    let fixed = ids_after("Say(", &[include_str!("../message.rs"), include_str!("../reading.rs")]);
    intents.extend(fixed.into_iter().map(Intent::Say));
    intents
}

fn best(filling: &Filling) -> Best {
    let family = [Family::Any, Family::Zeros, Family::Words][filling.count % 3];
    Best { family, time: Duration::from_secs(1 + filling.seconds % 600) }
}

/// The ids of texts in a source, each after this piece of code.
fn ids_after(code: &str, sources: &[&'static str]) -> HashSet<&'static str> {
    let code = format!("{code}\"");
    let pieces = sources.iter().flat_map(|source| source.split(code.as_str()).skip(1));
    pieces.filter_map(|piece| piece.split('"').next()).collect()
}

/// Replies to every kind of message, with these values.
fn replies(filling: &Filling, language: Language) -> Vec<BotReply> {
    let Filling { patterns, jobs, count, rate, yes, .. } = filling.clone();
    let limits = Limits {
        prefixes_per_job: 64,
        open_jobs_per_asker: if yes { 64 } else { usize::MAX },
        jobs_per_day: 4,
        longest_expected_time: Duration::from_secs(u64::from(u32::MAX) << 20),
        ..limits()
    };
    let open = |(number, id): (usize, &JobId)| {
        let mut open = job(id.0, "q");
        open.accepted_at = filling.seconds.min(NOW);
        open.spec.patterns = if yes { patterns.clone() } else { vec![patterns[number % patterns.len()].clone()] };
        let kept = (number % 3 == 1).then(|| patterns[0].clone());
        open.spec.best = (number % 3 > 0).then(|| Box::new(BestSearch { kept, ..BestSearch::new(best(filling)) }));
        open
    };
    let nobody = AskerView::default();
    let busy =
        AskerView { open: jobs.iter().enumerate().map(open).collect(), results: jobs.clone(), ..AskerView::default() };
    let one = AskerView { open: vec![job(1, "cat")], ..AskerView::default() };
    let idle = context(&limits, &nobody);
    let night = Hours::parse("22:00-06:00", "UTC").unwrap();
    let shares = Shares {
        pool_jobs: count >> 1,
        place_of_one_more: yes.then_some(count),
        pool_part: 0.3,
        top_words_part: 0.5,
        ..idle.shares
    };
    let queue = WaitEstimate { wait: Duration::from_secs(filling.seconds >> 20), ..idle.queue };
    let calm = Facts {
        rate,
        shares,
        queue,
        priority: Priority::Friend,
        page: yes.then_some("https://bot.example/page"),
        hours: (count % 3 == 1).then_some(&night),
        is_stopped: count % 3 == 2,
        ..idle
    };
    let mut said = Vec::new();
    let mut say = |rumor: Rumor, intent: Intent, facts: &Facts<'_>| {
        let reading = MessageReading { intent, language, shadowed: yes.then(|| patterns[0].clone()) };
        said.extend(decide(&read(&rumor), &reading, facts).1);
    };
    for asker in [&nobody, &busy, &one] {
        for intent in intents(filling) {
            say(rumor(""), intent, &Facts { asker, ..calm });
        }
    }
    let half = POINT.parse().ok();
    let (all, rarest) = (RequestedKeys::Patterns(patterns.clone()), RequestedKeys::Best(best(filling)));
    for (target, half) in [(&all, None), (&all, half), (&rarest, None), (&rarest, half)] {
        say(rumor(""), Intent::Search(target.clone(), half), &calm);
    }
    // Other kinds of messages.
    let silent = AskerView { silent: true, ..AskerView::default() };
    say(rumor(""), Intent::Start, &Facts { asker: &silent, ..calm });
    for kind in [4, 15, 444] {
        say(Rumor { kind, ..rumor("") }, Intent::Help, &calm);
    }
    said
}

/// Texts other than replies: key, tweak, notices, apology.
fn notices(filling: &Filling, language: Language) -> Vec<String> {
    let (job, pattern, npub) = (filling.jobs[0], &filling.patterns[0], Npub([filling.count as u8; 32]));
    let waited = Duration::from_secs(filling.seconds);
    let open = Job {
        id: job,
        accepted_at: filling.seconds / 2,
        spec: JobSpec { expires_at: filling.seconds, ..JobSpec::local(filling.patterns.clone()) },
        language,
        ..super::job(1, "q")
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
        notices::restored(language),
        notices::paused(language, filling.seconds),
        notices::tips(language, "me@example.com").trim_start().to_owned(),
    ]
}

/// Patterns that the texts show as examples. Like those of askers they have marks such as `~`.
const EXAMPLES: [&str; 7] =
    ["*[lq][lq][lq][lq][lq][lq][lq][lq]*", "~hanako", "~m0ctane", "*m0ct*@12", "*m0ct", "[s5]at0sh", "[s5]"];

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

/// A text with `x` in place of each pattern, such as a look-alike that the bot suggests.
fn without_patterns(text: &str) -> String {
    let ends = |c: char| c.is_whitespace() || ".,:;：、。「」“”„«»".contains(c);
    let shown = |piece: &str| match piece.trim_end_matches(ends) {
        word if word.parse::<Pattern>().is_ok() => piece.replacen(word, "x", 1),
        _ => piece.to_owned(),
    };
    text.split_inclusive(|c: char| c != '.' && ends(c)).map(shown).collect()
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

/// Every text of the tables, also those that no random values bring about.
#[test]
fn no_text_of_the_tables_has_markup() {
    for (language, file) in FILES {
        for line in file.lines().filter(|line| !line.starts_with('#')) {
            let text = line.split_once(" = ").map_or(line, |(_, text)| text).trim();
            let is_marked = ["`", "**", "__", "~~", "<", "]("].iter().any(|mark| text.contains(mark));
            let is_item = ["- ", "+ ", "# ", "> "].iter().any(|mark| text.starts_with(mark));
            assert!(!is_marked && !is_item, "{language:?}: {line}");
        }
    }
}

proptest! {
    // Each case tries every answer, so a few cases are enough.
    #![proptest_config(ProptestConfig { cases: ProptestConfig::default().cases.min(24), ..ProptestConfig::default() })]

    #[test]
    fn everything_that_is_said_is_plain_and_short(
        filling in filling(),
        language in prop::sample::select(Language::ALL.to_vec()),
    ) {
        let replies = replies(&filling, language);
        let shown_words = shown_words(&filling);
        for text in replies.into_iter().map(|reply| reply.text).chain(notices(&filling, language)) {
            let hidden = text.chars().find(|&c| is_invisible(c) || (c.is_control() && c != '\n'));
            prop_assert_eq!(hidden, None, "{:?}", text);
            let plain = shown_words.iter().fold(text.clone(), |text, word| text.replace(word, "x"));
            let plain = without_patterns(&plain);
            prop_assert_eq!(markup(&plain), None, "{}", text);
            let length = text.chars().count();
            prop_assert!(length <= MOST_CHARACTERS && !text.trim().is_empty(), "{} characters: {}", length, text);
            prop_assert!(text.lines().count() <= MOST_LINES, "{}", text);
        }
    }
}
