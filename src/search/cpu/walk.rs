//! One base's stretch: centre after centre, the whole table around each, one inversion a centre.

use super::field::Fe;
use super::filter::Filter;
use super::formula::{Centre, Products};
use super::table::{Affine, ENTRIES, STEP, Table, moved};
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
    pub centres: u64,
}

/// A walk's working memory, kept between walks: the prefix products of a centre's factors.
#[derive(Debug)]
pub struct Scratch {
    prefixes: Vec<Fe>,
}

impl Default for Scratch {
    fn default() -> Scratch {
        Scratch { prefixes: vec![Fe::ONE; ENTRIES + 1] }
    }
}

/// Walks from `base` over `centres` centres, `base + c·STEP·G`. Ends early after a centre by which `hits_wanted` hits
/// were found: very easy patterns would otherwise drown the rest.
pub fn walk(
    table: &Table,
    base: &BasePoint,
    centres: u64,
    filter: &Filter,
    hits_wanted: usize,
    scratch: &mut Scratch,
) -> Walked {
    let mut walked = Walked::default();
    let mut point = Some(Affine::of(base.public_key()));
    while walked.centres < centres && walked.hits.len() < hits_wanted {
        let number = walked.centres;
        walked.centres += 1;
        let next = || moved(base.public_key(), (number + 1) * STEP).map(|point| Affine::of(&point));
        let Some(at) = point else {
            // The centre is the point at infinity: left out, and not counted.
            point = next();
            continue;
        };
        let centre = Centre::new(at);
        let ahead = round(table, &centre, number, filter, scratch, &mut walked);
        point = ahead.or_else(next);
    }
    walked
}

/// All entries around one centre. Returns the next centre, unless it cannot be had by a plain addition.
#[inline(never)]
fn round(
    table: &Table,
    centre: &Centre,
    number: u64,
    filter: &Filter,
    scratch: &mut Scratch,
    walked: &mut Walked,
) -> Option<Affine> {
    let prefixes = &mut scratch.prefixes[..=ENTRIES];
    let step_factor = table.step.x.sub(centre.point.x);
    let mut product = Fe::ONE;
    for (prefix, entry) in prefixes.iter_mut().zip(&table.entries) {
        *prefix = product;
        product = product.mul(centre.factor(entry));
    }
    prefixes[ENTRIES] = product;
    product = product.mul(step_factor);
    // One zero would wipe every inverse of the batch. It takes a chosen point or a chance of 2^-240.
    let has_zero = product.is_zero();
    if has_zero {
        product = Fe::ONE;
        for (prefix, entry) in prefixes.iter_mut().zip(&table.entries) {
            *prefix = product;
            product = product.mul(nonzero(centre.factor(entry)));
        }
        prefixes[ENTRIES] = product;
        product = product.mul(nonzero(step_factor));
    }
    let mut inverse = product.invert();
    let step_inverse = inverse.mul(prefixes[ENTRIES]);
    inverse = inverse.mul(if has_zero { nonzero(step_factor) } else { step_factor });
    for (at, entry) in table.entries.iter().enumerate().rev() {
        let mut factor = centre.factor(entry);
        if has_zero && factor.is_zero() {
            // The centre and ±λ^k·I are one point or opposite ones: the formula does not hold. Not tested, not counted.
            factor = Fe::ONE;
            inverse = inverse.mul(factor);
            continue;
        }
        let t = inverse.mul(prefixes[at]);
        inverse = inverse.mul(factor);
        let products = Products::new(centre, entry, t);
        let tops = products.tops(centre, entry);
        walked.candidates += CANDIDATES_AN_ENTRY;
        for (k, signs) in tops.iter().enumerate() {
            for (sign, rotations) in signs.iter().enumerate() {
                for (j, &top) in rotations.iter().enumerate() {
                    if filter.may_match(top) {
                        let exact = products.exact(centre, entry, k, sign == 1, j);
                        if filter.matches_exactly(exact.top()) {
                            let size = at as i64 + 1;
                            let step = if sign == 1 { -size } else { size };
                            walked.hits.push(tweak(number * STEP, step, k, j));
                        }
                    }
                }
            }
        }
    }
    (!step_factor.is_zero()).then(|| add(&centre.point, &table.step, step_inverse))
}

fn nonzero(factor: Fe) -> Fe {
    if factor.is_zero() { Fe::ONE } else { factor }
}

fn tweak(centre: u64, step: i64, turn: usize, rotation: usize) -> Tweak {
    let power = |power: usize| Rotation::ALL[power];
    Tweak { offset: Offset::of_point(centre, step, power(turn)), rotation: power(rotation) }
}

/// Affine addition of two points with different x, given `1/(x2 - x1)`.
fn add(first: &Affine, second: &Affine, inverse: Fe) -> Affine {
    let slope = second.y.sub(first.y).mul(inverse);
    let x = slope.square().sub(first.x).sub(second.x);
    Affine { x, y: slope.mul(first.x.sub(x)).sub(first.y) }
}
