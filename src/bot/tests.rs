//! The conversation as askers read it.

use super::{Context, Decision, decide};
use crate::config::Limits;
use crate::ids::{Asker, JobId, RumorId};
use crate::ledger::{AskerView, Job, JobState};
use crate::pattern::{Pattern, Rate};
use crate::vault::Rumor;
use proptest::prelude::*;
use std::time::Duration;

const NOW: u64 = 1_800_000_000;

fn limits() -> Limits {
    Limits {
        open_jobs_per_asker: 2,
        jobs_per_day: 4,
        prefixes_per_job: 3,
        longest_expected_time: Duration::from_secs(86_400),
        give_up_after: Duration::from_secs(30 * 86_400),
        wraps_per_second: 50,
        wraps_burst: 500,
    }
}

fn rumor(text: &str) -> Rumor {
    Rumor {
        id: RumorId([1; 32]),
        author: Asker([2; 32]),
        kind: 14,
        content: text.to_owned(),
        created_at: NOW,
        subject: None,
        other_receivers: 0,
    }
}

fn job(id: i64, prefix: &str, state: JobState) -> Job {
    Job {
        id: JobId(id),
        asker: Asker([2; 32]),
        rumor: RumorId([1; 32]),
        subject: None,
        patterns: vec![Pattern::parse(prefix).unwrap()],
        state,
        accepted_at: NOW - 60,
        expires_at: NOW + 86_400,
        seen_on: Vec::new(),
    }
}

fn decide_for(text: &str, asker: &AskerView) -> Decision {
    let (limits, rate) = (limits(), Some(Rate(80e6)));
    decide(&rumor(text), &Context { limits: &limits, asker, pool_jobs: 3, rate, next_job: JobId(12), now: NOW })
}

fn say(text: &str, asker: &AskerView) -> String {
    match decide_for(text, asker) {
        Decision::Ignore => String::new(),
        Decision::Say(reply)
        | Decision::Accept { reply, .. }
        | Decision::Cancel { reply, .. }
        | Decision::Resend { reply, .. } => reply.to_string(),
    }
}

fn nobody() -> AskerView {
    AskerView::default()
}

fn wished(text: &str) -> Vec<String> {
    match decide_for(text, &nobody()) {
        Decision::Accept { patterns, .. } => patterns.iter().map(ToString::to_string).collect(),
        other => panic!("{text:?}: {other:?}"),
    }
}

#[test]
fn a_wish_is_understood_however_it_is_written() {
    let cases =
        ["m0ctane", "M0CTANE", " npub1m0ctane\n", "nostr:npub1m0ctane", "/m0ctane", "\"m0ctane\".", "find m0ctane"];
    for text in cases.into_iter().chain(["\u{200b}m0ct\u{200d}ane\u{202c}", "m0ctane m0ctane", "prefix: m0ctane"]) {
        assert_eq!(wished(text), ["m0ctane"], "{text:?}");
    }
    assert_eq!(wished("cat, dad\nham"), ["cat", "dad", "ham"]);
    assert_eq!(wished("find status"), ["status"]);
    assert_eq!(wished("get"), ["get"], "alone a filler is a prefix like any other");
}

