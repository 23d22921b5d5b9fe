//! Runs the program `npubbot` to its end.

use serde_json::Value;
use std::io::Write;
use std::path::Path;
use std::process::{Command, Output, Stdio};

/// `npubbot` without standard input. It sees no variable and no folder of the person who runs the
/// tests. Its home is not a folder, so nothing is written there.
pub fn command() -> Command {
    let mut command = Command::new(env!("CARGO_BIN_EXE_npubbot"));
    for (name, _) in std::env::vars_os() {
        let text = name.to_string_lossy();
        if (text.starts_with("NPUBBOT_") && !text.starts_with("NPUBBOT_TEST_")) || text.starts_with("XDG_") {
            command.env_remove(&name);
        }
    }
    command.env("HOME", "/dev/null").env_remove("RUST_LOG").env_remove("NO_COLOR").stdin(Stdio::null());
    command
}

/// Runs `npubbot` without standard input.
pub fn run<S: AsRef<std::ffi::OsStr>>(arguments: &[S]) -> Output {
    command().args(arguments).output().unwrap()
}

/// Runs `npubbot` in `folder`, with `home` as its home folder.
pub fn run_at_home<S: AsRef<std::ffi::OsStr>>(home: &Path, folder: &Path, arguments: &[S]) -> Output {
    command().env("HOME", home).current_dir(folder).args(arguments).output().unwrap()
}

/// Runs `npubbot` with a text on its standard input.
pub fn run_with_input(arguments: &[&str], input: &str) -> Output {
    let child = command().args(arguments).stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped()).spawn();
    let mut child = child.unwrap();
    // A program that refuses its arguments may exit before it reads.
    let _ = child.stdin.take().unwrap().write_all(input.as_bytes());
    child.wait_with_output().unwrap()
}

/// Runs a command that searches with one thread.
pub fn run_alone(arguments: &[&str]) -> Output {
    run(&[arguments, &["--device", "cpu", "--threads", "1"]].concat())
}

/// The JSON objects that a successful command printed, one a line.
pub fn objects(output: &Output) -> Vec<Value> {
    assert!(output.status.success(), "{}", stderr(output));
    stdout(output).lines().map(|line| serde_json::from_str(line).unwrap()).collect()
}

/// The one JSON object that a successful command printed.
pub fn object(output: &Output) -> Value {
    let [object] = &objects(output)[..] else { panic!("{}", stdout(output)) };
    object.clone()
}

pub fn stdout(output: &Output) -> String {
    String::from_utf8(output.stdout.clone()).unwrap()
}

pub fn stderr(output: &Output) -> String {
    String::from_utf8(output.stderr.clone()).unwrap()
}
