//! S1: two keys of one start point reveal each other; keys that left the vault do not. The attack
//! is baby-step-giant-step over every rotation and sign. The long form: `cargo test --release --lib
//! vault::tests::related -- --ignored --nocapture`

use super::*;
use crate::secret::Start;
use secp256k1::{PublicKey, SECP256K1, SecretKey, XOnlyPublicKey};
use std::collections::{HashMap, HashSet};

fn number(value: u64) -> SecretKey {
    let mut bytes = [0; 32];
    bytes[24..].copy_from_slice(&value.to_be_bytes());
    SecretKey::from_slice(&bytes).unwrap()
}

fn times_g(value: u64) -> PublicKey {
    PublicKey::from_secret_key(SECP256K1, &number(value))
}

/// The first 64 bits of the x-coordinate, which is the key of the table.
fn x_of(point: &PublicKey) -> u64 {
    u64::from_be_bytes(point.x_only_public_key().0.serialize()[..8].try_into().unwrap())
}

/// Baby-step-giant-step for numbers of either sign with an absolute value below `2^bits`.
struct Attack {
    baby: HashMap<u64, u64>,
    stride: u64,
    steps: u64,
}

impl Attack {
    fn of_bits(bits: u32) -> Attack {
        // One table serves all pairs, so it is larger than the square root of the range.
        let size = 1u64 << (bits * 3 / 5).clamp(4, 22);
        let mut baby = HashMap::with_capacity(size as usize);
        let mut point = times_g(1);
        for step in 1..=size {
            baby.insert(x_of(&point), step);
            if step < size {
                point = point.combine(&times_g(1)).unwrap_or_else(|_| times_g(step + 1));
            }
        }
        Attack { baby, stride: 2 * size + 1, steps: (1 << bits) / (2 * size + 1) + 1 }
    }

    /// Whether `difference = ±d·G` for some `d` in range.
    fn solve(&self, difference: PublicKey) -> bool {
        let hits = |point: &PublicKey| self.baby.contains_key(&x_of(point));
        if hits(&difference) {
            return true;
        }
        let stride = times_g(self.stride);
        [stride, stride.negate(SECP256K1)].into_iter().any(|stride| {
            let mut point = difference;
            (0..self.steps).any(|_| match point.combine(&stride) {
                Ok(next) => {
                    point = next;
                    hits(&point)
                }
                // The sum is the point at infinity: the difference is a multiple of the stride.
                Err(_) => true,
            })
        })
    }

    /// Whether a delivered nsec (`known`) reveals that another npub is of the same start point:
    /// `λ^-b·(±Q) - λ^-a·k·G = d·G` for some rotations a, b and a small d. All nine pairs of
    /// rotations are tried, because a common rotation changes the size of d.
    fn betrays(&self, known: &SecretKey, other: &Npub) -> bool {
        let even = XOnlyPublicKey::from_slice(&other.0).unwrap().public_key(secp256k1::Parity::Even);
        for turn in Rotation::ALL {
            let own = known.mul_tweak(&turn.scalar()).unwrap();
            let own = PublicKey::from_secret_key(SECP256K1, &own).negate(SECP256K1);
            for other_turn in Rotation::ALL {
                let turned = even.mul_tweak(SECP256K1, &other_turn.scalar()).unwrap();
                for signed in [turned, turned.negate(SECP256K1)] {
                    if signed.combine(&own).map_or(true, |difference| self.solve(difference)) {
                        return true;
                    }
                }
            }
        }
        false
    }
}

/// A random tweak with an offset below 2^bits.
fn tweak(rng: &mut StdRng, bits: u32) -> Tweak {
    let offset = Offset::of_point(rng.random_range(1..1u64 << bits), rng.random_range(-1000..1000), Rotation::ALL[0]);
    Tweak { offset, rotation: Rotation::ALL[rng.random_range(0..3)] }
}

fn secret_of(nsec: &str) -> SecretKey {
    let key = nostr::SecretKey::from_bech32(nsec).unwrap();
    SecretKey::from_slice(&key.to_secret_bytes()).unwrap()
}

