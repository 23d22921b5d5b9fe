//! Only `src/os/` and `miner/src/search/os/` know the operating system.

use super::tokens::{Token, tokens};
use crate::support::harness::{Test, test};
use crate::support::source;
use std::fs;

pub const TESTS: &[Test] =
    &[test!(no_other_room_knows_the_operating_system), test!(every_way_to_ask_for_the_system_is_recognised)];

/// The rooms that know the operating system, as folders below `src`.
const ROOMS: [&str; 2] = ["os/", "search/os/"];

/// Crates that call one system, and conditions that name one.
const WORDS: &[&str] = &[
    "interprocess",
    "landlock",
    "libc",
    "nix",
    "rustix",
    "sd_notify",
    "seccompiler",
    "target_env",
    "target_family",
    "target_os",
    "target_vendor",
    "windows_sys",
];

/// Ends of the names of shared libraries, which differ between systems.
const LIBRARIES: &[&str] = &[".so\"", ".so.", ".dll\"", ".dylib\""];

/// Words within `cfg(…)` that name a family of systems.
const FAMILIES: &[&str] = &["unix", "windows"];

/// Modules of `std::os`, and of tokio's `signal`.
const MODULES: &[&str] = &["fd", "linux", "macos", "raw", "unix", "windows"];

/// The words in code that depend on the operating system, each with its line.
fn systems(code: &str) -> Vec<(usize, String)> {
    let tokens = tokens(code);
    let text = |at: usize| tokens.get(at).map_or("", |token: &Token| token.text.as_str());
    let (mut found, mut depth) = (Vec::new(), 0usize);
    for (at, token) in tokens.iter().enumerate() {
        let word = token.text.as_str();
        // `depth` is above 0 within the brackets of `cfg(…)`, `cfg!(…)` or `cfg_attr(…)`.
        match word {
            "(" if depth > 0 => depth += 1,
            "(" if ["cfg", "cfg_attr"].contains(&text(at.wrapping_sub(1))) => depth = 1,
            "(" if text(at.wrapping_sub(1)) == "!" && text(at.wrapping_sub(2)) == "cfg" => depth = 1,
            ")" => depth = depth.saturating_sub(1),
            _ => {}
        }
        let is_module = ["os", "signal"].contains(&word) && text(at + 1) == "::" && MODULES.contains(&text(at + 2));
        if WORDS.contains(&word) || is_module || (depth > 0 && FAMILIES.contains(&word)) {
            found.push((token.line, word.to_owned()));
        }
    }
    found
}

fn no_other_room_knows_the_operating_system() {
    let (mut found, mut inside) = (Vec::new(), 0);
    for file in source::library() {
        let name = source::below_src(&file).display().to_string();
        let text = fs::read_to_string(&file).unwrap();
        let systems = systems(&text);
        if ROOMS.iter().any(|room| name.starts_with(room)) {
            inside += systems.len();
            continue;
        }
        for (line, word) in systems.into_iter().chain(libraries(&text)) {
            found.push(format!("{}:{line} has `{word}`", source::from_top(&name)));
        }
    }
    assert!(inside > 20, "{inside} in the rooms that know it");
    assert!(found.is_empty(), "move it to src/os/ (ARCHITECTURE.md):\n{}", found.join("\n"));
}

/// The strings in code that name a shared library, each with its line.
fn libraries(code: &str) -> Vec<(usize, String)> {
    let lines = (1..).zip(code.lines()).filter(|(_, line)| !line.trim_start().starts_with("//"));
    let named = |line: &str| LIBRARIES.iter().find(|end| line.contains(**end)).map(ToString::to_string);
    lines.filter_map(|(number, line)| Some((number, named(line)?))).collect()
}

fn every_way_to_ask_for_the_system_is_recognised() {
    for code in [
        "#[cfg(unix)]\nfn f() {}",
        "#[cfg(all(debug_assertions, not(windows)))]\nfn f() {}",
        "#[cfg_attr(windows, allow(dead_code))]\nfn f() {}",
        "fn f() -> bool { cfg!(windows) }",
        "#[cfg(target_os = \"linux\")]\nfn f() {}",
        "use std::os::unix::fs::MetadataExt;",
        "use std::os::fd::{AsFd, OwnedFd};",
        "fn f() { tokio::signal::unix::signal(kind) }",
        "fn f() { rustix::process::geteuid() }",
        "use libc::c_int;",
    ] {
        assert_eq!(systems(code).len(), 1, "{code}");
    }
    for code in ["Library::new(\"libnvidia-ml.so.1\")", "open(\"libcuda.so\")", "open(\"nvml.dll\")"] {
        assert_eq!(libraries(code).len(), 1, "{code}");
    }
    for code in [
        "fn f(list: &[u8]) { list.windows(2) }",
        "use crate::os::files;",
        "// rustix\nfn f() { g(\"unix\") }",
        "#[cfg(test)]\nmod tests { use std::os::unix::fs::PermissionsExt; }",
        "#[cfg(feature = \"demo\")]\nfn windows() {}",
    ] {
        assert_eq!(systems(code), [], "{code}");
    }
}
