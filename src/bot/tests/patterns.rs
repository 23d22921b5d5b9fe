//! Patterns of every kind in messages: taken, refused, and bounded.

use super::*;
use crate::bot::notices::ResultKind;
use crate::bot::policy::{JOB_INTERVALS, JOB_TEXT_TESTS, accepted_by_bot, effort};
use crate::bot::price::MAX_BITS;
use crate::job::Priority;
use crate::key::Npub;
use crate::pattern::{ALPHABET, Difficulty, PatternSet};

/// A pattern of each kind, and long ones.
pub(super) const KINDS: [&str; 16] = [
    "~alice",
    "m0?tane",
    "[s5]at0sh[l7]",
    "=7",
    "=7*",
    "hex:00000000000000000000000000000000000000000000000000000000c0dec0de",
    "hex:*beef",
    "zeros:40",
    "words:8",
    "m0ct*cafe",
    "~m0ct*alice*cafe",
    "*al7ce*@12",
    "~*sat0sh*hal*@30",
    "~sat0sh*b0nd*",
    "[234567][234567][234567][234567][234567][234567][234567][234567][234567]?????q",
    "????????????????????????????????????cafe*q",
];

#[test]
fn a_job_has_a_limited_number_of_patterns() {
    assert!(refused("~cat m0?t =7 zeros:9").text.starts_with("That is 4 words, and I take at most 3"));
}

/// Searched and refused patterns on both sides of the limit.
#[test]
fn a_pattern_whose_text_can_hardly_be_tested_is_refused_with_the_nearest() {
    // `q` and `l` have no bit in common, so a test of the text excludes no key.
    for (text, nearest) in [
        ("*[ql][ql][ql][ql][ql][ql][ql][ql]*", "[lq][lq][lq][lq][lq][lq][lq][lq]"),
        ("m*[ql][ql][ql][ql][ql][ql][ql][ql]", "m[lq][lq][lq][lq][lq][lq][lq][lq]"),
    ] {
        let pattern: Pattern = text.parse().unwrap();
        assert!(!accepted_by_bot(&pattern), "{text}");
        let reply = refused(text);
        assert!(reply.topic == "needs-start" && reply.text.ends_with(&format!("find {nearest}")), "{text}: {reply:?}");
    }
}

/// A pattern compared by the fast kernel and one that it cannot compare take turns.
#[test]
fn the_expected_time_includes_the_turns_of_the_two_kinds() {
    let (limits, asker) = (limits(), nobody());
    let (rate, whole_keys_rate) = (Some(Rate(80e6)), Some(Rate(20e6)));
    let idle = Facts { rate, whole_keys_rate, ..context(&limits, &asker) };
    let beside = Facts { shares: Shares { top_words_part: 0.5, whole_keys_part: 0.5, ..idle.shares }, ..idle };
    let seconds = |text: &str, facts: &Facts<'_>| {
        let patterns: Vec<Pattern> = text.split(' ').map(|text| text.parse().unwrap()).collect();
        let rate = facts.pool_rate(&patterns).unwrap();
        PatternSet::new(patterns).difficulty().unwrap().expected_time(rate).unwrap().as_secs_f64()
    };
    let near = |found: f64, expected: f64| assert!((found / expected - 1.0).abs() < 1e-6, "{found} {expected}");
    let (seven, end) = (35f64.exp2(), 30f64.exp2());
    near(seconds("m0ctane", &idle), seven / 80e6);
    near(seconds("m0ctane", &beside), 2.0 * seven / 80e6);
    near(seconds("*al7cet", &idle), end / 20e6);
    near(seconds("*al7cet", &beside), 2.0 * end / 20e6);
    // Each kind has half of the time, and either may find the key.
    let both = 1.0 / (40e6 / seven + 10e6 / end);
    near(seconds("m0ctane *al7cet", &idle), both);
    near(seconds("m0ctane *al7cet", &beside), both);
    let split = |text: &str| idle.split_rate(&[text.parse().unwrap()], 0.25);
    assert_eq!((split("m0ctane"), split("*al7cet")), (Some(Rate(20e6)), Some(Rate(5e6))));
}

