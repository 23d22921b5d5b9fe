//! An estimate of the chance that a random key has one of several shapes, for sets whose chance
//! takes too long to compute.
//!
//! A *placement* is a shape with a place for each part of its middle. The chances of all placements
//! add up to the mean number of placements in a random text. Now draw texts with chances
//! proportional to their numbers of placements `n`. The mean of `1 / n`, times that sum, is the
//! chance that a random text has any placement (R. M. Karp and M. Luby, "Monte-Carlo algorithms for
//! enumeration and reliability problems", 1983).

use super::chance::Effort;
use super::character_set::{CharacterSet, LAST_OF_DATA, NPUB_CHARACTERS};
use super::shape::{Shape, Values};

/// The most texts drawn. With so many, the estimates for the sets of the tests err by at most 2 %.
const MOST_TEXTS: usize = 4096;
/// The fewest texts that are worth an estimate.
const FEWEST_TEXTS: usize = 64;

/// The chance, 0 to 1, that a random key has one of `shapes`, from random texts. The same shapes
/// have the same estimate. `None` if `effort` is too little for [`FEWEST_TEXTS`].
pub fn estimated_chance(shapes: &[Shape], effort: &mut Effort) -> Option<f64> {
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
    shape: &'a Shape,
    /// Weight of the start and the end.
    outside: f64,
    /// `rests[part][at]`: weight of all placements of this part and the later ones that begin at
    /// `at` or after it.
    rests: Vec<[f64; NPUB_CHARACTERS + 1]>,
}

impl<'a> Placements<'a> {
    /// The placements of a shape. `weight` gives the weight of one character from the set that the
    /// shape has for it, and its place.
    fn new(shape: &'a Shape, weight: impl Fn(CharacterSet, usize) -> f64) -> Placements<'a> {
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
