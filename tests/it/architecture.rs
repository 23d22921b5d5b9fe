//! The walls between the rooms, read off every `use crate::` line.

use crate::support::harness::{Test, test};
use std::fs;
use std::path::{Path, PathBuf};

pub const TESTS: &[Test] = &[
    test!(imports_point_down_only),
    test!(rooms_do_not_know_what_they_must_not),
    test!(no_leftovers_and_no_other_randomness),
    test!(no_page_has_gaps),
    test!(the_secret_module_is_private),
    test!(main_stays_thin),
];

/// Rooms from the bottom up. A room may use itself and the rooms of lower storeys.
const STOREYS: &[&[&str]] = &[
    &["clock", "duration", "fault", "memory", "shutdown", "key"],
    &["pattern"],
    &["job"],
    &["message"],
    &["progress", "ledger", "vault", "search"],
    &["config"],
    &["bot", "nostr", "scheduler"],
    &["service"],
    &["cli"],
];

/// What a room must not know, whatever the storey: a word that may not occur in its code, and why.
const FORBIDDEN: &[(&str, &str, &str)] = &[
    ("bot", "rusqlite", "the conversation does not touch SQL"),
    ("bot", "tokio", "the conversation is pure"),
    ("nostr", "crate::pattern::Pattern", "the relays do not know what a pattern is"),
    ("nostr", "crate::search", "the relays do not know how a search works"),
    ("search", "crate::vault", "a device never sees a secret"),
    ("search", "crate::job", "a device does not know jobs"),
    ("key", "SecretKey::new", "this room makes no secret"),
    ("scheduler", "crate::message", "the scheduler does not write letters"),
];

fn storey(room: &str) -> usize {
    STOREYS
        .iter()
        .position(|rooms| rooms.contains(&room))
        .unwrap_or_else(|| panic!("`{room}` stands on no storey: give it one in tests/it/architecture.rs"))
}

fn sources(folder: &Path) -> Vec<PathBuf> {
    let mut files = Vec::new();
    for entry in fs::read_dir(folder).unwrap() {
        let path = entry.unwrap().path();
        if path.is_dir() {
            files.extend(sources(&path));
        } else if path.extension().is_some_and(|extension| extension == "rs") {
            files.push(path);
        }
    }
    files
}

/// The room a file lies in: the first part of its path below `src`.
fn room_of(file: &Path) -> String {
    let below = file.strip_prefix(source_folder()).unwrap();
    below.iter().next().unwrap().to_str().unwrap().trim_end_matches(".rs").to_owned()
}

fn source_folder() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("src")
}

/// Code without its comments and its unit tests, which may reach anywhere.
fn code(file: &Path) -> String {
    let text = fs::read_to_string(file).unwrap();
    let code = text.split("#[cfg(test)]\nmod tests {").next().unwrap();
    code.lines().filter(|line| !line.trim_start().starts_with("//")).collect::<Vec<_>>().join("\n")
}

fn rooms() -> Vec<(PathBuf, String)> {
    let outside = ["lib", "main"];
    let all = sources(&source_folder()).into_iter().map(|file| (file.clone(), room_of(&file)));
    let is_test = |file: &Path| file.iter().any(|part| part == "tests" || part == "tests.rs");
    all.filter(|(file, room)| !outside.contains(&room.as_str()) && !is_test(file)).collect()
}

fn imports_point_down_only() {
    let mut upward = Vec::new();
    for (file, room) in rooms() {
        for (_, rest) in code(&file).match_indices("crate::").map(|(at, _)| (at, code(&file)[at + 7..].to_owned())) {
            let used: String = rest.chars().take_while(|c| c.is_alphanumeric() || *c == '_').collect();
            if used != room && storey(&used) >= storey(&room) {
                upward.push(format!("{} uses {used}", file.display()));
            }
        }
    }
    assert!(upward.is_empty(), "imports that point up or sideways:\n{}", upward.join("\n"));
}

fn rooms_do_not_know_what_they_must_not() {
    let mut known = Vec::new();
    for (file, room) in rooms() {
        for (_, word, why) in FORBIDDEN.iter().filter(|(wall, ..)| *wall == room) {
            if code(&file).contains(word) {
                known.push(format!("{} has `{word}`: {why}", file.display()));
            }
        }
    }
    assert!(known.is_empty(), "{}", known.join("\n"));
}

/// What no code outside tests may hold: panics left by accident, prints outside `cli`, and any generator of random
/// numbers but the operating system's.
fn no_leftovers_and_no_other_randomness() {
    let banned = ["dbg!(", "todo!(", "unimplemented!(", "thread_rng", "SmallRng", "StdRng", "rand::rng", "fastrand"];
    let mut found = Vec::new();
    for (file, room) in rooms() {
        let code = code(&file);
        for word in banned.iter().filter(|word| code.contains(**word)) {
            found.push(format!("{} has `{word}`", file.display()));
        }
        if room != "cli" && code.contains("println!(") {
            found.push(format!("{} prints", file.display()));
        }
    }
    assert!(found.is_empty(), "{}", found.join("\n"));
}

/// A page says what is so; what is still to be filled in is not published.
fn no_page_has_gaps() {
    let top = source_folder().join("..");
    let pages = fs::read_dir(top.join("docs")).unwrap().chain(fs::read_dir(&top).unwrap());
    let pages: Vec<PathBuf> =
        pages.map(|page| page.unwrap().path()).filter(|path| path.extension().is_some_and(|end| end == "md")).collect();
    assert!(pages.len() > 8);
    for page in pages {
        let text = fs::read_to_string(&page).unwrap();
        for gap in ["@@", "TODO", "TBD", "FIXME"] {
            assert!(!text.contains(gap), "{} has `{gap}`", page.display());
        }
    }
}

/// The secret types are in a private module: no other room can name one.
fn the_secret_module_is_private() {
    let vault = fs::read_to_string(source_folder().join("vault/mod.rs")).unwrap();
    assert!(vault.lines().any(|line| line.trim() == "mod secret;"), "src/vault/mod.rs must say `mod secret;`");
    assert!(!vault.contains("pub use secret"), "src/vault/mod.rs must not export from `secret`");
}

fn main_stays_thin() {
    let lines = fs::read_to_string(source_folder().join("main.rs")).unwrap().lines().count();
    assert!(lines < 60, "src/main.rs has {lines} lines");
}
