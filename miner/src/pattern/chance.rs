//! The exact chance that a random key has one of several shapes.
//!
//! The computation reads a key's text from left to right. Its state says how far each shape is
//! matched after some characters. Characters are independent, so the chances of the states follow
//! from the chances one character before. A key that has several shapes is counted once.
//!
//! The six characters of the checksum are not free: they are a linear map of the data onto all 2^30
//! values. If any 46 characters of the data are given, the checksum is still uniform, because any
//! six consecutive characters of a BCH code of this length can be solved for (BIP-173). The grammar
//! refuses shapes that fix more characters together with an ending. The conditions that x is below
//! p and on the curve change a chance by less than 2^-120 of itself.
//!
//! # Estimates
//!
//! Sets whose chance takes too long to compute get an estimate of the chance that a random key has one of several shapes.
//!
//! A *placement* is a shape with a place for each part of its middle. The chances of all placements
//! add up to the mean number of placements in a random text. Now draw texts with chances
//! proportional to their numbers of placements `n`. The mean of `1 / n`, times that sum, is the
//! chance that a random text has any placement (R. M. Karp and M. Luby, "Monte-Carlo algorithms for
//! enumeration and reliability problems", 1983).

use super::characters::{CharacterSet, LAST_OF_DATA, NPUB_CHARACTERS};
use super::pattern::{KeyShape, Values};
use std::collections::HashMap;

/// StepTables after which a computation is given up: `MOST_STEPS`, or `STEPS_PER_SHAPE` for each shape
/// if that is more.
const MOST_STEPS: usize = 1 << 22;
const STEPS_PER_SHAPE: usize = 1 << 11;
/// Further steps that all estimates of one budget may take: `MOST_ESTIMATING` for the full budget,
/// `LEAST_ESTIMATING` for any other.
const MOST_ESTIMATING: usize = 1 << 22;
const LEAST_ESTIMATING: usize = 1 << 17;
/// StepTables that a test of one random text for one shape is counted as.
const STEPS_PER_TEXT: usize = 16;

/// A budget of steps for computing difficulties. A step advances one shape of a state by one kind
/// of character, in some tens of nanoseconds. Patterns that share a budget are bounded together.
#[derive(Clone, Debug)]
pub struct Effort {
    left: usize,
    per_shape: usize,
    for_estimates: usize,
}

impl Effort {
    /// A budget of this many steps, and some milliseconds for estimates.
    pub fn steps(count: usize) -> Effort {
        Effort { left: count, per_shape: 0, for_estimates: LEAST_ESTIMATING }
    }

    /// The largest budget for one computation: some tens of milliseconds, more for large sets.
    pub fn full() -> Effort {
        Effort { left: MOST_STEPS, per_shape: STEPS_PER_SHAPE, for_estimates: MOST_ESTIMATING }
    }

    /// Takes the steps for an estimate of `shapes` shapes from the budget. Returns the number of
    /// texts that the estimate may draw, at most `most`; `None` if that would be below `fewest`.
    pub(super) fn take_texts(&mut self, shapes: usize, fewest: usize, most: usize) -> Option<usize> {
        let steps_per_text = STEPS_PER_TEXT * shapes.max(1);
        let texts = (self.for_estimates / steps_per_text).min(most);
        if texts < fewest {
            return None;
        }
        self.for_estimates -= texts * steps_per_text;
        Some(texts)
    }

    /// Takes steps from the budget; `None` if too few are left.
    fn take(&mut self, steps: usize) -> Option<()> {
        self.left = self.left.checked_sub(steps)?;
        Some(())
    }
}

/// How far one shape has been matched.
#[derive(Clone, Copy, PartialEq, Eq, Hash)]
struct ShapeProgress {
    /// Index of the shape.
    shape: u32,
    /// 0 in the start, n in part n of the middle, counted from 1, and one more than the number of
    /// parts in the end.
    stage: u32,
    /// Bit `n` is set if the last `n + 1` characters fit the first `n + 1` places of the part.
    progress: u64,
}

/// Result of one more character.
enum Advance {
    Failed,
    Met,
    Goes(ShapeProgress),
}

