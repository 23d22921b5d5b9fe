//! The conversation as askers read it.

mod best;
mod hours;
mod languages;
mod manners;
mod messages;
mod patterns;
mod price;

use super::policy::difficulty_of;
use super::testing::{self, NOW, rumor};
use super::{BotReply, Decision, Facts, read};
use crate::config::Limits;
use crate::job::{JobId, JobSpec};
use crate::key::HalfPoint;
use crate::language::Language::English;
use crate::ledger::{AskerView, Effect, HalfUse, Job};
use crate::pattern::{Difficulty, Pattern, Rate};
use crate::scheduler::{Shares, WaitEstimate};
use crate::vault::Rumor;
use proptest::prelude::*;
use std::time::Duration;

/// Limits that the tests reach.
fn limits() -> Limits {
    Limits { open_jobs_per_asker: 2, jobs_per_day: 4, prefixes_per_job: 3, ..testing::limits() }
}

fn job(id: i64, pattern: &str) -> Job {
    testing::job(id, pattern, English)
}

fn decide(rumor: &Rumor, facts: &Facts<'_>) -> Decision {
    let request = read(rumor);
    super::decide(&request, &request.reading(facts.asker), facts)
}

fn decide_for(text: &str, asker: &AskerView) -> Decision {
    let (limits, rate) = (limits(), Some(Rate(80e6)));
    let idle = context(&limits, asker);
    let shares = Shares { pool_jobs: 3, ..idle.shares };
    decide(&rumor(text), &Facts { shares, rate, next_job: JobId(12), ..idle })
}

/// Facts of an idle bot.
fn context<'a>(limits: &'a Limits, asker: &'a AskerView) -> Facts<'a> {
    let idle = Facts::idle(limits, asker, Rate(80e6), NOW);
    Facts {
        rate: None,
        whole_keys_rate: Some(Rate(20e6)),
        next_job: JobId(1),
        shares: Shares { part_of_one_more: 0.25, own_split_part: 0.5, ..idle.shares },
        queue: WaitEstimate { up_to_bits: 30, ..idle.queue },
        ..idle
    }
}

fn say(text: &str, asker: &AskerView) -> String {
    decide_for(text, asker).1.map_or_else(String::new, |reply| reply.text)
}

/// The common difficulty of patterns.
fn difficulty(text: &str) -> Difficulty {
    let patterns: Vec<Pattern> = text.split(' ').map(|text| text.parse().unwrap()).collect();
    difficulty_of(&patterns).unwrap()
}

fn nobody() -> AskerView {
    AskerView::default()
}

/// The topic of the reply to a message that starts no job.
fn topic(decision: Decision) -> &'static str {
    match decision {
        (Effect::Nothing, Some(reply)) => reply.topic,
        other => panic!("{other:?}"),
    }
}

/// The reply to a message that starts no job.
fn refused(text: &str) -> BotReply {
    match decide_for(text, &nobody()) {
        (Effect::Nothing, Some(reply)) => reply,
        other => panic!("{text:?}: {other:?}"),
    }
}

fn requested(text: &str) -> Vec<String> {
    match decide_for(text, &nobody()) {
        (Effect::Accept(_, spec), _) => spec.patterns.iter().map(ToString::to_string).collect(),
        other => panic!("{text:?}: {other:?}"),
    }
}

#[test]
fn cancel_and_resend_touch_only_the_askers_own() {
    let open = vec![job(3, "m0ctane"), job(5, "sugar")];
    let asker = AskerView { open, results: vec![JobId(2)], accepted_last_day: Vec::new(), ..nobody() };
    let ids = |ids: &[i64]| ids.iter().map(|&id| JobId(id)).collect::<Vec<_>>();
    assert!(matches!(decide_for("cancel", &asker), (Effect::Cancel(jobs), _) if jobs == ids(&[3, 5])));
    assert!(matches!(decide_for("/cancel #5", &asker), (Effect::Cancel(jobs), _) if jobs == ids(&[5])));
    assert!(matches!(decide_for("resend", &asker), (Effect::Resend(JobId(2)), _)));
    assert!(matches!(decide_for("resend 2", &asker), (Effect::Resend(JobId(2)), _)));
}

#[test]
fn without_a_rate_nothing_long_is_promised() {
    let (limits, asker) = (limits(), nobody());
    let context = context(&limits, &asker);
    assert!(matches!(decide(&rumor("m0ctan"), &context), (Effect::Accept(..), _)));
    let (Effect::Nothing, Some(reply)) = decide(&rumor("m0ctane"), &context) else {
        panic!("seven characters of no known time")
    };
    insta::assert_snapshot!(reply.text);
}

