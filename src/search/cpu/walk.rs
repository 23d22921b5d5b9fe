//! One start point's stretch: round after round, `W` vectors of centres, the whole table around each, one inversion a round.
//!
//! The vectors of a round are worked on in turn, entry by entry: what one of them waits for (a product is a chain of some
//! 80 cycles) the processor fills with the next.

use super::field::Fe;
use super::filter::Filter;
use super::formula::{Centre, Products, address, cube, factor, number};
use super::huge_page::{InLargePage, Zeros};
use super::simd::{Lanes, Notes, SLOTS};
use super::table::{Affine, ENTRIES, STEP, Table, moved, multiple_of_generator};
use crate::key::{Offset, Rotation, StartPoint, Tweak};
use secp256k1::PublicKey;
use std::sync::Arc;

/// Candidates of one table entry: three turns, two signs, three rotations.
const CANDIDATES_AN_ENTRY: u64 = 18;

/// What a walk brought.
#[derive(Debug, Default)]
pub struct Walked {
    /// Candidates tested.
    pub candidates: u64,
    /// Every one of them that may match, confirmed in full.
    pub hits: Vec<Tweak>,
    pub rounds: u64,
    /// The top_words of the hits of one round.
    top_words: Vec<u64>,
}

/// What a walk looks for, and how long.
#[derive(Clone, Debug)]
pub struct Sought {
    pub filter: Arc<Filter>,
    /// Ends after a round by which so many hits were found: very easy patterns would otherwise drown the rest.
    pub hits_wanted: usize,
    pub remaining: Option<Remaining>,
}

/// What a walk goes on for when it has found enough of the rest.
#[derive(Clone, Debug)]
pub struct Remaining {
    /// Of part of the patterns.
    pub filter: Arc<Filter>,
    /// Whether it goes on for these, or ends.
    pub is_wanted: bool,
    /// How many hits of the rest are enough.
    pub after: usize,
}

/// A walk's working memory, kept between walks.
pub struct Scratch<F: Lanes, const W: usize>(Box<InLargePage<Memory<F, W>>>);

struct Memory<F: Lanes, const W: usize> {
    /// Entry by entry the prefix products of a round's factors; on the way back each makes place for the entry's q.
    prefixes: [[F; W]; ENTRIES],
    few: F::Few,
    many: F::Many,
}

// SAFETY: each part may be all zeros.
unsafe impl<F: Lanes, const W: usize> Zeros for Memory<F, W> {}

impl<F: Lanes, const W: usize> Scratch<F, W> {
    pub fn new() -> Scratch<F, W> {
        Scratch(InLargePage::zeros())
    }
}

/// Where a round stands.
struct Standing<F, const W: usize> {
    points: [Affine<F>; W],
    /// Lanes of a vector whose centre is infinity, as bits: they hold some other point, and nothing of them counts.
    dead: [u32; W],
    /// The number of the first centre, `start point + number·STEP·G`; the other lanes follow, vector by vector.
    number: u64,
}

impl<F: Lanes, const W: usize> Standing<F, W> {
    const CENTRES: u64 = (F::LANES * W) as u64;

    /// The centres from `number` on, by libsecp256k1.
    fn at(table: &Table<F>, start: &StartPoint, number: u64) -> Standing<F, W> {
        let first = moved(start.public_key(), number * STEP);
        let centre = |at: usize| match (at, first) {
            (0, first) => first,
            (_, None) => Some(table.centres[at - 1]),
            (_, Some(first)) => first.combine(&table.centres[at - 1]).ok(),
        };
        let mut dead = [0; W];
        let mut vector = |w: usize| {
            let mut lane = |lane: usize| -> PublicKey {
                centre(w * F::LANES + lane).unwrap_or_else(|| {
                    dead[w] |= 1 << lane;
                    multiple_of_generator(u64::MAX)
                })
            };
            let points: Vec<Affine<Fe>> = (0..F::LANES).map(|at| Affine::of(&lane(at))).collect();
            let (xs, ys): (Vec<Fe>, Vec<Fe>) = points.iter().map(|point| (point.x, point.y)).unzip();
            Affine { x: F::from_lanes(&xs), y: F::from_lanes(&ys) }
        };
        let points = std::array::from_fn(&mut vector);
        Standing { points, dead, number }
    }

    /// The number of the centre in a lane of a vector.
    fn number_of(&self, w: usize, lane: usize) -> u64 {
        self.number + (w * F::LANES + lane) as u64
    }
}

