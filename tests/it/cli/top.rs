//! `npubbot top` on a terminal: drawn, resized, and left as it was.

use super::control::{LONG, lines, met_started, operate, started};
use crate::support::bot::{Home, Met};
use crate::support::harness::{Test, skip, test};
use crate::support::program::{stderr, stdout};
use crate::support::relay::TestRelay;
use crate::support::until;
use std::process::Command;

pub const TESTS: &[Test] =
    &[test!(top_shows_jobs_pauses_follows_the_terminals_size_and_restores_it), test!(top_needs_a_terminal_and_a_bot)];

/// A script that runs a program on a terminal of 80×24, waits for texts, presses keys, resizes the
/// terminal and quits. Arguments: a text that must be on the screen, then the program and its
/// arguments. The texts have no blanks, because a blank over a blank is not written.
const TERMINAL: &str = r#"
import fcntl, os, pty, select, struct, sys, termios, time
def resize(fd, columns, lines):
    fcntl.ioctl(fd, termios.TIOCSWINSZ, struct.pack("HHHH", lines, columns, 0, 0))
pid, terminal = pty.fork()
if pid == 0:
    resize(0, 80, 24)
    os.environ.update(TERM="xterm-256color", NO_COLOR="1")
    os.execv(sys.argv[2], sys.argv[2:])
seen = b""
def wait_for(text):
    global seen
    until = time.monotonic() + 60
    while text not in seen:
        if not select.select([terminal], [], [], max(0, until - time.monotonic()))[0]:
            sys.exit(f"waited in vain for {text}: {seen[-3000:]}")
        seen += os.read(terminal, 65536)
    seen = seen[seen.index(text) + len(text):]
wait_for(b"\x1b[?1049h")
wait_for(b"searching")
wait_for(b"Devices")
wait_for(sys.argv[1].encode())
wait_for(b"quit")
os.write(terminal, b"p")
wait_for(b"paused")
resize(terminal, 120, 36)
wait_for(sys.argv[1].encode())
os.write(terminal, b"\x1b[B")
resize(terminal, 60, 20)
wait_for(b"small:")
# A key at the moment of a resize counts, also while the one before is drawn.
for columns in range(61, 79):
    resize(terminal, columns, 20)
os.write(terminal, b"q")
wait_for(b"\x1b[?1049l")
# Keys are read by lines again.
assert termios.tcgetattr(terminal)[3] & termios.ICANON
sys.exit(os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1]))
"#;

async fn top_shows_jobs_pauses_follows_the_terminals_size_and_restores_it() {
    let Met { relay: _relay, home, bot: _bot, mut asker } = met_started("").await;
    assert!(asker.ask(LONG).await.contains("#1"));
    // Later frames write only what changed, so the first one must show a device and the job.
    until("the search runs", || async {
        let status = &lines(&operate(&home, &["status", "--json"]))[0];
        let jobs = lines(&operate(&home, &["jobs", "--json"]));
        (status["devices"][0]["state"] == "working" && jobs.len() == 1).then_some(())
    })
    .await;
    let mut terminal = Command::new("python3");
    terminal.args(["-c", TERMINAL, LONG, env!("CARGO_BIN_EXE_npubbot"), "top"]);
    terminal.arg("--data").arg(home.data()).arg("--config").arg(home.config_file());
    let Ok(shown) = terminal.output() else { skip("there is no python3 to make a terminal") };
    assert!(shown.status.success(), "{}", stderr(&shown));
    until("the search is paused", || async {
        let status = &lines(&operate(&home, &["status", "--json"]))[0];
        (status["devices"][0]["state"] == "paused").then_some(())
    })
    .await;
}

async fn top_needs_a_terminal_and_a_bot() {
    let relay = TestRelay::start().await;
    let home = Home::new(&[relay.url()]);
    let none = operate(&home, &["top"]);
    assert_eq!(none.status.code(), Some(3), "{}", stderr(&none));
    let _bot = started(&home).await;
    let piped = operate(&home, &["top"]);
    assert_eq!(piped.status.code(), Some(2));
    assert!(stderr(&piped).contains("needs a terminal") && stdout(&piped).is_empty(), "{}", stderr(&piped));
}
