//! Passes: the patterns of a launch and the jobs they belong to.

use super::profile::{KeyPart, Lane};
use crate::job::JobId;
use crate::key::HalfPoint;
use crate::pattern::{ALPHABET, Pattern, PatternId, PatternSet, Rate};
use crate::search::Remaining;
use crate::vault::StartId;
use std::cmp::Reverse;
use std::collections::BTreeMap;
use std::sync::{Arc, OnceLock};

/// Start points that are verified for each plentiful pattern of a pass, and for all of them. One
/// serves a job. A job of `npubbot mine` may want many.
const STARTS_A_PATTERN: usize = 4;
const SPARE_STARTS: usize = 16;

/// Of so many start points, one serves the oldest job first.
const OLDEST_FIRST: u64 = 16;

/// The place of a pattern in the order of [`Pass::precedence`]: its class or the age of its job, its
/// bits where the hardest come first, and its place in the pass.
pub type Precedence = (i64, Reverse<u32>, usize);

/// The patterns that every candidate of a launch is tested against, with their jobs. One is a
/// canary: the number of its hits is compared with the expected number, to tell whether a device
/// really searches.
#[derive(Debug)]
pub struct Pass {
    /// The canary first, then rare patterns, then plentiful ones.
    pub patterns: Arc<PatternSet>,
    /// The asker's half point, at which a split job is searched; `None` for start points of our
    /// own.
    pub half: Option<HalfPoint>,
    /// The chance that one candidate matches the canary.
    pub canary_chance: f64,
    /// The job that asked for each pattern; `None` for the canary.
    owners: Vec<Option<JobId>>,
    /// The jobs without a target, and whether each has a key already.
    pub timed: BTreeMap<JobId, bool>,
    /// Index of the first plentiful pattern.
    plentiful_from: usize,
    /// The part of the expected hits that belongs to plentiful patterns, 0 to 1.
    plentiful_part: f64,
    /// The value of [`Pass::remaining`], computed at its first use.
    remaining: OnceLock<Option<Remaining>>,
}

/// The chance that one candidate matches.
fn chance(pattern: &Pattern) -> f64 {
    1.0 / pattern.difficulty().candidates()
}

