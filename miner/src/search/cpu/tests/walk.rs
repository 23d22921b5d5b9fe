//! Walks compared with every candidate computed one by one.

use super::*;
use crate::search::cpu::walk::Remaining;
use std::sync::LazyLock;

/// The walk over the first [`CENTRES`] centres of a random start point.
struct Walked {
    start: StartPoint,
    candidates: Vec<(Tweak, Npub)>,
}

/// One walk for all tests of a process, because computing its candidates takes seconds.
static WALKED: LazyLock<Walked> = LazyLock::new(|| {
    let start = point_of(&random_secret(&mut random()));
    Walked { start, candidates: by_brute_force(&start) }
});

/// Every candidate of the first [`CENTRES`] centres, computed one by one with libsecp256k1.
fn by_brute_force(start: &StartPoint) -> Vec<(Tweak, Npub)> {
    let mut all = Vec::new();
    for centre in 0..CENTRES {
        for i in 1..=ENTRIES as i64 {
            for step in [i, -i] {
                for k in 0..3 {
                    for j in 0..3 {
                        let tweak = tweak(centre * STEP, step, k, j);
                        all.extend(candidate(start, &tweak).map(|npub| (tweak, npub)));
                    }
                }
            }
        }
    }
    all
}

fn matches(candidates: &[(Tweak, Npub)], set: &PatternSet) -> HashSet<Tweak> {
    let is_match = |(_, npub): &&(Tweak, Npub)| !set.matches(npub).is_empty();
    candidates.iter().filter(is_match).map(|(tweak, _)| *tweak).collect()
}

#[test]
fn a_walk_finds_every_match_and_nothing_else() {
    let mut random = random();
    let Walked { start, candidates } = &*WALKED;
    // A few intervals are compared one by one, more are looked up. With the longest and most
    // numerous ones, each lookup keeps some top words and drops others.
    let words = |count: usize| -> Vec<String> {
        let word = |n: usize| [ALPHABET[n % 32] as char, ALPHABET[n / 3 % 32] as char, 'q'].iter().collect();
        (0..count).map(word).collect()
    };
    let long = (0..30_000).map(|_| (0..5).map(|_| ALPHABET[random.random_range(0..32)] as char).collect()).collect();
    let lists: [Vec<String>; 3] = [words(60), words(900), long];
    let prefixes = lists.iter().map(|list| patterns(&list.iter().map(String::as_str).collect::<Vec<_>>()));
    let kinds = [
        &["q", "l7"][..],
        &["q", "l7", "zz", "p0", "6mu", "ttt", "2j"],
        // Short patterns of every kind. The intervals of the first set decide everything. Those of the
        // second do not, and most keys that pass its filter are no hits.
        &["~cat", "=3", "q?p", "?7q", "[mn]0[ct]", "zeros:9", "hex:0f0", "words:4", "*al*@4"],
        &["m0*[qp]", "a*s*[qpzry]", "l7*x*", "~al*7"],
        // Whole keys, with quick tests and without.
        &["*qr", "m0*7", "q"],
        &["*al7*", "=4*", "~*cat"],
        &["*[s5]a*c*@30", "*[qp]?????[s5]", "ca*[s5]?"],
        &["hex:*0f", "*m*0*c*t*a*n*e*", "??????????cat"],
    ];
    for set in prefixes.chain(kinds.iter().map(|texts| patterns(texts))) {
        let expected = matches(candidates, &set);
        assert!(expected.len() > 50, "{set:?}: {}", expected.len());
        for kernel in kernels() {
            let (tested, hits) = hits_of(kernel, start, CENTRES, &set);
            assert_eq!(tested, CENTRES * ENTRIES as u64 * 18);
            assert!(hits == expected, "{}: {} hits, {} expected", kernel.name, hits.len(), expected.len());
        }
    }
}

#[test]
fn a_walk_finds_the_only_match_wherever_it_is_in_an_entry() {
    let mut random = random();
    let start = point_of(&random_secret(&mut random));
    for (sign, k, j) in (0..18).map(|address| (address / 9, address / 3 % 3, address % 3)) {
        let size = random.random_range(1..=ENTRIES as i64);
        let step = if sign == 1 { -size } else { size };
        let tweak = tweak(random.random_range(0..CENTRES) * STEP, step, k, j);
        let npub = candidate(&start, &tweak).unwrap();
        let (text, from) = (npub.to_string(), random.random_range(5..55));
        let hex: String = npub.0[28..].iter().map(|byte| format!("{byte:02x}")).collect();
        let forms = [format!("*{}", &text[56..]), format!("*{}*", &text[from..from + 7]), format!("hex:*{hex}")];
        let pattern = &forms[random.random_range(0..3)];
        let set = patterns(&[pattern]);
        for kernel in kernels() {
            let (_, hits) = hits_of(kernel, &start, CENTRES, &set);
            assert!(hits.contains(&tweak), "{}: {pattern}, {tweak:?}", kernel.name);
        }
    }
}

