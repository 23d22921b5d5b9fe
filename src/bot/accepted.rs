//! The patterns that the bot searches for, and how many of them.

use crate::pattern::{Difficulty, Effort, Pattern, PatternKind, PatternSet};

/// The most steps for computing the difficulties in one message. They take a few milliseconds.
const STEPS: usize = 1 << 14;
/// Limit on the intervals of one job. The longest list of words has 1,794 intervals.
pub(super) const JOB_INTERVALS: usize = 4096;
/// Limit on the intervals of all open jobs together. It is the size of a list of 100,000 words.
/// With so many intervals, every job still keeps most of its rate.
pub(super) const ALL_INTERVALS: usize = 1 << 17;
/// Number of intervals up to which a job is accepted, however many the other jobs have.
pub(super) const FEW_INTERVALS: usize = 64;

/// Limit on the tests of whole texts of one job.
pub(super) const JOB_TEXT_TESTS: usize = 8;
/// Limit on the tests of whole texts of all open jobs. Each test is made on every key.
pub(super) const ALL_TEXT_TESTS: usize = 32;
/// Limit on the share of keys that need a full check ([`Pattern::handed_on`]), summed over all open
/// jobs. It allows four patterns that fix four characters at the start and have a part elsewhere. A
/// GPU checks even more keys without delay. For a CPU of two cores, this limit means a few thousand
/// full checks a second, of tens of microseconds each.
pub(super) const ALL_HANDED_ON: f64 = 1.0 / (1 << 18) as f64;
/// Share of keys that need a full check up to which a job is accepted, whatever the share of the
/// other jobs. It is the share of a pattern that fixes eight characters at the start.
pub(super) const LITTLE_HANDED_ON: f64 = 1.0 / (1u64 << 40) as f64;

/// A budget of steps for the difficulties in one message. Reading the message and deciding about it
/// have a budget each.
pub(super) fn effort() -> Effort {
    Effort::steps(STEPS)
}

/// Whether the bot searches for a pattern: the devices can search for it, and it needs few tests of
/// whole texts.
pub fn accepted_by_bot(pattern: &Pattern) -> bool {
    pattern.is_searchable() && pattern.text_test_count() <= JOB_TEXT_TESTS
}

/// The accepted pattern nearest to a refused one.
pub fn nearest_accepted(pattern: &Pattern) -> Option<Pattern> {
    let nearest = pattern.nearest_searchable().filter(accepted_by_bot);
    nearest.or_else(|| all_at_the_start(pattern).filter(accepted_by_bot))
}

/// A pattern with the characters of this one at the start of the key, without open places. Of
/// several parts elsewhere in the key, only the longest is used.
fn all_at_the_start(pattern: &Pattern) -> Option<Pattern> {
    let text = match pattern.kind() {
        PatternKind::Parts { start, middle, end, .. } => {
            let parts = middle.iter().chain([end]).map(|part| part.trim_start_matches('~'));
            format!("{start}{}", parts.max_by_key(|part| part.len())?)
        }
        PatternKind::Open | PatternKind::LookAlike => pattern.as_str().replace('?', ""),
        PatternKind::EqualAnywhere(count) => format!("={count}"),
        PatternKind::HexEnd(digits) => format!("hex:{digits}"),
        _ => return None,
    };
    text.parse().ok()
}

/// The common difficulty of these patterns: a key has to match only one of them. Keys that match
/// several are counted once. `None` without a pattern.
pub(super) fn difficulty_of(patterns: &[Pattern]) -> Option<Difficulty> {
    PatternSet::new(patterns.to_vec()).difficulty_within(&mut effort())
}

/// A pattern that looks like this one, is accepted, and is found much sooner.
pub(super) fn cheaper(pattern: &Pattern) -> Option<Pattern> {
    let cheaper = pattern.cheaper_within(&mut effort());
    cheaper.into_iter().find(|other| accepted_by_bot(other) && other.interval_count() <= JOB_INTERVALS)
}

/// Number of intervals of all these patterns.
pub(super) fn intervals_of(patterns: &[Pattern]) -> usize {
    patterns.iter().map(Pattern::interval_count).sum()
}

/// Number of tests of whole texts of all these patterns.
pub(super) fn text_tests_of(patterns: &[Pattern]) -> usize {
    patterns.iter().map(Pattern::text_test_count).sum()
}

/// The share of keys that need a full check ([`Pattern::handed_on`]), summed over these patterns.
pub(super) fn handed_on_by(patterns: &[Pattern]) -> f64 {
    patterns.iter().map(Pattern::handed_on).sum()
}
