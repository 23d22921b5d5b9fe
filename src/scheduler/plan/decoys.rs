//! Decoys: patterns that nobody asked for, among those that workers on other machines get.
//!
//! A worker can tell its canary from the other patterns, because the canary is in one order only.
//! So it could report canaries and keep back the hits that end a job. A decoy looks like the
//! pattern of a job: it is in many orders, and as rare as one of the patterns beside it. A worker
//! with too few hits of decoys keeps hits back (`run/withheld.rs`).
//!
//! All workers get the same decoys, so two workers learn nothing by comparing. A found decoy is
//! removed within a second, like the pattern of a finished job; an unfound one after some hours.

use super::compared::Compared;
use super::pass::Pass;
use crate::pattern::{Pattern, PatternId, word_like};
use std::time::{Duration, Instant};

/// The most decoys where whole keys are compared. Each costs a test of every key.
const OF_WHOLE_KEYS: usize = 2;
/// Characters of the shortest and of the longest decoy. Workers get no shorter patterns.
const CHARACTERS: (u32, u32) = (4, 12);
/// The shortest and the longest life of an unfound decoy, hours.
const LIFE: (u64, u64) = (1, 24);
/// The least time between two changes of the decoys: each change is sent to every worker.
pub(in crate::scheduler) const UNCHANGED_FOR: Duration = Duration::from_secs(1);

/// The decoys of a fleet.
#[derive(Debug, Default)]
pub(in crate::scheduler) struct Decoys {
    wanted: usize,
    /// The decoys in use: for top words, for whole keys.
    drawn: [Drawn; 2],
}

#[derive(Debug, Default)]
struct Drawn {
    decoys: Vec<Decoy>,
    /// Number of changes so far.
    changes: u64,
    /// When the decoys last changed.
    changed: Option<Instant>,
}

#[derive(Debug)]
struct Decoy {
    pattern: Pattern,
    until: Instant,
}

impl Decoys {
    /// Sets the number of decoys beside the patterns of jobs.
    pub fn set_wanted(&mut self, wanted: usize) {
        self.wanted = wanted;
    }

    /// The decoys for a launch, and a number that changes with them. A launch that serves no job
    /// gets none.
    pub fn beside(&mut self, pass: &Pass, now: Instant) -> (u64, Vec<Pattern>) {
        if self.wanted == 0 || !pass.is_for_a_job() {
            return (0, Vec::new());
        }
        let compared = pass.compared();
        let most = if compared == Compared::WholeKeys { OF_WHOLE_KEYS } else { usize::MAX };
        let wanted = self.wanted.min(most);
        let Drawn { decoys, changes, changed } = &mut self.drawn[usize::from(compared == Compared::WholeKeys)];
        // A changed set is sent to every worker, and a GPU finds easy decoys in every launch.
        if changed.is_none_or(|changed| now >= changed + UNCHANGED_FOR) {
            let before = decoys.len();
            decoys.retain(|decoy| now < decoy.until);
            decoys.truncate(wanted);
            let kept = decoys.len();
            if kept < wanted {
                // Without randomness there are none: a decoy that can be guessed is worthless.
                decoys.extend((kept..wanted).map_while(|_| draw(pass, compared, now)));
                *changed = Some(now);
            }
            *changes += u64::from((kept, kept) != (before, decoys.len()));
        }
        (*changes + 1, decoys.iter().map(|decoy| decoy.pattern.clone()).collect())
    }

    /// Removes a found decoy at the next change.
    pub fn found(&mut self, pattern: &Pattern, now: Instant) {
        for decoy in self.drawn.iter_mut().flat_map(|drawn| &mut drawn.decoys) {
            if decoy.pattern == *pattern {
                decoy.until = decoy.until.min(now);
            }
        }
    }
}