#[test]
fn a_walk_with_too_many_hits_ends_early_and_counts_only_what_it_tested() {
    let mut random = random();
    let start = point_of(&random_secret(&mut random));
    let set = patterns(&["q"]);
    for kernel in kernels() {
        let a_round = kernel.centres * ENTRIES as u64 * 18;
        for lookup in LOOKUPS {
            let walk = |most| (kernel.walker())(&start, 50, &target(kernel.filter(&set).with_lookup(lookup), most));
            let (walked, whole) = (walk(1), walk(a_round as usize / 40));
            assert!(walked.is_cut_short);
            assert!(walked.candidates <= a_round / 8, "{}: it ends within the round", walked.candidates);
            assert!(whole.is_cut_short && whole.candidates > a_round / 2);
            // Its hits are all those of the candidates that it counts: of the last entries.
            let entries = (walked.candidates / (18 * kernel.centres)) as i64;
            let mut tested = HashSet::new();
            for (centre, size) in (0..kernel.centres).flat_map(|centre| (0..entries).map(move |n| (centre, n))) {
                for (sign, k, j) in (0..18).map(|address| (address / 9, address / 3 % 3, address % 3)) {
                    let size = ENTRIES as i64 - size;
                    tested.insert(tweak(centre * STEP, if sign == 1 { -size } else { size }, k, j));
                }
            }
            let all: HashSet<Tweak> = whole.hits.into_iter().filter(|tweak| tested.contains(tweak)).collect();
            assert!(!all.is_empty() && walked.hits.into_iter().collect::<HashSet<Tweak>>() == all);
        }
    }
}

/// `zeros:1` is every second key. Only the first few of its keys are recorded, and the walk ends.
#[test]
fn a_pattern_of_every_second_key_costs_a_part_of_a_round_and_a_few_hits() {
    let start = point_of(&random_secret(&mut random()));
    let (canary, all) = (patterns(&["qqq"]), patterns(&["qqq", "zeros:1"]));
    for kernel in kernels() {
        let remaining = Remaining { filter: Arc::new(kernel.filter(&canary)), is_wanted: false, after: 4 };
        let target = WalkTarget { remaining: Some(remaining), ..target(kernel.filter(&all), usize::MAX) };
        let walked = (kernel.walker())(&start, 50, &target);
        assert!(walked.is_cut_short && walked.candidates <= kernel.centres * ENTRIES as u64 * 18 / 8);
        assert!((4..20).contains(&walked.hits.len()), "{}", walked.hits.len());
    }
}

/// After the early stop the other patterns are ignored, or the walk ends.
#[test]
fn an_early_stop_leaves_the_remaining_patterns() {
    let mut random = random();
    let start = point_of(&random_secret(&mut random));
    let (rare, all) = (patterns(&["cat", "pan"]), patterns(&["cat", "pan", "q", "l7", "zz", "p0", "6mu"]));
    for kernel in kernels() {
        let filter = |set| Arc::new(kernel.filter(set));
        let rounds = 160 / kernel.centres;
        let walk = |set, remaining| {
            let target = WalkTarget { filter: filter(set), most_hits: usize::MAX, remaining };
            (kernel.walker())(&start, rounds, &target)
        };
        let everything: HashSet<Tweak> = walk(&all, None).hits.into_iter().collect();
        let rare_ones: HashSet<Tweak> = walk(&rare, None).hits.into_iter().collect();
        // A round has some hundred hits of the other patterns, so there are enough in the second.
        let a_round = kernel.centres * ENTRIES as u64 * 18 / 32;
        let after = a_round as usize * 3 / 2;
        let remaining = |is_wanted| Some(Remaining { filter: filter(&rare), is_wanted, after });
        let gone_on = walk(&all, remaining(true));
        assert!(!gone_on.is_cut_short);
        assert_eq!(gone_on.candidates, 160 * ENTRIES as u64 * 18);
        let hits: HashSet<Tweak> = gone_on.hits.into_iter().collect();
        assert!(hits.is_subset(&everything) && hits.is_superset(&rare_ones), "every rare one is there");
        assert_eq!(hits.difference(&rare_ones).count(), after, "no other is recorded after the early stop");
        let ended = walk(&all, remaining(false));
        assert!(ended.is_cut_short && ended.candidates < 2 * 32 * a_round, "it ends in the second round");
        let hits: HashSet<Tweak> = ended.hits.into_iter().collect();
        assert!(hits.is_subset(&everything) && hits.difference(&rare_ones).count() == after);
        // Hits of the remaining patterns do not count towards the early stop.
        let all_remain = Some(Remaining { filter: filter(&all), is_wanted: false, after: 1 });
        assert_eq!(walk(&all, all_remain).candidates, gone_on.candidates);
    }
}
