//! Expected times of a bot whose devices rest at times.

use super::{NOW, context, decide, difficulty, limits, nobody, rumor};
use crate::bot::{Decision, Facts};
use crate::hours::Hours;
use crate::ledger::Effect;
use crate::pattern::Rate;
use std::time::Duration;

/// Hours that begin `from` seconds after NOW and last `length` seconds, every day.
fn hours(from: u64, length: u64) -> Hours {
    let minute = |at: u64| format!("{:02}:{:02}", at / 3600 % 24, at / 60 % 60);
    let begin = NOW.next_multiple_of(60) + from;
    Hours::parse(&format!("{}-{}", minute(begin), minute(begin + length)), "UTC").unwrap()
}

fn facts<'a>(hours: &'a Hours, limits: &'a crate::config::Limits, asker: &'a super::AskerView) -> Facts<'a> {
    Facts { rate: Some(Rate(80e6)), hours: Some(hours), ..context(limits, asker) }
}

fn text(decision: Decision) -> String {
    decision.1.expect("an answer").text
}

#[test]
fn a_request_by_day_is_told_when_the_search_begins_and_how_long_it_takes_then() {
    let (limits, asker, night) = (limits(), nobody(), hours(7200, 9 * 3600));
    let facts = facts(&night, &limits, &asker);
    let (Effect::Accept(_, spec), Some(reply)) = decide(&rumor("m0ctane"), &facts) else { panic!("it is accepted") };
    let begins = NOW.next_multiple_of(60) + 7200;
    let at = format!("{:02}:{:02} UTC", begins / 3600 % 24, begins / 60 % 60);
    let said = reply.text;
    assert!(said.contains(&format!("My devices rest until {at} and search again then.")), "{said}");
    assert!(said.contains("That takes about 7 min, rarely more than 21."), "as without the pause: {said}");
    // A notice that the job is late never comes before the search could begin.
    assert!(spec.notice_at.unwrap() > begins + 21 * 60, "{:?}", spec.notice_at);
}

#[test]
fn a_long_search_counts_the_days_between_its_nights() {
    let (limits, asker) = (limits(), nobody());
    let (always, night) = (hours(0, 86_340), hours(0, 8 * 3600));
    let takes = |hours| facts(hours, &limits, &asker).takes(difficulty("m0ctanew"), Rate(80e6)).unwrap();
    let (without, with) = (takes(&always), takes(&night));
    // The search takes 3.8 h on average. The chance that n nights of 8 h are not enough is exp(-8 n
    // / 3.8). After each such night, 16 h of pause follow.
    let pauses: f64 = (1..9).map(|night| 16.0 * (-8.0 * f64::from(night) / 3.818).exp()).sum();
    let expected = 3.818 + pauses;
    assert!((with.mean.as_secs_f64() / 3600.0 - expected).abs() < 0.05, "{with:?}, {expected} h expected");
    assert!(with.mean > without.mean);
    let later = with.most.as_secs_f64() - without.most.as_secs_f64();
    assert!((later - 16.0 * 3600.0).abs() < 1.0, "{with:?}, {without:?}");
}

#[test]
fn a_request_that_takes_too_many_nights_is_refused_and_the_wait_for_the_first_does_not_count() {
    let (mut limits, asker) = (limits(), nobody());
    let (night, soon) = (hours(12 * 3600, 3600), hours(0, 3600));
    limits.longest_expected_time = Duration::from_secs(600);
    let refused = |prefix, hours| {
        decide(&rumor(prefix), &facts(hours, &limits, &asker)).1.is_some_and(|reply| reply.topic == "too-hard")
    };
    assert!(!refused("m0ctane", &night) && !refused("m0ctane", &soon), "7 min of search");
    assert!(refused("m0ctanew", &soon), "4 h of search");
    limits.longest_expected_time = Duration::from_secs(5 * 3600);
    let refused = |prefix, hours| {
        decide(&rumor(prefix), &facts(hours, &limits, &asker)).1.is_some_and(|reply| reply.topic == "too-hard")
    };
    assert!(refused("m0ctanew", &soon), "four nights with an hour each");
}

#[test]
fn a_pause_without_an_end_is_said_and_a_status_counts_the_hours_only() {
    let (limits, mut asker, night) = (limits(), nobody(), hours(7200, 3600));
    let stopped = Facts { is_stopped: true, hours: None, ..facts(&night, &limits, &asker) };
    let said = text(decide(&rumor("m0ctane"), &stopped));
    assert!(said.contains("My devices rest now. They search again as soon as they can."), "{said}");
    // Accepted a minute ago, outside the hours: nothing was searched since.
    asker.open = vec![super::job(1, "m0ctane")];
    let said = text(decide(&rumor("status"), &facts(&night, &limits, &asker)));
    assert!(said.contains("chance so far 0 %") && said.contains("My devices rest until"), "{said}");
    let said = text(decide(&rumor("status"), &Facts { hours: None, ..facts(&night, &limits, &asker) }));
    assert!(said.contains("chance so far 13 %") && !said.contains("rest"), "{said}");
}
