//! Once a key is sealed, the process that made it has no copy of the key in memory. A child process
//! makes and seals keys; this one opens each message as the asker and looks for the key in the child.

use crate::support::harness::{Test, child, test};
use crate::support::leaks::{Needle, Search, forms_of, plant};
use crate::support::vault::{message_to, opened};
use nostr::Keys;
use npubbot::clock::Clock;
use npubbot::key::{Offset, Rotation, Tweak, VerifiedHit};
use npubbot::vault::Vault;
use std::io::{BufRead, BufReader};
use std::process::Stdio;

pub const TESTS: &[Test] =
    &[test!(seal_keys).part(), test!(a_sealed_key_leaves_no_copy_in_memory_and_a_planted_one_is_found)];

const KEYS: usize = 20;

/// Runs in the child process: prints a wrap with a key on each line, and waits until it is killed.
fn seal_keys() {
    let vault = Vault::without_identity().unwrap().with_clock(Clock::at(1_800_000_000));
    let asker: Keys = std::env::var("TEST_ASKER").unwrap().parse().unwrap();
    let message = message_to(asker.public_key(), "Your key is ready.");
    let offset = Offset::of_point(1 << 40, 77, Rotation::ALL[2]);
    for number in 0..KEYS {
        let (start, point) = vault.open_start().unwrap();
        let hit = VerifiedHit::recompute(point, Tweak { offset, rotation: Rotation::ALL[number % 3] }).unwrap();
        println!("{}", vault.redeem_any(start, &hit, &message).unwrap().events().last().unwrap());
    }
    std::io::stdin().read_line(&mut String::new()).unwrap();
}

fn a_sealed_key_leaves_no_copy_in_memory_and_a_planted_one_is_found() {
    let asker = Keys::generate();
    let mut command = child("safety::memory::seal_keys");
    command.env("TEST_ASKER", asker.secret_key().to_secret_hex()).stdin(Stdio::piped()).stdout(Stdio::piped());
    let mut child = command.spawn().unwrap();
    let wraps = BufReader::new(child.stdout.take().unwrap()).lines().take(KEYS);
    let needles: Vec<Needle> = wraps
        .flat_map(|wrap| {
            let text = opened(&asker, &wrap.unwrap()).unwrap();
            forms_of(text.lines().find(|line| line.starts_with("nsec1")).unwrap())
        })
        .collect();
    let search = Search::new(&needles);
    let leaks = search.process(child.id());
    assert!(needles.len() > 10 * KEYS && leaks.is_empty(), "{} copies: {leaks:#?}", leaks.len());
    plant(child.id(), 0, &needles[4].bytes);
    assert_eq!(search.process(child.id()).len(), 1, "a planted copy is found");
    child.kill().unwrap();
    child.wait().unwrap();
}
