//! Tests of the memory scan (`crate::support::memory_scan`) on host memory. The promise S3 rests on
//! it.

use crate::support::harness::{Test, test};
use crate::support::memory_scan::{FORMS, Pieces, Secret, start_secret_of};
use npubbot::key::Rotation;
use rand::rngs::StdRng;
use rand::{Rng, SeedableRng};
use secp256k1::{PublicKey, SECP256K1, SecretKey};
use std::collections::BTreeSet;
use std::time::Instant;

pub const TESTS: &[Test] = &[
    test!(the_forms_of_a_number_have_the_expected_bytes),
    test!(relatives_are_the_six_keys_that_reveal_each_other),
    test!(planted_secrets_are_found_anywhere_and_nothing_else_is),
    test!(the_shortest_memories_are_searched_to_their_ends),
];

fn number(rng: &mut StdRng) -> SecretKey {
    SecretKey::from_slice(&rng.random::<[u8; 32]>()).expect("all but one in 2^127")
}

fn secrets(rng: &mut StdRng, count: usize) -> Vec<Secret> {
    (0..count).map(|at| Secret::new(format!("number {at}"), number(rng))).collect()
}

fn the_forms_of_a_number_have_the_expected_bytes() {
    let number: [u8; 32] = std::array::from_fn(|at| at as u8 + 1);
    let starts = [
        ("bytes, big-endian", [1, 2, 3, 4, 5, 6, 7, 8]),
        ("bytes, little-endian", [32, 31, 30, 29, 28, 27, 26, 25]),
        ("words of 32 bits, the highest first", [4, 3, 2, 1, 8, 7, 6, 5]),
        ("words of 32 bits, turned", [29, 30, 31, 32, 25, 26, 27, 28]),
        ("words of 64 bits, the highest first", [8, 7, 6, 5, 4, 3, 2, 1]),
        ("words of 64 bits, turned", [25, 26, 27, 28, 29, 30, 31, 32]),
        ("the lower half, little-endian", [32, 31, 30, 29, 28, 27, 26, 25]),
        ("the upper half, little-endian", [16, 15, 14, 13, 12, 11, 10, 9]),
        // The number ends in 0x…1a1b_1c1d_1e1f_20. The low limb has its low 52 bits, the highest
        // limb its highest 48.
        ("limbs of 52 bits in 64", [0x20, 0x1f, 0x1e, 0x1d, 0x1c, 0x1b, 0x0a, 0]),
        ("limbs of 52 bits in 64, the highest first", [6, 5, 4, 3, 2, 1, 0, 0]),
        // 0x1d1e1f20 has 0x11e1f20 below bit 26; the next 26 bits are 0xa1b1c1d1e1f20 >> 26.
        ("limbs of 26 bits in 32", [0x20, 0x1f, 0x1e, 0x01, 0x07, 0xc7, 0x86, 0x02]),
        // The highest 22 bits, 0x01020304 >> 10; then the 26 below.
        ("limbs of 26 bits in 32, the highest first", [0x80, 0x40, 0, 0, 0x06, 0x05, 0x04, 0x03]),
    ];
    assert_eq!(FORMS.len(), starts.len());
    for (form, (name, start)) in FORMS.iter().zip(starts) {
        let bytes = (form.write)(&number);
        assert_eq!((form.name, &bytes[..8]), (name, &start[..]), "{bytes:02x?}");
        let expected = match name {
            _ if name.contains("half") => 16,
            _ if name.contains("limbs") => 40,
            _ => 32,
        };
        assert_eq!(bytes.len(), expected, "{name}");
    }
}

fn relatives_are_the_six_keys_that_reveal_each_other() {
    let mut rng = StdRng::seed_from_u64(crate::support::seed());
    let own = Secret::new("it", number(&mut rng));
    let relatives: Vec<SecretKey> = own.relatives().collect();
    let different: BTreeSet<[u8; 32]> = relatives.iter().map(SecretKey::secret_bytes).collect();
    assert_eq!((relatives[0], different.len()), (own.number, 6));
    // Because 1 + λ + λ² = 0, the three points λ^k·P have the same y. Opposite points have the same
    // x.
    let points: Vec<PublicKey> = relatives.iter().map(|key| key.public_key(SECP256K1)).collect();
    let bytes = |at: usize| points[at].serialize_uncompressed();
    assert!([2, 4].iter().all(|&at| bytes(at)[33..] == bytes(0)[33..]));
    assert!([0, 2, 4].iter().all(|&at| bytes(at)[1..33] == bytes(at + 1)[1..33]));
    // From a key, its rotation and its offset follows the secret of its start point.
    let offset = number(&mut rng).into();
    for rotation in Rotation::ALL {
        let key = own.number.add_tweak(&offset).unwrap().mul_tweak(&rotation.scalar()).unwrap();
        assert_eq!(start_secret_of(&key, rotation, &offset), own.number);
    }
}

