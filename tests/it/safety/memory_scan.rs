//! The memory scan (`crate::support::memory_scan`) on host memory. The promise S3 rests on it.

use crate::support::harness::{Test, test};
use crate::support::memory_scan::{FORMS, Pieces, Secret, start_secret_of};
use npubbot::key::Rotation;
use rand::rngs::StdRng;
use rand::{Rng, SeedableRng};
use secp256k1::{PublicKey, SECP256K1, SecretKey};
use std::collections::BTreeSet;

pub const TESTS: &[Test] = &[
    test!(relatives_are_the_six_keys_that_reveal_each_other),
    test!(planted_secrets_are_found_anywhere_and_nothing_else_is),
];

fn number(rng: &mut StdRng) -> SecretKey {
    SecretKey::from_slice(&rng.random::<[u8; 32]>()).expect("all but one in 2^127")
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

/// Every form of every relative of some secrets is found in noise with gaps of zeros, whatever its
/// place, and at the very end of a memory of any length.
fn planted_secrets_are_found_anywhere_and_nothing_else_is() {
    let mut rng = StdRng::seed_from_u64(crate::support::seed());
    let secrets: Vec<Secret> = (0..8).map(|at| Secret::new(format!("number {at}"), number(&mut rng))).collect();
    let pieces = Pieces::of(&secrets);
    let mut memory = vec![0u8; (1 << 20) + 5];
    rng.fill(&mut memory[..]);
    memory[200_000..250_000].fill(0);
    assert_eq!(pieces.look(&memory), []);
    // Each needle has a slot of 64 bytes, so none overwrites another.
    let mut planted = Vec::new();
    for (at, secret) in secrets.iter().enumerate() {
        for relative in secret.relatives() {
            for form in &FORMS {
                let bytes = (form.write)(&relative.secret_bytes());
                let start = 1024 * planted.len() + rng.random_range(0..=64 - bytes.len());
                memory[start..start + bytes.len()].copy_from_slice(&bytes);
                planted.push((at, start, bytes.len()));
            }
        }
    }
    let found = pieces.look(&memory);
    assert_eq!(planted.len(), pieces.needles);
    for &(secret, start, length) in &planted {
        // The search must find each piece of eight bytes of the number.
        let mut places = (start..start + length).step_by(8);
        assert!(places.all(|at| found.iter().any(|one| one.at == at && one.secret == secret)), "at {start}");
    }
    // The noise beside a number may happen to continue it.
    for one in &found {
        let touches = |&(secret, start, length): &(usize, usize, usize)| {
            secret == one.secret && (start..start + length + 7).contains(&(one.at + 7))
        };
        assert!(planted.iter().any(touches), "{one:?}");
    }
    let bytes = secrets[0].number.secret_bytes();
    for length in 8..70 {
        let mut memory = vec![7; length];
        memory[length - 8..].copy_from_slice(&bytes[8..16]);
        assert_eq!(pieces.look(&memory).iter().map(|one| one.at).collect::<Vec<_>>(), [length - 8], "of {length}");
    }
}
