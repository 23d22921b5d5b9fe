//! S4: nothing secret leaks. The real program does jobs at trace level, and panics once right after
//! a result is sealed. Then the test searches for the identity and every delivered key: in the
//! ledger, its write-ahead log, the program's log with the panic's text, and the arguments,
//! environment and whole memory of the process that talks to strangers.
//! The long form: `cargo test --test it safety::leaks -- --ignored --nocapture`
use crate::support::asker::Asker;
use crate::support::bot::at_relay;
use crate::support::harness::{Test, test};
use crate::support::leaks::{Needle, Search, forms_of, plant};
use crate::support::vault::{memory, next_vault};
use crate::support::wait_for;
use nostr_sdk::prelude::ToBech32;
use rand::rngs::StdRng;
use rand::{Rng, SeedableRng};

pub const TESTS: &[Test] = &[
    test!(five_jobs_at_trace_level_leave_no_key_behind_and_a_planted_one_is_found),
    test!(fifty_jobs_at_trace_level_leave_no_key_behind).long("a minute or two: the full form of S4"),
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