/// Walks from `start point` over at most `rounds` rounds of `W·LANES` centres, `start point + c·STEP·G`.
#[inline(always)]
pub fn walk<F: Lanes, const W: usize>(
    table: &Table<F>,
    start: &StartPoint,
    rounds: u64,
    sought: &Sought,
    scratch: &mut Scratch<F, W>,
) -> Walked {
    let mut walked = Walked::default();
    let mut standing = Standing::at(table, start, 0);
    let (mut filter, mut remaining, mut others) = (&sought.filter, sought.remaining.as_ref(), 0);
    let Memory { prefixes, few, many } = &mut scratch.0.0;
    many.begin(filter);
    while walked.rounds < rounds && walked.hits.len() < sought.hits_wanted {
        let next = if filter.widened().len() <= F::FEW_INTERVALS {
            round(table, &standing, filter, prefixes, few, &mut walked)
        } else {
            round(table, &standing, filter, prefixes, many, &mut walked)
        };
        walked.rounds += 1;
        if let Some(kept) = remaining {
            others += walked.top_words.iter().filter(|&&top| !kept.filter.matches_exactly(top)).count();
            if others >= kept.after {
                if !kept.is_wanted {
                    break;
                }
                (filter, remaining) = (&kept.filter, None);
                many.begin(filter);
            }
        }
        walked.top_words.clear();
        let number = walked.rounds * Standing::<F, W>::CENTRES;
        standing = match next {
            Some(points) if standing.dead == [0; W] => Standing { points, dead: standing.dead, number },
            _ => Standing::at(table, start, number),
        };
    }
    walked
}

/// All entries around the centres. Returns the next centres, unless they cannot be had by a plain addition.
#[inline(always)]
fn round<F: Lanes, N: Notes<F>, const W: usize>(
    table: &Table<F>,
    standing: &Standing<F, W>,
    filter: &Filter,
    prefixes: &mut [[F; W]],
    notes: &mut N,
    walked: &mut Walked,
) -> Option<[Affine<F>; W]> {
    let points = &standing.points;
    let one = number::<F>(Fe::ONE);
    let step: Affine<F> = Affine { x: number(table.step.x).0, y: number(table.step.y).0 };
    let mut cubes = [one; W];
    for w in 0..W {
        cubes[w] = cube(points[w].x);
    }
    let mut whole = [one.0; W];
    for (prefix, entry) in prefixes.iter_mut().zip(&table.entries.0) {
        for w in 0..W {
            prefix[w] = whole[w];
            whole[w] = whole[w].mul(factor(cubes[w], entry));
        }
    }
    // The inverses of x and of the way to the next centre come from the same inversion.
    let (mut steps, mut inverses) = ([one.0; W], [one.0; W]);
    for w in 0..W {
        steps[w] = step.x.sub(points[w].x);
        inverses[w] = whole[w].mul(steps[w]).mul(points[w].x);
    }
    // One zero would wipe every inverse of its lane. It takes a chosen point or a chance of 2^-240.
    if !invert_all(&mut inverses) {
        round_with_zero(table, standing, filter, walked);
        return None;
    }
    let mut next = *points;
    // A vector's shared inverse, scaled by 2·xA: it gives q where it would give t.
    let mut shared = [one.0; W];
    let mut centres = [None; W];
    for w in 0..W {
        let x = points[w].x;
        centres[w] = Some(Centre::new(points[w], cubes[w], inverses[w].mul(whole[w]).mul(steps[w])));
        let inverse = inverses[w].mul(x);
        next[w] = add(&points[w], &step, inverse.mul(whole[w]));
        shared[w] = inverse.mul(steps[w]).mul(F::sum(x.tidy(), x.tidy()));
    }
    let centres = centres.map(|centre| centre.expect("one was made for each vector"));
    let mut products = [Products::new(&centres[0], &table.entries.0[0], one.0); W];
    for end in (1..=ENTRIES / (SLOTS / W)).rev().map(|part| part * (SLOTS / W)) {
        for slot in 0..SLOTS / W {
            let entry = &table.entries.0[end - 1 - slot];
            let q = &mut prefixes[end - 1 - slot];
            for w in 0..W {
                q[w] = shared[w].mul(q[w]);
                shared[w] = shared[w].mul(factor(cubes[w], entry));
            }
            for w in 0..W {
                products[w] = Products::new(&centres[w], entry, q[w]);
            }
            for w in 0..W {
                let top_words = products[w].top_words(&centres[w], entry);
                notes.note(filter, &top_words, slot * W + w);
            }
        }
        let mut slots = notes.noted(filter);
        while slots != 0 {
            seldom();
            let slot = slots.trailing_zeros() as usize;
            slots &= slots - 1;
            let (at, w) = (end - 1 - slot / W, slot % W);
            confirm(table, standing, (at, w), &centres[w], prefixes[at][w], filter, walked);
        }
    }
    for dead in standing.dead {
        let alive = F::LANES as u64 - u64::from(dead.count_ones());
        walked.candidates += CANDIDATES_AN_ENTRY * ENTRIES as u64 * alive;
    }
    Some(next)
}

