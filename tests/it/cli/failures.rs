//! What the operator sees when the bot is killed, hangs, has no disk, no relay or no device: the
//! page `docs/operators/failures.md` is made of these captures.

use super::control::{LONG, answering, operate};
use crate::support::asker::Asker;
use crate::support::bot::Home;
use crate::support::harness::{Test, skip, test};
use crate::support::program::{stderr, stdout};
use crate::support::relay::{TestRelay, free_port};
use crate::support::{source, until};
use rustix::process::{Pid, Signal, kill_process};
use std::fmt::Write;
use std::fs;
use std::io::Read;
use std::net::TcpStream;
use std::path::Path;
use std::process::Command;
use std::time::Duration;

pub const TESTS: &[Test] = &[test!(the_page_of_failures_shows_what_the_operator_sees)
    .long("it writes docs/operators/failures.md, fills a disk as root and takes three minutes")];

/// Runs a program on a terminal of 80×24 for some seconds and prints what stands on it. It knows the
/// few sequences that ratatui writes.
const TERMINAL: &str = r#"
import fcntl, os, pty, re, select, struct, sys, termios, time
pid, terminal = pty.fork()
if pid == 0:
    fcntl.ioctl(0, termios.TIOCSWINSZ, struct.pack("HHHH", 24, 80, 0, 0))
    os.environ.update(TERM="xterm-256color", NO_COLOR="1")
    os.execv(sys.argv[2], sys.argv[2:])
raw, until = b"", time.monotonic() + float(sys.argv[1])
while time.monotonic() < until:
    if select.select([terminal], [], [], 0.1)[0]:
        try:
            raw += os.read(terminal, 65536)
        except OSError:
            break
os.kill(pid, 9)
screen, row, column = {}, 0, 0
for move, text in re.findall(r"(\x1b\[[0-9;?]*[A-Za-z]|\x1b[=>78]|[\r\n])|([^\x1b\r\n]+)", raw.decode("utf-8", "replace")):
    at = re.fullmatch(r"\x1b\[(\d*);?(\d*)H", move)
    if at:
        row, column = int(at[1] or 1) - 1, int(at[2] or 1) - 1
    elif move == "\x1b[2J":
        screen.clear()
    elif move == "\r":
        column = 0
    elif move == "\n":
        row += 1
    for letter in text:
        screen[row, column] = letter
        column += 1
for row in range(24):
    line = "".join(screen.get((row, column), " ") for column in range(80)).rstrip()
    if line:
        print(line)
"#;

const HEAD: &str = "\
# What you see when something fails

Captures of a debug build on one CPU thread, with the relay on the same machine. They are made again
by `cargo test --test it the_page_of_failures -- --ignored`, as root. `…` stands for a name.

