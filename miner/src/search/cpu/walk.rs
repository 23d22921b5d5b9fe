//! The walk over the stretch of one start point. It consists of rounds. A round tests the whole
//! table around each centre of `W` vectors, with one inversion.
//!
//! The vectors of a round are processed in turn for each entry. A product is a chain of some 80
//! cycles, during which the processor works on the products of the other vectors.

use super::field::Fe;
use super::filter::Filter;
use super::formula::{Between, Centre, Row, address, broadcast, cube, factor};
use super::scratch::{Memory, Scratch, Screens};
use super::screen::{LAG, Place, SLOTS, STEPS, Screen, Screened};
use super::simd::{Job, SimdField};
use super::table::{Affine, ENTRIES, STEP, Table, moved};
use crate::key::{Npub, Offset, Rotation, StartPoint, Tweak};
use secp256k1::PublicKey;
use std::marker::PhantomData;
use std::sync::Arc;

/// Candidates of one table entry: three turns, two signs, three rotations.
const CANDIDATES_AN_ENTRY: u64 = 18;

/// The result of a walk.
#[derive(Debug, Default)]
pub struct WalkResult {
    /// Candidates tested.
    pub candidates: u64,
    /// The candidates that match a pattern: all of them, until the early stop.
    pub hits: Vec<Tweak>,
    /// Whether hits ended the walk.
    pub is_cut_short: bool,
}

/// The goal of a walk: the patterns, and when to stop.
#[derive(Clone, Debug)]
pub struct WalkTarget {
    /// The filter of all patterns.
    pub filter: Arc<Filter>,
    /// The walk ends soon after this many hits. Very easy patterns would otherwise fill the report.
    pub most_hits: usize,
    /// The early stop; `None` to search for all patterns to the end.
    pub remaining: Option<Remaining>,
}

/// The patterns still searched after the early stop.
#[derive(Clone, Debug)]
pub struct Remaining {
    /// The filter of these patterns.
    pub filter: Arc<Filter>,
    /// Whether the walk continues with these patterns after the early stop. If not, it ends.
    pub is_wanted: bool,
    /// The early stop comes after this many hits of other patterns. Further ones are not recorded.
    pub after: usize,
}

/// The hits of a walk, and whether it goes on.
pub struct Recorder<'a> {
    target: &'a WalkTarget,
    /// The filter of the patterns that are searched now.
    filter: &'a Filter,
    /// The patterns that remain after the early stop; `None` without an early stop, and after it.
    remaining: Option<&'a Remaining>,
    /// Hits of other patterns than the remaining ones.
    others: usize,
    hits: Vec<Tweak>,
    /// Whether the walk ends after the entries that are being tested.
    is_over: bool,
}

impl<'a> Recorder<'a> {
    fn new(target: &'a WalkTarget) -> Recorder<'a> {
        let (filter, remaining) = (&target.filter, target.remaining.as_ref());
        Recorder { target, filter, remaining, others: 0, hits: Vec::new(), is_over: false }
    }

    /// Records a candidate if it is a hit that is still wanted.
    fn record(&mut self, npub: &Npub, tweak: impl FnOnce() -> Tweak) {
        if !self.filter.matches(npub) {
            return;
        }
        if let Some(kept) = self.remaining.filter(|kept| !kept.filter.matches(npub)) {
            self.others += 1;
            self.is_over |= self.others >= kept.after && !kept.is_wanted;
            if self.others > kept.after {
                return;
            }
        }
        self.hits.push(tweak());
        self.is_over |= self.hits.len() >= self.target.most_hits;
    }

    /// Changes to the remaining patterns, if the time for the early stop has come. Called between
    /// two rounds. Returns whether the filter has changed.
    fn stop_early(&mut self) -> bool {
        let stopped = self.remaining.take_if(|kept| self.others >= kept.after);
        if let Some(kept) = stopped {
            self.filter = &kept.filter;
        }
        stopped.is_some()
    }
}

/// The centres of a round.
struct Round<F, const W: usize> {
    points: [Affine<F>; W],
    /// Number of the first centre, `start point + number·STEP·G`. The other lanes follow, vector by
    /// vector.
    number: u64,
}

impl<F: SimdField, const W: usize> Round<F, W> {
    const CENTRES: u64 = (F::LANES * W) as u64;

    /// The centres from `number` on, by libsecp256k1. `None` if one of them is infinity.
    fn starting_at(table: &Table<F>, start: &StartPoint, number: u64) -> Option<Round<F, W>> {
        let first = moved(start.public_key(), number * STEP)?;
        let others = table.centres.iter().map(|distance| first.combine(distance).ok());
        let centres: Option<Vec<PublicKey>> = std::iter::once(Some(first)).chain(others).collect();
        let (xs, ys): (Vec<Fe>, Vec<Fe>) =
            centres?.iter().map(Affine::from_point).map(|point| (point.x, point.y)).unzip();
        let points = std::array::from_fn(|w| {
            let lanes = w * F::LANES..(w + 1) * F::LANES;
            Affine { x: F::from_lanes(&xs[lanes.clone()]), y: F::from_lanes(&ys[lanes]) }
        });
        Some(Round { points, number })
    }

