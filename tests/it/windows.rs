//! The Windows program under Wine. `just check-windows` builds it, and passes its path and that of
//! the program that runs it in a console (`tests/windows/console.c`).

use crate::support::asker::{Asker, DeliveredKey};
use crate::support::bot::{self, Home, at_relay};
use crate::support::harness::{Test, figure, skip, test};
use nostr_sdk::prelude::*;
use std::ffi::OsStr;
use std::fs;
use std::io::{BufRead, BufReader, Lines, Write};
use std::path::{Path, PathBuf};
use std::process::{Child, ChildStdin, ChildStdout, Command, Output, Stdio};
use std::time::Duration;

pub const TESTS: &[Test] = &[
    test!(under_wine_the_demo_gives_the_right_key).slow(),
    test!(under_wine_the_log_has_colours_on_a_console_that_shows_them).slow(),
    test!(under_wine_a_half_is_made_and_combined).slow(),
    test!(under_wine_doctor_finds_files_that_are_their_users_alone).slow(),
    test!(under_wine_a_bot_stops_cleanly_in_the_middle_of_a_job_and_delivers_later).slow(),
    test!(under_wine_a_bot_ended_by_force_delivers_later).slow(),
];

/// Longest clean stop.
const LONGEST_STOP: Duration = Duration::from_secs(2);

/// The folder with `npubbot.exe` and `console.exe`.
fn folder() -> PathBuf {
    match std::env::var_os("NPUBBOT_TEST_WINDOWS") {
        Some(folder) => folder.into(),
        None => skip("there is no Windows program: `just check-windows` builds it and runs this under Wine"),
    }
}

/// A program of that folder, under Wine.
fn wine(program: &str) -> Command {
    let mut command = Command::new("wine");
    command.arg(folder().join(program)).env("WINEDEBUG", "-all").env_remove("RUST_LOG").stdin(Stdio::null());
    command
}

fn run(arguments: &[&OsStr]) -> Output {
    wine("npubbot.exe").args(arguments).output().unwrap()
}

fn words(text: &str) -> Vec<&OsStr> {
    text.split(' ').map(OsStr::new).collect()
}

fn text(bytes: &[u8]) -> String {
    String::from_utf8(bytes.to_vec()).unwrap()
}

fn under_wine_the_demo_gives_the_right_key() {
    let output = run(&words("demo --json --prefix cat"));
    let said = text(&output.stdout);
    let last: serde_json::Value = serde_json::from_str(said.lines().last().unwrap_or_default()).unwrap();
    assert!(output.status.success(), "{said}");
    assert_eq!((&last["prefix"], &last["verified"]), (&"cat".into(), &true.into()), "{said}");
}

/// The screen of a console shows colour codes as text unless the program asks it to interpret them.
fn under_wine_the_log_has_colours_on_a_console_that_shows_them() {
    if !has_display() {
        skip("Wine's consoles have a screen only where there is a display: install xvfb");
    }
    for (no_color, shows) in [("", "1"), ("1", "0")] {
        let mut command = wine("console.exe");
        command.arg("-e").arg(folder().join("npubbot.exe")).args(["serve", "--data", r"Z:\none"]);
        command.env("NO_COLOR", no_color);
        let said = text(&command.output().unwrap().stdout);
        let end: Vec<&str> = said.lines().last().unwrap_or_default().split(' ').collect();
        assert_eq!((end[0], end.last()), ("2", Some(&shows)), "{said}");
    }
}

/// Makes a half, mines for it with this program, and combines the tweak.
fn under_wine_a_half_is_made_and_combined() {
    let home = tempfile::tempdir().unwrap();
    let (key, half) = (age_key(home.path()), home.path().join("half.age"));
    let new =
        run(&[words("split new m0c --age-identity"), vec![key.as_ref(), "--out".as_ref(), half.as_ref()]].concat());
    assert!(new.status.success(), "{}", text(&new.stderr));
    let request = text(&new.stdout);
    let mut words_of = request.split_whitespace().skip_while(|word| *word != "split");
    let point = words_of.nth(1).unwrap_or_else(|| panic!("no point in: {request}"));
    let mined = run(&[words("mine m0c --split"), vec![point.as_ref()]].concat());
    let tweak = text(&mined.stdout).split_whitespace().find(|word| word.starts_with("ntweak1")).map(str::to_owned);
    let tweak = tweak.unwrap_or_else(|| panic!("no tweak in: {}{}", text(&mined.stdout), text(&mined.stderr)));
    let arguments = [OsStr::new("combine"), tweak.as_ref(), "--half".as_ref(), half.as_ref()];
    let combined = run(&[arguments.to_vec(), vec!["--age-identity".as_ref(), key.as_ref()]].concat());
    assert!(combined.status.success(), "{}", text(&combined.stderr));
    let made = DeliveredKey::read(&text(&combined.stdout)).unwrap();
    assert!(made.npub.starts_with("npub1m0c"), "{}", made.npub);
}

