//! One base's stretch: round after round, a centre in each lane, the whole table around it, one inversion a round.

use super::field::Fe;
use super::filter::Filter;
use super::formula::{Centre, Products, address};
use super::lanes::Lanes;
use super::table::{Affine, ENTRIES, Entry, STEP, Table, moved, multiple_of_generator};
use crate::key::{BasePoint, Offset, Rotation, Tweak};

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
}

/// A walk's working memory, kept between walks: the prefix products of a round's factors.
#[derive(Debug)]
pub struct Scratch<F> {
    prefixes: Vec<F>,
}

impl<F: Lanes> Scratch<F> {
    #[inline(always)]
    pub fn new() -> Scratch<F> {
        Scratch { prefixes: vec![F::of(&F::constant(Fe::ONE)); ENTRIES + 1] }
    }
}

/// Where a round stands.
struct Standing<F> {
    point: Affine<F>,
    /// Lanes whose centre is infinity, as bits: they hold some other point, and nothing of them counts.
    dead: u32,
    /// The number of lane 0's centre, `base + number·STEP·G`; the other lanes follow.
    number: u64,
}

impl<F: Lanes> Standing<F> {
    /// The centres from `number` on, by libsecp256k1.
    fn at(base: &BasePoint, number: u64) -> Standing<F> {
        let (mut xs, mut ys, mut dead) = (Vec::new(), Vec::new(), 0);
        for lane in 0..F::LANES {
            let point = moved(base.public_key(), (number + lane as u64) * STEP).unwrap_or_else(|| {
                dead |= 1 << lane;
                multiple_of_generator(u64::MAX)
            });
            let point = Affine::of(&point);
            xs.push(point.x);
            ys.push(point.y);
        }
        Standing { point: Affine { x: F::from_lanes(&xs), y: F::from_lanes(&ys) }, dead, number }
    }
}

/// Walks from `base` over `rounds` rounds of `LANES` centres, `base + c·STEP·G`. Ends early after a round by which
/// `hits_wanted` hits were found: very easy patterns would otherwise drown the rest.
#[inline(always)]
pub fn walk<F: Lanes>(
    table: &Table<F>,
    base: &BasePoint,
    rounds: u64,
    filter: &Filter,
    hits_wanted: usize,
    scratch: &mut Scratch<F>,
) -> Walked {
    let mut walked = Walked::default();
    let mut standing = Standing::at(base, 0);
    while walked.rounds < rounds && walked.hits.len() < hits_wanted {
        let next = round(table, &standing, filter, scratch, &mut walked);
        walked.rounds += 1;
        let number = walked.rounds * F::LANES as u64;
        standing = match next {
            Some(point) if standing.dead == 0 => Standing { point, dead: 0, number },
            _ => Standing::at(base, number),
        };
    }
    walked
}

/// The same number in every lane.
#[inline(always)]
fn number<F: Lanes>(value: Fe) -> F {
    F::of(&F::constant(value))
}

/// All entries around the centres. Returns the next centres, unless they cannot be had by a plain addition.
#[inline(always)]
fn round<F: Lanes>(
    table: &Table<F>,
    standing: &Standing<F>,
    filter: &Filter,
    scratch: &mut Scratch<F>,
    walked: &mut Walked,
) -> Option<Affine<F>> {
    let centre = Centre::new(standing.point);
    let step: Affine<F> = Affine { x: number(table.step.x), y: number(table.step.y) };
    let step_factor = step.x.sub(centre.point.x);
    let prefixes = &mut scratch.prefixes[..=ENTRIES];
    let mut product: F = number(Fe::ONE);
    for (prefix, entry) in prefixes.iter_mut().zip(&table.entries) {
        *prefix = product;
        product = product.mul(centre.factor(entry));
    }
    prefixes[ENTRIES] = product;
    product = product.mul(step_factor);
    // One zero would wipe every inverse of its lane. It takes a chosen point or a chance of 2^-240.
    if product.zero_lanes() != 0 {
        round_with_zero(table, standing, filter, walked);
        return None;
    }
    let mut inverse = product.invert();
    let step_inverse = inverse.mul(prefixes[ENTRIES]);
    inverse = inverse.mul(step_factor);
    for (at, entry) in table.entries.iter().enumerate().rev() {
        let t = inverse.mul(prefixes[at]);
        inverse = inverse.mul(centre.factor(entry));
        let products = Products::new(&centre, entry, t);
        let tops = products.tops(&centre, entry);
        let marks = F::marks(filter, &tops);
        let mut any = 0;
        for word in marks {
            any |= word;
        }
        if any != 0 {
            for (word, &marked) in marks.iter().enumerate() {
                let mut bits = marked;
                while bits != 0 {
                    let bit = bits.trailing_zeros() as usize;
                    bits &= bits - 1;
                    let (n, lane) = (2 * word + bit / 8, bit % 8);
                    if filter.may_match(F::top(tops[n], lane)) {
                        confirm(table, standing, &centre, at, &products, (n, lane), filter, walked);
                    }
                }
            }
        }
    }
    let alive = F::LANES as u64 - u64::from(standing.dead.count_ones());
    walked.candidates += CANDIDATES_AN_ENTRY * ENTRIES as u64 * alive;
    Some(add(&centre.point, &step, step_inverse))
}

/// Computes candidate `n` in one lane in full, and keeps it if it is a hit.
#[cold]
#[inline(never)]
#[expect(clippy::too_many_arguments, reason = "the inner loop's state, handed over as it is")]
fn confirm<F: Lanes>(
    table: &Table<F>,
    standing: &Standing<F>,
    centre: &Centre<F>,
    at: usize,
    products: &Products<F>,
    (n, lane): (usize, usize),
    filter: &Filter,
    walked: &mut Walked,
) {
    if standing.dead >> lane & 1 == 0 {
        let (centre, products) = (centre.lane(lane), products.lane(lane));
        let number = standing.number + lane as u64;
        keep(&centre, &table.plain[at], at, number, &products, n, filter, walked);
    }
}

/// Keeps candidate `n` of an entry around one centre if it is a hit.
#[expect(clippy::too_many_arguments, reason = "one candidate's whole address")]
fn keep(
    centre: &Centre<Fe>,
    entry: &Entry<Fe>,
    at: usize,
    number: u64,
    products: &Products<Fe>,
    n: usize,
    filter: &Filter,
    walked: &mut Walked,
) {
    let (k, sign, j) = address(n);
    if filter.matches_exactly(products.exact(centre, entry, k, sign, j).top()) {
        let size = at as i64 + 1;
        walked.hits.push(tweak(number * STEP, if sign == 1 { -size } else { size }, k, j));
    }
}

/// A round in which some factor is zero: one number at a time, each with an inversion of its own. Entries whose factor
/// is zero (the centre is ±λ^k times their point, and the formula does not hold) are not tested and not counted.
#[cold]
#[inline(never)]
fn round_with_zero<F: Lanes>(table: &Table<F>, standing: &Standing<F>, filter: &Filter, walked: &mut Walked) {
    for lane in (0..F::LANES).filter(|lane| standing.dead >> lane & 1 == 0) {
        let centre = Centre::new(Affine { x: standing.point.x.lane(lane), y: standing.point.y.lane(lane) });
        for (at, entry) in table.plain.iter().enumerate() {
            let factor = centre.factor(entry);
            if factor.is_zero() {
                continue;
            }
            let products = Products::new(&centre, entry, factor.invert());
            walked.candidates += CANDIDATES_AN_ENTRY;
            for n in 0..18 {
                keep(&centre, entry, at, standing.number + lane as u64, &products, n, filter, walked);
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