/// The shapes, prepared for the steps.
struct StepTables<'a> {
    shapes: &'a [KeyShape],
    /// For each shape, each part of its middle and each value: the places of the part that the
    /// value fits, as bits.
    fits: Vec<Vec<[u64; 32]>>,
    /// For each value, the shapes without a start whose first part it may begin. Such a shape
    /// always waits for its first part, so a state contains it only once the part has begun.
    begins: [Vec<u32>; 32],
}

/// The chance, 0 to 1, that a random key has one of `shapes`. `None` if it takes more than
/// `effort`.
pub fn chance_of_any(shapes: &[KeyShape], effort: &mut Effort) -> Option<f64> {
    effort.left = effort.left.max(effort.per_shape * shapes.len());
    let steps = StepTables::new(shapes);
    let mut first = Vec::with_capacity(shapes.len());
    for (at, shape) in shapes.iter().enumerate() {
        match entered(shape, ShapeProgress { shape: at as u32, stage: 0, progress: 0 }, 0) {
            Advance::Met => return Some(1.0),
            Advance::Failed => {}
            Advance::Goes(state) if steps.is_idle(state) => {}
            Advance::Goes(state) => first.push(state),
        }
    }
    let mut layer = HashMap::from([(first, 1.0)]);
    let mut met = 0.0;
    for at in 0..NPUB_CHARACTERS {
        if layer.is_empty() {
            break;
        }
        let kinds = kinds_of_characters(shapes, at);
        let mut next: HashMap<Vec<ShapeProgress>, f64> = HashMap::new();
        for (known, chance) in layer {
            effort.take(kinds.len() * (known.len() + 1))?;
            for &(value, share) in &kinds {
                match steps.advanced(&known, at, value) {
                    None => met += chance * share,
                    Some(after) => *next.entry(after).or_default() += chance * share,
                }
            }
        }
        layer = next;
    }
    Some(met)
}

/// Groups the characters of one place by the shapes that accept them there. Returns one character
/// of each group, and the group's share of the possible characters.
fn kinds_of_characters(shapes: &[KeyShape], at: usize) -> Vec<(u8, f64)> {
    let possible = if at == LAST_OF_DATA { CharacterSet::PADDED } else { CharacterSet::ANY };
    let mut kinds = vec![possible.0];
    for shape in shapes {
        let end = at.checked_sub(shape.end_from()).and_then(|place| shape.end.get(place));
        let middle = if at < shape.start.len() { &[] } else { shape.middle.as_slice() };
        for set in shape.start.get(at).into_iter().chain(middle.iter().flatten()).chain(end) {
            if kinds.len() as u32 == possible.len() {
                break;
            }
            let split = kinds.iter().flat_map(|kind| [kind & set.0, kind & !set.0]);
            kinds = split.filter(|&kind| kind != 0).collect();
        }
    }
    let all = f64::from(possible.len());
    kinds.into_iter().map(|kind| (kind.trailing_zeros() as u8, f64::from(kind.count_ones()) / all)).collect()
}

