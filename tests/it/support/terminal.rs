//! A terminal of 80×24 for a program, and its screen.

use super::harness::skip;
use super::program::{command, stderr, stdout};
use std::path::Path;
use std::process::Command;

/// A script that interprets the few sequences that ratatui writes. Arguments: the steps, the
/// program and its arguments. Prints the screen at the last step.
const SCRIPT: &str = r#"
import fcntl, json, os, pty, re, select, struct, subprocess, sys, termios, time
pid, terminal = pty.fork()
if pid == 0:
    fcntl.ioctl(0, termios.TIOCSWINSZ, struct.pack("HHHH", 24, 80, 0, 0))
    os.environ.update(TERM="xterm-256color", NO_COLOR="1")
    os.execv(sys.argv[2], sys.argv[2:])
raw = b""
def screen():
    cells, row, column = {}, 0, 0
    for move, text in re.findall(r"(\x1b\[[0-9;?]*[A-Za-z]|\x1b[=>78]|[\r\n])|([^\x1b\r\n]+)", raw.decode("utf-8", "replace")):
        at = re.fullmatch(r"\x1b\[(\d*);?(\d*)H", move)
        if at:
            row, column = int(at[1] or 1) - 1, int(at[2] or 1) - 1
        elif move in ("\x1b[2J", "\x1b[?1049h"):
            cells.clear()
        elif move == "\r":
            column = 0
        elif move == "\n":
            row += 1
        for letter in text:
            cells[row, column] = letter
            column += 1
    lines = ("".join(cells.get((row, column), " ") for column in range(80)).rstrip() for row in range(24))
    return "\n".join(line for line in lines if line)
def read(until):
    global raw
    if not select.select([terminal], [], [], max(0, until - time.monotonic()))[0]:
        return False
    try:
        raw += os.read(terminal, 65536)
    except OSError:
        return False
    return True
shown = ""
for text, keys, command in json.loads(sys.argv[1]):
    until = time.monotonic() + 60
    while text not in screen():
        if not read(until):
            sys.exit(f"waited in vain for {text}:\n{screen()}")
    # The rest of this frame.
    until = time.monotonic() + 0.5
    while read(until):
        pass
    shown = screen()
    if command:
        subprocess.run(command, check=True)
    os.write(terminal, keys.encode())
print(shown)
until = time.monotonic() + 60
ended = 0
while not ended and time.monotonic() < until:
    read(min(until, time.monotonic() + 0.02))
    ended, status = os.waitpid(pid, os.WNOHANG)
if not ended:
    os.kill(pid, 9)
    sys.exit("it has not ended a minute later")
sys.exit(os.waitstatus_to_exitcode(status))
"#;

/// A text to wait for on the screen, the keys to press then, and a command to run before them.
pub type Step<'a> = (&'a str, &'a str, &'a [&'a str]);

/// Runs `npubbot top` for a bot through these steps; the last one must end it. Returns the screen
/// at the last step.
pub fn top(data: &Path, config: &Path, steps: &[Step]) -> String {
    let program = command();
    let mut terminal = Command::new("python3");
    for (name, value) in program.get_envs() {
        match value {
            Some(value) => terminal.env(name, value),
            None => terminal.env_remove(name),
        };
    }
    terminal.args(["-c", SCRIPT, &serde_json::to_string(steps).unwrap()]).arg(program.get_program()).arg("top");
    terminal.arg("--data").arg(data).arg("--config").arg(config);
    let Ok(shown) = terminal.output() else { skip("there is no python3 to make a terminal") };
    assert!(shown.status.success(), "{}{}", stdout(&shown), stderr(&shown));
    stdout(&shown)
}