/// Plants every form of every relative of some secrets at random places in noise with gaps of
/// zeros, and one at the very end, and searches for them.
fn planted_secrets_are_found_anywhere_and_nothing_else_is() {
    let mut rng = StdRng::seed_from_u64(crate::support::seed());
    let secrets = secrets(&mut rng, 40);
    let pieces = Pieces::of(&secrets);
    let mut memory = vec![0u8; (8 << 20) + 5];
    rng.fill(&mut memory[..]);
    for _ in 0..50 {
        let start = rng.random_range(0..memory.len() - 50_000);
        memory[start..start + 50_000].fill(0);
    }
    assert_eq!(pieces.look(&memory), [], "noise");
    assert_eq!(pieces.look(&vec![0; 1 << 20]), [], "nothing");
    let began = Instant::now();
    assert_eq!(pieces.look(&memory), []);
    let rate = memory.len() as f64 / 1e6 / began.elapsed().as_secs_f64();
    println!("{} pieces of {} numbers; {rate:.0} MB/s", pieces.len(), pieces.needles);

    let mut planted = Vec::new();
    // Each needle has a slot of 64 bytes, so none overwrites another. The last ends with the
    // memory.
    let slots = memory.len() / 64;
    let mut free: BTreeSet<usize> = (0..slots - 1).collect();
    for (at, secret) in secrets.iter().enumerate() {
        for relative in secret.relatives() {
            for form in &FORMS {
                let bytes = (form.write)(&relative.secret_bytes());
                let slot = *free.range(rng.random_range(0..slots - 1)..).next().unwrap_or(free.first().unwrap());
                free.remove(&slot);
                let start = slot * 64 + rng.random_range(0..=64 - bytes.len());
                memory[start..start + bytes.len()].copy_from_slice(&bytes);
                planted.push((at, start, bytes.len()));
            }
        }
    }
    let last = (FORMS[0].write)(&secrets[0].number.secret_bytes());
    let start = memory.len() - last.len();
    memory[start..].copy_from_slice(&last);
    planted.push((0, start, last.len()));
    let found = pieces.look(&memory);
    assert_eq!(planted.len(), pieces.needles + 1);
    for &(secret, start, length) in &planted {
        // The search must find each piece of eight bytes of the number.
        let places = (start..start + length).step_by(8);
        assert!(places.clone().all(|at| found.iter().any(|one| one.at == at && one.secret == secret)), "at {start}");
    }
    // The noise before a number may happen to continue it. For example, the highest limb of 52 bits
    // fills six bytes of its word, and the noise has the other two bytes once in 65,536 times.
    for one in &found {
        let touches = |&(secret, start, length): &(usize, usize, usize)| {
            secret == one.secret && (start..start + length + 7).contains(&(one.at + 7))
        };
        assert!(planted.iter().any(touches), "{one:?}");
    }
}

/// A piece is found at every place in memories of every length up to 69 bytes, also where the
/// shares of two threads meet.
fn the_shortest_memories_are_searched_to_their_ends() {
    let mut rng = StdRng::seed_from_u64(crate::support::seed());
    let secrets = secrets(&mut rng, 1);
    let pieces = Pieces::of(&secrets);
    let bytes = secrets[0].number.secret_bytes();
    for length in 0..70 {
        assert_eq!(pieces.look(&vec![7; length]), []);
        for start in 0..(length + 1).saturating_sub(8) {
            let mut memory = vec![7; length];
            memory[start..start + 8].copy_from_slice(&bytes[8..16]);
            let found: Vec<usize> = pieces.look(&memory).iter().map(|one| one.at).collect();
            assert_eq!(found, [start], "of {length}");
        }
    }
}