impl StepTables<'_> {
    fn new(shapes: &[KeyShape]) -> StepTables<'_> {
        let fits_part = |part: &Vec<CharacterSet>| {
            std::array::from_fn(|value| {
                let places = part.iter().enumerate().filter(|(_, set)| set.contains(value as u8));
                places.fold(0, |all, (place, _)| all | 1 << place)
            })
        };
        let fits = shapes.iter().map(|shape| shape.middle.iter().map(fits_part).collect()).collect();
        let begins = std::array::from_fn(|value| {
            let may_begin = |shape: &KeyShape| {
                shape.start.is_empty() && shape.middle.first().is_some_and(|part| part[0].contains(value as u8))
            };
            (0..shapes.len()).filter(|&at| may_begin(&shapes[at])).map(|at| at as u32).collect()
        });
        StepTables { shapes, fits, begins }
    }

    /// Whether this is a shape without a start, whose first part has not begun.
    fn is_idle(&self, state: ShapeProgress) -> bool {
        state.stage == 1 && state.progress == 0 && {
            let shape = &self.shapes[state.shape as usize];
            shape.start.is_empty() && !shape.middle.is_empty()
        }
    }

    /// The states after one more character; `None` if some shape is matched.
    fn advanced(&self, known: &[ShapeProgress], at: usize, value: u8) -> Option<Vec<ShapeProgress>> {
        let begun = self.begins[usize::from(value)].iter();
        let begun = begun.filter(|&&shape| known.binary_search_by_key(&shape, |state| state.shape).is_err());
        let begun = begun.map(|&shape| ShapeProgress { shape, stage: 1, progress: 0 });
        let mut after = Vec::new();
        for state in known.iter().copied().chain(begun) {
            match self.step(state, at, value) {
                Advance::Met => return None,
                Advance::Failed => {}
                Advance::Goes(state) if self.is_idle(state) => {}
                Advance::Goes(state) => after.push(state),
            }
        }
        after.sort_unstable_by_key(|state| state.shape);
        Some(after)
    }

    fn step(&self, state: ShapeProgress, at: usize, value: u8) -> Advance {
        let shape = &self.shapes[state.shape as usize];
        if state.stage == 0 {
            return if shape.start[at].contains(value) { entered(shape, state, at + 1) } else { Advance::Failed };
        }
        if state.stage as usize > shape.middle.len() {
            return match at.checked_sub(shape.end_from()) {
                Some(place) if !shape.end[place].contains(value) => Advance::Failed,
                Some(place) if place + 1 == shape.end.len() => Advance::Met,
                _ => Advance::Goes(state),
            };
        }
        if at >= shape.within.min(shape.end_from()) {
            return Advance::Failed;
        }
        let part = state.stage as usize - 1;
        let progress = (state.progress << 1 | 1) & self.fits[state.shape as usize][part][usize::from(value)];
        if progress >> (shape.middle[part].len() - 1) & 1 == 1 {
            return entered(shape, ShapeProgress { stage: state.stage + 1, progress: 0, ..state }, at + 1);
        }
        Advance::Goes(ShapeProgress { progress, ..state })
    }
}

/// The state on entering a stage, or after a character of the start. An empty start, middle or end
/// is skipped.
fn entered(shape: &KeyShape, mut state: ShapeProgress, at: usize) -> Advance {
    if state.stage == 0 {
        if at < shape.start.len() {
            return Advance::Goes(state);
        }
        state.stage = 1;
    }
    let is_done = state.stage as usize > shape.middle.len() && shape.end.is_empty();
    if is_done { Advance::Met } else { Advance::Goes(state) }
}

/// The most texts drawn. With so many, the estimates for the sets of the tests err by at most 2 %.
const MOST_TEXTS: usize = 4096;
/// The fewest texts that are worth an estimate.
const FEWEST_TEXTS: usize = 64;

/// The chance, 0 to 1, that a random key has one of `shapes`, from random texts. The same shapes
/// have the same estimate. `None` if `effort` is too little for [`FEWEST_TEXTS`].
pub fn estimated_chance(shapes: &[KeyShape], effort: &mut Effort) -> Option<f64> {
    let count = effort.take_texts(shapes.len(), FEWEST_TEXTS, MOST_TEXTS)?;
    let all: Vec<Placements<'_>> = shapes.iter().map(|shape| Placements::new(shape, share)).collect();
    let sum: f64 = all.iter().map(Placements::total).sum();
    let mut random = Random(0);
    let drawn = (0..count).map(|_| {
        let values = drawn_from(&all, sum, &mut random);
        let fits = |set: CharacterSet, at: usize| f64::from(u8::from(set.contains(values[at])));
        let placements: f64 = shapes.iter().map(|shape| Placements::new(shape, fits).total()).sum();
        // The text has at least the placement that it was drawn with, even if rounding says less.
        1.0 / placements.max(1.0)
    });
    Some((sum * drawn.sum::<f64>() / count as f64).min(1.0))
}

/// The values that are possible at a place.
fn possible(at: usize) -> CharacterSet {
    if at == LAST_OF_DATA { CharacterSet::PADDED } else { CharacterSet::ANY }
}

/// The chance that the character at a place is in the set.
fn share(set: CharacterSet, at: usize) -> f64 {
    let possible = possible(at);
    f64::from(set.intersection(possible).len()) / f64::from(possible.len())
}

