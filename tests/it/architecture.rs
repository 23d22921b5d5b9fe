//! Rules for the source code that neither the compiler nor clippy can state.

use crate::support::harness::{Test, test};
use crate::support::source;
use std::fs;

pub const TESTS: &[Test] = &[
    test!(imports_point_down_only),
    test!(rooms_do_not_know_what_they_must_not),
    test!(no_other_room_knows_the_operating_system),
    test!(no_other_randomness),
    test!(no_file_is_longer_than_six_hundred_lines),
    test!(every_error_knows_its_exit_code),
];

/// The rooms from the bottom up. A room may import from itself and from the storeys below.
const STOREYS: [&str; 12] = [
    "frame",
    "clock duration fault hours language backoff log_writer memory os shutdown token_bucket key",
    "pattern roster",
    "job",
    "message",
    "progress ledger vault search",
    "config fleet device_cache",
    "nostr scheduler web",
    "bot",
    "control device_process",
    "service backup",
    "cli",
];

/// Things that a room must not know: a folder or file below `src`, a word that must not occur in
/// its code, and the reason.
const FORBIDDEN: &[(&str, &str, &str)] = &[
    ("bot", "rusqlite", "the conversation does not touch SQL"),
    ("bot", "tokio", "the conversation is pure"),
    ("nostr", "crate::pattern", "the relays do not know what a pattern is"),
    ("nostr", "crate::search", "the relays do not know how a search works"),
    ("nostr/inbox", "nostr::outbox", "the two ways share only `relay`"),
    ("nostr/outbox", "nostr::inbox", "the two ways share only `relay`"),
    ("nostr/relay", "nostr::inbox", "connections know nothing of what passes them"),
    ("nostr/relay", "nostr::outbox", "connections know nothing of what passes them"),
    ("search", "crate::vault", "a device never sees a secret"),
    ("search", "crate::job", "a device does not know jobs"),
    ("web", "crate::vault", "the public web server holds no secret"),
    ("web", "crate::ledger", "the public web server knows no job"),
    ("control", "crate::vault", "no secret passes the local socket"),
    ("control", "rusqlite", "the local socket knows no SQL"),
    ("key", "SecretKey::new", "this room makes no secret"),
    ("scheduler", "crate::message", "the scheduler writes no messages"),
    ("scheduler", "crate::fleet", "the scheduler does not know what is remote"),
    ("scheduler/plan", "Mutex", "the plan only decides"),
    ("scheduler/plan", "thread::", "the plan only decides"),
    ("scheduler/plan", "tokio", "the plan only decides"),
];

/// Generators that no code outside tests may use, because they do not ask the operating system each
/// time, and what else could make a key in the vault.
const GENERATORS: &str = "thread_rng ThreadRng SmallRng StdRng rand::rng fastrand from_entropy";
const OTHER_KEYS: &str = "OsRng rand::random Keys::generate SecretKey::generate SecretKey::new(";

/// Crates that call one system, and conditions that name one.
const SYSTEMS: &str = "landlock:: libc:: rustix:: sd_notify:: seccompiler:: windows_sys:: target_os cfg(unix) \
                       cfg(windows) not(unix) not(windows) cfg!(unix) cfg!(windows) std::os::unix std::os::fd \
                       std::os::windows signal::unix";

/// Each file of the library: its path below `src`, and its code without comments and unit tests.
fn library() -> Vec<(String, String)> {
    let files = source::library();
    assert!(files.len() > 150, "{} files", files.len());
    let named = files.into_iter().map(|file| (source::below_src(&file).display().to_string(), source::code(&file)));
    named.filter(|(name, _)| name != "lib.rs" && name != "main.rs").collect()
}

/// Fails with the faults that `check` finds in the library.
fn forbid(mut check: impl FnMut(&str, &str) -> Vec<String>) {
    let mut faults = Vec::new();
    for (name, code) in library() {
        faults.extend(check(&name, &code).into_iter().map(|fault| format!("{name}: {fault}")));
    }
    assert!(faults.is_empty(), "{}", faults.join("\n"));
}

fn is_in(name: &str, room: &str) -> bool {
    name.strip_prefix(room).is_some_and(|rest| rest.starts_with(['/', '.']))
}

/// The rooms that code imports by `crate::room`. No code imports by `crate::{room, …}`.
fn imported(code: &str) -> Vec<&str> {
    assert!(!code.contains("crate::{"), "one `use` a room: {code}");
    let is_name = |at: usize| code[..at].ends_with(|before: char| before.is_alphanumeric() || before == '_');
    let places = code.match_indices("crate::").filter(|(at, _)| !is_name(*at));
    places.map(|(at, _)| first_name(&code[at + "crate::".len()..])).collect()
}

