//! Jobs that a peer, another npubbot, is also asked to search for; and the messages between the two
//! bots.
//!
//! To a peer, this bot is an asker with a split request, and gets the answers that askers get. It
//! reads only two things in them: whether an answer is the acceptance of a job, which its first
//! words show, and the tweaks.

use super::facts::Facts;
use super::reply::Reply;
use super::tables::{Table, say};
use crate::job::{HandOver, JobId};
use crate::key::{Npub, SplitTweak};
use crate::language::Language;
use crate::pattern::Pattern;
use std::time::Duration;

/// The most patterns of a job that is handed over. By default a bot accepts as many in one job.
const MOST_PATTERNS: usize = 10;
/// The most bytes of the patterns of a job that is handed over.
const MOST_BYTES: usize = 600;
/// Length of a run of letters and digits that the vault takes for a key and cuts from a message.
const LIKE_A_KEY: usize = 58;

/// The reason to ask a peer to search for a job of the pool too; `None` if no peer is asked.
/// `refusal` and `expected`: the refusal and the expected time of this bot without peers. A job is
/// handed over if it takes too long here, or if it is hard and has an even number. All other
/// refusals stand.
pub(super) fn hand_over(
    refusal: Option<&Reply>,
    patterns: &[Pattern],
    expected: Option<Duration>,
    facts: &Facts<'_>,
) -> Option<HandOver> {
    let is_hard = expected.is_some_and(|expected| expected >= facts.hard_from);
    let reason = match refusal {
        Some(Reply::TooHard { .. }) => HandOver::TooLong,
        None if is_hard && facts.next_job.0 % 2 == 0 => HandOver::Hard,
        _ => return None,
    };
    (facts.peers_have_room && can_be_written(patterns)).then_some(reason)
}

/// Whether the patterns fit a request to a peer.
pub(super) fn can_be_written(patterns: &[Pattern]) -> bool {
    let bytes: usize = patterns.iter().map(|pattern| pattern.as_str().len() + 1).sum();
    let longest = |pattern: &Pattern| {
        let runs = pattern.as_str().split(|character: char| !character.is_ascii_alphanumeric()).map(str::len);
        runs.max().unwrap_or(0)
    };
    patterns.len() <= MOST_PATTERNS && bytes <= MOST_BYTES && patterns.iter().all(|one| longest(one) < LIKE_A_KEY)
}

/// The message that asks a peer for these patterns at a start point. `point`: the x-coordinate of
/// the start point, whose y is even. The message is in English, so the answers are too.
pub fn request_to_peer(point: &Npub, patterns: &[Pattern]) -> String {
    let patterns: Vec<&str> = patterns.iter().map(Pattern::as_str).collect();
    format!("split {point} {}", patterns.join(" "))
}

/// Whether an answer in English is the acceptance of a job.
pub fn is_acceptance(text: &str) -> bool {
    let digits = text.split_once('#').map(|(_, rest)| rest.split(|c: char| !c.is_ascii_digit()).next());
    let Some(number) = digits.flatten().and_then(|digits| digits.parse().ok()) else { return false };
    text.starts_with(&beginning_of_acceptance(JobId(number)))
}

/// The first words of an acceptance, up to the patterns.
pub(super) fn beginning_of_acceptance(job: JobId) -> String {
    const PATTERNS: &str = "\n";
    let whole = say!(Table::of(Language::English), "accepted", job = job.to_string(), patterns = PATTERNS);
    whole.split(PATTERNS).next().unwrap_or_default().to_owned()
}

/// The tweaks in a text. Only the first `most` words that begin like a tweak are read.
pub fn tweaks_in(text: &str, most: usize) -> Vec<SplitTweak> {
    let is_meant = |word: &&str| word.starts_with("ntweak1");
    text.split_whitespace().filter(is_meant).take(most).filter_map(|word| word.parse().ok()).collect()
}