/// The placements of a shape, each with a weight: the product of the weights of its characters.
struct Placements<'a> {
    shape: &'a KeyShape,
    /// Weight of the start and the end.
    outside: f64,
    /// `rests[part][at]`: weight of all placements of this part and the later ones that begin at
    /// `at` or after it.
    rests: Vec<[f64; NPUB_CHARACTERS + 1]>,
}

impl<'a> Placements<'a> {
    /// The placements of a shape. `weight` gives the weight of one character from the set that the
    /// shape has for it, and its place.
    fn new(shape: &'a KeyShape, weight: impl Fn(CharacterSet, usize) -> f64) -> Placements<'a> {
        let product = |sets: &[CharacterSet], from: usize| -> f64 {
            let mut all = 1.0;
            for (set, at) in sets.iter().zip(from..) {
                all *= weight(*set, at);
                if all == 0.0 {
                    break;
                }
            }
            all
        };
        let outside = product(&shape.start, 0) * product(&shape.end, shape.end_from());
        let to = shape.within.min(shape.end_from());
        let mut rests = vec![[1.0; NPUB_CHARACTERS + 1]];
        for part in shape.middle.iter().rev().filter(|_| outside > 0.0) {
            let later = rests[rests.len() - 1];
            let mut rest = [0.0; NPUB_CHARACTERS + 1];
            for at in (0..=to.saturating_sub(part.len())).rev().filter(|at| at + part.len() <= to) {
                rest[at] = rest[at + 1] + product(part, at) * later[at + part.len()];
            }
            rests.push(rest);
        }
        rests.reverse();
        Placements { shape, outside, rests }
    }

    /// Weight of all placements.
    fn total(&self) -> f64 {
        if self.outside > 0.0 { self.outside * self.rests[0][self.shape.start.len()] } else { 0.0 }
    }

    /// Draws a placement with a chance proportional to its weight. Returns its places, and the
    /// characters that may stand at each.
    fn drawn(&self, random: &mut Random) -> Vec<(usize, CharacterSet)> {
        let places = |sets: &[CharacterSet], from: usize| (from..).zip(sets.to_vec()).collect::<Vec<_>>();
        let mut drawn = places(&self.shape.start, 0);
        let mut from = self.shape.start.len();
        for (part, rest) in self.shape.middle.iter().zip(&self.rests) {
            // The part begins at the first place after which no more than `left` of the weight
            // remains.
            let left = random.below_one() * rest[from];
            from += (from..NPUB_CHARACTERS - part.len()).take_while(|&at| rest[at + 1] > left).count();
            drawn.extend(places(part, from));
            from += part.len();
        }
        drawn.extend(places(&self.shape.end, self.shape.end_from()));
        drawn
    }
}

/// Draws a placement with a chance proportional to its weight, and a random text that has it. `sum`
/// is the weight of all placements.
fn drawn_from(all: &[Placements<'_>], sum: f64, random: &mut Random) -> Values {
    let mut left = random.below_one() * sum;
    let is_drawn = |placements: &&Placements<'_>| {
        left -= placements.total();
        left < 0.0
    };
    // Rounding may leave a remainder after the last shape. Then the last shape with any weight is
    // taken.
    let one = all.iter().find(is_drawn).or(all.iter().rfind(|placements| placements.total() > 0.0));
    let mut values = std::array::from_fn(|at| random.one_of(possible(at)));
    for (at, set) in one.map(|placements| placements.drawn(random)).unwrap_or_default() {
        values[at] = random.one_of(set.intersection(possible(at)));
    }
    values
}

/// The generator SplitMix64 (Steele, Lea and Flood, 2014). It always begins with the same state, so
/// that the same shapes always have the same difficulty.
struct Random(u64);

impl Random {
    fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mixed = (self.0 ^ (self.0 >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        let mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        mixed ^ (mixed >> 31)
    }

    /// A number from 0 to below 1.
    fn below_one(&mut self) -> f64 {
        (self.next() >> 11) as f64 / (1u64 << 53) as f64
    }

    /// A value of a set that is not empty.
    fn one_of(&mut self, set: CharacterSet) -> u8 {
        set.nth((((self.next() >> 32) * u64::from(set.len())) >> 32) as u32)
    }
}
