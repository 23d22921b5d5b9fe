//! Rules for every text of the bot: plain text without markup, and short.

use super::patterns::KINDS;
use super::{NOW, POINT, context, job, limits, rumor};
use crate::bot::notices::ResultKind;
use crate::bot::phrases::FILES;
use crate::bot::reply::fits;
use crate::bot::request::{Intent, MessageReading, OfferReason, RequestedKeys};
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
use std::collections::HashSet;
use std::time::Duration;

/// Errors with the longest values.
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

/// Values for the replies.
struct Filling {
    patterns: Vec<Pattern>,
    jobs: Vec<JobId>,
    count: usize,
    seconds: u64,
    rate: Option<Rate>,
    yes: bool,
}

/// The longest values, with other kinds of patterns for each number.
fn longest(number: usize) -> Filling {
    let plain = std::iter::repeat_n("q".repeat(51), 32);
    let kinds = KINDS.iter().cycle().skip(number).take(32).map(ToString::to_string);
    let texts: Vec<String> =
        if number.is_multiple_of(4) { plain.chain(kinds).collect() } else { kinds.chain(plain).collect() };
    Filling {
        patterns: texts.iter().map(|text| text.parse().unwrap()).collect(),
        jobs: (0..40).map(|job| JobId(i64::MAX - job)).collect(),
        count: usize::MAX - number,
        seconds: u64::MAX >> (7 * number % 64),
        rate: Some(Rate(1e15)).filter(|_| !number.is_multiple_of(5)),
        yes: number % 12 < 6,
    }
}

/// The shortest values.
fn shortest() -> Filling {
    let patterns = vec!["q".parse().unwrap()];
    Filling { patterns, jobs: vec![JobId(1)], count: 0, seconds: 0, rate: None, yes: false }
}

/// Messages that start no search, with these values.
fn intents(filling: &Filling) -> Vec<Intent> {
    let Filling { patterns, jobs, count, yes, .. } = filling;
    let nearest = yes.then(|| patterns[0].clone());
    let mut intents = vec![
        Intent::Explain(RequestedKeys::Patterns(patterns.clone())),
        Intent::Explain(RequestedKeys::Best(best(filling))),
        Intent::BadPoint(None),
        Intent::Unsupported(nearest),
        Intent::TooManyWords(*count),
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
    let reasons = [
        OfferReason::Impossible('b'),
        OfferReason::Accent,
        OfferReason::OtherScript('а', 'a'),
        OfferReason::Unsure,
        OfferReason::Uneven(patterns[0].clone()),
        OfferReason::Change(jobs[0]),
    ];
    intents.extend(reasons.map(|reason| Intent::Offer(patterns.clone(), reason)));
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
    let Filling { patterns, jobs, count, rate, yes, .. } = filling;
    let (count, rate, yes) = (*count, *rate, *yes);
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
        let reading = MessageReading { intent, language, also_a_prefix: yes.then(|| patterns[0].clone()) };
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
    for (language, file, _) in FILES {
        for line in file.lines().filter(|line| !line.starts_with('#')) {
            let text = line.split_once(" = ").map_or(line, |(_, text)| text).trim();
            let is_marked = ["`", "**", "__", "~~", "<", "]("].iter().any(|mark| text.contains(mark));
            let is_item = ["- ", "+ ", "# ", "> "].iter().any(|mark| text.starts_with(mark));
            assert!(!is_marked && !is_item, "{language:?}: {line}");
        }
    }
}

/// The longest and the shortest values, in every answer and notice.
#[test]
fn everything_that_is_said_is_plain_and_short() {
    let errors = errors();
    let fillings = (0..4 * Language::ALL.len()).map(longest).chain(Language::ALL.map(|_| shortest()));
    for (filling, language) in fillings.zip(Language::ALL.into_iter().cycle()) {
        let said = replies(&filling, language).into_iter().map(|reply| reply.text);
        for text in said.chain(notices(&filling, language)) {
            let hidden = text.chars().find(|&c| is_invisible(c) || (c.is_control() && c != '\n'));
            assert_eq!(hidden, None, "{text:?}");
            let own = filling.patterns.iter().map(Pattern::as_str);
            let shown = own.chain(errors.iter().flat_map(PatternError::suggestions));
            let plain = shown.fold(text.clone(), |text, shown| text.replace(shown, "x"));
            assert_eq!(markup(&without_patterns(&plain)), None, "{text}");
            assert!(fits(&text) && !text.trim().is_empty(), "{} characters: {text}", text.chars().count());
        }
    }
}

/// Words of the asker, repeated in the form in which they were read.
#[test]
fn no_hidden_character_of_an_asker_is_repeated() {
    for text in ["\u{202e}b%b", "b\u{200b}%\u{200b}b", "find \u{202e}b0b oops\u{7}%", "b%\u{feff}b <b>%</b>"] {
        let answer = super::say(text, &AskerView::default());
        assert!(!answer.contains(|c: char| is_invisible(c) || (c.is_control() && c != '\n')), "{answer:?}");
    }
}