/// Redeems several hits at one start point, one after the other. Returns the keys that left the
/// vault.
fn redeemed(vault: &Vault, rng: &mut StdRng, hits: usize, bits: u32) -> Vec<SecretKey> {
    let (start, point) = vault.open_start().unwrap();
    let mut keys = Vec::new();
    for _ in 0..hits {
        let hit = VerifiedHit::recompute(point, tweak(rng, bits)).unwrap();
        match vault.show(start, &hit, None) {
            Ok(nsec) => keys.push(secret_of(&nsec)),
            Err(error) => assert!(matches!(error, VaultError::StartSpent), "{error}"),
        }
    }
    keys
}

fn npub(key: &SecretKey) -> Npub {
    Npub(key.x_only_public_key(SECP256K1).0.serialize())
}

#[test]
fn ten_thousand_hits_on_a_thousand_start_points_give_a_thousand_keys() {
    let mut rng = seeded();
    // Two devices redeem at the same time, and a restart replaces the vault half way.
    let mut keys = HashSet::new();
    for _ in 0..2 {
        let vault = vault();
        let seeds: [u64; 2] = rng.random();
        let found: Vec<Vec<SecretKey>> = std::thread::scope(|scope| {
            let devices = seeds.map(|seed| {
                let vault = vault.clone();
                scope.spawn(move || {
                    let mut rng = StdRng::seed_from_u64(seed);
                    (0..250).map(|_| redeemed(&vault, &mut rng, 10, 36)).collect::<Vec<_>>()
                })
            });
            devices.into_iter().flat_map(|device| device.join().unwrap()).collect()
        });
        for of_start in found {
            assert_eq!(of_start.len(), 1, "ten hits, one key");
            assert!(keys.insert(of_start[0].secret_bytes()));
        }
    }
    assert_eq!(keys.len(), 1000);
}

/// Attacks all pairs of `keys` keys. Each key is of its own start point, which had ten hits. Then
/// attacks two keys of one start point. The vault would never give both, so their start secret is
/// drawn twice, from a source that repeats itself.
fn attack_all_pairs(keys: usize, bits: u32) {
    let mut rng = seeded();
    let vault = vault();
    let delivered: Vec<SecretKey> = (0..keys).flat_map(|_| redeemed(&vault, &mut rng, 10, bits)).collect();
    let attack = Attack::of_bits(bits + 1);
    let mut solved = 0;
    for (at, known) in delivered.iter().enumerate() {
        solved += delivered[at + 1..].iter().filter(|other| attack.betrays(known, &npub(other))).count();
    }
    let pairs = delivered.len() * (delivered.len() - 1) / 2;
    println!("{pairs} pairs of {} keys, differences up to {bits} bits: {solved} solved", delivered.len());
    assert_eq!((solved, delivered.len()), (0, keys));

    for _ in 0..5 {
        let unburnt = [tweak(&mut rng, bits), tweak(&mut rng, bits)].map(|tweak| {
            let start = Start::draw(None, repeating).unwrap();
            let hit = VerifiedHit::recompute(start.point().unwrap(), tweak).unwrap();
            secret_of(&start.redeem(&hit).unwrap().text())
        });
        assert!(attack.betrays(&unburnt[0], &npub(&unburnt[1])), "two keys of one start are solved");
    }
}

/// A source that repeats itself, so that two keys of one start point exist. In the vault, spending
/// prevents that.
fn repeating(bytes: &mut [u8]) -> Result<(), VaultError> {
    bytes.fill(0x2a);
    Ok(())
}

#[test]
fn no_pair_of_delivered_keys_is_solved_and_two_of_one_start_point_are() {
    attack_all_pairs(8, 24);
}

#[test]
#[ignore = "minutes: the full form of S1"]
fn no_pair_of_a_36_bit_run_is_solved_and_two_of_one_start_point_are() {
    attack_all_pairs(12, 36);
}