/// Each test is made on every key that a device compares in full.
#[test]
fn tests_of_whole_texts_are_limited_for_a_job() {
    let (limits, asker) = (Limits { prefixes_per_job: 64, ..limits() }, nobody());
    let facts = Facts { rate: Some(Rate(80e6)), paid: MAX_BITS, ..context(&limits, &asker) };
    let ends = |count: usize| -> String {
        ALPHABET.iter().take(count).map(|&end| format!("*cafe{} ", char::from(end))).collect()
    };
    let asked = JOB_TEXT_TESTS + 1;
    let (Effect::Nothing, Some(refused)) = decide(&rumor(&ends(asked)), &facts) else { panic!("one too many") };
    assert!(matches!(decide(&rumor(&ends(JOB_TEXT_TESTS)), &facts), (Effect::Accept(..), _)));
    insta::assert_snapshot!(refused.text);
}

#[test]
fn overlapping_patterns_are_counted_once() {
    assert_eq!(difficulty("cat ca"), Difficulty::from_bits(10));
    let chance = 1.0 / difficulty("ca?t ?at").candidates();
    let expected = [(1.0, -15), (1.0, -10), (-1.0, -20)].map(|(sign, bits)| sign * f64::from(bits).exp2());
    assert!((chance / expected.iter().sum::<f64>() - 1.0).abs() < 1e-12, "{chance}");
    let words = |text: &str| text.parse::<Pattern>().unwrap().difficulty();
    assert_eq!(difficulty("words:5 words:8"), words("words:5"));
}

#[test]
fn a_cheaper_look_alike_is_named_with_its_time() {
    let answer = say("m0ctane", &nobody());
    assert!(answer.contains("about 7 min") && answer.contains("takes 54 seconds:\nfind ~m0ctane"), "{answer}");
    assert!(!say("m0ct", &nobody()).contains('~'), "nobody waits for that");
    assert!(!say("~m0ctane", &nobody()).contains("looks alike"));
    let hard = refused("m0ctanetae");
    assert!(hard.topic == "too-hard" && !hard.text.contains('~'), "the look-alike would be too hard, too");
}

#[test]
fn a_job_has_a_limited_number_of_intervals() {
    let wide = "?[s5][s5][s5][s5][s5][s5][s5]";
    assert_eq!(requested(wide), ["?[5s][5s][5s][5s][5s][5s][5s]"]);
    let reply = refused(&format!("find {wide} ~aeae"));
    assert!(reply.text.contains(&format!("{} different starts", JOB_INTERVALS + 16)), "{reply:?}");
    for letters in 4..=9 {
        assert_eq!(requested(&format!("words:{letters}")), [format!("words:{letters}")]);
    }
}

/// The patterns of one message share one bound.
#[test]
fn an_intricate_pattern_costs_a_bounded_time() {
    let intricate = "m0ctan*q?????????????q*";
    let many = format!("{intricate} ").repeat(64);
    for text in [
        intricate,
        "~m0ct*b8b8b8b8b8b8b8b8b8b8b*",
        &many,
        &format!("explain {intricate}"),
        &format!("split {POINT} {intricate}"),
    ] {
        let reply = refused(text);
        assert!(reply.topic == "bad-word" && reply.text.contains("too many open places"), "{reply:?}");
    }
    // Each of these is within the bound.
    for text in ["m0ctan*al7ce*cafe", "~m0ctan*alice*", "m0ctan*[qp]?[ry]?[9x]?[8g]*"] {
        assert!(Pattern::read_within(text, &mut effort()).is_ok(), "{text}");
    }
    let long = "[qpzry9x8gf2tvdw0s3jn54khce6mua7]".repeat(20);
    assert_eq!(refused(&long).topic, "bad-word", "it would fill the answer");
}

