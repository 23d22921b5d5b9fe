//! What commands do when nobody takes what they print, and at a hidden prompt.

use crate::support::bot::ChildGuard;
use crate::support::harness::{Test, test};
use crate::support::program::{command, stderr};
use crate::support::terminal::{Terminal, at_terminal};
use crate::support::vault::{children_of, kill};
use crate::support::wait_for;
use std::fs::File;
use std::process::{Command, Stdio};

pub const TESTS: &[Test] = &[
    test!(a_command_whose_reader_is_gone_ends_quietly_and_one_on_a_full_disk_says_so),
    test!(ctrl_c_at_a_hidden_prompt_leaves_a_terminal_that_shows_what_is_typed),
];

/// Commands that print much or little, with files of this folder.
fn commands(folder: &str) -> Vec<Vec<String>> {
    let words = |line: &str| line.replace("FOLDER", folder).split(' ').map(str::to_owned).collect();
    [
        "mine q --json --device cpu -j 1",
        "mine best zeros 1s --device cpu -j 1",
        "bench --seconds 0.1 --device cpu -j 1 --report",
        "explain m0c",
        "completions bash",
        "doctor --data FOLDER/data --config FOLDER/relays.toml",
        "fleet --data FOLDER/data init --host 127.0.0.1",
    ]
    .map(words)
    .into()
}

async fn a_command_whose_reader_is_gone_ends_quietly_and_one_on_a_full_disk_says_so() {
    let folder = tempfile::tempdir().unwrap();
    let folder = folder.path().to_str().unwrap();
    for arguments in commands(folder) {
        let (reader, writer) = std::io::pipe().unwrap();
        drop(reader);
        let closed = command().args(&arguments).stdout(writer).stderr(Stdio::piped()).output().unwrap();
        let full = || File::options().write(true).open("/dev/full").unwrap();
        let on_disk = command().args(&arguments).stdout(full()).stderr(Stdio::piped()).output().unwrap();
        let unread = command().args(&arguments).stdout(full()).stderr(full()).output().unwrap();
        for output in [&closed, &on_disk, &unread] {
            assert!(output.status.code().is_some_and(|code| code <= 2), "{arguments:?}: {output:?}");
            assert!(!stderr(output).contains("panicked"), "{arguments:?}: {output:?}");
        }
        if !["fleet", "doctor"].contains(&arguments[0].as_str()) {
            assert!(closed.status.success(), "{arguments:?}: {closed:?}");
            assert_eq!(on_disk.status.code(), Some(1), "{arguments:?}: {on_disk:?}");
            assert!(stderr(&on_disk).contains("standard output cannot be written: "), "{arguments:?}: {on_disk:?}");
        }
    }
}

/// A shell outlives the program, as it does for a person, so the terminal stays.
async fn ctrl_c_at_a_hidden_prompt_leaves_a_terminal_that_shows_what_is_typed() {
    let folder = tempfile::tempdir().unwrap();
    let data = folder.path().join("data");
    let config = folder.path().join("relays.toml");
    std::fs::write(&config, "[[relays]]\nurl = \"ws://127.0.0.1:9\"\nroles = [\"inbox\", \"status\"]\n").unwrap();
    let init = ["init", "--data", data.to_str().unwrap(), "--config", config.to_str().unwrap()];
    let mine = ["mine", "q", "--ncryptsec", "--device", "cpu", "-j", "1"];
    // Ctrl-C, Ctrl-\, and the end of the bot while its vault asks.
    for (arguments, key) in [(&init[..], "\x03"), (&init[..], "\x1c"), (&init[..], ""), (&mine[..], "\x03")] {
        let (mut terminal, theirs) = Terminal::new();
        let mut shell = Command::new("sh");
        shell.args(["-c", "trap : INT QUIT; \"$@\"; echo; echo ended; read -r wait", "sh"]);
        shell.arg(env!("CARGO_BIN_EXE_npubbot")).args(arguments).env("HOME", "/dev/null");
        let shell = shell.stdout(theirs.try_clone().unwrap());
        let shell = ChildGuard(at_terminal(shell, theirs).spawn().unwrap());
        terminal.shows(": ").await;
        wait_for("nothing that is typed is shown", || !terminal.has(libc::ECHO)).await;
        match key {
            "" => kill(children_of(shell.0.id())[0]),
            key => terminal.types(key),
        }
        terminal.shows("ended").await;
        wait_for("what is typed is shown", || terminal.has(libc::ECHO)).await;
        assert!(!terminal.text().contains("cannot be started"), "{}", terminal.text());
        assert!(!data.join("identity.age").exists());
    }
}
