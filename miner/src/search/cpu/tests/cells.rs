//! Cells compared with the intervals they were built from, and walks that use them.

use super::*;
use crate::search::cpu::cells::{CELL_SHIFT, CellTables, SLOTS_OF_TABLE};

/// Random intervals of up to `longest` numbers. Some are at the edges.
fn intervals(random: &mut StdRng, count: usize, longest: u32) -> Vec<(u32, u32)> {
    let mut firsts: Vec<u32> = (0..count).map(|_| random.random()).collect();
    firsts[0] = 0;
    if count.is_multiple_of(2) {
        firsts.push(u32::MAX);
    }
    firsts[count / 2] = (random.random::<u32>() >> CELL_SHIFT << CELL_SHIFT).saturating_sub(3);
    firsts.sort_unstable();
    let mut intervals: Vec<(u32, u32)> = Vec::new();
    for first in firsts {
        let last = first.saturating_add(random.random_range(0..longest));
        if intervals.last().is_none_or(|before| before.1 < first) {
            intervals.push((first, last));
        }
    }
    intervals
}

#[test]
fn every_word_of_an_interval_passes_and_few_others_do() {
    let mut random = random();
    let mut of_count = [0; 4];
    for round in 0..300 {
        let count = random.random_range(1..150);
        let set = intervals(&mut random, count, [1, 68, 196, 1092][round % 4]);
        let Some(cells) = CellTables::new(&set) else { continue };
        of_count[cells.tables().len()] += 1;
        for &(first, last) in &set {
            for upper in [first, last, first + (last - first) / 2, first + random.random_range(0..=last - first)] {
                assert!(cells.passes(upper), "{upper:x} of {first:x} to {last:x}");
            }
        }
        let mut passing = 0;
        for _ in 0..10_000 {
            let upper: u32 = random.random();
            let cell = |upper: u32| upper >> CELL_SHIFT;
            let is_within = set.iter().any(|&(first, last)| (cell(first)..=cell(last)).contains(&cell(upper)));
            passing += u32::from(cells.passes(upper) && !is_within);
        }
        // A word passes by chance with a probability of 2^-22 for each slot.
        assert!(passing <= 3, "{passing} with {} slots", cells.tables().len() * SLOTS_OF_TABLE);
    }
    println!("sets by number of tables: {of_count:?}");
    assert!(of_count[1..].iter().all(|&sets| sets > 5));
}

#[test]
fn no_too_many_or_too_long_intervals_are_no_cells() {
    assert!(CellTables::new(&[]).is_none());
    let mut random = random();
    assert!(CellTables::new(&[(0, u32::MAX)]).is_none());
    assert!(CellTables::new(&intervals(&mut random, 1_000, 68)).is_none());
    assert!(CellTables::new(&intervals(&mut random, 100, 1 << 16)).is_none());
}

/// The numbers of patterns are such that top words are compared one by one, are looked up in one to
/// three tables of cells, or in the bitmap. For number 0, the match is in an entry where a screen
/// begins or ends.
#[test]
fn a_walk_finds_the_only_match_among_any_number_of_prefixes() {
    let mut random = random();
    let start = point_of(&random_secret(&mut random));
    let mut of_count = [0; 4];
    let all = (0..6).flat_map(|number| (0..18).map(move |address| (number, address)));
    for (number, address) in all.filter(|(number, address)| *number == 0 || address % 3 == number % 3) {
        let (sign, k, j) = (address / 9, address / 3 % 3, address % 3);
        let size = match number {
            0 => [1, 2, 16, 17, ENTRIES as i64 - 1, ENTRIES as i64][address % 6],
            _ => random.random_range(1..=ENTRIES as i64),
        };
        let centre = random.random_range(0..2 * CENTRES);
        let tweak = tweak(centre * STEP, if sign == 1 { -size } else { size }, k, j);
        let text = candidate(&start, &tweak).unwrap().to_string();
        let count = [1000, 2, 8, 30, 120, 300][number];
        let mut texts: Vec<String> =
            (1..count).map(|_| (0..10).map(|_| ALPHABET[random.random_range(0..32)] as char).collect()).collect();
        texts.push(text[5..15].to_owned());
        let set = patterns(&texts.iter().map(String::as_str).collect::<Vec<_>>());
        for kernel in kernels() {
            of_count[kernel.filter(&set).cells().map_or(0, |cells| cells.tables().len())] += 1;
            let (_, hits) = hits_of(kernel, &start, 2 * CENTRES, &set);
            assert!(hits == HashSet::from([tweak]), "{}: {count} patterns, {tweak:?}", kernel.name);
        }
    }
    println!("walks by number of tables: {of_count:?}");
    assert!(of_count.iter().all(|&walks| walks > 0));
}
