//! `best`: a search without a target, for the rarest key of a family.
//!
//! A family has ladders. A ladder is a series of patterns, each of which matches all keys of the
//! next one. The rarity of a key is the difficulty of the rarest pattern of the family that it
//! meets. A search asks for the patterns that are rarer than its best key so far, so its hits
//! become exponentially rarer.

use super::difficulty::{Difficulty, Rate};
use super::error::PatternError;
use super::pattern::Pattern;
use crate::duration;
use crate::key::Npub;
use serde::{Deserialize, Serialize};
use std::fmt;
use std::ops::RangeInclusive;
use std::str::FromStr;
use std::sync::LazyLock;
use std::time::Duration;

/// Numbers of leading zero bits on the ladder. No machine finds more, and fewer are too frequent
/// for a GPU.
const ZEROS: RangeInclusive<usize> = 20..=64;
/// Numbers of equal characters on the ladder. The first and the last are about as rare as those of
/// [`ZEROS`].
const EQUAL: RangeInclusive<usize> = 5..=13;
/// Numbers of letters of words on the ladder.
const LETTERS: RangeInclusive<usize> = 6..=9;

/// The fewest hits that are expected, in the time of a search, of each pattern that it begins with:
/// 19 of 20 searches have at least one. A ladder whose patterns all have fewer begins with its most
/// frequent one.
const FIRST_HITS: f64 = 3.0;

/// The patterns of each ladder, from the most frequent to the rarest.
static LADDERS: LazyLock<[Vec<Pattern>; 3]> = LazyLock::new(|| {
    let ladder = |keyword: &str, numbers: RangeInclusive<usize>| {
        numbers.map(|number| format!("{keyword}{number}").parse().expect("the numbers are in the grammar")).collect()
    };
    [ladder("zeros:", ZEROS), ladder("=", EQUAL), ladder("words:", LETTERS)]
});

/// A family of patterns that ranks keys by rarity.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug, Serialize, Deserialize)]
pub enum Family {
    /// Zero bits, equal characters or a word at the start.
    Any,
    /// Leading zero bits of the public key.
    Zeros,
    /// A word of the built-in list at the start; longer ones are rarer.
    Words,
}

/// A search without a target: for the rarest key seen in this time.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub struct Best {
    /// The family that ranks the keys.
    pub family: Family,
    /// Time of the search itself, whole seconds.
    pub time: Duration,
}

impl Family {
    pub(super) fn ladders(self) -> &'static [Vec<Pattern>] {
        match self {
            Family::Any => &LADDERS[..],
            Family::Zeros => &LADDERS[..1],
            Family::Words => &LADDERS[2..],
        }
    }

    /// The rarest pattern of the family that a key meets; `None` if it meets none.
    pub fn rarest(self, npub: &Npub) -> Option<Pattern> {
        let met = self.ladders().iter().filter_map(|ladder| {
            let met = ladder.partition_point(|pattern| pattern.matches(npub));
            ladder[..met].last()
        });
        met.max_by(|one, other| by_difficulty(one, other)).cloned()
    }

    /// The patterns that together hold all keys rarer than `level`: at most one of each ladder.
    /// Empty if none is rarer.
    pub fn rarer_than(self, level: Difficulty) -> Vec<Pattern> {
        self.first_that(|pattern| pattern.difficulty() > level)
    }

    /// The most frequent pattern of each ladder that is rare enough. A ladder may have none.
    fn first_that(self, is_rare: impl Fn(&Pattern) -> bool) -> Vec<Pattern> {
        let first = |ladder: &'static Vec<Pattern>| ladder.get(ladder.partition_point(|pattern| !is_rare(pattern)));
        self.ladders().iter().filter_map(first).cloned().collect()
    }

    /// Whether no pattern of the family is rarer than this one.
    pub fn is_rarest(self, pattern: &Pattern) -> bool {
        let last = self.ladders().iter().filter_map(|ladder| ladder.last());
        last.map(Pattern::difficulty).all(|rarest| rarest <= pattern.difficulty())
    }

    /// The most frequent pattern of each ladder. Every key that a search keeps meets one.
    pub fn floor(self) -> Vec<Pattern> {
        self.ladders().iter().map(|ladder| ladder[0].clone()).collect()
    }

    /// The patterns that a search begins with that tests this many candidates: of each ladder the
    /// rarest one that is expected to have at least [`FIRST_HITS`], or the most frequent if all
    /// have fewer.
    fn first(self, candidates: f64) -> Vec<Pattern> {
        let begin = |ladder: &'static Vec<Pattern>| {
            let is_likely = |pattern: &Pattern| candidates / pattern.difficulty().candidates() >= FIRST_HITS;
            ladder[ladder.partition_point(is_likely).saturating_sub(1)].clone()
        };
        self.ladders().iter().map(begin).collect()
    }
}

