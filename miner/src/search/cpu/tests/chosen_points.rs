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

/// The expected hits of a walk, and its number of candidates. A walk skips a centre that is
/// infinity, and an entry whose point is `±λ^k` times the centre, because the formula does not hold
/// there.
struct Expected {
    candidates: u64,
    hits: HashSet<Tweak>,
}

/// The points of the table, `λ^k·i·G`, and their opposites.
struct Around(Vec<[[PublicKey; 2]; 3]>);

impl Around {
    fn new() -> Around {
        let entry = |i: u64| {
            Rotation::ALL.map(|turn| {
                let point = multiple_of_generator(i).mul_tweak(SECP256K1, &turn.scalar()).unwrap();
                [point, point.negate(SECP256K1)]
            })
        };
        Around((1..=ENTRIES as u64).map(entry).collect())
    }

    /// Computes the expected result with libsecp256k1's addition, which handles every case, and the
    /// rotations with products by β.
    fn expected(&self, start: &SecretKey, set: &PatternSet) -> Expected {
        let mut expected = Expected { candidates: 0, hits: HashSet::new() };
        for number in 0..CENTRES {
            let moved = if number == 0 { Some(*start) } else { sum(*start, small(number * STEP)) };
            let Some(centre) = moved.map(|secret| *point_of(&secret).public_key()) else { continue };
            for (entry, i) in self.0.iter().zip(1..) {
                if entry.iter().flatten().any(|point| *point == centre) {
                    continue;
                }
                expected.candidates += 18;
                for (k, points) in entry.iter().enumerate() {
                    for (point, step) in points.iter().zip([i, -i]) {
                        let mut x = Affine::from_point(&centre.combine(point).expect("they are no opposites")).x;
                        for j in 0..3 {
                            if !set.matches(&npub_of(x)).is_empty() {
                                expected.hits.insert(tweak(number * STEP, step, k, j));
                            }
                            x = x.mul(Fe::BETA);
                        }
                    }
                }
            }
        }
        expected
    }
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
fn chosen_centres_give_no_wrong_hit_and_cost_no_other() {
    let mut random = random();
    let set = patterns(&["qq"]);
    let around = Around::new();
    for (name, secret) in starts(&mut random) {
        let expected = around.expected(&secret, &set);
        assert!(expected.hits.len() > 100, "{name}");
        for kernel in kernels() {
            let (candidates, hits) = hits_of(kernel, &point_of(&secret), CENTRES, &set);
            let (kernel, wrong) = (kernel.name, hits.difference(&expected.hits).count());
            assert_eq!((wrong, hits.len()), (0, expected.hits.len()), "{kernel}: {name}");
            assert_eq!(candidates, expected.candidates, "{kernel}: {name}");
            let whole = CENTRES * ENTRIES as u64 * 18;
            // A chosen point costs at most one centre, or the candidates of one entry.
            assert!(candidates == whole || [18, ENTRIES as u64 * 18].contains(&(whole - candidates)), "{name}");
        }
    }
}
