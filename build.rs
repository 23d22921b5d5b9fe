//! Names the commit, the target and the features of this build, for `npubbot --version`.
//!
//! The commit is taken from the variable `NPUBBOT_COMMIT`, else from the record that cargo puts
//! into a package, else, in a release build, from git.

#![allow(clippy::print_stdout, clippy::print_stderr, reason = "cargo reads what a build script prints")]

use std::path::Path;
use std::process::Command;
use std::{env, fs};

fn main() {
    // Without a line of this kind cargo would run the script again after any change of any file.
    println!("cargo::rerun-if-changed=build.rs");
    println!("cargo::rustc-env=NPUBBOT_COMMIT={}", commit());
    // Whether `serve` is a supervisor with other processes, or does all but the vault's work itself.
    println!("cargo::rustc-check-cfg=cfg(supervised)");
    if env::var("CARGO_CFG_TARGET_OS").is_ok_and(|system| system == "linux") {
        println!("cargo::rustc-cfg=supervised");
    }
    println!("cargo::rustc-env=NPUBBOT_TARGET={}", env::var("TARGET").unwrap_or_default());
    let features =
        ["demo", "fleet", "top"].map(|name| (name, env::var_os(format!("CARGO_FEATURE_{}", name.to_uppercase()))));
    let features: Vec<&str> = features.iter().filter(|(_, set)| set.is_some()).map(|(name, _)| *name).collect();
    println!(
        "cargo::rustc-env=NPUBBOT_FEATURES={}",
        if features.is_empty() { "none".into() } else { features.join(" ") }
    );
}

/// The commit that is built. A debug build does not ask git, because it would then be compiled
/// again after every commit.
fn commit() -> String {
    println!("cargo::rerun-if-env-changed=NPUBBOT_COMMIT");
    if let Ok(commit) = env::var("NPUBBOT_COMMIT") {
        return commit;
    }
    if let Ok(record) = fs::read_to_string(".cargo_vcs_info.json") {
        let after = record.split("\"sha1\": \"").nth(1);
        return after.and_then(|text| text.split('"').next()).unwrap_or("unknown").to_owned();
    }
    if env::var("PROFILE").as_deref() != Ok("release") {
        return "unknown (a debug build)".to_owned();
    }
    let git = |arguments: &[&str]| {
        let output = Command::new("git").args(arguments).output().ok().filter(|output| output.status.success())?;
        Some(String::from_utf8_lossy(&output.stdout).trim().to_owned())
    };
    for file in ["HEAD", "logs/HEAD"] {
        if let Some(path) = git(&["rev-parse", "--git-path", file]).filter(|path| Path::new(path).exists()) {
            println!("cargo::rerun-if-changed={path}");
        }
    }
    git(&["rev-parse", "HEAD"]).unwrap_or_else(|| "unknown".to_owned())
}