impl Best {
    /// `surprise`: the longest word at the start seen in ten seconds.
    pub const SURPRISE: Best = Best { family: Family::Words, time: Duration::from_secs(10) };

    /// Reads `surprise`, or `best` with a time and perhaps a family before it. `None` if the first
    /// word is neither.
    ///
    /// Errors: [`PatternError::Best`] if anything else follows the first word.
    pub fn read(words: &[&str]) -> Option<Result<Best, PatternError>> {
        let (first, rest) = words.split_first()?;
        let (family, time) = match (first.to_lowercase().as_str(), rest) {
            ("surprise", rest) => {
                return Some(if rest.is_empty() { Ok(Best::SURPRISE) } else { Err(PatternError::Best) });
            }
            ("best", [family, time @ ..]) if family.eq_ignore_ascii_case("zeros") => (Family::Zeros, time),
            ("best", [family, time @ ..]) if family.eq_ignore_ascii_case("words") => (Family::Words, time),
            ("best", time) => (Family::Any, time),
            _ => return None,
        };
        let time = duration::parse(&time.concat().to_lowercase()).map(|time| Duration::from_secs(time.as_secs()));
        Some(time.map(|time| Best { family, time }).map_err(|_| PatternError::Best))
    }

    /// The patterns to search for: those that hold all keys rarer than the best one so far. Without
    /// such a key, those that are likely in the time of the search at this rate. Empty if no key is
    /// rarer.
    pub fn patterns(self, kept: Option<&Pattern>, rate: Option<Rate>) -> Vec<Pattern> {
        match kept {
            Some(kept) => self.family.rarer_than(kept.difficulty()),
            None => self.family.first(rate.map_or(0.0, |Rate(rate)| rate * self.time.as_secs_f64())),
        }
    }

    /// The rarest pattern that the best key of at least one search in two reaches or exceeds.
    /// `None` if the search is too short for any.
    pub fn likely_pattern(self, rate: Rate) -> Option<Pattern> {
        let candidates = rate.0 * self.time.as_secs_f64();
        let is_likely = |pattern: &&Pattern| {
            let as_rare = self.family.first_that(|other| other.difficulty() >= pattern.difficulty());
            // Keys on two ladders are counted twice, but there are hardly any.
            let any = Difficulty::any_of(as_rare.iter().map(Pattern::difficulty));
            any.is_some_and(|any| any.chance_after(candidates) >= 0.5)
        };
        let steps = self.family.ladders().iter().flatten();
        steps.filter(is_likely).max_by(|one, other| by_difficulty(one, other)).cloned()
    }
}

/// Order of patterns by difficulty.
pub fn by_difficulty(one: &Pattern, other: &Pattern) -> std::cmp::Ordering {
    one.difficulty().candidates().total_cmp(&other.difficulty().candidates())
}

impl FromStr for Best {
    type Err = PatternError;

    /// Reads [`Best::read`] from one text.
    fn from_str(text: &str) -> Result<Best, PatternError> {
        let words: Vec<&str> = text.split_whitespace().collect();
        Best::read(&words).unwrap_or(Err(PatternError::Best))
    }
}

impl fmt::Display for Best {
    /// Writes `best 10m`, `best zeros 1h30m`, `best words 10s`.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let family = match self.family {
            Family::Any => "",
            Family::Zeros => " zeros",
            Family::Words => " words",
        };
        let time = humantime::format_duration(self.time).to_string().replace(' ', "");
        write!(f, "best{family} {time}")
    }
}
