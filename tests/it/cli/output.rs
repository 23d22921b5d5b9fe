//! What commands do when nobody takes what they print, and at a hidden prompt.

use crate::support::harness::{Test, test};
use crate::support::program::{command, stderr};
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
        "mine q --count 3 --device cpu -j 1",
        "mine q --json --device cpu -j 1",
        "mine best zeros 1s --device cpu -j 1",
        "bench --seconds 0.2 --device cpu -j 1",
        "bench --seconds 0.2 --device cpu -j 1 --report",
        "bench --seconds 0.2 --device cpu -j 1 --json",
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

/// Runs a program at a terminal, sends a key at its hidden prompt, and prints what has become of
/// the terminal and of the program.
const PROMPT: &str = r#"
import os, pty, select, signal, subprocess, sys, termios, time
kills = sys.argv[1] == "kill"
for ignored in signal.SIGINT, signal.SIGQUIT:
    # A test in the background has inherited that they are ignored.
    signal.signal(ignored, signal.SIG_DFL)
pid, terminal = pty.fork()
if pid == 0 and kills:
    # The terminal belongs to this process, like to a shell, so it outlives the program.
    bot = subprocess.Popen(sys.argv[2:])
    signal.signal(signal.SIGUSR1, lambda *_: bot.kill())
    bot.wait()
    while not termios.tcgetattr(0)[3] & termios.ECHO:
        time.sleep(0.02)
    os._exit(9)
if pid == 0:
    os.execv(sys.argv[2], sys.argv[2:])
shown, end = b"", time.time() + 60
def echo():
    return bool(termios.tcgetattr(terminal)[3] & termios.ECHO)
while time.time() < end and (echo() or b": " not in shown):
    if select.select([terminal], [], [], 0.05)[0]:
        shown += os.read(terminal, 4096)
print("hidden" if not echo() else "shown at the prompt")
os.kill(pid, signal.SIGUSR1) if kills else os.write(terminal, bytes([int(sys.argv[1])]))
ended, status = 0, 0
while time.time() < end and not (ended and echo()):
    if select.select([terminal], [], [], 0.05)[0]:
        try:
            shown += os.read(terminal, 4096)
        except OSError:
            # Nobody has the terminal any more.
            if not ended:
                ended, status = os.waitpid(pid, 0)
            break
    if not ended:
        ended, status = os.waitpid(pid, os.WNOHANG)
print("shown again" if echo() else "still hidden")
print("ended" if ended else "still there", os.waitstatus_to_exitcode(status))
print(shown.decode("utf-8", "replace"))
"#;

async fn ctrl_c_at_a_hidden_prompt_leaves_a_terminal_that_shows_what_is_typed() {
    let folder = tempfile::tempdir().unwrap();
    let data = folder.path().join("data");
    let config = folder.path().join("relays.toml");
    std::fs::write(&config, "[[relays]]\nurl = \"ws://127.0.0.1:9\"\nroles = [\"inbox\", \"status\"]\n").unwrap();
    let init = ["init", "--data", data.to_str().unwrap(), "--config", config.to_str().unwrap()];
    let mine: &[&str] = &["mine", "q", "--ncryptsec", "--device", "cpu", "-j", "1"];
    // Ctrl-C, Ctrl-\, and the end of the bot while its vault asks.
    for (arguments, key) in [(&init[..], "3"), (&init[..], "28"), (&init[..], "kill"), (mine, "3")] {
        let program = command();
        let mut terminal = Command::new("python3");
        terminal.args(["-c", PROMPT, key]).arg(program.get_program()).args(arguments);
        let output = terminal.env("HOME", "/dev/null").output().unwrap();
        let said = String::from_utf8_lossy(&output.stdout).into_owned();
        assert!(said.starts_with("hidden\nshown again\nended "), "{arguments:?}, {key}: {said}{}", stderr(&output));
        assert!(!said.contains("cannot be started"), "{said}");
        assert!(!data.join("identity.age").exists());
    }
}