    /// Number of the centre in a lane of a vector.
    fn number_of(&self, w: usize, lane: usize) -> u64 {
        self.number + (w * F::LANES + lane) as u64
    }
}

/// Walks from `start` over at most `rounds` rounds of `W·LANES` centres, `start + c·STEP·G`.
///
/// A round is skipped, and its candidates are not counted, where the formula does not hold: a centre is
/// infinity, ±λ^k times the point of an entry, or as far as the step to the next one. That occurs with
/// a chosen start point, in at most three rounds, and otherwise with a probability of 2^-240.
pub fn walk<F: Screened, const W: usize>(
    table: &Table<F>,
    start: &StartPoint,
    rounds: u64,
    target: &WalkTarget,
    scratch: &mut Scratch<F, W>,
) -> WalkResult {
    let mut recorder = Recorder::new(target);
    let (mut walked, mut candidates) = (0, 0);
    let mut round = Round::starting_at(table, start, 0);
    let memory = scratch.memory();
    let mut screens = memory.begin(recorder.filter, table);
    while walked < rounds && !recorder.is_over {
        let tested = round.as_ref().and_then(|round| {
            let Memory { prefixes, few, cells, gathers, loads, whole } = memory;
            let recorder = &mut recorder;
            match screens {
                Screens::Whole => F::apart(RoundJob { table, round, prefixes, screen: whole, recorder }),
                Screens::Few => F::apart(RoundJob { table, round, prefixes, screen: few, recorder }),
                Screens::Cells if !F::HAS_ONE_LOOKUP => {
                    F::apart(RoundJob { table, round, prefixes, screen: cells, recorder })
                }
                Screens::Gathers if !F::HAS_ONE_LOOKUP => {
                    F::apart(RoundJob { table, round, prefixes, screen: gathers, recorder })
                }
                _ => F::apart(RoundJob { table, round, prefixes, screen: loads, recorder }),
            }
        });
        candidates += tested.as_ref().map_or(0, |(candidates, _)| *candidates);
        walked += 1;
        if recorder.stop_early() {
            screens = memory.begin(recorder.filter, table);
        }
        let number = walked * Round::<F, W>::CENTRES;
        round = match tested {
            Some((_, points)) => Some(Round { points, number }),
            None => Round::starting_at(table, start, number),
        };
    }
    WalkResult { candidates, hits: recorder.hits, is_cut_short: recorder.is_over }
}

/// Tests all entries around the centres, or some if the walk is over before. Returns the number of
/// candidates tested, and the next centres; `None` if a factor is zero.
struct RoundJob<'a, 'b, F: Screened, N, const W: usize> {
    table: &'a Table<F>,
    round: &'a Round<F, W>,
    prefixes: &'a mut [[F; W]],
    screen: &'a mut N,
    recorder: &'a mut Recorder<'b>,
}

impl<F: Screened, N: Screen<F>, const W: usize> Job for RoundJob<'_, '_, F, N, W> {
    type Output = Option<(u64, [Affine<F>; W])>;