/// Inverts all vectors with one inversion. `false` if some lane of one is zero.
#[inline(always)]
fn invert_all<F: Lanes, const W: usize>(values: &mut [F; W]) -> bool {
    let mut prefixes = *values;
    for w in 1..W {
        prefixes[w] = prefixes[w - 1].mul(values[w]);
    }
    if prefixes[W - 1].zero_lanes() != 0 {
        return false;
    }
    let mut inverse = prefixes[W - 1].invert();
    for w in (1..W).rev() {
        let value = values[w];
        values[w] = inverse.mul(prefixes[w - 1]);
        inverse = inverse.mul(value);
    }
    values[0] = inverse;
    true
}

/// Tells the compiler that what follows a call of it is seldom run.
#[cold]
#[inline(never)]
fn seldom() {}

/// Computes an entry's products again, what is marked of them in full, and keeps what is a hit.
#[inline(always)]
fn confirm<F: Lanes, const W: usize>(
    table: &Table<F>,
    standing: &Standing<F, W>,
    (at, w): (usize, usize),
    centre: &Centre<F>,
    q: F,
    filter: &Filter,
    walked: &mut Walked,
) {
    let entry = &table.entries.0[at];
    let products = Products::new(centre, entry, q);
    let top_words = products.top_words(centre, entry);
    for (word, &marked) in F::marks(filter, &top_words).iter().enumerate() {
        let mut bits = marked;
        while bits != 0 {
            let bit = bits.trailing_zeros() as usize;
            bits &= bits - 1;
            let (sign, lane) = (bit / 8, bit % 8);
            let top = F::top(top_words[word], sign == 1, lane);
            if filter.is_marked(top) && standing.dead[w] >> lane & 1 == 0 {
                let (products, centre_x) = (products.lane(lane), centre.x.lane(lane));
                let (k, j) = address(word);
                let number = standing.number_of(w, lane);
                keep(centre_x, entry.x, at, number, &products, (k, sign, j), filter, walked);
            }
        }
    }
}

/// Keeps a candidate of an entry around one centre if it is a hit.
#[cold]
#[inline(never)]
#[expect(clippy::too_many_arguments, reason = "one candidate's whole address")]
fn keep(
    centre_x: Fe,
    xi: Fe,
    at: usize,
    number: u64,
    products: &Products<Fe>,
    (k, sign, j): (usize, usize, usize),
    filter: &Filter,
    walked: &mut Walked,
) {
    let top = products.exact(centre_x, xi, (k, sign, j)).top();
    if filter.matches_exactly(top) {
        let size = at as i64 + 1;
        walked.top_words.push(top);
        walked.hits.push(tweak(number * STEP, if sign == 1 { -size } else { size }, k, j));
    }
}

/// A round in which some factor is zero: one number at a time, each with an inversion of its own. Entries whose factor
/// is zero (the centre is ±λ^k times their point, and the formula does not hold) are not tested and not counted.
#[cold]
#[inline(never)]
fn round_with_zero<F: Lanes, const W: usize>(
    table: &Table<F>,
    standing: &Standing<F, W>,
    filter: &Filter,
    walked: &mut Walked,
) {
    for (w, lane) in (0..W).flat_map(|w| (0..F::LANES).map(move |lane| (w, lane))) {
        if standing.dead[w] >> lane & 1 != 0 {
            continue;
        }
        let point = Affine { x: standing.points[w].x.lane(lane), y: standing.points[w].y.lane(lane) };
        let z = cube(point.x);
        let centre = Centre::new(point, z, point.x.invert());
        for (at, entry) in table.plain.iter().enumerate() {
            let factor = factor(z, entry);
            if factor.is_zero() {
                continue;
            }
            let products = Products::new(&centre, entry, point.x.double().mul(factor.invert()));
            walked.candidates += CANDIDATES_AN_ENTRY;
            for (word, sign) in (0..9).flat_map(|word| [(word, 0), (word, 1)]) {
                let (k, j) = address(word);
                keep(point.x, entry.x, at, standing.number_of(w, lane), &products, (k, sign, j), filter, walked);
            }
        }
    }
}

fn tweak(centre: u64, step: i64, turn: usize, rotation: usize) -> Tweak {
    let power = |power: usize| Rotation::ALL[power];
    Tweak { offset: Offset::of_point(centre, step, power(turn)), rotation: power(rotation) }
}

/// Affine addition of two points with different x, given `1/(x2 - x1)`.
#[inline(always)]
fn add<F: Lanes>(first: &Affine<F>, second: &Affine<F>, inverse: F) -> Affine<F> {
    let slope = second.y.sub(first.y).mul(inverse);
    let x = slope.square().sub(first.x).sub(second.x);
    Affine { x, y: slope.mul(first.x.sub(x)).sub(first.y) }
}
