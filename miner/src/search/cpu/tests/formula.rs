//! The candidates of one entry compared with libsecp256k1.

use super::*;
use crate::search::cpu::formula::{Centre, Row, address, cube, factor};
use crate::search::cpu::table::Table;

/// Checks all 18 candidates of one entry around one centre per lane, exactly and by their top
/// words.
fn check_entry<F: SimdField>(table: &Table<F>, random: &mut StdRng, i: usize) {
    let starts: Vec<StartPoint> = (0..F::LANES).map(|_| point_of(&random_secret(random))).collect();
    let points: Vec<Affine<Fe>> = starts.iter().map(|start| Affine::from_point(start.public_key())).collect();
    let (xs, ys): (Vec<Fe>, Vec<Fe>) = points.iter().map(|point| (point.x, point.y)).unzip();
    let x = F::from_lanes(&xs);
    let (z, entry) = (cube(x), &table.entries.0[i - 1]);
    let centre = Centre::new(Affine { x, y: F::from_lanes(&ys) }, z, x.invert());
    let q = F::sum(x.summand(), x.summand()).mul(factor(z, entry).invert());
    let row = Row::of(&centre, entry, q);
    let top_words = row.top_words(0);
    for (lane, start) in starts.iter().enumerate() {
        for (word, sign) in (0..9).flat_map(|word| [(word, 0), (word, 1)]) {
            let (k, j) = address(word);
            let step = if sign == 1 { -(i as i64) } else { i as i64 };
            let expected = candidate(start, &tweak(0, step, k, j)).unwrap();
            let exact = row.products[0].lane(lane).exact(x.lane(lane), entry.x, (k, sign, j));
            assert_eq!(npub_of(exact), expected, "i {i} k {k} sign {sign} j {j} lane {lane}");
            let off = F::top_word(top_words[word], sign == 1, lane).wrapping_sub(exact.top()).wrapping_add(F::SLACK);
            assert!(off <= 2 * F::SLACK, "top off by {}", off.wrapping_sub(F::SLACK) as i64);
        }
    }
}

fn check_entries<F: SimdField>(random: &mut StdRng) {
    let table = Table::<F>::new(1);
    for round in 0..40 / F::LANES {
        let i = [1, ENTRIES].get(round).copied().unwrap_or_else(|| random.random_range(1..=ENTRIES));
        check_entry(&table, random, i);
    }
}

#[test]
fn all_18_candidates_of_an_entry_are_what_libsecp256k1_says() {
    let mut random = random();
    for_each_field!(check_entries(&mut random));
}