#[test]
fn beside_split_jobs_the_pool_promises_what_it_has() {
    let limits = limits();
    let mut open = vec![job(3, "m0ctane"), job(4, "m0ctane")];
    open[1].spec.half = Some(POINT.parse::<HalfPoint>().unwrap());
    let asker = AskerView { open, ..nobody() };
    let (rate, idle) = (Some(Rate(80e6)), nobody());
    let idle = context(&limits, &idle);
    let shares = Shares { pool_jobs: 1, split_jobs: 2, pool_part: 0.5, own_split_part: 0.25, ..idle.shares };
    let context = Facts { shares, rate, ..idle };
    let (Effect::Accept(_, spec), Some(reply)) = decide(&rumor("m0ctane"), &context) else { panic!("it is a request") };
    insta::assert_snapshot!(reply.text);
    assert!(spec.notice_at.is_some_and(|at| (NOW + 3800..NOW + 3900).contains(&at)), "{:?}", spec.notice_at);
    let (Effect::Nothing, Some(status)) = decide(&rumor("status"), &Facts { asker: &asker, ..context }) else {
        panic!("status")
    };
    insta::assert_snapshot!(status.text);
    // With half of the devices this request would take too long.
    let hard = Facts { rate: Some(Rate(1e8)), ..context };
    assert_eq!(topic(decide(&rumor("m0ctane7t"), &hard)), "too-hard");
}

#[test]
fn an_easy_request_behind_many_others_is_told_the_queue() {
    let (limits, asker) = (limits(), nobody());
    let rate = Some(Rate(80e6));
    let idle = context(&limits, &asker);
    let queue = WaitEstimate { wait: Duration::from_secs(200), ..idle.queue };
    let shares = Shares { pool_jobs: 4000, split_jobs: 1, pool_part: 0.5, ..idle.shares };
    let context = Facts { shares, queue, rate, paid: 26, ..idle };
    let (Effect::Accept(_, spec), Some(reply)) = decide(&rumor("cats"), &context) else { panic!("it is a request") };
    insta::assert_snapshot!(reply.text);
    assert_eq!(spec.notice_at, Some(NOW + 600), "half as long again as the queue, which has half of the devices");
    let (Effect::Accept(..), Some(reply)) = decide(&rumor("m0ctane"), &context) else { panic!("it is a request") };
    assert!(!reply.text.contains("before you"), "{reply:?}");
}

proptest! {
    // The fuzzer tries more.
    #![proptest_config(ProptestConfig { cases: ProptestConfig::default().cases.min(64), ..ProptestConfig::default() })]

    /// Any text at all gets one answer, of a length people read.
    #[test]
    fn every_text_is_answered(text in any::<String>(), repeats in 1usize..400) {
        for text in [text.clone(), text.repeat(repeats)] {
            let answer = say(&text, &nobody());
            prop_assert!(!answer.trim().is_empty());
            prop_assert!(answer.chars().count() <= 1500, "{} characters", answer.chars().count());
        }
    }
}

/// The generator: a valid point.
const POINT: &str = "0279be667ef9dcbbac55a06295ce870b07029bfcdb2dce28d959f2815b16f81798";

#[test]
fn a_split_job_that_waits_is_told_its_place() {
    let (limits, asker) = (limits(), nobody());
    let idle = context(&limits, &asker);
    let shares = Shares { place_of_one_more: Some(7), ..idle.shares };
    let facts = Facts { rate: Some(Rate(80e6)), shares, ..idle };
    let text = format!("split {POINT} m0ctane");
    let (Effect::Accept(..), Some(reply)) = decide(&rumor(&text), &facts) else { panic!("it is a request") };
    assert!(reply.text.contains("place in line is 7"), "{reply:?}");
}

#[test]
fn a_half_serves_once() {
    let (limits, asker) = (limits(), nobody());
    let text = format!("split {POINT} m0ctane");
    for (used, word) in [(HalfUse::Open, "searched for already"), (HalfUse::Spent, "served for a key already")] {
        let context = Facts { half: Some(used), rate: Some(Rate(80e6)), ..context(&limits, &asker) };
        let (Effect::Nothing, Some(reply)) = decide(&rumor(&text), &context) else { panic!("it is refused") };
        assert!(reply.text.contains(word) && reply.text.contains("new half"), "{reply:?}");
        assert!(matches!(decide(&rumor("m0ctane"), &context), (Effect::Accept(..), _)), "other requests are free");
    }
}

