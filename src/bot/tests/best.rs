//! Requests without a target.

use super::*;
use crate::bot::notices::ResultKind;
use crate::bot::policy::LONGEST_BEST;
use crate::job::BestSearch;
use crate::key::Npub;

fn open(best: &str, kept: Option<&str>) -> Job {
    let mut job = job(3, "cat");
    let kept = kept.map(|text| text.parse().unwrap());
    job.spec.best = Some(Box::new(BestSearch { kept, ..BestSearch::new(best.parse().unwrap()) }));
    job
}

#[test]
fn the_acceptance_says_when_the_result_comes() {
    // Beside split jobs the pool has half of the devices, so its search takes twice its time.
    let (limits, asker) = (limits(), nobody());
    let idle = context(&limits, &asker);
    let shares = Shares { pool_part: 0.5, ..idle.shares };
    let shared = Facts { rate: Some(Rate(80e6)), shares, ..idle };
    let (Effect::Accept(_, spec), Some(reply)) = decide(&rumor("best 10m"), &shared) else { panic!("a job") };
    assert!(reply.text.contains("in about 20 min"), "{reply:?}");
    assert_eq!(spec.patterns, spec.best.unwrap().best.family.floor());
    assert_eq!(spec.notice_at, Some(NOW + 1800), "told that it is late after half as long again");
    let unmeasured = Facts { rate: None, ..shared };
    let (Effect::Accept(..), Some(reply)) = decide(&rumor("best 10m"), &unmeasured) else { panic!("a job") };
    assert!(!reply.text.contains("probably"), "{reply:?}");
}

#[test]
fn a_search_without_a_target_has_a_longest_time_and_counts_as_a_job() {
    assert_eq!(LONGEST_BEST, Duration::from_secs(600));
    for text in ["best 601s", "best zeros 11m", "best 1h", "explain best words 9 years"] {
        let reply = refused(text);
        assert!(reply.topic == "best-too-long" && reply.text.ends_with(" 10m"), "{text}: {reply:?}");
    }
    let limits = Limits { longest_expected_time: Duration::from_secs(60), ..limits() };
    let asker = nobody();
    let facts = Facts { rate: Some(Rate(80e6)), ..context(&limits, &asker) };
    let (Effect::Nothing, Some(reply)) = decide(&rumor("best words 2m"), &facts) else { panic!("too long") };
    insta::assert_snapshot!(reply.text);
    let one = AskerView { open: vec![open("best zeros 10m", None)], ..nobody() };
    let decided = |text: &str| decide_for(text, &one);
    assert_eq!(topic(decided("best zeros 10 min")), "already-searching");
    for other in ["best zeros 9m", "best 10m", "cat", "zeros:20"] {
        assert!(matches!(decided(other), (Effect::Accept(..), _)), "{other}");
    }
    let full = AskerView { open: vec![open("best 10m", None), open("best 9m", None)], ..nobody() };
    assert_eq!(topic(decide_for("surprise", &full)), "too-many-open");
    let spent = AskerView { accepted_last_day: vec![NOW; 4], ..nobody() };
    assert_eq!(topic(decide_for("surprise", &spent)), "too-many-today");
}

#[test]
fn the_status_tells_of_a_search_without_a_target() {
    let asker = AskerView { open: vec![open("best 10m", None), open("best zeros 9m", Some("zeros:31"))], ..nobody() };
    insta::assert_snapshot!(say("status", &asker));
}

#[test]
fn the_result_says_how_rare_it_is() {
    let x = Npub(std::array::from_fn(|at| if at < 4 { [0, 0, 0, 1][at] } else { 0x55 }));
    let pattern: Pattern = "zeros:31".parse().unwrap();
    let before = crate::bot::notices::key_found(&open("best 10m", None), &pattern, &x, ResultKind::Best);
    let (heading, rest) = before.split_once('\n').unwrap();
    let expected =
        "Job #3 is done: this is the rarest key I saw. This npub fits zeros:31, as 1 key in 2.1 billion does:";
    assert_eq!(heading, expected);
    assert!(rest.starts_with("npub1qqqqqq"), "{rest}");
}
