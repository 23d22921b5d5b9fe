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

use super::characters::{CharacterSet, LAST_OF_DATA, NPUB_CHARACTERS};
use super::pattern::KeyShape;
use std::collections::HashMap;

/// A budget of steps for computing difficulties. A step advances one shape of a state by one kind
/// of character, in some tens of nanoseconds. Patterns that share a budget are bounded together.
#[derive(Clone, Debug)]
pub struct Effort(usize);

impl Effort {
    /// A budget of this many steps.
    pub fn steps(count: usize) -> Effort {
        Effort(count)
    }

    /// The largest budget for one computation: some tens of milliseconds.
    pub fn full() -> Effort {
        Effort(1 << 22)
    }

    /// Takes steps from the budget; `None` if too few are left.
    fn take(&mut self, steps: usize) -> Option<()> {
        self.0 = self.0.checked_sub(steps)?;
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
