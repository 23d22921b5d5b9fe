//! S4: nothing secret leaks. The real program does jobs at trace level, and panics once right after
//! a result is sealed. Then the test searches for the identity and every delivered key: in the
//! ledger, its write-ahead log, the program's log with the panic's text, and the arguments,
//! environment and whole memory of the process that talks to strangers.
//! The long form: `cargo test --test it safety::leaks -- --ignored --nocapture`
//! Once a key is sealed, the process that made it has no copy of it either.
//! `split` and `combine` keep an asker's half in a vault process, and no part of it in their own
//! memory.

use crate::support::asker::Asker;
use crate::support::bot::{ChildGuard, at_relay};
use crate::support::half::Half;
use crate::support::harness::{Test, child, test};
use crate::support::leaks::{Needle, Search, forms_of, plant};
use crate::support::program::{self, run_with_input};
use crate::support::vault::{kill, memory, message_to, next_vault, opened};
use crate::support::{locked, until, wait_for};
use nostr_sdk::{Keys, ToBech32};
use npubbot::clock::Clock;
use npubbot::key::{Npub, Offset, Rotation, SplitTweak, StartPoint, Tweak, VerifiedHit, candidate};
use npubbot::vault::Vault;
use rand::rngs::StdRng;
use rand::{Rng, SeedableRng};
use std::io::{BufRead, BufReader};
use std::path::PathBuf;
use std::process::{Output, Stdio};
use tempfile::TempDir;