    #[inline(always)]
    fn run(self) -> Self::Output {
        let RoundJob { table, round, prefixes, screen, recorder } = self;
        let filter = recorder.filter;
        let points = &round.points;
        let one = broadcast::<F>(Fe::ONE);
        let step: Affine<F> = Affine { x: broadcast(table.step.x).0, y: broadcast(table.step.y).0 };
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
        // The same inversion also gives 1/x and the slope for the step to the next centre.
        let (mut steps, mut inverses) = ([one.0; W], [one.0; W]);
        for w in 0..W {
            steps[w] = step.x.sub(points[w].x);
            inverses[w] = whole[w].mul(steps[w]).mul(points[w].x);
        }
        // A single zero factor would make every inverse of its lane zero.
        if !try_invert_all(&mut inverses) {
            return None;
        }
        let mut next = *points;
        // Scaled by 2·xA, the shared inverse of a vector leads to q instead of t.
        let mut shared = [one.0; W];
        let mut centres = [None; W];
        for w in 0..W {
            let x = points[w].x;
            centres[w] = Some(Centre::new(points[w], cubes[w], inverses[w].mul(whole[w]).mul(steps[w])));
            let inverse = inverses[w].mul(x);
            next[w] = add(&points[w], &step, inverse.mul(whole[w]));
            shared[w] = inverse.mul(steps[w]).mul(F::sum(x.summand(), x.summand()));
        }
        let centres = centres.map(|centre| centre.expect("one was made for each vector"));
        screen.begin_round(&centres);
        let mut row = Row::new(&centres, &table.entries.0[0]);
        let mut tested = ENTRIES;
        for end in (1..=ENTRIES / (SLOTS / W)).rev().map(|part| part * (SLOTS / W)) {
            for slot in 0..SLOTS / W {
                let entry = &table.entries.0[end - 1 - slot];
                let q = &mut prefixes[end - 1 - slot];
                let mut steps = Steps { screen, next: 0, field: PhantomData };
                for w in 0..W {
                    q[w] = shared[w].mul(q[w]);
                    steps.product();
                }
                for w in 0..W {
                    shared[w] = shared[w].mul(factor(cubes[w], entry));
                    steps.product();
                }
                row.compute(entry, q, N::READS_TOP_WORDS, &mut steps);
                screen.add(filter, &row, Place { entry: end - 1 - slot, slot: (slot + LAG) * W });
            }
            // A walk that is over ends with these entries. Those before have set the flag: a screen may
            // be late only if it is not told that these are the last ones.
            let is_last = recorder.is_over || end == SLOTS / W;
            let mut slots = screen.take_suspects(filter, is_last);
            while slots != 0 {
                cold_path();
                let slot = slots.trailing_zeros() as usize;
                slots &= slots - 1;
                let (at, w) = (end - 1 + LAG - slot / W, slot % W);
                let place = Place { entry: at, slot };
                let (q, screen, recorder) = (prefixes[at][w], &*screen, &mut *recorder);
                F::apart(Confirmation { table, round, place, w, centre: &centres[w], q, screen, recorder });
            }
            if is_last {
                tested = ENTRIES - (end - SLOTS / W);
                break;
            }
        }
        Some((CANDIDATES_AN_ENTRY * tested as u64 * Round::<F, W>::CENTRES, next))
    }
}

/// The steps of a screen between the products of an entry, [`STEPS`] for each vector.
struct Steps<'a, F, N> {
    screen: &'a mut N,
    next: usize,
    field: PhantomData<F>,
}

impl<F: Screened, N: Screen<F>> Between for Steps<'_, F, N> {
    #[inline(always)]
    fn product(&mut self) {
        self.screen.step(self.next / STEPS, self.next % STEPS);
        self.next += 1;
    }
}

/// Inverts all vectors with one inversion. Returns `false` if a lane is zero.
#[inline(always)]
fn try_invert_all<F: SimdField, const W: usize>(values: &mut [F; W]) -> bool {
    let mut prefixes = *values;
    for w in 1..W {
        prefixes[w] = prefixes[w - 1].mul(values[w]);
    }
    if prefixes[W - 1].has_zero() {
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

/// Tells the compiler that the code after this call rarely runs.
#[cold]
#[inline(never)]
fn cold_path() {}

/// Recomputes the products of an entry and its marked candidates in full, and records the hits.
struct Confirmation<'a, 'b, F: Screened, N, const W: usize> {
    table: &'a Table<F>,
    round: &'a Round<F, W>,
    place: Place,
    /// The vector of centres.
    w: usize,
    centre: &'a Centre<F>,
    q: F,
    screen: &'a N,
    recorder: &'a mut Recorder<'b>,
}

impl<F: Screened, N: Screen<F>, const W: usize> Job for Confirmation<'_, '_, F, N, W> {
    type Output = ();

    #[inline(always)]
    fn run(self) {
        let Confirmation { table, round, place, w, centre, q, screen, recorder } = self;
        let entry = &table.entries.0[place.entry];
        let row = Row::of(centre, entry, q);
        for (word, mut marked) in screen.marks(recorder.filter, &row, place).into_iter().enumerate() {
            while marked != 0 {
                let bit = marked.trailing_zeros() as usize;
                marked &= marked - 1;
                let (sign, lane, (k, j)) = (bit / 8, bit % 8, address(word));
                let x = row.products[0].lane(lane).exact(centre.x.lane(lane), entry.x, (k, sign, j));
                let size = place.entry as i64 + 1;
                let tweak = || {
                    let centre = round.number_of(w, lane) * STEP;
                    let offset = Offset::of_point(centre, if sign == 1 { -size } else { size }, Rotation::ALL[k]);
                    Tweak { offset, rotation: Rotation::ALL[j] }
                };
                recorder.record(&Npub(x.to_be_bytes()), tweak);
            }
        }
    }
}

/// Affine addition of two points with different x, given `1/(x2 - x1)`.
#[inline(always)]
fn add<F: SimdField>(first: &Affine<F>, second: &Affine<F>, inverse: F) -> Affine<F> {
    let slope = second.y.sub(first.y).mul(inverse);
    let x = slope.square().sub(first.x).sub(second.x);
    Affine { x, y: slope.mul(first.x.sub(x)).sub(first.y) }
}
