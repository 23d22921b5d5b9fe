//! The operator's view of a bot that is killed or hangs, or has no disk, no relay or no device. The
//! page `docs/operators/failures.md` is made from these captures.

use super::control::{LONG, answering, operate, operator_command};
use crate::support::asker::Asker;
use crate::support::bot::{FaultyBot, Home};
use crate::support::harness::{Test, skip, test};
use crate::support::program::stdout;
use crate::support::relay::{TestRelay, free_port};
use crate::support::terminal::{self, Step};
use crate::support::{source, until};
use rustix::process::{Pid, Signal, kill_process};
use std::fmt::Write;
use std::fs;
use std::io::Read;
use std::net::TcpStream;
use std::path::PathBuf;
use std::process::{Command, Stdio};
use std::time::Duration;

pub const TESTS: &[Test] = &[test!(the_page_of_failures_shows_what_the_operator_sees)
    .long("it writes docs/operators/failures.md, fills a disk as root and takes three minutes")];

const HEAD: &str = "\
# What you see when something fails

Captures of a debug build on one CPU thread, with the relay on the same machine. They are made again
by `cargo test --test it the_page_of_failures -- --ignored`, as root. `…` stands for a name.

| what happens | `status` | `top` | metrics and health | `doctor` | what to do |
| --- | --- | --- | --- | --- | --- |
| [its disk is full](#its-disk-is-full) | `BAD`: what is left on the disk | event: `a message cannot be answered yet`, and why | `npubbot_data_free_bytes` 0; `/readyz` 503 | the same `BAD` | Free some space. Nothing is lost: the bot goes on by itself. |
| [its relay is gone](#its-relay-is-gone) | `disconnected`, and `BAD` if it was the last | `away`, how often it failed, and the event | `npubbot_relay_connected` 0; `/readyz` 503 if it was the last | the same, and why the relay is not reached | Wait, or name another relay and `npubbot reload`. |
| [the bot hangs](#the-bot-hangs) | no answer in 40 seconds, code 1; a line says so after 3 | `the bot has not answered for … seconds`, above its last figures | no answer within the scraper's time | `BAD`: did not answer | systemd restarts it after 60 seconds; without systemd, you do. Nothing is lost. |
| [the bot is killed](#the-bot-is-killed) | `no bot runs`, code 3 | the same, above its last figures | connection refused | none answers on the local socket | systemd starts it again. Without systemd, run `npubbot serve`. The bot's log has the reason; if memory was short, the kernel's log has it. |
| [its GPU is lost](#its-gpu-is-lost) | `out:` and why, and `BAD` if it was the last | the same, and the event | `npubbot_device_working` 0; `/readyz` 503 if it was the last | the same, and the remedy | The bot tries it again by itself. After some CUDA errors only a restart of the bot helps. |
";

/// A bot with metrics and an open job, and the text captured from it.
struct Captured {
    home: Home,
    port: u16,
    page: String,
}

impl Captured {
    /// Adds `status`, `doctor`, the metrics and the given screen of `top` to the page.
    fn show(&mut self, title: &str, how: &str, screen: &str) {
        let _ = write!(self.page, "\n## {title}\n\n{how}\n");
        for command in ["status", "doctor"] {
            let file = self.home.folder.path().join("said");
            let said = fs::File::create(&file).unwrap();
            let mut shown = operator_command(&self.home, &[command]);
            let status = shown.stdout(said.try_clone().unwrap()).stderr(said).status().unwrap();
            let (text, code) = (fs::read_to_string(file).unwrap(), status.code().unwrap_or(-1));
            self.add(&format!("$ npubbot {command}\n{text}[exit code {code}]"));
        }
        self.add(&format!("$ npubbot top\n{screen}"));
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

    /// Runs `top` through these steps, the last of which ends it. Returns its screen.
    fn top(&self, steps: &[Step]) -> String {
        terminal::top(&self.home.data(), &self.home.config_file(), steps)
    }

    /// Waits until `/readyz` gives this reason: the bot keeps each answer for a second.
    async fn not_ready(&self, because: &str) {
        until(because, || async { self.get("/readyz").contains(because).then_some(()) }).await;
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

    /// The body of a page, or in parentheses the reason why there is none.
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

/// A small disk, unmounted when dropped.
struct Disk(PathBuf);

impl Disk {
    fn mount(folder: PathBuf) -> Disk {
        fs::create_dir_all(&folder).unwrap();
        let mounted = Command::new("mount").args(["-t", "tmpfs", "-o", "size=8m", "tmpfs"]).arg(&folder).status();
        if !mounted.is_ok_and(|status| status.success()) {
            skip("the disk of a data folder cannot be limited: that needs root rights");
        }
        Disk(folder)
    }
}

impl Drop for Disk {
    fn drop(&mut self) {
        let _ = Command::new("umount").arg("--lazy").arg(&self.0).status();
    }
}

async fn the_page_of_failures_shows_what_the_operator_sees() {
    let relay = TestRelay::start().await;
    let port = free_port();
    let web = format!("[web]\nmetrics = \"127.0.0.1:{port}\"\n");
    let mut captured = Captured { home: Home::with(&[relay.url()], &web), port, page: HEAD.to_owned() };
    let data = captured.home.data();
    let disk = Disk::mount(data.clone());
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
    captured.not_ready("the disk of the data folder is full").await;
    let screen = captured.top(&[("disk is full", "q", &[])]);
    captured.show(
        "Its disk is full",
        "The data folder has a disk of 8 MiB, and another file fills it. Two messages came meanwhile.",
        &screen,
    );
    fs::remove_file(&filler).unwrap();
    asker.next_message().await;

    relay.stop().await;
    until("the relay is missed", || async {
        let status = operate(&captured.home, &["status"]);
        stdout(&status).contains("disconnected").then_some(())
    })
    .await;
    captured.not_ready("no relay is connected").await;
    let screen = captured.top(&[("nobody can reach", "q", &[])]);
    captured.show("Its relay is gone", "The only relay was stopped.", &screen);

    let pid = bot.pid().to_string();
    let screen = captured.top(&[("Devices", "", &["kill", "-STOP", &pid]), ("has not answered", "q", &[])]);
    captured.show("The bot hangs", "Its process was stopped with SIGSTOP while `top` was open.", &screen);
    kill_process(Pid::from_raw(bot.pid() as i32).unwrap(), Signal::CONT).unwrap();
    answering(&captured.home).await;

    let screen = captured.top(&[("searching", "", &["kill", "-KILL", &pid]), ("no bot runs", "q", &[])]);
    bot.kill();
    captured.show("The bot is killed", "Its process was killed with SIGKILL while `top` was open.", &screen);
    drop(disk);

    // A new bot with a new disk and relay. Its device fails whenever a launch is collected.
    let relay = TestRelay::start().await;
    captured.home = Home::with(&[relay.url()], &web);
    let mut command = captured.home.command();
    command.env("NPUBBOT_TEST_FAULT", "panics:collect:before").env("RUST_LOG", "off,npubbot=info");
    let log = fs::File::create(captured.home.folder.path().join("log")).unwrap();
    let _failing = FaultyBot(command.stdout(Stdio::null()).stderr(log).spawn().unwrap());
    answering(&captured.home).await;
    let mut asker = Asker::connect(&relay.url(), captured.home.vault().public_key()).await;
    asker.ask(LONG).await;
    // The device is tried again after ever longer pauses. This pause is long enough for the
    // captures.
    until("its device is out", || async { captured.home.log().contains("retry_in=16s").then_some(()) }).await;
    captured.not_ready("no device works").await;
    let screen = captured.top(&[("out:", "q", &[])]);
    captured.show(
        "Its GPU is lost",
        "A fault was set that makes the CPU device fail at each launch, in place of a GPU. The reason of a\nGPU is \
         the driver's, for example `CUDA_ERROR_LAUNCH_FAILED`. After this one CUDA refuses every GPU\nof the \
         process: on two H100s, the other one was out 10 ms later. The reason ends with \"CUDA refuses\nevery GPU \
         until npubbot is started again\". Where the last GPU fails, one CPU thread takes over\n\
         (`tests/it/gpu/failure.rs`, `tests/it/gpu/restart.rs`).",
        &screen,
    );
    fs::write(source::root().join("docs/operators/failures.md"), &captured.page).unwrap();
    for part in
        ["no bot runs", "did not answer", "disconnected", "out: ", "are left on the disk", "is connected to no relay"]
    {
        assert!(captured.page[HEAD.len()..].contains(part), "{part}");
    }
}
