//! Rules for single files: words that a room must not know, code that must not occur, and a limit
//! on the length.

use super::tokens::tokens;
use crate::support::harness::{Test, test};
use crate::support::source;
use std::fs;
use std::path::Path;

pub const TESTS: &[Test] = &[
    test!(rooms_do_not_know_what_they_must_not),
    test!(the_plan_has_no_threads_and_no_locks),
    test!(no_leftovers_and_no_other_randomness),
    test!(no_file_is_longer_than_four_hundred_lines),
    test!(main_stays_thin),
];

/// Things that a room must not know: a folder or file below `src`, a word that must not occur in
/// its code, and the reason.
const FORBIDDEN: &[(&str, &str, &str)] = &[
    ("bot", "rusqlite", "the conversation does not touch SQL"),
    ("bot", "tokio", "the conversation is pure"),
    ("nostr", "crate::pattern", "the relays do not know what a pattern is"),
    ("nostr", "crate::search", "the relays do not know how a search works"),
    ("search", "crate::vault", "a device never sees a secret"),
    ("search", "crate::job", "a device does not know jobs"),
    ("web", "crate::vault", "the public web server holds no secret"),
    ("web", "crate::ledger", "the public web server knows no job"),
    ("control", "crate::vault", "no secret passes the local socket"),
    ("control", "crate::ledger", "the local socket knows no SQL"),
    ("key", "SecretKey::new", "this room makes no secret"),
    ("scheduler", "crate::message", "the scheduler writes no messages"),
];

/// The file's path below `src`.
fn name(file: &Path) -> String {
    source::below_src(file).display().to_string()
}

fn is_in(name: &str, room: &str) -> bool {
    name.strip_prefix(room).is_some_and(|rest| rest.starts_with(['/', '.']))
}

fn rooms_do_not_know_what_they_must_not() {
    let mut known = Vec::new();
    for file in source::library() {
        let (name, code) = (name(&file), source::code(&file));
        for (_, word, why) in FORBIDDEN.iter().filter(|(room, ..)| is_in(&name, room)) {
            if code.contains(word) {
                known.push(format!("{} has `{word}`: {why}", source::from_top(&name)));
            }
        }
    }
    assert!(known.is_empty(), "{}", known.join("\n"));
}

/// `scheduler/plan` makes decisions only; `scheduler/run` carries them out.
fn the_plan_has_no_threads_and_no_locks() {
    let words = ["thread", "Mutex", "RwLock", "Condvar", "mpsc", "spawn", "tokio", "atomic", "Notify", "Barrier"];
    let (mut found, mut read) = (Vec::new(), 0);
    for file in source::library().into_iter().filter(|file| name(file).starts_with("scheduler/plan/")) {
        read += 1;
        for token in tokens(&fs::read_to_string(&file).unwrap()) {
            if words.contains(&token.text.as_str()) {
                found.push(format!("{}:{} has `{}`", source::from_top(&name(&file)), token.line, token.text));
            }
        }
    }
    assert!(read > 3, "{read} files");
    assert!(found.is_empty(), "{}", found.join("\n"));
}

/// Code outside tests has no leftovers of development, prints only in `cli`, and draws random
/// numbers only from the operating system.
fn no_leftovers_and_no_other_randomness() {
    let banned = ["dbg!(", "todo!(", "unimplemented!(", "thread_rng", "SmallRng", "StdRng", "rand::rng", "fastrand"];
    let mut found = Vec::new();
    for file in source::library() {
        let (name, code) = (name(&file), source::code(&file));
        for word in banned.iter().filter(|word| code.contains(**word)) {
            found.push(format!("{} has `{word}`", source::from_top(&name)));
        }
        if !is_in(&name, "cli") && code.contains("println!(") {
            found.push(format!("{} prints", source::from_top(&name)));
        }
    }
    assert!(found.is_empty(), "{}", found.join("\n"));
}

fn no_file_is_longer_than_four_hundred_lines() {
    const MOST: usize = 400;
    let folders = ["src", "miner", "tests", "benches", "examples"].map(|folder| source::root().join(folder));
    let files = folders.iter().flat_map(|folder| source::files(folder, &["rs", "cu", "cuh", "h", "cpp"]));
    let mut long = Vec::new();
    for file in files {
        let name = file.strip_prefix(source::root()).unwrap().display().to_string();
        let lines = fs::read_to_string(&file).unwrap().lines().count();
        if lines > MOST {
            long.push(format!("{name} has {lines} lines"));
        }
    }
    assert!(long.is_empty(), "{} files of more than {MOST} lines:\n{}", long.len(), long.join("\n"));
}

fn main_stays_thin() {
    let lines = fs::read_to_string(source::root().join("src/main.rs")).unwrap().lines().count();
    assert!(lines < 60, "src/main.rs has {lines} lines");
}
