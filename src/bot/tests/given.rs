//! Limits, messages, jobs and the facts of a bot, for the tests.

use crate::bot::policy::difficulty_of;
use crate::bot::testing::{self, NOW};
use crate::bot::{self, Decision, Facts, read};
use crate::config::Limits;
use crate::job::{Asker, JobId, JobSpec, RumorId, Ticket};
use crate::language::Language::English;
use crate::ledger::{AskerView, Job, JobState};
use crate::pattern::{Difficulty, Pattern, Rate};
use crate::scheduler::{Shares, WaitEstimate};
use crate::vault::Rumor;

/// Limits that the tests reach.
pub(super) fn limits() -> Limits {
    Limits { open_jobs_per_asker: 2, jobs_per_day: 4, prefixes_per_job: 3, ..testing::limits() }
}

pub(super) fn rumor(text: &str) -> Rumor {
    Rumor {
        id: RumorId([1; 32]),
        author: Asker([2; 32]),
        kind: 14,
        content: text.to_owned(),
        created_at: NOW,
        subject: None,
        deletes: Vec::new(),
        encryption_key: None,
        other_receivers: 0,
        ticket: None,
    }
}

pub(super) fn job(id: i64, prefix: &str, state: JobState) -> Job {
    Job {
        ticket: Ticket(Vec::new()),
        id: JobId(id),
        rumor: RumorId([1; 32]),
        state,
        accepted_at: NOW - 60,
        seen_on: Vec::new(),
        spec: JobSpec {
            asker: Asker([2; 32]),
            expires_at: NOW + 86_400,
            ..JobSpec::local(vec![Pattern::parse(prefix).unwrap()])
        },
        language: English,
    }
}

pub(super) fn decide(rumor: &Rumor, facts: &Facts<'_>) -> Decision {
    let request = read(rumor);
    bot::decide(&request, &request.reading(facts.asker), facts)
}

pub(super) fn decide_for(text: &str, asker: &AskerView) -> Decision {
    let (limits, rate) = (limits(), Some(Rate(80e6)));
    let idle = context(&limits, asker);
    let shares = Shares { pool_jobs: 3, ..idle.shares };
    decide(&rumor(text), &Facts { shares, rate, next_job: JobId(12), ..idle })
}

/// Facts of an idle bot.
pub(super) fn context<'a>(limits: &'a Limits, asker: &'a AskerView) -> Facts<'a> {
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

pub(super) fn say(text: &str, asker: &AskerView) -> String {
    decide_for(text, asker).1.map_or_else(String::new, |reply| reply.text)
}

/// The common difficulty of patterns.
pub(super) fn difficulty(text: &str) -> Difficulty {
    let patterns: Vec<Pattern> = text.split(' ').map(|text| text.parse().unwrap()).collect();
    difficulty_of(&patterns).unwrap()
}
