//! S3, and the barriers of S2: no other room can name a secret, and the vault has only one source
//! of randomness.

use crate::support::harness::{Test, test};
use crate::support::source;
use std::fs;
use std::path::Path;
use std::process::Command;

pub const TESTS: &[Test] = &[
    test!(no_secret_can_be_named_from_outside),
    test!(the_vault_draws_from_the_operating_system_and_nothing_else),
    test!(the_lock_file_has_no_generator_with_small_seeds),
];

/// Compiles `code` against this library. Returns whether it compiles, and the compiler's output.
fn compile(code: &str) -> (bool, String) {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("outside.rs");
    fs::write(&file, format!("{code}\nfn main() {{}}\n")).unwrap();
    // The test binary lies beside the libraries it was linked with. Our newest build is the right
    // one.
    let libraries = std::env::current_exe().unwrap().parent().unwrap().to_owned();
    let newest = fs::read_dir(&libraries)
        .unwrap()
        .map(|entry| entry.unwrap().path())
        .filter(|path| {
            let name = path.file_name().unwrap().to_string_lossy().into_owned();
            name.starts_with("libnpubbot-") && name.ends_with(".rlib")
        })
        .max_by_key(|path| fs::metadata(path).unwrap().modified().unwrap())
        .expect("the library was built before its tests");
    let output = Command::new(std::env::var("RUSTC").unwrap_or_else(|_| "rustc".to_owned()))
        .args(["--edition", "2024", "--crate-type", "bin", "--emit", "metadata"])
        .arg("--extern")
        .arg(format!("npubbot={}", newest.display()))
        .arg("-L")
        .arg(format!("dependency={}", libraries.display()))
        .arg("--out-dir")
        .arg(folder.path())
        .arg(&file)
        .output()
        .expect("a Rust compiler, as the tests were built with");
    (output.status.success(), String::from_utf8_lossy(&output.stderr).into_owned())
}

fn no_secret_can_be_named_from_outside() {
    let (compiles, said) = compile("use npubbot::vault::{StartId, Vault};\npub fn f(_: Vault, _: StartId) {}");
    assert!(compiles, "the check itself compiles: {said}");
    for name in ["Start", "DerivedKey", "Signing", "SecretText"] {
        let (compiles, said) = compile(&format!("pub fn f(_: npubbot::vault::secret::{name}) {{}}"));
        assert!(!compiles, "{name} can be named");
        assert!(said.contains("E0603") && said.contains("module `secret` is private"), "{name}: {said}");
        let (compiles, _) = compile(&format!("pub fn f(_: npubbot::vault::{name}) {{}}"));
        assert!(!compiles, "{name} is handed on under another path");
    }
    for what in ["start_points", "random", "identity", "secrets", "request"] {
        let (compiles, said) = compile(&format!("use npubbot::vault::{what};"));
        assert!(!compiles && said.contains("E0603"), "{what}: {said}");
    }
    // A launch, which is all that a device gets, consists of points and patterns only.
    let launch = "pub fn f(l: npubbot::search::Launch) -> (Vec<npubbot::key::StartPoint>, std::sync::Arc<npubbot::pattern::PatternSet>) {
        let npubbot::search::Launch { starts, patterns, remaining: _ } = l; (starts, patterns) }";
    let (compiles, said) = compile(launch);
    assert!(compiles, "a launch holds something else than points and patterns: {said}");
}

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
    let vault = Path::new(env!("CARGO_MANIFEST_DIR")).join("src/vault");
    let mut files = source::files(&vault, &["rs"]);
    files.retain(|file| !file.starts_with(vault.join("tests")));
    assert!(files.len() > 5, "{files:?}");
    let mut found = Vec::new();
    for file in files {
        let (name, code) = (file.strip_prefix(&vault).unwrap().display().to_string(), source::code(&file));
        for word in OTHER_SOURCES {
            let allowed = (name.as_str(), word) == ("random.rs", "getrandom");
            if code.contains(word) && !allowed {
                found.push(format!("{name} has `{word}`"));
            }
        }
        // The vault uses the system's source, and only tests can replace it.
        if name == "secrets.rs" {
            let others: Vec<&str> = code.match_indices("source: ").map(|(at, _)| &code[at..]).collect();
            let known =
                |rest: &&str| ["source: random::system", "source: Source"].iter().any(|known| rest.starts_with(known));
            assert!(others.iter().all(known), "{others:?}");
            assert!(code.contains("#[cfg(test)]\n    pub(super) fn with_source"));
        }
    }
    assert!(found.is_empty(), "{}", found.join("\n"));
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