/// An age key in a file of `folder`.
fn age_key(folder: &Path) -> PathBuf {
    let file = folder.join("key.txt");
    fs::write(&file, bot::age_key()).unwrap();
    file
}

fn under_wine_doctor_finds_files_that_are_their_users_alone() {
    let home = tempfile::tempdir().unwrap();
    let (key, config, data) = (age_key(home.path()), home.path().join("relays.toml"), home.path().join("bot"));
    let places = [OsStr::new("--config"), config.as_ref(), "--data".as_ref(), data.as_ref()];
    let opened = [OsStr::new("--age-identity"), key.as_ref()];
    let init = run(&[words("init --name ann --relay ws://127.0.0.1:9"), places.to_vec(), opened.to_vec()].concat());
    assert!(init.status.success(), "{}", text(&init.stderr));
    let doctor = || text(&run(&[words("doctor"), places.to_vec()].concat()).stdout);
    let found = doctor();
    for expected in ["ok    data folder", "ok    identity", "ok    ledger"] {
        assert!(found.contains(expected), "{found}");
    }
    for path in [&data, &data.join("identity.age")] {
        set_mode(path, 0o755);
    }
    let found = doctor();
    for expected in ["weak  data folder", "weak  identity"] {
        assert!(found.contains(expected), "{found}");
    }
}

fn set_mode(path: &Path, mode: u32) {
    fs::set_permissions(path, std::os::unix::fs::PermissionsExt::from_mode(mode)).unwrap();
}

/// `npubbot serve` under Wine, in its own console.
struct Console {
    child: Child,
    deeds: ChildStdin,
    lines: Lines<BufReader<ChildStdout>>,
    bot: PublicKey,
}

impl Console {
    fn serve(home: &Home) -> Console {
        drop(home.vault());
        let mut command = wine("console.exe");
        command.arg(folder().join("npubbot.exe")).arg("serve").arg("--config").arg(home.config_file());
        command.arg("--data").arg(home.data()).arg("--age-identity").arg(home.age_identity());
        command.stderr(fs::File::create(Console::log(home)).unwrap());
        let mut child = command.stdin(Stdio::piped()).stdout(Stdio::piped()).spawn().unwrap();
        let mut lines = BufReader::new(child.stdout.take().unwrap()).lines();
        let npub = lines.next().expect("serve prints its npub").unwrap();
        let bot = PublicKey::from_bech32(npub.trim()).unwrap();
        Console { deeds: child.stdin.take().unwrap(), child, lines, bot }
    }

    /// Standard error of the bot of this home that was started last.
    fn log(home: &Home) -> PathBuf {
        home.folder.path().join("console.log")
    }

    /// Ends the bot by `deed`. Returns its exit code and the time taken.
    fn end_by(mut self, deed: &str) -> (u32, Duration) {
        writeln!(self.deeds, "{deed}").unwrap();
        let line = self.lines.next().expect("the console says how it ended").unwrap();
        self.child.wait().unwrap();
        let (code, took) = line.trim().split_once(' ').unwrap();
        (code.parse().unwrap(), Duration::from_millis(took.parse().unwrap()))
    }
}

/// Asks a bot for a key that takes seconds, ends the bot at once, and starts it again. The key
/// arrives.
///
/// Returns the exit code of the bot that was ended, the time that its end took, and its log.
async fn end_in_the_middle(deed: &str) -> (u32, Duration, String) {
    let (relay, home) = at_relay("").await;
    let bot = Console::serve(&home);
    let mut asker = Asker::connect(&relay.url(), bot.bot).await;
    let accepted = asker.ask("m0cta").await;
    assert!(accepted.contains("#1"), "{accepted}");
    let (code, took) = bot.end_by(deed);
    let log = fs::read_to_string(Console::log(&home)).unwrap();
    let bot = Console::serve(&home);
    let key = asker.next_key().await;
    assert!(key.npub.starts_with("npub1m0cta"), "{}", key.npub);
    bot.end_by("c");
    home.assert_sound();
    (code, took, log)
}

/// Whether programs can open windows here.
fn has_display() -> bool {
    std::env::var_os("DISPLAY").is_some()
}

async fn under_wine_a_bot_stops_cleanly_in_the_middle_of_a_job_and_delivers_later() {
    for deed in ["c", "w"] {
        let (code, took, log) = end_in_the_middle(deed).await;
        assert_eq!(code, 0, "{deed}");
        figure(&format!("the stop by {deed}"), took, LONGEST_STOP);
        assert!(log.contains("stopping; send"), "{deed}: {log}");
    }
}

async fn under_wine_a_bot_ended_by_force_delivers_later() {
    let (code, _, log) = end_in_the_middle("k").await;
    assert!(code == 9 && !log.contains("stopping"), "code {code}: {log}");
}