#[test]
fn the_acceptance_says_all_that_counts() {
    insta::assert_snapshot!(say("m0ctane", &nobody()), @r"
    Job #12: searching for npub1m0ctane.
    One key in 34.4 G will do. At 80.0 M/s that takes about 7 min; in 95 of 100 cases at most 21 min.
    3 other jobs share the pool and do not slow it.
    The key comes in this chat. To stop: cancel 12
    ");
    insta::assert_snapshot!(say("cat dad", &nobody()), @r"
    Job #12: searching for npub1cat or npub1dad, whichever is found first.
    One key in 16.4 k will do. At 80.0 M/s that takes less than a second; in 95 of 100 cases less than a second.
    3 other jobs share the pool and do not slow it.
    The key comes in this chat. To stop: cancel 12
    ");
}

#[test]
fn help_and_status_are_short() {
    insta::assert_snapshot!(say("hello", &nobody()), @r"
    I find Nostr keys whose npub starts as you wish. Send the characters after npub1:
    m0ctane
    Several words are several wishes; the first found ends the job.
    status: your jobs. cancel: stop them (or: cancel 12). resend: the last key again.
    If your wish is also a command, put find before it: find status
    The key is made on my operator's machine. If that is not for you, run npubbot yourself.
    3 jobs are open; I search at 80.0 M/s.
    ");
    let asker = AskerView {
        open: vec![job(3, "m0ctane", JobState::Accepted)],
        results: vec![job(2, "cat", JobState::Delivered)],
        accepted_last_day: vec![NOW - 60],
    };
    insta::assert_snapshot!(say("status", &asker), @r"
    Job #3: npub1m0ctane, waited 60 seconds of about 7 min expected (chance so far 13 %).
    Keys I can send again: #2.
    3 jobs are open; I search at 80.0 M/s.
    ");
}

#[test]
fn a_refusal_says_what_is_wrong_and_what_would_work() {
    insta::assert_snapshot!(say("b0b", &nobody()), @r"
    b0b: `b` cannot occur in an npub; `808` or `606` would work.
    Nothing was started. Send only the prefix, like: m0ctane (or: help)
    ");
    insta::assert_snapshot!(say("please get me cafe", &nobody()), @r"
    I read every word as a prefix, and this looks like a sentence. Nothing was started.
    Send only the prefix, like: find cafe
    ");
    insta::assert_snapshot!(say("cat dad ham jam", &nobody()), @"That is 4 words, and I take at most 3 prefixes a job. Send the 3 you like best.");
    insta::assert_snapshot!(say("qqqqqqqqqqqq", &nobody()), @"That would take about 457 years at 80.0 M/s, and I take nothing that is expected to take longer than 24 h. Up to 8 characters would be accepted now.");
    insta::assert_snapshot!(say("🚀", &nobody()), @r"
    🚀: `🚀` cannot occur in an npub; use the characters qpzry9x8gf2tvdw0s3jn54khce6mua7l.
    Nothing was started. Send only the prefix, like: m0ctane (or: help)
    ");
    insta::assert_snapshot!(say(" \u{202e} ", &nobody()), @"I see no word in your message. Send the characters your npub should have after npub1, like: m0ctane (or: help)");
}

#[test]
fn limits_are_named() {
    let open = vec![job(3, "m0ctane", JobState::Accepted), job(5, "sugar", JobState::Accepted)];
    let busy = AskerView { open, results: Vec::new(), accepted_last_day: vec![NOW - 60; 2] };
    insta::assert_snapshot!(say("cat", &busy), @"You have 2 open jobs (#3, #5), and 2 is the limit. Wait for one to end, or stop one, for example: cancel 3");
    insta::assert_snapshot!(say("SUGAR", &busy), @"I am searching for exactly that already, as job #5. Send status to see how it goes, or: cancel 5");
    let spent = AskerView { accepted_last_day: vec![NOW - 80_000, NOW - 70_000, NOW - 9, NOW], ..nobody() };
    insta::assert_snapshot!(say("cat", &spent), @"You have started 4 jobs in the last 24 hours, and that is the limit. The next one works in 107 min.");
}

#[test]
fn cancel_and_resend_touch_only_the_askers_own() {
    let open = vec![job(3, "m0ctane", JobState::Accepted), job(5, "sugar", JobState::Accepted)];
    let asker = AskerView { open, results: vec![job(2, "cat", JobState::Delivered)], accepted_last_day: Vec::new() };
    let ids = |ids: &[i64]| ids.iter().map(|&id| JobId(id)).collect::<Vec<_>>();
    assert!(matches!(decide_for("cancel", &asker), Decision::Cancel { jobs, .. } if jobs == ids(&[3, 5])));
    assert!(matches!(decide_for("/cancel #5", &asker), Decision::Cancel { jobs, .. } if jobs == ids(&[5])));
    assert!(matches!(decide_for("resend", &asker), Decision::Resend { job: JobId(2), .. }));
    assert!(matches!(decide_for("resend 2", &asker), Decision::Resend { job: JobId(2), .. }));
    insta::assert_snapshot!(say("cancel 2", &asker), @"You have no open job #2. Yours are #3, #5; say for example: cancel 3");
    insta::assert_snapshot!(say("resend 3", &asker), @"I keep no key of a job #3 of yours. I can send #2 again; say for example: resend 2");
    insta::assert_snapshot!(say("cancel", &nobody()), @"You have no open job to cancel. Send a prefix to start one.");
    insta::assert_snapshot!(say("resend", &nobody()), @"I keep no key of yours. Once a job is done, resend repeats its message.");
}

#[test]
fn files_and_groups_are_declined() {
    let (limits, asker) = (limits(), nobody());
    let context = Context { limits: &limits, asker: &asker, pool_jobs: 0, rate: None, next_job: JobId(1), now: NOW };
    let file = Rumor { kind: 15, ..rumor("https://example.com/x.png") };
    assert!(matches!(decide(&file, &context), Decision::Say(super::Reply::TextOnly)));
    let group = Rumor { other_receivers: 1, ..rumor("cat") };
    assert!(matches!(decide(&group, &context), Decision::Say(super::Reply::NoGroups)));
    let unmeasured = decide(&rumor("cat"), &context);
    assert!(matches!(unmeasured, Decision::Accept { reply, .. } if reply.to_string().contains("not measured yet")));
}

proptest! {
    /// Any text at all gets one answer, of a length people read.
    #[test]
    fn every_text_is_answered(text in any::<String>(), repeats in 1usize..400) {
        for text in [text.clone(), text.repeat(repeats)] {
            let answer = say(&text, &nobody());
            prop_assert!(!answer.trim().is_empty());
            prop_assert!(answer.chars().count() <= 1500, "{} characters", answer.chars().count());
        }
    }

    #[test]
    fn every_prefix_of_the_alphabet_is_a_wish(text in "[qpzry9x8gf2tvdw0s3jn54khce6mua7l]{1,8}") {
        let command = ["help", "hey", "status", "start", "cancel", "resend"].contains(&text.as_str());
        prop_assert!(command || wished(&text) == [text]);
    }
}