impl Pass {
    /// A pass of these patterns, each with its job. The selection decides which are rare.
    pub fn new<'a>(
        rare: impl Iterator<Item = (JobId, &'a Pattern)>,
        plentiful: impl Iterator<Item = (JobId, &'a Pattern)>,
        half: Option<HalfPoint>,
        canary: impl Into<CanarySeed>,
    ) -> Pass {
        let canary = canary.into();
        let (mut owners, mut patterns) = (vec![None], vec![canary.pattern.clone()]);
        let mut all = 0.0;
        let mut take = |(job, pattern): (JobId, &Pattern)| {
            all += chance(pattern);
            owners.push(Some(job));
            patterns.push(pattern.clone());
            (all, owners.len())
        };
        let (before, plentiful_from) = rare.map(&mut take).last().unwrap_or((0.0, 1));
        let (all, _) = plentiful.map(&mut take).last().unwrap_or((before, plentiful_from));
        patterns[0] = canary_beside(canary, &patterns[1..]);
        let canary_chance = chance(&patterns[0]);
        Pass {
            plentiful_part: 1.0 - (canary_chance + before) / (canary_chance + all),
            patterns: Arc::new(PatternSet::new(patterns)),
            half,
            owners,
            timed: BTreeMap::new(),
            plentiful_from,
            canary_chance,
            remaining: OnceLock::new(),
        }
    }

    /// The pass, in which these jobs have no target, and hits of them come after all others. The
    /// values say whether each has a key already.
    pub fn with_timed(self, timed: BTreeMap<JobId, bool>) -> Pass {
        Pass { timed, ..self }
    }

    /// A pass with only the canary, to measure launches of this kind. `rate`: their rate, as far as
    /// it is known.
    pub fn canary_alone(compared: KeyPart, rate: Option<Rate>) -> Pass {
        let canary = choose_canary(rate);
        let canary = if compared == KeyPart::Whole { canary_at_the_end(&canary) } else { canary };
        Pass::new(std::iter::empty(), std::iter::empty(), None, canary)
    }

    /// Whether the pass has a pattern of some job. Warm-up passes have none.
    pub fn is_for_a_job(&self) -> bool {
        self.owners.len() > 1
    }

    /// The part of a key that its launches compare.
    pub fn compared(&self) -> KeyPart {
        if self.patterns.compares_whole_keys() { KeyPart::Whole } else { KeyPart::Top32 }
    }

    /// The job that asked for a pattern; `None` for the canary.
    pub fn owner(&self, pattern: PatternId) -> Option<JobId> {
        self.owners[pattern.0]
    }

    /// Order in which several hits of one start point are preferred; the smallest wins. Rare
    /// patterns come first, hardest before easier. Then plentiful ones in turn; then jobs without a
    /// target, those without a key first. At one start point in sixteen, all that is not rare goes
    /// by age, so that no job waits for ever for those that come before it.
    pub fn precedence(&self, pattern: PatternId, StartId(start): StartId) -> Precedence {
        let PatternId(at) = pattern;
        let hardest_first = Reverse(self.patterns.get(pattern).bits());
        let has_key = self.owners[at].and_then(|job| self.timed.get(&job));
        match (has_key, self.owners[at]) {
            (None, _) if at < self.plentiful_from => (0, hardest_first, at),
            (_, Some(JobId(age))) if start % OLDEST_FIRST == OLDEST_FIRST - 1 => (age.max(1), Reverse(0), at),
            // Patterns of one class stand in turn.
            (None, _) => (1, Reverse(0), at),
            (Some(has_key), _) => (2 + i64::from(*has_key), hardest_first, at),
        }
    }

    /// Whether a job with a target has a rare pattern.
    fn has_rare(&self) -> bool {
        let rare = self.owners[1..self.plentiful_from].iter();
        rare.flatten().any(|job| !self.timed.contains_key(job))
    }

    /// Number of start points with a match after which the others of a launch are not worth
    /// verifying. `None` for a pass with rare patterns of jobs with a target: each of their hits
    /// counts.
    pub fn starts_worth_verifying(&self) -> Option<usize> {
        let jobs = self.owners.len() - self.plentiful_from;
        (!self.has_rare() && jobs > 0).then_some(SPARE_STARTS + STARTS_A_PATTERN * jobs)
    }

    /// The patterns still searched at a start point after the early stop. A start point yields only
    /// one key, so plentiful patterns need no further hits. `None` if the pass has no plentiful
    /// patterns.
    pub fn remaining(&self) -> Option<Remaining> {
        let make = || {
            let Pass { owners, plentiful_from, .. } = self;
            (owners.len() > *plentiful_from).then(|| Remaining {
                patterns: Arc::new(PatternSet::new(
                    self.patterns.iter().take(*plentiful_from).map(|(_, pattern)| pattern.clone()).collect(),
                )),
                is_wanted: self.has_rare(),
            })
        };
        self.remaining.get_or_init(make).clone()
    }

    /// The part of the expected hits that belongs to plentiful patterns, 0 to 1.
    pub fn plentiful_part(&self) -> f64 {
        self.plentiful_part
    }

    /// The job of each pattern but the canary.
    #[cfg(test)]
    pub fn jobs(&self) -> Vec<JobId> {
        self.owners.iter().copied().flatten().collect()
    }
}

/// Length of a canary, in characters, while the device's rate is unknown. One candidate in 2^25
/// matches: often enough on a slow device, and for a short while not too often on a fast one.
const FIRST_LENGTH: u32 = 5;

/// The fewest canary hits per second. One character more or less changes the number by a factor of
/// 32, so a canary has 10 to 320 hits per second: enough to prove that a device works, few enough
/// for the host to verify. An H100 or H200 has some 166.
const FEWEST_HITS: f64 = 10.0;

/// The fewest characters of a canary before the checksum: 15 bits of the key, enough for a quick
/// test.
const LEAST_OF_DATA: usize = 3;

/// A drawn canary. Its final form depends on the other patterns of the pass and on the device.
#[derive(Clone, Debug)]
pub struct CanarySeed {
    /// The canary of a pass without other patterns.
    pub pattern: Pattern,
    /// Whether the pattern is for a GPU, or may be.
    pub for_gpu: bool,
}

impl CanarySeed {
    /// A draw for a device of this rate that searches this lane.
    pub fn new(rate: Option<Rate>, lane: Lane) -> CanarySeed {
        CanarySeed { pattern: choose_canary(rate), for_gpu: lane == Lane::Hard }
    }
}

impl From<Pattern> for CanarySeed {
    fn from(pattern: Pattern) -> CanarySeed {
        CanarySeed { pattern, for_gpu: false }
    }
}

/// A random pattern that a device of this rate finds 10 to 320 times a second.
pub fn choose_canary(rate: Option<Rate>) -> Pattern {
    let length = rate.map_or(FIRST_LENGTH, |Rate(rate)| {
        let bits = (rate / FEWEST_HITS).max(1.0).log2();
        ((bits / 5.0) as u32).clamp(1, 12)
    });
    let mut random = [0u8; 12];
    // A canary need not be secret: if the system gives no randomness, a fixed pattern will do.
    let _ = getrandom::fill(&mut random);
    let text: String =
        random.iter().take(length as usize).map(|byte| char::from(ALPHABET[usize::from(byte % 32)])).collect();
    Pattern::parse(&text).expect("up to 12 characters of the alphabet are a pattern")
}

/// The canary of a pass with these patterns, about as frequent as `canary`: at most twice as
/// frequent.
///
/// - With a single pattern, the canary is a beginning that keys of that pattern can have. It adds
///   no interval to the filter, and a GPU has its fastest kernel for one interval. If the pattern
///   is a prefix, the device sees only the shorter of the two and cannot tell which is the canary.
/// - Where whole keys are compared, the canary fixes characters near the end of the key, so that
///   its hits prove that the device computes whole keys right. Where exactly depends on the
///   patterns, because every further test of all keys costs time:
///   - No pattern needs the checksum: just before the checksum.
///   - A pattern fixes characters of the checksum: the last ones, chosen to fit that pattern's end.
///   - Otherwise: the last ones, so that hits prove the checksum too. On a CPU, which can test a
///     key's lowest bits, about two thirds of them are just before the checksum instead, unless
///     some pattern is a run of characters anywhere, which needs tests of the checksum already.
pub fn canary_beside(canary: impl Into<CanarySeed>, requested: &[Pattern]) -> Pattern {
    let CanarySeed { pattern: canary, for_gpu } = canary.into();
    if requested.iter().all(Pattern::begins_selectively) {
        return match requested {
            [requested] => Pattern::parse(&requested.start_like(canary.as_str())).unwrap_or(canary),
            _ => canary,
        };
    }
    let reads_checksum = PatternSet::new(requested.to_vec()).text_tests().is_none_or(|tests| tests.need_checksum());
    let text = match reads_checksum {
        true => among_checksums(canary.as_str(), requested, for_gpu),
        false => before_the_checksum(canary.as_str(), "", requested),
    };
    text.parse().unwrap_or_else(|_| canary_at_the_end(&canary))
}

/// The text of a canary of these characters, among patterns that need checksums.
fn among_checksums(characters: &str, requested: &[Pattern], for_gpu: bool) -> String {
    if let Some(end) = requested.iter().find_map(|requested| requested.end_like(characters)) {
        return format!("*{end}");
    }
    let count = characters.len();
    let of_checksum = (count / 3).min(count.saturating_sub(LEAST_OF_DATA));
    if for_gpu || of_checksum == 0 || requested.iter().any(Pattern::is_a_run) {
        return format!("*{characters}");
    }
    let (of_data, of_checksum) = characters.split_at(count - of_checksum);
    before_the_checksum(of_data, of_checksum, requested)
}

/// The text of a canary: `of_data` right before the checksum, `of_checksum` at the end of it.
fn before_the_checksum(of_data: &str, of_checksum: &str, requested: &[Pattern]) -> String {
    let like = requested.iter().find_map(|requested| requested.data_end_like(of_data));
    format!("*{}?{of_checksum:?>6}", like.as_deref().unwrap_or(of_data))
}

/// A canary with the same characters at the end of a key, checksum included.
pub fn canary_at_the_end(canary: &Pattern) -> Pattern {
    format!("*{canary}").parse().unwrap_or_else(|_| canary.clone())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_nested_canary_is_as_frequent_and_shares_the_interval_of_a_longer_or_shorter_pattern() {
        for requested in ["q", "m0ct", "m0ctane", "m0ctanev0st0rxx"] {
            let requested = Pattern::parse(requested).unwrap();
            let canary = choose_canary(Some(Rate(150e9)));
            let nested = canary_beside(canary.clone(), std::slice::from_ref(&requested));
            assert_eq!(nested.bits(), canary.bits());
            assert_eq!(PatternSet::new(vec![nested, requested]).intervals().len(), 1);
        }
    }

    #[test]
    fn beside_a_pattern_of_another_kind_a_canary_adds_no_interval() {
        for rate in [Rate(80e6), Rate(150e9)] {
            for requested in ["m0?tane", "=7", "m0ct*cafe", "~satosh", "hex:0000c0de", "zeros:40", "words:6"] {
                let requested: Pattern = requested.parse().unwrap();
                let canary = choose_canary(Some(rate));
                let nested = canary_beside(canary.clone(), std::slice::from_ref(&requested));
                assert_eq!(nested.bits(), canary.bits());
                let alone = PatternSet::new(vec![requested.clone()]).intervals().len();
                let both = PatternSet::new(vec![nested, requested.clone()]).intervals().len();
                assert!(both <= alone, "{requested}: {both} intervals, {alone} without a canary");
            }
        }
    }

    #[test]
    fn where_whole_keys_are_compared_a_canary_is_an_end_that_reads_what_they_read() {
        let canary: Pattern = "al7ce".parse().unwrap();
        for (requested, on_cpu, on_gpu) in [
            (&["*cafe"][..], "*acafe", "*acafe"),
            (&["*cafe7", "*cafe8"], "*cafe7", "*cafe7"),
            (&["*a*[xy]cafe7"], "*cafe7", "*cafe7"),
            (&["*[xy]?", "*qqqq"], "*al7ye", "*al7ye"),
            (&["*qwerty*"], "*al7ce", "*al7ce"),
            (&["*qwerty*", "*cafe7"], "*cafe7", "*cafe7"),
            (&["*m0*"], "*al7ce", "*al7ce"),
            (&["*m0ctane*", "=7*"], "*al7ce", "*al7ce"),
            (&["*al7ce*", "hex:*beef"], "*al7ce", "*al7ce"),
            (&["*cat*d0g*"], "*al7c??????e", "*al7ce"),
            (&["=7*"], "*al7c??????e", "*al7ce"),
            (&["=7*", "hex:*c0ffee"], "*qllh??????e", "*al7ce"),
            (&["hex:*beef"], "*alhmh???????", "*alhmh???????"),
            (&["hex:*c0ffee"], "*wqllh???????", "*wqllh???????"),
            (&["*qwerty*@40"], "*al7ce???????", "*al7ce???????"),
            (&["m0ctane", "cat"], "al7ce", "al7ce"),
        ] {
            let requested: Vec<Pattern> = requested.iter().map(|text| text.parse().unwrap()).collect();
            for (for_gpu, expected) in [(false, on_cpu), (true, on_gpu)] {
                let draw = CanarySeed { pattern: canary.clone(), for_gpu };
                assert_eq!(canary_beside(draw, &requested).to_string(), expected, "{requested:?}, {for_gpu}");
            }
        }
    }

    #[test]
    fn every_rate_gets_a_canary_that_is_found_often_enough() {
        for rate in [1.0, 1e3, 40e6, 81e6, 1e9, 7e9, 130e9, 178e9, 1e12] {
            let frequency = rate / choose_canary(Some(Rate(rate))).difficulty().candidates();
            assert!(frequency <= 321.0, "{rate}: {frequency}");
            assert!(frequency >= FEWEST_HITS || rate < 321.0, "{rate}: {frequency}");
        }
    }
}