/// Draws a decoy that is as rare as a pattern chosen at random from the pass. `None` if the system
/// gives no randomness.
fn draw(pass: &Pass, compared: Compared, now: Instant) -> Option<Decoy> {
    let like = pass.patterns.get(PatternId(1 + below(pass.patterns.len() - 1)?));
    let characters = (like.bits() / 5).clamp(CHARACTERS.0, CHARACTERS.1) as usize;
    // One random number is enough for each word, and for each character that is left over.
    let mut random = [0u64; CHARACTERS.1 as usize];
    for number in &mut random {
        *number = getrandom::u64().ok()?;
    }
    let mut numbers = random.into_iter();
    let text = word_like(characters, |count| numbers.next().map_or(0, |number| (number % count as u64) as usize));
    let text = if compared == Compared::WholeKeys { format!("*{text}") } else { text };
    let life = LIFE.0 * 3600 + getrandom::u64().ok()? % ((LIFE.1 - LIFE.0) * 3600);
    Some(Decoy { pattern: text.parse().ok()?, until: now + Duration::from_secs(life) })
}

/// A random number below `count`; `None` if the system gives no randomness.
fn below(count: usize) -> Option<usize> {
    Some((getrandom::u64().ok()? % count as u64) as usize)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::job::JobId;
    use crate::scheduler::plan::canary;
    use std::collections::BTreeSet;

    fn pass(texts: &[&str]) -> Pass {
        let patterns: Vec<Pattern> = texts.iter().map(|text| text.parse().unwrap()).collect();
        let rare = patterns.iter().enumerate().map(|(job, pattern)| (JobId(job as i64), pattern));
        Pass::new(rare, std::iter::empty(), None, canary::choose(None))
    }

    fn decoys(wanted: usize) -> Decoys {
        let mut decoys = Decoys::default();
        decoys.set_wanted(wanted);
        decoys
    }

    #[test]
    fn decoys_are_as_rare_as_the_patterns_beside_them_and_stay() {
        let (mut decoys, now) = (decoys(64), Instant::now());
        let pass = pass(&["m0ctane", "alyce"]);
        let drawn = decoys.beside(&pass, now).1;
        let bits: BTreeSet<u32> = drawn.iter().map(Pattern::bits).collect();
        // All 64 are of one kind once in 10^19 runs.
        assert_eq!((drawn.len(), bits), (64, BTreeSet::from([25, 35])));
        let different: BTreeSet<&str> = drawn.iter().map(Pattern::as_str).collect();
        assert!(different.len() > 55, "{different:?}");
        assert_eq!(decoys.beside(&pass, now + Duration::from_secs(LIFE.0 * 3600 - 1)).1, drawn);
        let shared = decoys.beside(&super::tests::pass(&["qqqqqqqqqqqq"]), now).1;
        assert_eq!(shared, drawn, "they are the same beside other patterns");
    }

    #[test]
    fn a_decoy_that_was_found_or_is_old_is_another_one() {
        let (mut decoys, now) = (decoys(8), Instant::now());
        let pass = pass(&["m0ctanev0st0"]);
        let first = decoys.beside(&pass, now).1;
        decoys.found(&first[3], now);
        let soon = now + UNCHANGED_FOR - Duration::from_millis(1);
        assert_eq!(decoys.beside(&pass, soon).1, first, "a set that changes is sent to everybody");
        let second = decoys.beside(&pass, now + UNCHANGED_FOR).1;
        assert!(second.len() == 8 && !second.contains(&first[3]) && second.contains(&first[0]), "{second:?}");
        let later = decoys.beside(&pass, now + Duration::from_secs(LIFE.1 * 3600)).1;
        assert!(later.iter().all(|pattern| !second.contains(pattern)), "{later:?}");
    }

    #[test]
    fn where_whole_keys_are_compared_there_are_few_and_a_warm_up_has_none() {
        let (mut decoys, now) = (decoys(64), Instant::now());
        let whole = decoys.beside(&pass(&["*al7ce*"]), now).1;
        assert!(whole.len() == OF_WHOLE_KEYS && whole.iter().all(|pattern| pattern.as_str().starts_with('*')));
        assert_eq!(decoys.beside(&Pass::canary_alone(None), now).1, []);
        decoys.set_wanted(0);
        assert_eq!(decoys.beside(&pass(&["m0ctane"]), now).1, []);
    }
}