fn first_name(text: &str) -> &str {
    let end = text.find(|letter: char| !letter.is_alphanumeric() && letter != '_');
    &text[..end.unwrap_or(text.len())]
}

fn imports_point_down_only() {
    let storey = |room: &str| STOREYS.iter().position(|rooms| rooms.split(' ').any(|one| one == room));
    forbid(|name, code| {
        let own = first_name(name);
        let Some(from) = storey(own) else { return vec![format!("`{own}` stands on no storey: give it one")] };
        let upward = |room: &&&str| **room != own && storey(room).is_some_and(|to| to >= from);
        imported(code).iter().filter(upward).map(|room| format!("imports `{room}`, which is not below")).collect()
    });
}

fn rooms_do_not_know_what_they_must_not() {
    forbid(|name, code| {
        let known = FORBIDDEN.iter().filter(|(room, word, _)| is_in(name, room) && code.contains(word));
        known.map(|(_, word, why)| format!("has `{word}`: {why}")).collect()
    });
}

fn no_other_room_knows_the_operating_system() {
    forbid(|name, code| {
        if ["os/", "search/os/", "vault/os/"].iter().any(|room| name.starts_with(room)) {
            return Vec::new();
        }
        let words = SYSTEMS.split(' ').filter(|word| code.contains(word));
        words.map(|word| format!("has `{word}`, which belongs into the room os")).collect()
    });
}

/// Code outside tests draws random numbers only from the operating system. In the vault they come
/// from one function.
fn no_other_randomness() {
    forbid(|name, code| {
        let is_vault = name.starts_with("vault/");
        let words = GENERATORS.split(' ').chain(OTHER_KEYS.split(' ').filter(|_| is_vault));
        // The walls name the system call.
        let source = (is_vault && !["vault/random.rs", "vault/os/walls.rs"].contains(&name)).then_some("getrandom");
        words.chain(source).filter(|word| code.contains(word)).map(|word| format!("has `{word}`")).collect()
    });
    let random = source::code(&source::root().join("vault/src/random.rs"));
    assert_eq!(random.matches("getrandom").count(), 1, "one call: {random}");
    assert!(random.contains("getrandom::fill(bytes).map_err(|_| VaultError::NoRandomness)"));
}

fn no_file_is_longer_than_six_hundred_lines() {
    const MOST: usize = 600;
    let folders = ["src", "miner", "fleet", "vault", "kernels", "tests", "benches", "examples"];
    let files =
        folders.iter().flat_map(|folder| source::files(&source::root().join(folder), &["rs", "cu", "cuh", "h"]));
    let lines = |file: &std::path::PathBuf| fs::read_to_string(file).unwrap().lines().count();
    let long: Vec<_> = files.filter(|file| lines(file) > MOST).collect();
    assert!(long.is_empty(), "files of more than {MOST} lines: {long:?}");
}

/// Errors that never end a command, so they have no exit code.
const STAY_INSIDE: [&str; 4] = ["UnwrapError", "WireError", "NoName", "OutputError"];

/// `cli/exit.rs` judges each type of error. The compiler sees to it that it judges each variant.
fn every_error_knows_its_exit_code() {
    let judge = fs::read_to_string(source::root().join("src/cli/exit.rs")).unwrap();
    let mut seen = Vec::new();
    let fleet = source::files(&source::root().join("fleet/src"), &["rs"]).into_iter().map(|file| source::code(&file));
    for code in library().into_iter().map(|(_, code)| code).chain(fleet) {
        for (at, _) in code.match_indices("Error)]\n").chain(code.match_indices("Error, Serialize, Deserialize)]\n")) {
            let mut words = code[at..].split_whitespace().skip_while(|word| !["enum", "struct"].contains(word)).skip(1);
            seen.push(first_name(words.next().unwrap_or_default()).to_owned());
        }
    }
    assert!(seen.len() > 12, "{seen:?}");
    let is_judged = |name: &str| judge.split(|c: char| !c.is_alphanumeric()).any(|word| word == name);
    let unjudged: Vec<_> =
        seen.iter().filter(|name| !STAY_INSIDE.contains(&name.as_str()) && !is_judged(name)).collect();
    assert!(unjudged.is_empty(), "say in src/cli/exit.rs what repairs {unjudged:?}");
    for name in STAY_INSIDE {
        assert!(seen.iter().any(|seen| seen == name), "there is no error {name} any more");
    }
}
