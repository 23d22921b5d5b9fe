//! S3, and a barrier of S2: the vault has only one source of randomness, and a launch has no
//! secret. That no other code can name a secret is up to the compiler (`vault/src/lib.rs`).

use crate::support::harness::{Test, test};
use crate::support::source;
use npubbot::key::StartPoint;
use npubbot::pattern::PatternSet;
use npubbot::search::Launch;
use std::fs;
use std::path::Path;
use std::process::Command;
use std::sync::Arc;

pub const TESTS: &[Test] = &[
    test!(the_vault_draws_from_the_operating_system_and_nothing_else),
    test!(the_lock_file_has_no_generator_with_small_seeds),
];

/// A launch, which is all that a device gets, consists of points and patterns only.
const _: fn(Launch) -> (Vec<StartPoint>, Arc<PatternSet>) = |launch| {
    let Launch { starts, patterns, remaining: _ } = launch;
    (starts, patterns)
};

/// Sources of random numbers, or of keys, other than `random::system`.
const OTHER_SOURCES: [&str; 12] = [
    "getrandom",
    "OsRng",
    "thread_rng",
    "ThreadRng",
    "StdRng",
    "SmallRng",
    "rand::random",
    "from_entropy",
    "Keys::generate",
    "SecretKey::generate",
    "SecretKey::new(",
    "EventBuilder",
];

fn the_vault_draws_from_the_operating_system_and_nothing_else() {
    let vault = Path::new(env!("CARGO_MANIFEST_DIR")).join("vault/src");
    let mut files = source::files(&vault, &["rs"]);
    files.retain(|file| !file.starts_with(vault.join("tests")));
    assert!(files.len() > 5, "{files:?}");
    for file in files {
        let (name, code) = (file.strip_prefix(&vault).unwrap().display().to_string(), source::code(&file));
        let is_allowed = |word: &str| match word {
            // The walls name the system call.
            "getrandom" => ["random.rs", "os/walls.rs"].contains(&name.as_str()),
            // Public events before they are signed.
            "EventBuilder" => name == "public.rs",
            _ => false,
        };
        let found = OTHER_SOURCES.iter().find(|word| code.contains(**word) && !is_allowed(word));
        assert_eq!(found, None, "in {name}");
    }
    let random = source::code(&vault.join("random.rs"));
    assert_eq!(random.matches("getrandom").count(), 1, "one call: {random}");
    assert!(random.contains("getrandom::fill(bytes).map_err(|_| VaultError::NoRandomness)"));
}

/// The `getrandom` of Cargo.lock asks the operating system unless a build says otherwise. The
/// program depends on no crate that makes random numbers without it.
fn the_lock_file_has_no_generator_with_small_seeds() {
    let root = Path::new(env!("CARGO_MANIFEST_DIR"));
    let output = Command::new(std::env::var("CARGO").unwrap_or_else(|_| "cargo".to_owned()))
        .args(["tree", "--offline", "--locked", "--edges", "normal", "--prefix", "none", "--format", "{p} {f}"])
        .current_dir(root)
        .output()
        .expect("cargo, as the tests were built with");
    let tree = String::from_utf8(output.stdout).unwrap();
    assert!(tree.lines().count() > 50, "{}", String::from_utf8_lossy(&output.stderr));
    let bad: Vec<&str> = tree
        .lines()
        .filter(|line| {
            let name = line.split(' ').next().unwrap_or_default();
            let weak = ["oorandom", "wyrand", "nanorand", "rand_xorshift", "rand_pcg", "mt19937"].contains(&name);
            weak || (name == "getrandom" && line.contains("custom"))
        })
        .collect();
    assert!(bad.is_empty(), "{bad:#?}");
    assert!(tree.contains("getrandom v0.4"), "the vault's own");
    let settings = root.join(".cargo/config.toml");
    let settings = fs::read_to_string(settings).unwrap_or_default();
    assert!(!settings.contains("getrandom_backend"), "no build puts another source in its place");
}