pub const TESTS: &[Test] = &[
    test!(five_jobs_at_trace_level_leave_no_key_behind_and_a_planted_one_is_found),
    test!(fifty_jobs_at_trace_level_leave_no_key_behind).long("a minute or two: the full form of S4"),
    test!(seal_keys).part(),
    test!(a_sealed_key_leaves_no_copy_in_memory_and_a_planted_one_is_found),
    test!(combine_has_neither_half_nor_key_nor_passphrase_in_its_memory),
    test!(a_half_whose_vault_is_killed_is_lost_with_words_and_its_file_still_serves),
    test!(split_new_leaves_no_file_if_its_vault_is_killed),
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

/// A file with a half, its passphrase file, and a tweak for it.
struct Stored {
    folder: TempDir,
    half: Half,
    tweak: String,
}

impl Stored {
    fn new() -> Stored {
        let (folder, half) = (tempfile::tempdir().unwrap(), Half::draw());
        let point = StartPoint::new(*half.point().public_key());
        // The first tweak whose key begins with `q`.
        let mut tweaks = (1..).map(|step| {
            let offset = Offset::of_point(0, step, Rotation::ALL[0]);
            SplitTweak { tweak: Tweak { offset, rotation: Rotation::ALL[0] }, fingerprint: half.point().fingerprint() }
        });
        let begins = |npub: Npub| npub.to_string().starts_with("npub1q");
        let tweak = tweaks.find(|split| candidate(&point, &split.tweak).is_some_and(begins)).unwrap().to_string();
        let stored = Stored { folder, half, tweak };
        let text = format!("{}\n# prefixes: q\n", stored.half.text());
        std::fs::write(stored.path("half.age"), locked(PASSPHRASE, &text)).unwrap();
        std::fs::write(stored.path("pass"), format!("{PASSPHRASE}\n")).unwrap();
        stored
    }

    fn path(&self, name: &str) -> PathBuf {
        self.folder.path().join(name)
    }

    /// Runs a command whose last arguments are the half's file and its passphrase file.
    fn run(&self, arguments: &[&str]) -> Output {
        let (half, pass) = (self.path("half.age"), self.path("pass"));
        let file = [half.to_str().unwrap(), "--passphrase-file", pass.to_str().unwrap()];
        let output = run_with_input(&[arguments, &file].concat(), "");
        assert!(output.status.success(), "{}", program::stderr(&output));
        output
    }

    /// Starts `combine`. Returns when it has combined the key and waits for the key's password.
    async fn combining(&self) -> ChildGuard {
        let password = self.path("password");
        rustix::fs::mknodat(rustix::fs::CWD, &password, rustix::fs::FileType::Fifo, 0o600.into(), 0).unwrap();
        let mut command = program::command();
        command.args(["combine", &self.tweak, "--half"]).arg(self.path("half.age"));
        command.arg("--passphrase-file").arg(self.path("pass"));
        command.args(["--ncryptsec", "--password-file"]).arg(&password);
        let running = ChildGuard(command.stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap());
        let mark = self.path("half.age.used");
        until("the half is marked as used", || async { mark.exists().then_some(()) }).await;
        running
    }
}

async fn combine_has_neither_half_nor_key_nor_passphrase_in_its_memory() {
    let stored = Stored::new();
    let mut combining = stored.combining().await;
    let key = program::stdout(&stored.run(&["combine", &stored.tweak, "--half"]));
    let key = Keys::parse(key.lines().nth(1).unwrap()).unwrap();
    let needles = [
        Needle::new("the half", stored.half.text().as_bytes()),
        Needle::new("the half's number", stored.half.0.secret_bytes()),
        Needle::new("the key", key.secret_key().as_secret_bytes()),
        Needle::new("the nsec", key.secret_key().to_bech32().unwrap().as_bytes()),
        Needle::new("the passphrase", PASSPHRASE.as_bytes()),
    ];
    let id = combining.0.id();
    let vault = next_vault(id, None).await;
    assert_eq!(Search::new(&needles).process(id), Vec::<String>::new(), "in the command");
    let known = [Needle::new("the tweak", stored.tweak.as_bytes())];
    assert!(!Search::new(&known).process(id).is_empty(), "the search finds what is there");
    // The positive control, if the vault's memory can be read at all.
    if let Ok(regions) = memory(vault) {
        let search = Search::new(&needles[1..2]);
        assert!(regions.iter().any(|region| !search.bytes(&region.bytes).is_empty()), "the half is in the vault");
    }
    std::fs::write(stored.path("password"), "staple\n").unwrap();
    assert!(combining.ended().await.success());
}

async fn a_half_whose_vault_is_killed_is_lost_with_words_and_its_file_still_serves() {
    let stored = Stored::new();
    let mut combining = stored.combining().await;
    kill(next_vault(combining.0.id(), None).await);
    std::fs::write(stored.path("password"), "staple\n").unwrap();
    let status = combining.ended().await;
    let said = std::io::read_to_string(combining.0.stderr.take().unwrap()).unwrap();
    assert_eq!(status.code(), Some(1), "{said}");
    assert!(said.contains("the half in it is gone; run the command again"), "{said}");
    assert_eq!(std::io::read_to_string(combining.0.stdout.take().unwrap()).unwrap(), "");
    let again = stored.run(&["combine", &stored.tweak, "--half"]);
    assert!(program::stdout(&again).contains("nsec1") && program::stderr(&again).contains("the same key"));
}

/// The vault is killed while it reads the passphrase.
async fn split_new_leaves_no_file_if_its_vault_is_killed() {
    let folder = tempfile::tempdir().unwrap();
    let [pass, half] = ["pass", "half.age"].map(|name| folder.path().join(name));
    rustix::fs::mknodat(rustix::fs::CWD, &pass, rustix::fs::FileType::Fifo, 0o600.into(), 0).unwrap();
    let mut command = program::command();
    command.args(["split", "new", "cat", "--out"]).arg(&half);
    command.arg("--passphrase-file").arg(&pass).stdout(Stdio::piped()).stderr(Stdio::piped());
    let mut split = ChildGuard(command.spawn().unwrap());
    kill(next_vault(split.0.id(), None).await);
    assert_eq!(split.ended().await.code(), Some(1));
    assert!(!half.exists());
    assert_eq!(std::io::read_to_string(split.0.stdout.take().unwrap()).unwrap(), "", "no point without its half");
}