| what happens | `status` | `top` | metrics and health | `doctor` | what to do |
| --- | --- | --- | --- | --- | --- |
| [the bot is killed](#the-bot-is-killed) | says that no bot runs, code 3 | the same; one that is open keeps the last figures under that message | refused | `none answers on the local socket` | systemd starts it again; look at its log |
| [the bot hangs](#the-bot-hangs) | says after 40 seconds that it did not answer, code 1 | the same | no answer within the scraper's time | `broken`: did not answer | systemd restarts it after 60 seconds |
| [its disk is full](#its-disk-is-full) | as usual | events: `cannot be answered yet` | as usual; `npubbot_data_free_bytes` is 0 | `broken`: what is left on the disk | free some space; nothing is lost |
| [its relay is gone](#its-relay-is-gone) | `disconnected` | `away`, with the failures | `npubbot_relay_connected` 0; `/readyz` 503 | `broken`: no relay is connected | wait or name another relay |
| [its GPU is lost](#its-gpu-is-lost) | `out:` and the reason | the same, and the event | `npubbot_device_working` 0; `/readyz` 503 if it was the last | `weak` or `broken`, with the reason | it is tried again; after some CUDA errors restart the bot |
";

/// A bot with metrics and an open job, and what is captured of it.
struct Captured {
    home: Home,
    port: u16,
    page: String,
}

impl Captured {
    /// What `status`, `doctor`, `top` and the metrics show now.
    fn show(&mut self, title: &str, how: &str) {
        let _ = write!(self.page, "\n## {title}\n\n{how}\n");
        for command in ["status", "doctor"] {
            let output = operate(&self.home, &[command]);
            let code = output.status.code().unwrap_or(-1);
            let text = format!("$ npubbot {command}\n{}{}", stdout(&output), stderr(&output));
            self.add(&format!("{text}[exit code {code}]"));
        }
        let mut terminal = Command::new("python3");
        terminal.args(["-c", TERMINAL, "4", env!("CARGO_BIN_EXE_npubbot"), "top"]);
        terminal.arg("--data").arg(self.home.data()).arg("--config").arg(self.home.config_file());
        let Ok(shown) = terminal.output() else { skip("there is no python3 to make a terminal") };
        let screen = stdout(&shown);
        self.add(&format!(
            "$ npubbot top\n{}",
            if screen.trim().is_empty() { "(nothing yet: it waits for an answer)" } else { screen.as_str() }
        ));
        let metrics = self.get("/metrics");
        let told =
            ["npubbot_device_working", "npubbot_relay_connected", "npubbot_outbox_messages", "npubbot_data_free"];
        let lines = metrics.lines().filter(|line| told.iter().any(|name| line.starts_with(name)));
        let metrics = match metrics.starts_with('(') {
            true => metrics.clone(),
            false => lines.collect::<Vec<_>>().join("\n"),
        };
        let health =
            ["/healthz", "/readyz"].map(|page| format!("$ curl localhost:9477{page}\n{}", self.get(page).trim()));
        self.add(&format!("$ curl localhost:9477/metrics\n{metrics}\n{}", health.join("\n")));
    }

    fn add(&mut self, text: &str) {
        let data = self.home.folder.path().display().to_string();
        let mut text = text.replace(&data, "…").trim_end().to_owned();
        for word in text.clone().split(|letter: char| !letter.is_ascii_alphanumeric()) {
            if word.starts_with("npub1") && word.len() > 20 {
                text = text.replace(word, "npub1…");
            }
        }
        let _ = write!(self.page, "\n```text\n{text}\n```\n");
    }

    /// The body of a page; in parentheses why there is none.
    fn get(&self, page: &str) -> String {
        let get = || -> std::io::Result<String> {
            let mut stream = TcpStream::connect(("127.0.0.1", self.port))?;
            stream.set_read_timeout(Some(Duration::from_secs(3)))?;
            std::io::Write::write_all(
                &mut stream,
                format!("GET {page} HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n").as_bytes(),
            )?;
            let mut text = String::new();
            stream.read_to_string(&mut text)?;
            let (head, body) = text.split_once("\r\n\r\n").unwrap_or((&text, ""));
            let status = head.lines().next().unwrap_or_default().trim_start_matches("HTTP/1.1 ");
            Ok(if page == "/metrics" { body.to_owned() } else { format!("{status}: {body}") })
        };
        get().unwrap_or_else(|error| match error.kind() {
            std::io::ErrorKind::ConnectionRefused => "(connection refused)".to_owned(),
            _ => "(no answer within 3 seconds)".to_owned(),
        })
    }
}

fn mount(folder: &Path, size: &str) -> bool {
    fs::create_dir_all(folder).unwrap();
    let mounted = Command::new("mount").args(["-t", "tmpfs", "-o", size, "npubbot-test"]).arg(folder).status();
    mounted.is_ok_and(|status| status.success())
}

async fn the_page_of_failures_shows_what_the_operator_sees() {
    let relay = TestRelay::start().await;
    let port = free_port();
    let web = format!("[web]\nmetrics = \"127.0.0.1:{port}\"\n");
    let mut captured = Captured { home: Home::with(&[relay.url()], &web), port, page: HEAD.to_owned() };
    let data = captured.home.data();
    if !mount(&data, "size=8m") {
        skip("the disk of a data folder cannot be limited: that needs root rights");
    }
    let bot = captured.home.spawn_at_level("info").await;
    answering(&captured.home).await;
    let mut asker = Asker::connect(&relay.url(), bot.public_key).await;
    asker.ask(LONG).await;

    // The disk is filled to the last byte.
    let filler = data.join("filler");
    let _ = fs::write(&filler, vec![1; 16 << 20]);
    asker.send("help").await;
    asker.send(&format!("cat{}", " ".repeat(9))).await;
    until("it cannot be answered", || async { captured.home.log().contains("cannot be answered yet").then_some(()) })
        .await;
    captured.show(
        "Its disk is full",
        "The data folder has a disk of 8 MiB, and another file fills it. Two messages came meanwhile.",
    );
    fs::remove_file(&filler).unwrap();
    asker.next_message().await;

    relay.stop();
    until("the relay is missed", || async {
        let status = operate(&captured.home, &["status"]);
        stdout(&status).contains("disconnected").then_some(())
    })
    .await;
    captured.show("Its relay is gone", "The only relay was stopped.");

    let pid = Pid::from_raw(bot.pid() as i32).unwrap();
    kill_process(pid, Signal::STOP).unwrap();
    captured.show("The bot hangs", "Its process was stopped with SIGSTOP.");
    kill_process(pid, Signal::CONT).unwrap();

    bot.kill();
    captured.show("The bot is killed", "Its process was killed with SIGKILL.");
    let _ = Command::new("umount").arg(&data).status();

    // A new disk and relay; the device fails whenever a launch is collected.
    let relay = TestRelay::start().await;
    captured.home = Home::with(&[relay.url()], &web);
    let _failing = captured.home.spawn_faulty("panics:collect:before");
    answering(&captured.home).await;
    let mut asker = Asker::connect(&relay.url(), captured.home.vault().public_key()).await;
    asker.ask(LONG).await;
    until("its device is out", || async {
        let status = operate(&captured.home, &["status"]);
        stdout(&status).contains("out:").then_some(())
    })
    .await;
    captured.show(
        "Its GPU is lost",
        "A fault was set that makes the CPU device fail at each launch, in place of a GPU. The reason of a GPU is the \
         driver's, for example `CUDA_ERROR_LAUNCH_FAILED`; beside it the CPU goes on (`tests/it/gpu/failure.rs`).",
    );
    fs::write(source::root().join("docs/operators/failures.md"), &captured.page).unwrap();
    for part in
        ["no bot runs", "did not answer", "disconnected", "out: ", "are left on the disk", "is connected to no relay"]
    {
        assert!(captured.page[HEAD.len()..].contains(part), "{part}");
    }
}
