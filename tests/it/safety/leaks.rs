//! S4: nothing secret leaks. The real program does jobs at trace level, and panics once right after
//! a result is sealed. Then the test searches for the identity and every delivered key: in the
//! ledger, its write-ahead log, the program's log with the panic's text, and the arguments,
//! environment and whole memory of the process that talks to strangers.
//! The long form: `cargo test --test it safety::leaks -- --ignored --nocapture`
//! Once a key is sealed, the process that made it has no copy of it either.
//! A half that was combined leaves none of itself or its key in memory.

use crate::support::asker::Asker;
use crate::support::bot::{ChildGuard, at_relay};
use crate::support::half::Half;
use crate::support::harness::{Test, child, test};
use crate::support::leaks::{Needle, Search, forms_of, plant};
use crate::support::vault::{memory, message_to, next_vault, opened};
use crate::support::{locked, wait_for};
use nostr_sdk::{Keys, ToBech32};
use npubbot::clock::Clock;
use npubbot::key::{Offset, Rotation, SplitTweak, Tweak, VerifiedHit};
use npubbot::vault::{self, Unlock, Vault};
use rand::rngs::StdRng;
use rand::{Rng, SeedableRng};
use std::io::{BufRead, BufReader};
use std::path::PathBuf;
use std::process::Stdio;

pub const TESTS: &[Test] = &[
    test!(five_jobs_at_trace_level_leave_no_key_behind_and_a_planted_one_is_found),
    test!(fifty_jobs_at_trace_level_leave_no_key_behind).long("a minute or two: the full form of S4"),
    test!(seal_keys).part(),
    test!(a_sealed_key_leaves_no_copy_in_memory_and_a_planted_one_is_found),
    test!(combine_a_half).part(),
    test!(a_combined_key_and_its_half_leave_no_copy_in_memory),
];

/// Jobs per asker.
const EACH: usize = 5;

async fn jobs_leave_no_key_behind(jobs: usize) {
    let mut rng = StdRng::seed_from_u64(crate::support::seed());
    let (relay, home) = at_relay("[limits]\nopen_jobs_per_asker = 100\njobs_per_day = 100\n").await;
    let bot = home.vault().public_key();
    // Release builds have no faults, so there is no panic.
    let process = home.spawn_faulty_at("panic:redeem:after", "trace");
    let mut askers = Vec::new();
    for _ in 0..jobs.div_ceil(EACH) {
        let asker = Asker::connect(&relay.url(), bot).await;
        for _ in 0..EACH {
            let character = |_| char::from(npubbot::pattern::ALPHABET[rng.random_range(0..32)]);
            asker.send(&(0..3).map(character).collect::<String>()).await;
        }
        askers.push(asker);
    }
    let all = (askers.len() * EACH) as i64;
    let done = "SELECT (SELECT count(*) FROM job WHERE state = 'delivered')
                     - (SELECT count(*) FROM outbox WHERE finished = 0)";
    wait_for("all keys are delivered", || home.count(done) == Some(all)).await;
    // The identity, and each delivered key.
    let identity = forms_of(&home.keys().secret_key().to_bech32().unwrap());
    let forms = identity.len();
    let mut needles = identity.clone();
    for asker in &askers {
        // Only the test's process decrypts what they received.
        let texts = relay.texts_to(&asker.keys).await;
        let nsecs = texts.iter().filter_map(|text| text.lines().find(|line| line.starts_with("nsec1")));
        needles.extend(nsecs.flat_map(forms_of));
    }
    assert!(forms > 10 && needles.len() == forms * (1 + all as usize));
    assert!(home.log().contains("TRACE"), "the log is at trace level");
    assert!(home.log().contains("panicked at"), "and holds the text of a panic");

    let search = Search::new(&needles);
    let mut leaks = search.files(home.folder.path());
    leaks.extend(search.process(process.0.id()));
    assert!(leaks.is_empty(), "{} copies: {leaks:#?}", leaks.len());

    // The search itself works: it finds the bot's npub in the memory, a key that is planted there and
    // in a file, and the identity in the vault, if that can be read at all.
    if let Ok(regions) = memory(next_vault(process.0.id(), None).await) {
        let search = Search::new(&identity);
        assert!(regions.iter().any(|region| !search.bytes(&region.bytes).is_empty()), "the identity is in the vault");
    }
    let known = Needle::new("npub", bot.to_string());
    assert!(!Search::new(&[known]).process(process.0.id()).is_empty());
    for (place, needle) in needles[..forms].iter().enumerate() {
        plant(process.0.id(), place, &needle.bytes);
    }
    let found = search.process(process.0.id());
    for needle in &needles[..forms] {
        assert!(found.iter().any(|place| place.starts_with(&needle.form)), "{} in {found:?}", needle.form);
    }
    std::fs::write(home.data().join("planted"), &needles[0].bytes).unwrap();
    assert_eq!(search.files(home.folder.path()).len(), 1);
}

async fn five_jobs_at_trace_level_leave_no_key_behind_and_a_planted_one_is_found() {
    jobs_leave_no_key_behind(5).await;
}

async fn fifty_jobs_at_trace_level_leave_no_key_behind() {
    jobs_leave_no_key_behind(50).await;
}

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
    let mut command = child("safety::leaks::seal_keys");
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

const PASSPHRASE: &str = "correct horse battery";

/// Runs in the child process: combines the half in a file, prints the npub, and waits.
fn combine_a_half() {
    let half = PathBuf::from(std::env::var_os("TEST_HALF").unwrap());
    let half = vault::Half::open(&half, &Unlock::Passphrase(PASSPHRASE.to_owned().into())).unwrap();
    let combined = half.combine(&std::env::var("TEST_TWEAK").unwrap().parse().unwrap(), &[], None).unwrap();
    let npub = combined.0;
    drop((half, combined));
    println!("{npub}");
    std::io::stdin().read_line(&mut String::new()).unwrap();
}

fn a_combined_key_and_its_half_leave_no_copy_in_memory() {
    let (folder, half) = (tempfile::tempdir().unwrap(), Half::draw());
    let file = folder.path().join("half.age");
    std::fs::write(&file, locked(PASSPHRASE, &half.text())).unwrap();
    let tweak = Tweak { offset: Offset::of_point(1 << 40, 77, Rotation::ALL[2]), rotation: Rotation::ALL[1] };
    let split = SplitTweak { tweak, fingerprint: half.point().fingerprint() };
    let key = Keys::new(half.combine(&split).secret_key().into());
    let mut command = child("safety::leaks::combine_a_half");
    command.env("TEST_HALF", &file).env("TEST_TWEAK", split.to_string()).stdin(Stdio::piped()).stdout(Stdio::piped());
    let mut child = ChildGuard(command.spawn().unwrap());
    let npub = BufReader::new(child.0.stdout.take().unwrap()).lines().next().unwrap().unwrap();
    assert_eq!(npub, key.public_key().to_bech32().unwrap());
    let mut needles = forms_of(&key.secret_key().to_bech32().unwrap());
    needles.push(Needle::new("the half", &half.text().as_bytes()[6..]));
    needles.push(Needle::new("the half's number", half.0.secret_bytes()));
    let search = Search::new(&needles);
    assert_eq!(search.process(child.0.id()), Vec::<String>::new());
    plant(child.0.id(), 0, &needles.last().unwrap().bytes);
    assert_eq!(search.process(child.0.id()).len(), 1, "a planted copy is found");
}
