//! The filter compared with the intervals it was built from.

use super::*;
use crate::search::cpu::filter::COARSE_BITS;

#[test]
fn the_filter_passes_every_possible_match() {
    const SLACK: u64 = 5 << 32;
    let mut random = random();
    let texts: Vec<String> = (0..300)
        .map(|_| {
            let x: [u8; 32] = random.random();
            let length = random.random_range(1..=20);
            Npub(x).to_string()[5..5 + length].to_owned()
        })
        .chain(["qqqqqqqqqqqqqqqqqq".to_owned(), "llllllllllllllllll".to_owned()])
        .collect();
    let set = patterns(&texts.iter().map(String::as_str).collect::<Vec<_>>());
    let filter = Filter::new(&set, SLACK);
    let in_coarse = |top: u64| {
        let bucket = (top >> (64 - COARSE_BITS)) as usize;
        filter.coarse()[bucket / 32] >> (bucket % 32) & 1 == 1
    };
    for &(first, last) in set.intervals() {
        for end in [first, last] {
            for error in [0, 1, SLACK] {
                for top in [end.wrapping_add(error), end.wrapping_sub(error)] {
                    assert!(filter.is_marked((top >> 32) as u32) && in_coarse(top), "{end:x} ± {error}");
                }
            }
        }
    }
    let mut marked = [0; 2];
    for _ in 0..10_000 {
        let upper: u32 = random.random();
        let within = filter.intervals().iter().any(|&(first, last)| (first..=last).contains(&upper));
        assert!(filter.is_marked(upper) || !within, "{upper:x}");
        marked[usize::from(within)] += u32::from(filter.is_marked(upper));
    }
    assert!(marked[1] > 100 && marked[0] < 100, "{marked:?}");
}

/// Signatures of an EPYC (Zen 4), and of Xeons: Emerald Rapids, Ice Lake.
#[cfg(target_arch = "x86_64")]
#[test]
fn gathers_are_chosen_where_they_are_known_to_be_fast() {
    assert_eq!(Lookup::of(*b"Auth", 0x00a1_0f11), Lookup::Loads);
    assert_eq!(Lookup::of(*b"Genu", 0x000c_06f2), Lookup::Gathers);
    assert_eq!(Lookup::of(*b"Genu", 0x0006_06a6), Lookup::Loads);
    assert_eq!(Lookup::of(*b"Auth", 0x000c_06f2), Lookup::Loads);
}