#[test]
fn the_same_prefix_may_be_requested_with_and_without_a_half() {
    let mut open = vec![job(3, "m0ctane")];
    open[0].spec.half = Some(POINT.parse::<HalfPoint>().unwrap());
    let asker = AskerView { open, ..nobody() };
    assert!(matches!(decide_for("m0ctane", &asker), (Effect::Accept(..), _)));
}

/// What it asks for does not matter; its words tell the language.
#[test]
fn a_message_by_nip04_has_one_answer_a_day() {
    let (limits, asker) = (limits(), nobody());
    let facts = Facts { rate: Some(Rate(80e6)), page: Some("https://bot.example/"), ..context(&limits, &asker) };
    let old = |text: &str| Rumor { kind: 4, other_receivers: 1, ..rumor(text) };
    for text in ["m0ctane", "help", "stop", "delete", "best 10m", "", &format!("split {POINT} m0ctane")] {
        for text in [text.to_owned(), format!("[//]: # (nip18)\n{text}")] {
            assert!(matches!(decide(&old(&text), &facts), (Effect::Redirect, Some(_))), "{text}");
            assert!(read(&old(&text)).half().is_none() && crate::bot::asked(&old(&text)).is_none(), "{text}");
        }
    }
    let said = |text: &str, facts: &Facts<'_>| decide(&old(text), facts).1.unwrap().text;
    insta::assert_snapshot!(said("help", &facts));
    assert!(!said("help", &Facts { page: None, ..facts }).contains("page"));
    assert!(said("[//]: # (nip18)\nayuda", &facts).starts_with("Tu cliente"));
    for quiet in [AskerView { redirected: true, ..nobody() }, AskerView { silent: true, ..nobody() }] {
        assert_eq!(decide(&old("help"), &Facts { asker: &quiet, ..facts }), (Effect::Nothing, None));
    }
}

#[test]
fn stop_start_and_delete_do_what_they_say() {
    let open = vec![job(3, "m0ctane")];
    let asker = AskerView { open, ..nobody() };
    assert!(matches!(decide_for("STOP!", &asker), (Effect::Stop, Some(_))));
    let silent = AskerView { silent: true, ..nobody() };
    for text in ["m0ctane", "help", "status", "stop", ""] {
        assert!(matches!(decide_for(text, &silent), (Effect::Nothing, None)), "{text}");
    }
    assert!(matches!(decide_for("start", &silent), (Effect::Start, Some(_))));
    assert!(matches!(decide_for("delete", &silent), (Effect::Forget, Some(_))));
    assert_eq!(requested("find delete"), ["delete"]);
}

#[test]
fn a_late_job_has_its_notice_at_a_fitting_time() {
    let (Effect::Accept(_, spec), _) = decide_for("m0ctane", &nobody()) else { panic!("it is a request") };
    // 2^35 candidates at 80 M/s: 429 s expected, 1287 s in 95 of 100 cases, 1.5 times that is
    // 1930 s.
    assert!(spec.notice_at.is_some_and(|at| (NOW + 1900..NOW + 1960).contains(&at)), "{:?}", spec.notice_at);
    assert!(spec.expires_at > spec.notice_at.unwrap());
    insta::assert_snapshot!(crate::bot::notices::late(&job(3, "m0ctane"), NOW + 1900));
}

#[test]
fn nothing_of_a_secret_key_is_repeated() {
    let key = "nsec1vl029mgpspedva04g90vltkh6fvh240zqtv9k0t9af8935ke9laqsnlfe5";
    let spaced: String = key.chars().map(|c| format!("{c} ")).collect::<String>().replacen("n s e c 1", "nsec1", 1);
    for text in [
        key.to_owned(),
        key.to_uppercase(),
        format!("my key is {key}, is it good?"),
        format!("find {key}"),
        format!("split {key} cat"),
        key[..24].to_owned(),
        spaced,
        format!("nhalf1{}", &key[5..]),
    ] {
        assert_eq!(refused(&text).topic, "secret-key", "{text:?}");
    }
    assert_ne!(topic(decide_for("does every key begin with nsec1, or some only?", &nobody())), "secret-key");
    let answer = say(key, &nobody());
    assert!(!key.as_bytes().windows(6).any(|part| answer.as_bytes().windows(6).any(|said| said == part)), "{answer}");
}
