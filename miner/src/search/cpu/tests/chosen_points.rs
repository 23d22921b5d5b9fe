//! S10 (`docs/developers/promises.md`) at the level of the kernels: walks from chosen start
//! points, at which the special cases of the formula occur. The vault's blinding keeps askers from
//! choosing start points, but the kernels do not rely on that.

use super::*;
use secp256k1::Scalar;

/// Several whole rounds of every kernel.
const CENTRES: u64 = 2 * super::CENTRES;

fn small(number: u64) -> SecretKey {
    let mut bytes = [0; 32];
    bytes[24..].copy_from_slice(&number.to_be_bytes());
    SecretKey::from_slice(&bytes).unwrap()
}

/// The sum of two secrets; `None` if it is zero.
fn sum(one: SecretKey, other: SecretKey) -> Option<SecretKey> {
    one.add_tweak(&Scalar::from(other)).ok()
}

/// The secret of the start point whose centre number `centre` is `value·G`.
fn with_centre(value: SecretKey, centre: u64) -> SecretKey {
    let moved = if centre == 0 { Some(value) } else { sum(value, small(centre * STEP).negate()) };
    moved.expect("a start that is infinity cannot be chosen")
}

/// All hits of a walk, computed with libsecp256k1's addition, which handles every case, and the
/// rotations with products by β: the centre's number and the tweak of each.
fn all_hits(start: &SecretKey, set: &PatternSet) -> Vec<(u64, Tweak)> {
    let turned = |i: u64, turn: Rotation| multiple_of_generator(i).mul_tweak(SECP256K1, &turn.scalar()).unwrap();
    let mut hits = Vec::new();
    for i in 1..=ENTRIES as i64 {
        let points = Rotation::ALL.map(|turn| turned(i as u64, turn)).map(|point| [point, point.negate(SECP256K1)]);
        for number in 0..CENTRES {
            let moved = if number == 0 { Some(*start) } else { sum(*start, small(number * STEP)) };
            let Some(centre) = moved.map(|secret| *point_of(&secret).public_key()) else { continue };
            for (k, points) in points.iter().enumerate() {
                for (point, step) in points.iter().zip([i, -i]) {
                    let Ok(point) = centre.combine(point) else { continue };
                    let mut x = Affine::from_point(&point).x;
                    for j in 0..3 {
                        if !set.matches(&npub_of(x)).is_empty() {
                            hits.push((number, tweak(number * STEP, step, k, j)));
                        }
                        x = x.mul(Fe::BETA);
                    }
                }
            }
        }
    }
    hits
}

/// Start points with the special case that each leads to.
fn starts(random: &mut StdRng) -> Vec<(String, SecretKey)> {
    let mut starts = Vec::new();
    let entries = [1, ENTRIES as u64, random.random_range(2..ENTRIES as u64)];
    let turns = [random.random_range(0..3), random.random_range(0..3)];
    for (k, sign) in turns.into_iter().zip(["", "-"]) {
        let (i, centre) = (entries[random.random_range(0..3)], random.random_range(0..CENTRES));
        let point = small(i).mul_tweak(&Rotation::ALL[k].scalar()).unwrap();
        let point = if sign == "-" { point.negate() } else { point };
        starts.push((format!("centre {centre} is {sign}λ^{k}·{i}·G"), with_centre(point, centre)));
    }
    let i = entries[random.random_range(0..3)];
    starts.push((format!("{i}·G"), small(i)));
    // The point of the entry before the last is also the first of the next centre.
    starts.push((format!("{}·G", ENTRIES + 1), small(ENTRIES as u64 + 1)));
    let centre = [1, CENTRES - 1, random.random_range(2..CENTRES - 1)][random.random_range(0..3)];
    starts.push((format!("centre {centre} is infinity"), small(centre * STEP).negate()));
    // The step from a centre to the next one of the same lane equals the centre itself.
    for kernel in kernels() {
        let (step, centre) = (kernel.centres, random.random_range(0..CENTRES));
        if centre != step {
            starts.push((format!("centre {centre} is {step} steps"), with_centre(small(step * STEP), centre)));
        }
    }
    starts
}

#[test]
fn chosen_centres_give_no_wrong_hit_and_cost_three_rounds_at_most() {
    let mut random = random();
    let set = patterns(&["qq"]);
    for (name, secret) in starts(&mut random) {
        let all = all_hits(&secret, &set);
        assert!(all.len() > 100, "{name}");
        for kernel in kernels() {
            let (candidates, hits) = hits_of(kernel, &point_of(&secret), CENTRES, &set);
            let a_round = kernel.centres * ENTRIES as u64 * 18;
            let skipped = CENTRES / kernel.centres - candidates / a_round;
            assert!(candidates % a_round == 0 && skipped <= 3, "{}: {name}: {candidates}", kernel.name);
            // All hits but those of the rounds that were skipped.
            let round_of = |number: u64| number / kernel.centres;
            let found: HashSet<u64> =
                all.iter().filter(|(_, tweak)| hits.contains(tweak)).map(|&(number, _)| round_of(number)).collect();
            let expected: HashSet<Tweak> =
                all.iter().filter(|(number, _)| found.contains(&round_of(*number))).map(|(_, tweak)| *tweak).collect();
            assert!(hits == expected, "{}: {name}", kernel.name);
            assert_eq!(found.len() as u64, candidates / a_round, "{}: {name}", kernel.name);
        }
    }
}