/// The vault reads a message in all languages of the chat, within one budget.
#[test]
fn readings_in_six_languages_share_one_budget() {
    let intricate = "~m0ctan*alice*";
    let mut shared = effort();
    let readings = |text: &str, shared: &mut _| crate::bot::request::asked_within(text, shared);
    assert!(readings(&format!("find {intricate} bitte por favor gracias merci danke"), &mut shared).is_some());
    let left = (0..).take_while(|_| Pattern::read_within(intricate, &mut shared).is_ok()).count();
    let mut whole = effort();
    let all = (0..).take_while(|_| Pattern::read_within(intricate, &mut whole).is_ok()).count();
    println!("{left} of {all}");
    assert!(
        left + crate::language::Language::ALL.len() <= all.max(crate::language::Language::ALL.len()),
        "{left} of {all} readings are left"
    );
}

/// A result that no relay takes holds up further jobs of its asker, and many of them those of
/// askers who never took one.
#[test]
fn nobody_gets_a_job_while_their_last_result_is_not_taken() {
    let limits = limits();
    let refused = |asker: &AskerView, undelivered| {
        let priority = if asker.served { Priority::Known } else { Priority::New };
        let facts = Facts { undelivered, priority, ..context(&limits, asker) };
        match decide(&rumor("m0ct"), &facts) {
            (Effect::Accept(..), _) => None,
            (_, reply) => reply.map(|reply| reply.topic),
        }
    };
    let asker = |undelivered, untaken, served| AskerView { undelivered, untaken, served, ..nobody() };
    let most = limits.open_jobs_per_asker;
    assert_eq!(refused(&asker(most - 1, false, false), 0.4), None, "they are on their way");
    assert_eq!(refused(&asker(most, false, true), 0.4), Some("result-not-taken"), "as many as open jobs");
    assert_eq!(refused(&asker(1, true, true), 0.4), Some("result-not-taken"));
    assert_eq!(refused(&asker(0, false, false), 0.5), Some("price"));
    assert_eq!(refused(&asker(0, false, false), 1.0), Some("too-many-not-taken"));
    assert_eq!(refused(&asker(1, false, true), 1.9), None);
    assert_eq!(refused(&asker(1, false, true), 2.0), Some("too-many-not-taken"), "the bound holds for all");
}

#[test]
fn patterns_are_explained_without_a_job() {
    assert_eq!(refused("explain b0b").topic, "explain", "the look-alike");
    let many = say("explain cat dad ham =5 zeros:9 words:8 ~dad", &nobody());
    assert!(many.contains("more.") && many.contains("find cat"), "{many}");
    // Beside a split job the pool has half of the devices.
    let (limits, asker) = (limits(), nobody());
    let idle = context(&limits, &asker);
    let shares = Shares { pool_part: 0.5, ..idle.shares };
    let shared = Facts { rate: Some(Rate(80e6)), shares, ..idle };
    let (Effect::Nothing, Some(reply)) = decide(&rumor("explain m0ctane"), &shared) else { panic!("no job") };
    assert!(reply.text.contains("about 14 min"), "{reply:?}");
}

#[test]
fn the_result_says_which_spelling_was_met() {
    let x = Npub(std::array::from_fn(|at| if at < 4 { [0xc7, 0x52, 0x61, 0x9e][at] } else { 0x55 }));
    let text = x.to_string();
    let start: String = text.chars().skip(5).take(4).collect();
    let one = job(3, "cat");
    let found = |pattern: &str| {
        let pattern: Pattern = pattern.parse().unwrap();
        assert!(pattern.matches(&x), "{pattern} {text}");
        crate::bot::notices::key_found(&one, &pattern, &x, ResultKind::After(Duration::from_secs(3)))
    };
    let open = format!("{}?{}", &start[..2], &start[3..]);
    assert!(found(&open).contains(&format!("This npub has {start}, which fits npub1{open}:")), "{}", found(&open));
    assert!(found(&start).contains(&format!("This npub starts with npub1{start}:")));
    assert!(found("hex:c752").contains("This npub fits hex:c752:"));
}
